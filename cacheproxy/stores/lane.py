"""Many callers, few round trips: what is asked for while all trips are under way goes together with the next.

A trip is a task of its own. A caller who leaves takes his question out if it has not set off, and never disturbs a
trip: no connection is left half-read because somebody was cancelled.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Generic, TypeVar

from cacheproxy.errors import Trouble, place_of

log = logging.getLogger("cacheproxy.store")

Question = TypeVar("Question")
Result = TypeVar("Result")


class Lane(Generic[Question, Result]):
    """At most `width` trips at once, each of at most `most` questions; `trip` gives a result for each, in their
    order, or raises `Trouble` for all of them."""

    def __init__(self, trip: Callable[[list[Question]], Awaitable[Sequence[Result]]], *, width: int, most: int) -> None:
        self._trip = trip
        self._width = width
        self._most = most
        self._waiting: dict[asyncio.Future[Result], Question] = {}
        self._trips: set[asyncio.Task[None]] = set()
        self._faults: set[str] = set()

    def __repr__(self) -> str:
        return f"<Lane {len(self._waiting)} waiting, {len(self._trips)} under way>"

    async def ask(self, question: Question) -> Result:
        """The result of `question`. Raises `Trouble`."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting[future] = question
        self._set_off()
        try:
            return await future
        finally:
            self._waiting.pop(future, None)

    def _set_off(self) -> None:
        while self._waiting and len(self._trips) < self._width:
            party = dict(islice(self._waiting.items(), self._most))
            for future in party:
                del self._waiting[future]
            task = asyncio.get_running_loop().create_task(self._go(party))
            self._trips.add(task)
            task.add_done_callback(self._back)

    async def _go(self, party: dict[asyncio.Future[Result], Question]) -> None:
        try:
            results = await self._trip(list(party.values()))
            if len(results) != len(party):
                raise ValueError("not one result for each question")
        except BaseException as error:
            known = error if isinstance(error, Trouble) else None
            for future in party:
                if not future.done():
                    # One each: an exception that is raised in many places gathers their tracebacks.
                    why = Trouble(str(known), known.kind) if known else Trouble(type(error).__name__, "fault")
                    future.set_exception(why)
            if known is None:
                raise
            return
        for future, result in zip(party, results, strict=True):
            if not future.done():
                future.set_result(result)

    def _back(self, task: asyncio.Task[None]) -> None:
        self._trips.discard(task)
        if task.cancelled():
            return
        if (fault := task.exception()) is not None and (place := place_of(fault)) not in self._faults:
            self._faults.add(place)  # one line for each place, however often it fails there
            log.error("a round trip failed: %s", place)
        self._set_off()

    async def close(self) -> None:
        """End the trips under way; who still waits gets `Trouble`."""
        for future in self._waiting:
            if not future.done():
                future.set_exception(Trouble("closed", "closed"))
        self._waiting.clear()
        for task in list(self._trips):
            task.cancel()
        if self._trips:
            await asyncio.wait(list(self._trips))
