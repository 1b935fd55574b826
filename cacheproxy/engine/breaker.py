"""When a part is left alone, and when it is tried again. Nobody waits for a part that has just failed.

Closed: calls go through. At the first failure they stop, and calls of our own try the part in the background, one at a
time; the first that succeeds closes it again, so that a blip costs a moment's misses, however many were in it. After
`FAILURES` failures in a row, the first and those of the trials, it is open: from then on it is tried once a `PAUSE`.
One log line when it opens and one when it closes after that.

A fault of ours, any exception that is no `Trouble`, is trouble like any other, and one log line for each place.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from cacheproxy.deadline import Deadline
from cacheproxy.errors import Trouble, place_of
from cacheproxy.ports import Journal

log = logging.getLogger("cacheproxy.guard")

FAILURES = 5
PAUSE = 1.0
FIRST_GAP = 0.02
"""Seconds between the first trials, doubled each time until it is open."""
FAULT = "fault"
"""The kind of a trouble that is a fault of ours."""

Trial = Callable[[], Awaitable[object]]


class Faults:
    """Those of ours in one part."""

    def __init__(self, part: str) -> None:
        self._part = part
        self._known: set[str] = set()

    def tell(self, error: BaseException) -> None:
        """Log a fault, the first time that it comes from there."""
        place = place_of(error)
        if place not in self._known:
            self._known.add(place)
            log.error("a fault in %s: %s", self._part, place)


class Breaker:
    """Of one kind of call to one part, `name`. `deadline`: seconds that a call may take.

    `proof`, for calls that change something: whether what came of one shows that the part works. Such a call is tried
    in the moment in which it is asked for, or not at all: late, it might undo what was done since.
    """

    def __init__(
        self, name: str, deadline: float, journal: Journal, proof: Callable[[object], bool] | None = None
    ) -> None:  # fmt: skip
        self.name = name
        self._deadline = deadline
        self._journal = journal
        self._proof = proof
        self._failures = 0
        self._trial: Trial | None = None
        self._offered = asyncio.Event()
        self._trying: asyncio.Task[None] | None = None
        self._faults = Faults(name)

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
            self._offer(work)
            return Trouble(f"{self.name} is left alone", "left_alone")
        found = await self._attempt(work)
        if isinstance(found, Trouble):
            self._note(found)
            if self.closed:  # else another call was the first to fail, in the same blip
                self._failed(found)
                self._offer(work)
                if self._trying is None:
                    self._begin()
        return found

    def _offer(self, work: Trial) -> None:
        self._trial = work
        self._offered.set()

    def _begin(self) -> None:
        self._trying = asyncio.get_running_loop().create_task(self._try())
        self._trying.add_done_callback(self._tried)

    async def _attempt(self, work: Trial) -> object | Trouble:
        try:
            async with Deadline(self._deadline):
                return await work()
        except TimeoutError:
            return Trouble("it took too long", "timeout")
        except Trouble as trouble:
            return trouble
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return self._fault(error)  # what is inside was cancelled; the caller is there
        except Exception as error:  # noqa: BLE001 - here it is forgiven, whatever it is
            return self._fault(error)

    async def _try(self) -> None:
        """Try until it succeeds."""
        gap = FIRST_GAP
        while not self.closed:
            await asyncio.sleep(PAUSE if self.state == "open" else gap)
            found = await self._attempt(await self._next())
            if isinstance(found, Trouble):
                gap *= 2
                self._note(found)
                self._failed(found)
            elif self._proof is None or self._proof(found):
                self._succeeded()

    async def _next(self) -> Trial:
        """What was asked for last; of calls that must not be late, what is asked for next."""
        if self._proof is not None:
            self._trial = None
        while self._trial is None:
            self._offered.clear()
            await self._offered.wait()
        return self._trial

    def _tried(self, task: asyncio.Task[None]) -> None:
        self._trying = None
        if task.cancelled():
            self._failures = 0
        elif not self.closed:
            self._begin()  # a call failed in the moment after the trial that succeeded
            return
        self._trial = None

    def _succeeded(self) -> None:
        if self.state == "open":
            log.warning("%s works again", self.name)
        self._failures = 0

    def _failed(self, trouble: Trouble) -> None:
        self._failures += 1
        if self._failures == FAILURES:
            log.warning("%s left alone after %d failures: %s", self.name, FAILURES, trouble)

    def _note(self, trouble: Trouble) -> None:
        self._journal.add("trouble", 1, self.name, trouble.kind)

    def _fault(self, error: BaseException) -> Trouble:
        self.tell(error)
        return Trouble(type(error).__name__, FAULT)

    def tell(self, error: BaseException) -> None:
        """Log a fault, the first time that it comes from there."""
        self._faults.tell(error)

    async def close(self) -> None:
        """End what is being tried."""
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.wait([self._trying])
