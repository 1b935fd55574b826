"""One thread that does one thing after the other. Work that hangs holds up what comes after it, and nothing else: not
the event loop, nor the end of the process.

A loop that is never idle lets go of the interpreter only for instants that are too short for a thread to wake up in,
and so lets it starve. While work is under way and does not end, the loop stands still now and then.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from cacheproxy.errors import Trouble

PATIENCE, AGAIN, GAP = 0.02, 0.005, 0.0002
"""Seconds: work that has not ended for so long may starve; from then on the loop stands still so often, for so long."""
_TIRED = 100
"""After each so many gaps that brought nothing there are fewer of them: it is not for want of them."""

T = TypeVar("T")
_Order = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class Worker:
    """Begins with the first order."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._ordered = self._done = 0
        self._watched: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"<Worker {self._name} {self._ordered - self._done} to do>"

    def do(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """What `work` gives or raises, after what was ordered before. It is done though nobody waits for it. `Trouble`
        once it is closed."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if self._closed:
            future.set_exception(Trouble("closed", "closed"))
            return future
        self._ordered += 1
        future.add_done_callback(self._ended)
        self._orders.put((work, loop, future))
        if self._watched is not loop:
            self._watched = loop
            loop.call_later(PATIENCE, self._make_way, loop, self._done, 0)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        return future

    def _ended(self, _: "asyncio.Future[Any]") -> None:
        self._done += 1

    def _make_way(self, loop: asyncio.AbstractEventLoop, before: int, gaps: int) -> None:
        """Stand still for a moment if no more than `before` is done; it has been tried `gaps` times."""
        if self._done == self._ordered:
            self._watched = None
            return
        if self._done > before:
            gaps = 0
        else:
            time.sleep(GAP)
            gaps += 1
        loop.call_later(AGAIN * (1 + gaps // _TIRED) if gaps else PATIENCE, self._make_way, loop, self._done, gaps)

    def close(self) -> None:
        """Let the thread end after what was ordered. Does not wait for it."""
        self._closed = True
        self._orders.put(None)

    def _run(self) -> None:
        while (order := self._orders.get()) is not None:
            work, loop, future = order
            result, error = None, None
            try:
                result = work()
            except BaseException as raised:  # noqa: BLE001 - it is who ordered it that has to know
                error = raised
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(_settle, future, result, error)
            del order, work, future, result, error  # not kept until the next


def _settle(future: "asyncio.Future[Any]", result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error if isinstance(error, Exception) else RuntimeError(type(error).__name__))
