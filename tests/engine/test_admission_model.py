"""The gate under anything that may happen to it, in virtual time.

Invariants, after every step:
- slots: as many are used as are held by somebody, and never more are given out than there are;
- nobody waits for a slot that is free for him;
- who waits is in exactly one queue, and no queue is longer than its bound;
- order: one caller's requests go in the order in which they came; while as many wait as there are slots, nobody goes
  before a more urgent one unless he is aged; of `SHARE` slots that are given out while an aged one could have one, one
  goes to an aged one;
- nobody waits longer than his class may; whoever is refused is told when to come back.
"""

import asyncio
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cacheproxy.core.queues import ClassTerms, Level, Queues, Terms
from cacheproxy.core.standing import Standing
from cacheproxy.engine.admission import Admission, Waits
from cacheproxy.errors import QueueTimeout, Refused
from tests.engine.fakes import Notes
from tests.examples import tries
from tests.fakes.time import LoopClock, VirtualLoop

SHARE = 4
DEPTHS = (4, 6, None)
TIMEOUTS = (30.0, 60.0, None)
BURSTS = (0.0, 1.0, 0.0)
AGES, BOUNDS = (float("inf"), 10.0, 20.0), (float("inf"), 40.0, 80.0)
SERVES = {0: (0, 1), 1: (1,)}
"""Which of two backends a group may be given to."""


@dataclass(eq=False)
class Held:
    """A slot with one of the backends."""

    places: "Backends"
    at: int
    on_end: object = None
    on_began: object = None
    open: bool = True

    def end(self) -> None:
        if not self.open:
            return
        self.open = False
        self.places.running[self.at] -= 1
        if self.on_end is not None:
            self.on_end()
        self.places.on_room()


@dataclass
class Backends:
    """Two backends with room for some."""

    room: list[int]
    running: list[int] = field(default_factory=lambda: [0, 0])
    on_room: object = None
    last: int = 0
    """Where the last slot was given out."""

    @property
    def slots(self) -> int:
        return sum(self.room)

    @property
    def used(self) -> int:
        return sum(self.running)

    def group(self, model: str) -> int:
        return int(model)

    def has_room(self, group: int) -> bool:
        return any(self.running[at] < self.room[at] for at in SERVES[group])

    def take(self, group: int, route: object, avoid=()) -> Held | None:
        for at in SERVES[group]:
            if self.running[at] < self.room[at]:
                self.running[at] += 1
                self.last = at
                return Held(self, at)
        return None


@dataclass(eq=False)
class Caller:
    """One request: what became of it."""

    number: int
    standing: Standing
    task: asyncio.Task | None = None
    slot: Held | None = None
    error: BaseException | None = None
    arrived: float = 0.0
    began_as: int = 0
    left: float = 0.0

    @property
    def waits(self) -> bool:
        return self.task is not None and not self.task.done() and self.slot is None


class Observed(Queues):
    """Tells what it gives out."""

    def __init__(self, terms: Terms, watch) -> None:
        super().__init__(terms)
        self.watch = watch

    def grant(self, waiter, now: float) -> None:
        self.watch(waiter, now)
        super().grant(waiter, now)


