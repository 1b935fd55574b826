"""Running answers, by the key of their request: one producer each, any number of readers.

Under cancellation: a flight's producer is a task of its own. A reader that leaves is one reader less; when the last one
has left, the flight goes on for as long as somebody may come back for it, then the producer is cancelled, which cuts
the backend's connection. The table holds only flights whose task is running; a flight takes itself out when it ends.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from cachetools import TTLCache

from cacheproxy.core.model import Fields
from cacheproxy.core.outcome import Reason
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.log import Ending, Log, Reader
from cacheproxy.engine.producer import Producer, Work
from cacheproxy.engine.record import Budget
from cacheproxy.errors import AnsweredMeanwhile, UpstreamCut
from cacheproxy.ports import Clock, Journal

LATE_SECONDS = 2.0
"""How long the end of a body is waited for after everyone left at the terminal event."""
FOLLOWED_SECONDS = 0.2
"""How often it is looked whether other replicas still follow an answer that nobody here waits for."""
ALONE_SECONDS = 60.0
"""How long a request whose answer could not be shared is known as such."""
REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class Terms:
    """What the configuration says about flights. Seconds and bytes. `finish`: an answer that nobody waits for any more
    is fetched to its end; `resume`: how long who was cut off may come back."""

    shared: bool = True
    finish: bool = False
    most: int = 32 * 2**20
    resume: float = 60.0


class Flight:
    """One running answer. `numbered`: somebody reads it with event ids, and may come back; `foreign`: another replica
    fetches it; `followers`: asks how many other replicas follow it, None where none can."""

    def __init__(self, key: bytes, identity: bytes, work: Work, log: Log) -> None:
        self.key = key
        self.identity = identity
        self.work = work
        self.log = log
        self.numbered = False
        self.foreign = False
        self.followers: Callable[[], Awaitable[int]] | None = None
        self.given_up = False
        """Its producer has been cancelled."""
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Flight {'numbered ' if self.numbered else ''}{self.log!r}>"

    @property
    def running(self) -> bool:
        return self.log.ending is None and not self.given_up

    @property
    def succeeded(self) -> bool:
        """It has ended, and is a whole answer."""
        head, ending = self.log.head, self.log.ending
        return head is not None and head.status == 200 and ending is not None and ending.error is None

    def reader(self) -> Reader:
        """One more reader, from the beginning. Use its `close` in every case."""
        if self.timer is not None and self.running:  # after its end the timer is the one that forgets it
            self.timer.cancel()
            self.timer = None
        return self.log.reader()


def _unless(found: Callable[[], Awaitable[bool]]) -> Callable[[], Awaitable[None]]:
    async def recheck() -> None:
        if await found():
            raise AnsweredMeanwhile("It has been answered meanwhile.")

    return recheck


class Sharing(Protocol):
    """Shares flights with other replicas."""

    async def run(self, flight: Flight, produce: Callable[[Work], Coroutine[Any, Any, None]], work: Work) -> None:
        """The answer of `flight`: what `produce` fetches, told to the others, or what another replica fetches."""

    async def follow(self, flight: Flight, identity: bytes) -> None:
        """The answer of `flight`, as the replica says it that fetches it as `identity`."""


class Flights:
    """The flights of this process."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, *, producer: Producer, journal: Journal, clock: Clock, budget: Budget, terms: Terms,
        identify: Callable[[bytes, float], bytes], stands: Callable[[Bound, Fields | None], bool],
    ) -> None:  # fmt: skip
        self.abroad: Sharing | None = None
        """Shares flights with other replicas, where there are any."""
        self._producer = producer
        self._journal = journal
        self._clock = clock
        self._budget = budget
        self._terms = terms
        self._identify = identify
        self._stands = stands
        self._shared: dict[bytes, Flight] = {}
        self._all: set[Flight] = set()
        self._resumable: dict[bytes, Flight] = {}
        self._alone: TTLCache[bytes, bool] = TTLCache(REMEMBERED, ALONE_SECONDS, clock.monotonic)
        self._landed: dict[bytes, float] = {}
        """When the latest answers ended, oldest first."""
        self._asking: set[asyncio.Task[None]] = set()
        self._closing = False

    def __repr__(self) -> str:
        return f"<Flights {len(self._all)} running, {len(self._resumable)} resumable>"

    @property
    def running(self) -> int:
        return len(self._all)

    @property
    def waiting(self) -> int:
        """Readers of running answers."""
        return sum(flight.log.readers for flight in self._all)

    def of(self, key: bytes, unknown: float = math.inf) -> Flight | None:
        """The running answer to the request of `key`, if one may still join; one that a removal has felled, or of which
        something was let go, is replaced by the next. `unknown`: since when removals may have been acknowledged that
        are not known here: what was asked for before may be felled."""
        flight = self._shared.get(key)
        if flight is None or not flight.running or key in self._alone:
            return None
        since = -math.inf if unknown == math.inf else unknown
        if not (flight.log.whole and flight.work.began >= since and self._stands_still(flight)):
            del self._shared[key]
            return None
        return flight

    def _stands_still(self, flight: Flight) -> bool:
        """Whether no removal since its request came means its answer."""
        head = flight.log.head
        return self._stands(flight.work.bound, None if head is None else head.fields)

    def shared(self) -> list[Flight]:
        """The running answers that one may join."""
        return [flight for key in list(self._shared) if (flight := self.of(key)) is not None]

    def landed_since(self, key: bytes, moment: float) -> bool:
        """Whether an answer to the request of `key` has ended since `moment` of the monotonic clock."""
        flight = self._shared.get(key)
        if flight is not None and flight.log.ending is not None:
            return True  # it has ended, and is only not yet put away
        return self._landed.get(key, float("-inf")) >= moment

    def leave_alone(self, key: bytes) -> None:
        """Answers to the request of `key` are not to be shared for a while."""
        self._alone[key] = True

    def retire(self, flight: Flight) -> None:
        """`flight` takes nobody new; who reads it goes on."""
        if self._shared.get(flight.key) is flight:
            del self._shared[flight.key]

    def shares(self, key: bytes) -> bool:
        """Whether an answer to the request of `key` that begins now may be shared."""
        return self._terms.shared and key not in self._alone and not self._closing

    def begin(
        self, bound: Bound, *, shared: bool, numbered: bool = False, found: Callable[[], Awaitable[bool]] | None = None
    ) -> tuple[Flight, Reader]:
        """Ask the backend; the flight and its first reader. `shared`: others may join; `found`: looks whether the
        answer has been stored, for when it has waited for its turn."""
        log = Log(self._terms.most, self._budget, whole=shared or numbered)
        work = self._producer.work(bound, log)
        if found is not None:
            work.standing.recheck = _unless(found)
        flight = Flight(bound.ask.key, self._identify(bound.ask.key, work.asked_at), work, log)
        flight.numbered = numbered
        reader = flight.reader()
        if shared:
            self._shared[flight.key] = flight
        if shared and self.abroad is not None:
            self._take_off(flight, self.abroad.run(flight, self._producer.produce, work))
        else:
            self._take_off(flight, self._producer.produce(work))
        return flight, reader

    def attend(self, bound: Bound, identity: bytes) -> tuple[Flight, Reader] | None:
        """The answer to `bound` that another replica fetches, or has fetched, under this identity."""
        if self.abroad is None or self._closing:
            return None
        log = Log(self._terms.most, self._budget, whole=True)
        flight = Flight(bound.ask.key, identity, self._producer.work(bound, log), log)
        flight.foreign = flight.numbered = True
        reader = flight.reader()
        self._take_off(flight, self.abroad.follow(flight, identity))
        return flight, reader

    def _take_off(self, flight: Flight, produced: Coroutine[Any, Any, None]) -> None:
        flight.log.on_deserted = lambda: self._deserted(flight)
        self._all.add(flight)
        flight.task = asyncio.get_running_loop().create_task(produced)
        flight.task.add_done_callback(lambda _: self._landing(flight))

    def resumable(self, key: bytes, identity: bytes) -> Flight | None:
        """The flight of this identity, if it answers the request of `key` and may still be read from its beginning."""
        flight = self._resumable.get(identity)
        if flight is None:
            flight = next((one for one in self._all if one.identity == identity), None)
        if flight is None or flight.key != key or flight.given_up:
            return None
        return flight if flight.log.whole and self._stands_still(flight) else None

    def _deserted(self, flight: Flight) -> None:
        """The last reader has left."""
        if not flight.running or (self._terms.finish and not flight.foreign):
            return
        if flight.work.spoken:
            patience = LATE_SECONDS
        elif flight.numbered and flight.log.whole:
            patience = self._terms.resume
        else:
            self._abandon(flight)
            return
        flight.timer = asyncio.get_running_loop().call_later(patience, self._abandon, flight)

    def _abandon(self, flight: Flight) -> None:
        flight.timer = None
        if flight.log.readers or not flight.running:
            return
        if flight.followers is not None:
            asking = asyncio.get_running_loop().create_task(self._abandon_unless_followed(flight, flight.followers))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
        else:
            self._give_up(flight)

    async def _abandon_unless_followed(self, flight: Flight, followers: Callable[[], Awaitable[int]]) -> None:
        """What is known of followers is as old as the last word that was told them: one may have come since."""
        followed = await followers()
        if flight.log.readers or not flight.running or flight.timer is not None:
            return  # somebody is back, or was and has left again
        if followed:
            flight.timer = asyncio.get_running_loop().call_later(FOLLOWED_SECONDS, self._abandon, flight)
        else:
            self._give_up(flight)

    def _give_up(self, flight: Flight) -> None:
        flight.given_up = True  # from here on nobody may join; the task ends at its next step
        if self._shared.get(flight.key) is flight:
            del self._shared[flight.key]
        if flight.task is not None:
            flight.task.cancel()

    def _landing(self, flight: Flight) -> None:
        """Its task is over."""
        # A task that was cancelled before its first step has not said so.
        flight.log.end(Ending(Reason.CLIENT_GONE, UpstreamCut("the answer was given up")))
        if flight.timer is not None:
            flight.timer.cancel()
            flight.timer = None
        self._all.discard(flight)
        if self._shared.get(flight.key) is flight:
            del self._shared[flight.key]
        # What refers to itself is let go by the collector alone, which costs more than the request.
        flight.log.on_deserted = flight.task = None
        self._landed.pop(flight.key, None)
        self._landed[flight.key] = self._clock.monotonic()
        if len(self._landed) > REMEMBERED:
            del self._landed[next(iter(self._landed))]
        if flight.numbered and flight.succeeded and flight.log.whole and not self._closing:
            self._resumable[flight.identity] = flight
            flight.timer = asyncio.get_running_loop().call_later(self._terms.resume, self._forget, flight)
        else:
            flight.log.release()

    def _forget(self, flight: Flight) -> None:
        flight.timer = None
        self._resumable.pop(flight.identity, None)
        flight.log.release()

    async def close(self, seconds: float) -> None:
        """Wait for what is running, `seconds` at most, then cancel it."""
        self._closing = True
        for flight in list(self._resumable.values()):
            if flight.timer is not None:
                flight.timer.cancel()
            self._forget(flight)
        for asking in list(self._asking):
            asking.cancel()
        tasks = [flight.task for flight in self._all if flight.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
