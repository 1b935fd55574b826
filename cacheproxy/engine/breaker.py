"""When a part is left alone, and when it is tried again. Nobody waits for a part that has just failed.

Closed: calls go through. At the first failure they stop, and calls of our own try the part in the background, one at a
time; the first that succeeds closes it again, so that a blip costs a moment's misses. After `FAILURES` failures in a
row it is open: from then on it is tried once a `PAUSE`. One log line when it opens and one when it closes after that.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from cacheproxy.errors import Trouble
from cacheproxy.ports import Journal

log = logging.getLogger("cacheproxy.guard")

FAILURES = 5
PAUSE = 1.0
FIRST_GAP = 0.02
"""Seconds between the first trials, doubled each time until it is open."""

Trial = Callable[[], Awaitable[object]]


class Breaker:
    """Of one kind of call to one part, `name`. `deadline`: seconds that a call may take."""

    def __init__(self, name: str, deadline: float, journal: Journal) -> None:
        self.name = name
        self._deadline = deadline
        self._journal = journal
        self._failures = 0
        self._trial: Trial | None = None
        self._trying: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Breaker {self.name} {self.state}>"

    @property
    def state(self) -> str:
        if self.closed:
            return "closed"
        return "open" if self._failures >= FAILURES else "suspect"

    @property
    def closed(self) -> bool:
        return self._failures == 0

    async def call(self, work: Trial) -> object | Trouble:
        """What `work` gives, or the trouble with it, within the deadline. While not closed `work` is not waited for: it
        is what is tried next in the background."""
        if not self.closed:
            self._trial = work
            return Trouble(f"{self.name} is left alone", "left_alone")
        found = await self._attempt(work)
        if isinstance(found, Trouble):
            self._failed(found)
            self._trial = work
            if self._trying is None:
                self._begin()
        return found

    def _begin(self) -> None:
        self._trying = asyncio.get_running_loop().create_task(self._try())
        self._trying.add_done_callback(self._tried)

    async def _attempt(self, work: Trial) -> object | Trouble:
        try:
            async with asyncio.timeout(self._deadline):
                return await work()
        except TimeoutError:
            return Trouble("it took too long", "timeout")
        except Trouble as trouble:
            return trouble

    async def _try(self) -> None:
        """Try until it succeeds."""
        gap = FIRST_GAP
        while not self.closed:
            await asyncio.sleep(PAUSE if self.state == "open" else gap)
            gap *= 2
            if self._trial is not None:
                found = await self._attempt(self._trial)
                if isinstance(found, Trouble):
                    self._failed(found)
                else:
                    self._succeeded()

    def _tried(self, task: asyncio.Task[None]) -> None:
        self._trying = None
        if not task.cancelled() and task.exception() is None and not self.closed:
            self._begin()  # a call failed in the moment after the trial that succeeded
            return
        self._trial = None
        if task.cancelled():
            self._failures = 0
        elif task.exception() is not None:
            # A fault of ours, not of the part: it shows again, and to its caller, at the next call.
            log.error("a trial of %s failed: %s", self.name, type(task.exception()).__name__)
            self._failures = 0

    def _succeeded(self) -> None:
        if self.state == "open":
            log.warning("%s works again", self.name)
        self._failures = 0

    def _failed(self, trouble: Trouble) -> None:
        self._journal.add("trouble", 1, self.name, trouble.kind)
        self._failures += 1
        if self._failures == FAILURES:
            log.warning("%s left alone after %d failures: %s", self.name, FAILURES, trouble)

    async def close(self) -> None:
        """End what is being tried."""
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.wait([self._trying])