class Gate(RuleBasedStateMachine):
    @initialize(first=st.integers(1, 3), second=st.integers(1, 3))
    def begin(self, first: int, second: int) -> None:
        self.loop = VirtualLoop()
        self.places = Backends([first, second])
        classes = tuple(
            ClassTerms(depth, 1000 if depth is None else None, weight, age, bound)
            for depth, weight, age, bound in zip(DEPTHS, (16, 4, 1), AGES, BOUNDS, strict=True)
        )
        self.queues = Observed(Terms(classes, SHARE), self.granted)
        self.level = Level.NORMAL
        self.gate = Admission(
            places=self.places,
            queues=self.queues,
            terms=Waits(TIMEOUTS, BURSTS),
            clock=LoopClock(self.loop),
            journal=Notes(),
            level=lambda: self.level,
        )
        self.callers: list[Caller] = []
        self.passed_over = 0
        self.broken: list[str] = []

    def teardown(self) -> None:
        if not hasattr(self, "loop"):
            return
        try:
            for caller in self.callers:
                caller.task.cancel()
            self.settle()
            for caller in self.callers:
                if caller.slot is not None:
                    caller.slot.end()
            self.settle()
            self.gate.close()
            assert self.places.used == 0
            assert len(self.queues) == 0
            assert not self.gate._waiting
        finally:
            self.loop.close()

    def settle(self) -> None:
        async def turn() -> None:
            for _ in range(6):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turn())

    def granted(self, waiter, now: float) -> None:
        """Called before it is taken out of its queue, its slot already counted. Says what is wrong later: raised here
        it would be a fault inside the gate."""
        waiting = [w for one in self.queues._classes for lane in one.lanes.values() for w in lane]
        able = [w for w in waiting if self.places.last in SERVES[w.group] or self.places.has_room(w.group)]
        lane = [w for w in waiting if (w.priority, w.tenant, w.group) == (waiter.priority, waiter.tenant, waiter.group)]
        if any(waiter.since > w.since for w in lane):
            self.broken.append("not the first of its caller")
        patience = [self.queues._patience(p) for p in range(3)]
        aged = [w for w in able if w.priority and w.since <= now - patience[w.priority]]
        if len(waiting) >= self.places.slots and waiter not in aged and any(w.priority < waiter.priority for w in able):
            self.broken.append("a less urgent one first")
        self.passed_over = 0 if waiter in aged or not aged else self.passed_over + 1
        if self.passed_over > SHARE:
            self.broken.append("the aged are passed over")

    @rule(
        requests=st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from((0, 0, 1)), st.sampled_from((1, 1, 300))),
            min_size=1,
            max_size=8,
        )
    )
    def arrive(self, requests: list[tuple[int, int, int, int]]) -> None:
        for request in requests:
            self.ask(*request)
            self.loop.run_until_complete(asyncio.sleep(0.01))

    @rule(priority=st.integers(0, 2), tenant=st.integers(0, 2), count=st.integers(3, 9))
    def flood(self, priority: int, tenant: int, count: int) -> None:
        for _ in range(count):
            self.ask(priority, tenant, 0, 200)
            self.loop.run_until_complete(asyncio.sleep(0.01))

    def ask(self, priority: int, tenant: int, group: int, size: int) -> None:
        standing = Standing(priority, b"%d" % tenant, model=str(group), size=size, name=b"%d" % len(self.callers))
        caller = Caller(len(self.callers), standing, arrived=self.loop.time(), began_as=priority)
        self.callers.append(caller)

        async def ask() -> None:
            try:
                caller.slot = await self.gate.enter(standing)
            except BaseException as error:
                caller.error = error
                if isinstance(error, asyncio.CancelledError):
                    raise
            finally:
                caller.left = self.loop.time()

        caller.task = self.loop.create_task(ask())
        self.settle()

    def some(self, met, which: int) -> Caller | None:
        found = [caller for caller in self.callers if met(caller)]
        return found[which % len(found)] if found else None

    @rule(which=st.lists(st.integers(0, 50), min_size=1, max_size=10))
    def complete(self, which: list[int]) -> None:
        for number in which:
            if caller := self.some(lambda c: c.slot is not None and c.slot.open, number):
                caller.slot.end()
                caller.slot.end()  # once more is no harm
                self.settle()

    @rule(which=st.integers(0, 50))
    def leave(self, which: int) -> None:
        if caller := self.some(lambda c: c.waits, which):
            caller.task.cancel()
            self.settle()

    @rule(which=st.integers(0, 50), other=st.integers(0, 50))
    def end_and_leave_at_once(self, which: int, other: int) -> None:
        """The slot is given in the moment in which its owner leaves."""
        done = self.some(lambda c: c.slot is not None and c.slot.open, which)
        if done is None:
            return
        done.slot.end()
        for caller in self.callers:
            if caller.waits and caller.number % 2 == other % 2:
                caller.task.cancel()
        self.settle()

    @rule(which=st.integers(0, 50), priority=st.integers(0, 2))
    def urge(self, which: int, priority: int) -> None:
        if caller := self.some(lambda c: c.waits, which):
            caller.standing.urge(priority)
            self.settle()

    @rule(seconds=st.sampled_from((0.1, 1.0, 5.0, 11.0, 35.0)))
    def wait(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))
        self.settle()

    @rule(at=st.integers(0, 1), room=st.integers(1, 4))
    def resize(self, at: int, room: int) -> None:
        self.places.room[at] = room
        self.places.on_room()
        self.settle()

    @rule(level=st.sampled_from(list(Level)))
    def press(self, level: Level) -> None:
        self.level = level

    @precondition(lambda self: hasattr(self, "gate"))
    @invariant()
    def holds(self) -> None:
        assert self.broken == [], self.broken
        held = [c for c in self.callers if c.slot is not None and c.slot.open]
        assert self.places.used == len(held)
        waiting = [c for c in self.callers if c.waits]
        assert len(waiting) == len(self.queues) == len(self.gate._waiting)
        assert not any(self.places.has_room(int(c.standing.model)) for c in waiting)
        for priority, depth in enumerate(DEPTHS):
            inside = [c for c in waiting if c.standing.priority == priority]
            assert len(inside) == self.queues.waiting(priority)
            assert sum(c.standing.size for c in inside) == self.queues.held(priority)
            urged = [w for lane in self.queues._classes[priority].lanes.values() for w in lane if w.favoured]
            most = depth if depth is None or priority not in self.gate._bursts else 10 * depth
            assert most is None or len(inside) - len(urged) <= most
            assert depth is not None or self.queues.held(priority) - sum(w.size for w in urged) <= 1000
        now = self.loop.time()
        for caller in waiting:
            assert TIMEOUTS[caller.began_as] is None or now - caller.arrived <= TIMEOUTS[caller.began_as] + 0.1
            assert caller.standing.place is not None
        for caller in self.callers:
            assert caller.error is None or isinstance(caller.error, (Refused, asyncio.CancelledError)), caller.error
            if isinstance(caller.error, Refused):
                assert 1 <= caller.error.retry_after <= 60
            if isinstance(caller.error, QueueTimeout):
                assert caller.left - caller.arrived > TIMEOUTS[caller.began_as] - 0.001


Gate.TestCase.settings = tries(200)
TestGate = Gate.TestCase
