"""The gate before the backend: never more requests at once than it can batch, the urgent ones first.

What order they come in is decided in core/queues.py, without a clock; this is its shell: futures, timers and slots.

Under cancellation: who waits and leaves is out of its queue at once; a slot that was given to somebody who has just
left is given back. State changes only where nothing awaits.
"""

import asyncio
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from cacheproxy.core.affinity import Route
from cacheproxy.core.queues import CLASSES, Level, Queues, Refusal, Waiter
from cacheproxy.core.returns import Pace, Returns
from cacheproxy.core.standing import Standing
from cacheproxy.deadline import SLICES
from cacheproxy.errors import AnswerError, QueueFull, QueueTimeout, Refused, Shed
from cacheproxy.ports import Clock, Journal

_NO_ROOM = "Too many requests wait for the backend."
LOOK_SECONDS = 0.1
"""How often it is looked whether a burst goes as quickly as it should."""


class Slot(Protocol):
    """A request's place with a backend. End it in every case; that is idempotent."""

    on_end: Callable[[], None] | None
    """Called once, when it ends, before `Places.on_room`."""

    on_began: Callable[[float], None] | None
    """Told how many seconds after its sending its stream began."""

    def end(self) -> None:
        """It is over: the place is free."""


class Places(Protocol):
    """The backends' slots."""

    on_room: Callable[[], None] | None
    """Called when there may be room that was not there: a slot has ended, a backend may take more or is well again."""

    @property
    def slots(self) -> int:
        """How many requests may be under way together now."""

    @property
    def used(self) -> int:
        """How many are."""

    def group(self, model: str) -> int:
        """Which backends may be given a request for `model`: the same number, the same backends."""

    def take(self, group: int, route: Route | None, avoid: Collection[Any] = ()) -> Slot | None:
        """A slot with one of them that has room now, but for those of `avoid`; None if none has. Raises `AnswerError`
        where waiting would not help: none of them is well (`CircuitOpen`, `UpstreamUnreachable`)."""

    def seat(self, route: Route | None, avoid: Collection[Any] = ()) -> Slot:
        """A place for what takes no slot: it is counted as a load, and goes ahead whether there is room or not."""


class Allotment(Protocol):
    """What each caller may use in a time."""

    async def admit(self, standing: Standing) -> None:
        """Count this request. Raises `RateLimited`."""

    def give_back(self, standing: Standing) -> None:
        """It was counted, and has not gone to a backend."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A request at the gate."""

    waiter: Waiter
    standing: Standing
    route: Route | None
    avoid: Collection[Any]
    slot: "asyncio.Future[Slot]"


@dataclass(frozen=True, slots=True)
class Waits:
    """Of each class, in seconds. `timeouts`: how long one waits at most, None for ever; `bursts`: in what time the
    queue must be through that may be longer than its depth, 0 for none."""

    timeouts: tuple[float | None, float | None, float | None] = (None, None, None)
    bursts: tuple[float, float, float] = (0.0, 0.0, 0.0)


