"""Bounded background work: what may finish after its caller has its answer. Drops what is too much; never blocks."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from cacheproxy.ports import Journal

log = logging.getLogger("cacheproxy.fill")


class Fill:
    """At most `limit` background tasks at once."""

    def __init__(self, journal: Journal, limit: int = 256) -> None:
        self._journal = journal
        self._limit = limit
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<Fill {len(self._tasks)}/{self._limit}>"

    def offer(self, work: Coroutine[Any, Any, None], ended: Callable[[], None] | None = None) -> bool:
        """Run `work` in the background; False, and it is dropped, if there is too much already. `ended` is called
        when it is over, also if it was cancelled before it began."""
        if len(self._tasks) >= self._limit:
            work.close()
            self._journal.count("background_dropped")
            return False
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        if ended is not None:
            task.add_done_callback(lambda _: ended())
        return True

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("background work failed: %s", type(task.exception()).__name__)

    async def close(self, seconds: float) -> None:
        """Wait for what is running, `seconds` at most, then cancel it."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