class Admission:
    """Keeps the gate. `level`: how much is let in now."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, *, places: Places, queues: Queues, terms: Waits, clock: Clock, journal: Journal,
        level: Callable[[], Level] = lambda: Level.NORMAL, allotment: Allotment | None = None,
    ) -> None:  # fmt: skip
        self.queues = queues
        self.level = level
        self.allotment = allotment
        self.began: Callable[[int, float], None] | None = None
        """Told of each stream that begins: its priority, and how many seconds after its sending."""
        self._places = places
        self._terms = terms
        self._clock = clock
        self._journal = journal
        self._waiting: dict[Waiter, _Waiting] = {}
        self._pace = Pace()
        self._returns = Returns()
        self._bursts: dict[int, asyncio.TimerHandle] = {}
        self._gone = [0, 0, 0]
        """How many of each class have been given a slot that waited for one."""
        self._handing_out = False
        places.on_room = self.hand_out

    def __repr__(self) -> str:
        return f"<Admission {self._places.used} of {self._places.slots} slots, {self.queues!r}>"

    @property
    def places(self) -> Places:
        return self._places

    @property
    def calm(self) -> bool:
        """Nobody waits, and there is room."""
        return self.level() is Level.NORMAL and not self.queues and self._places.used < self._places.slots

    async def enter(self, standing: Standing, route: Route | None = None, avoid: Collection[Any] = ()) -> Slot:
        """A slot, at once or when it is this request's turn. `avoid`: backends that could not be reached. Raises
        `AnswerError`: a `Refused`, or what `standing.recheck` raises."""
        anew = standing.since is None
        if anew and self.allotment is not None:
            await self.allotment.admit(standing)
        try:
            return await self._enter(standing, route, avoid, anew=anew)
        except BaseException:
            if self.allotment is not None:
                self.allotment.give_back(standing)
            raise

    async def _enter(self, standing: Standing, route: Route | None, avoid: Collection[Any], *, anew: bool) -> Slot:
        arrived = self._clock.monotonic()
        since = arrived if standing.since is None else standing.since
        returned = self._returns.keep(standing.name, arrived) if anew else None
        since = since if returned is None else returned
        standing.since = since
        favoured = not anew or returned is not None
        group = self._places.group(standing.model)
        waiter = Waiter(standing.priority, standing.tenant, group, standing.size, since, favoured=favoured)
        level = self.level()
        if favoured or standing.priority < CLASSES - level:
            slot = self._places.take(group, route, avoid)
            if slot is not None:
                return self._given(slot, standing.priority)
        if standing.patience == 0:
            raise QueueFull(_NO_ROOM)  # nobody is told of it, or comes again: no time is set aside
        self._open_burst(standing.priority)
        outcome = self.queues.offer(waiter, level, burst=standing.priority in self._bursts)
        if isinstance(outcome, Refusal):
            raise self._refused(outcome, standing, since)
        if outcome is not None:
            self._turn_out(outcome)
        slot = await self._turn(_Waiting(waiter, standing, route, avoid, asyncio.get_running_loop().create_future()))
        if standing.recheck is not None:
            try:
                await standing.recheck()
            except BaseException:
                slot.end()
                raise
        return slot

    def _open_burst(self, priority: int) -> None:
        """A queue that was empty until now may be longer than its depth for as long as it is short in time."""
        if self._terms.bursts[priority] > 0 and not self.queues.waiting(priority) and priority not in self._bursts:
            self._look_at_burst(priority, SLICES, self._gone[priority])

    def _look_at_burst(self, priority: int, left: int, gone: int, *, slow: bool = False) -> None:
        """A slice of a look. One that was late counts once: while the loop was held up nobody could go. `slow`: so was
        the look before, in which a burst may only have begun."""
        if not left:
            went, waiting = self._gone[priority] - gone, self.queues.waiting(priority)
            slows = went / LOOK_SECONDS * self._terms.bursts[priority] < waiting
            if not waiting or (slow and slows):
                del self._bursts[priority]
                while (loser := self.queues.surplus(priority)) is not None:
                    self._turn_out(loser)
                return
            left, gone, slow = SLICES, self._gone[priority], slows
        again = partial(self._look_at_burst, priority, left - 1, gone, slow=slow)
        self._bursts[priority] = asyncio.get_running_loop().call_later(LOOK_SECONDS / SLICES, again)

    async def _turn(self, waiting: _Waiting) -> Slot:
        """Wait for its turn."""
        waiter, standing = waiting.waiter, waiting.standing
        arrived = self._clock.monotonic()
        self._waiting[waiter] = waiting
        standing.waits(lambda priority: self._urge(waiter, priority), lambda: self.queues.place(waiter))
        patience = self._terms.timeouts[waiter.priority] if standing.patience is None else standing.patience
        timer = None
        if patience is not None and patience < math.inf:
            timer = asyncio.get_running_loop().call_later(patience, self._time_out, waiting)
        try:
            return await waiting.slot
        except asyncio.CancelledError:
            if waiting.slot.done() and not waiting.slot.cancelled() and waiting.slot.exception() is None:
                waiting.slot.result().end()  # it was given in the moment in which its owner left
            raise
        finally:
            standing.goes()
            standing.waited += self._clock.monotonic() - arrived
            self._journal.observe("queue_wait", standing.waited, f"P{standing.priority}")
            if timer is not None:
                timer.cancel()
            if self._waiting.pop(waiter, None) is not None:
                self.queues.leave(waiter)

    def hand_out(self) -> None:
        """Give free slots to those whose turn it is."""
        if self._handing_out:
            return
        self._handing_out = True
        try:
            shut: set[int] = set()
            while self.queues:
                now = self._clock.monotonic()
                waiter = self.queues.next(now, self._places.slots, shut)
                if waiter is None:
                    return
                waiting = self._waiting[waiter]
                try:
                    slot = self._places.take(waiter.group, waiting.route, waiting.avoid)
                except AnswerError as error:
                    self._dismiss(waiting, error)
                    continue
                if slot is None:
                    shut.add(waiter.group)
                    continue
                self.queues.grant(waiter, now)
                self._gone[waiter.priority] += 1
                del self._waiting[waiter]
                if waiting.slot.done():
                    slot.end()  # its owner is on the way out
                    shut.clear()  # there may be room now where there was none
                else:
                    waiting.slot.set_result(self._given(slot, waiter.priority))
        finally:
            self._handing_out = False

    def close(self) -> None:
        """Look no more. Who waits is left to his own end."""
        for timer in self._bursts.values():
            timer.cancel()
        self._bursts.clear()

    def _given(self, slot: Slot, priority: int) -> Slot:
        began = self._clock.monotonic()
        self._pace.granted(priority, began)
        if self.began is not None:
            slot.on_began = partial(self.began, priority)
        slot.on_end = lambda: self._pace.ended(self._clock.monotonic() - began)
        return slot

    def _dismiss(self, waiting: _Waiting, error: AnswerError) -> None:
        """Let it wait no longer, for this reason."""
        self.queues.leave(waiting.waiter)
        self._waiting.pop(waiting.waiter, None)
        if not waiting.slot.done():
            waiting.slot.set_exception(error)

    def _turn_out(self, loser: Waiter) -> None:
        """It has lost its place to another caller's request."""
        waiting = self._waiting[loser]
        self._dismiss(waiting, self._refused(Refusal.FULL, waiting.standing, loser.since))

    def _time_out(self, waiting: _Waiting) -> None:
        if waiting.slot.done():
            return
        standing = waiting.standing
        self._journal.add("refused", 1, "queue_timeout", f"P{standing.priority}")
        seconds = self._seconds(standing, waiting.waiter.since)
        self._dismiss(waiting, QueueTimeout("The backend had no room in time.", seconds))

    def _urge(self, waiter: Waiter, priority: int) -> None:
        self.queues.urge(waiter, priority)

    def _refused(self, refusal: Refusal, standing: Standing, since: float) -> Refused:
        self._journal.add("refused", 1, refusal.value, f"P{standing.priority}")
        seconds = self._seconds(standing, since)
        if refusal is Refusal.SHED:
            return Shed("The backend is overloaded; less urgent requests are not taken now.", seconds)
        return QueueFull(_NO_ROOM, seconds)

    def _seconds(self, standing: Standing, since: float) -> int:
        """When it may come again."""
        now, priority = self._clock.monotonic(), standing.priority
        rate = self._pace.for_class(priority, self._places.slots, now)
        waiting = sum(self.queues.waiting(other) for other in range(priority + 1))
        return self._returns.tell(standing.name, priority, waiting=waiting, rate=rate, now=now, since=since)
