"""The store as the engine sees it: a look is good for a lease, and what a removal has felled is neither given nor kept."""

import asyncio
from dataclasses import replace

import pytest

from cacheproxy.core.outcome import Reason
from cacheproxy.core.removal import Order, Removal, Removals, Selector
from cacheproxy.engine import purge as purging
from cacheproxy.engine.purge import Purge, Purged
from cacheproxy.engine.shelf import ATTEMPTS, Alone, Shelf
from cacheproxy.errors import Trouble
from cacheproxy.ports import Kept
from cacheproxy.stores.memory import Memory
from tests.engine.fakes import Hands, Notes
from tests.rig import until
from tests.stores.entries import entry, key_of

EVERYTHING = Selector(everything=True)
RED, BLUE = Selector(tags=frozenset({"red"})), Selector(tags=frozenset({"blue"}))
LEASE = 0.1


def red(number: int = 1):
    return replace(entry(number), tags=("red",))


class Shared:
    """Epochs of a store that others share: what they count is known here only when it is asked for."""

    lease = LEASE

    def __init__(self, removals: Removals, clock: Hands) -> None:
        self.removals = removals
        self.clock = clock
        self.told: list[Selector] = []
        self.asked = 0
        self.takes = 0.0
        self.trouble = False

    async def current(self) -> None:
        self.asked += 1
        self.clock.move(self.takes)
        if self.trouble:
            raise Trouble("down")
        for selector in self.told:
            self.removals.add(selector, 0.0)
        self.told.clear()


class Outrun(Memory):
    """A store where removals by others come first, as many times as there are some."""

    def __init__(self, removals: Removals, *others: Selector) -> None:
        super().__init__(1_000_000)
        self.removals = removals
        self.others = [*others]
        self.puts: list[int | None] = []

    async def put(self, given, epoch=None) -> Kept:
        self.puts.append(epoch)
        if self.others:
            self.removals.add(self.others.pop(0), 0.0)
            return Kept.OUTRUN
        return await super().put(given, epoch)


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def removals() -> Removals:
    return Removals()


@pytest.fixture
def shared(removals, clock) -> Shared:
    return Shared(removals, clock)


@pytest.fixture
def shelf(removals, shared, clock) -> Shelf:
    return Shelf(Memory(1_000_000), removals, shared, clock)


# --- How long a look is good -----------------------------------------------------------------------------------------


async def test_within_the_lease_nobody_is_asked(shelf, shared, clock):
    shared.told, shared.trouble = [RED], True
    mark = shelf.mark()
    clock.move(LEASE * 0.99)
    assert await shelf.holds(mark, red())
    assert shared.asked == 0


async def test_after_the_lease_it_is_asked_anew(shelf, shared, clock):
    mark = shelf.mark()
    clock.move(LEASE)
    assert await shelf.holds(mark, red())
    assert shared.asked == 1
    shared.told = [RED]
    assert not await shelf.holds(mark, red())
    assert await shelf.holds(mark, entry(2)), "another entry"
    assert not await shelf.holds(mark, entry(2), red()), "one of several"


async def test_what_cannot_be_told_does_not_hold(shelf, shared, clock):
    mark = shelf.mark()
    clock.move(LEASE)
    shared.trouble = True
    assert not await shelf.holds(mark, red())


async def test_an_answer_that_took_longer_than_a_lease_is_too_old_itself(shelf, shared, clock):
    """A removal may have been acknowledged since it was read."""
    mark = shelf.mark()
    clock.move(LEASE)
    shared.takes = LEASE
    assert not await shelf.holds(mark, red())
    shared.takes = LEASE * 0.9
    assert await shelf.holds(mark, red())


async def test_what_was_known_at_the_look_fells_nothing(shelf, shared, removals, clock):
    """It was found after that removal."""
    removals.add(RED, 0.0)
    mark = shelf.mark()
    clock.move(LEASE)
    assert await shelf.holds(mark, red())


# --- Alone -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def alone(removals, clock) -> Shelf:
    return Shelf(Memory(1_000_000), removals, Alone(removals), clock)


async def test_what_the_store_still_holds_of_a_removal_is_not_given(alone, removals):
    epochs = Alone(removals)
    for number in (1, 2):
        assert await alone.put(red(number), alone.epoch, 0.0) is None
    assert await alone.put(entry(3), alone.epoch, 0.0) is None
    felled = await epochs.begin(Order(RED, Removal.HARD), 0.0)
    assert [await alone.get(key_of(number)) for number in (1, 2)] == [None, None]
    assert await alone.get(key_of(3)) == entry(3)
    assert [row.entry.key for row in (await alone.browse(EVERYTHING, 0.0, "", 9)).rows] == [key_of(3)]
    assert await alone.put(red(1), alone.epoch, 0.0) is None
    assert await alone.get(key_of(1)) == red(1), "it was put later"
    await epochs.finish(felled)
    assert not removals.open
    assert await alone.get(key_of(2)) == red(2), "finished is what the store has carried out"


async def test_softly_removed_is_stale_before_the_store_knows(alone, removals):
    assert await alone.put(red(), alone.epoch, 0.0) is None
    await Alone(removals).begin(Order(RED, Removal.SOFT), 500.0)
    assert await alone.get(key_of(1)) == replace(red(), fresh_until=500.0)


class Slow(Memory):
    """Gives what it had when it was asked, and removes, when it is let."""

    def __init__(self) -> None:
        super().__init__(1_000_000)
        self.asked, self.give, self.removing, self.go_on = (asyncio.Event() for _ in range(4))
        self.give.set()

    async def get(self, key):
        found = await super().get(key)
        self.asked.set()
        await self.give.wait()
        return found

    async def remove(self, felled):
        self.removing.set()
        await self.go_on.wait()
        return await super().remove(felled)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def purge(slow, removals, clock) -> Purge:
    return Purge(stock=slow, removals=removals, epochs=Alone(removals), journal=Notes(), clock=clock)


async def test_a_look_that_outlasts_a_removal_is_judged_by_it(slow, purge, removals, clock):
    """It began before, and comes back when everything has been carried out and nothing is open any more."""
    shelf = Shelf(slow, removals, Alone(removals), clock)
    assert await shelf.put(red(), shelf.epoch, 0.0) is None
    slow.give.clear()
    looking = asyncio.create_task(shelf.get(key_of(1)))
    await slow.asked.wait()
    slow.go_on.set()
    assert (await purge.carry_out(Order(RED, Removal.HARD, wait=True))).purged == 1
    assert not removals.open
    slow.give.set()
    assert await looking is None


async def test_a_purge_is_acknowledged_before_anything_is_taken_out(slow, purge, removals, clock):
    shelf = Shelf(slow, removals, Alone(removals), clock)
    asked = shelf.epoch, clock.monotonic()
    assert await shelf.put(red(), *asked) is None
    mark = shelf.mark()
    found = await shelf.get(key_of(1))
    assert await purge.carry_out(Order(RED, Removal.HARD)) == Purged(1, 1, 1)
    assert slow.census().entries == 1, "it is still there"
    assert await shelf.get(key_of(1)) is None
    assert not await shelf.holds(mark, found)
    assert await shelf.put(red(), *asked) is Reason.PURGED
    assert await purge.carry_out(Order(RED, Removal.HARD)) == Purged(0, 0, 2), "it counts once"
    slow.go_on.set()
    await until(lambda: not removals.open)
    assert slow.census().entries == 0


async def test_who_orders_and_leaves_has_ordered(slow, purge, removals, clock):
    """At whichever moment: what has begun goes on to its end."""
    shelf = Shelf(slow, removals, Alone(removals), clock)
    slow.go_on.set()
    for steps in range(8):
        assert await shelf.put(red(), shelf.epoch, 0.0) is None
        before = removals.epoch
        ordering = asyncio.create_task(purge.carry_out(Order(RED, Removal.HARD, wait=True)))
        for _ in range(steps):
            await asyncio.sleep(0)
        ordering.cancel()
        await asyncio.wait([ordering])
        await until(lambda: not purge._begins and not removals.open)
        ordered = removals.epoch - before
        assert ordered == int(steps > 0), "a task that never ran orders nothing"
        assert (await slow.get(key_of(1)) is None) == bool(ordered)


@pytest.mark.parametrize("error", [Trouble("disk"), asyncio.CancelledError()], ids=["trouble", "cancelled"])
async def test_what_cannot_be_taken_out_is_not_given_and_is_tried_again(slow, purge, removals, clock, error):
    shelf = Shelf(slow, removals, Alone(removals), clock)
    assert await shelf.put(red(), shelf.epoch, 0.0) is None
    works, slow.go_on.wait = slow.go_on.wait, failing(error)
    assert (await purge.carry_out(Order(RED, Removal.HARD))).purged == 1
    await until(lambda: not purge._sweeps)
    assert removals.open
    assert await shelf.get(key_of(1)) is None
    slow.go_on.wait = works
    slow.go_on.set()
    await purge.resume()
    await until(lambda: not removals.open)
    assert slow.census().entries == 0


def failing(error: BaseException):
    async def wait() -> None:
        raise error

    return wait


async def test_what_cannot_be_remembered_is_not_acknowledged_and_not_given(slow, purge, removals, clock):
    async def fell(*_):
        raise Trouble("disk")

    slow.fell = fell
    shelf = Shelf(slow, removals, Alone(removals), clock)
    assert await shelf.put(red(), shelf.epoch, 0.0) is None
    with pytest.raises(Trouble):
        await purge.carry_out(Order(RED, Removal.HARD))
    assert await shelf.get(key_of(1)) is None


async def test_with_too_many_under_way_an_order_waits(slow, purge, removals):
    for _ in range(purging.MOST):
        await purge.carry_out(Order(RED, Removal.HARD))
    waiting = asyncio.create_task(purge.carry_out(Order(RED, Removal.HARD)))
    await slow.removing.wait()
    assert removals.epoch == purging.MOST
    slow.go_on.set()
    assert (await waiting).epoch == purging.MOST + 1


async def test_where_ages_are_meant_the_count_comes_at_the_end(slow, purge, removals, clock):
    """It is true, or it is not told."""
    shelf = Shelf(slow, removals, Alone(removals), clock)
    for number in range(3):
        assert await shelf.put(red(number), shelf.epoch, 0.0) is None
    old = Order(Selector(older_than=10.0), Removal.HARD)
    assert await purge.carry_out(replace(old, wait=False)) == Purged(None, None, 1)
    assert await shelf.get(key_of(1)) is None
    slow.go_on.set()
    await until(lambda: not removals.open)
    for number in range(3):
        assert await shelf.put(red(number), shelf.epoch, 0.0) is None
    assert await purge.carry_out(replace(old, removal=Removal.NONE)) == Purged(3, 0, 1)
    assert await purge.carry_out(old) == Purged(3, 3, 2)


async def test_removals_of_the_past_are_remembered(removals):
    epochs = Alone(removals, since=100.0)
    await epochs.begin(Order(RED, Removal.HARD), 200.0)
    past = await epochs.past()
    assert (past.reaches(100.0), past.reaches(99.0)) == (True, False)
    assert (past.fells(red(), 150.0), past.fells(red(), 201.0), past.fells(entry(1), 150.0)) == (True, False, False)
    assert past.fells(red(), 201.0, slack=1.0)
    for at in range(1201):
        await epochs.begin(Order(BLUE, Removal.HARD), 1000.0 + at)
    past = await epochs.past()
    assert len(past.removals) == 1000
    assert (past.reaches(1200.0), past.reaches(1199.9)) == (True, False), "older than the oldest that is known"


# --- Keeping ---------------------------------------------------------------------------------------------------------


async def test_what_a_removal_means_that_came_after_the_request_is_not_kept(alone, removals, clock):
    asked = alone.epoch, clock.monotonic()
    removals.add(RED, 0.0)
    assert await alone.put(red(), *asked) is Reason.PURGED
    assert await alone.get(key_of(1)) is None
    assert await alone.put(entry(2), *asked) is None
    assert await alone.put(red(), alone.epoch, clock.monotonic()) is None


async def test_outrun_by_removals_that_do_not_mean_it_it_is_put_again(removals, shared, clock):
    store = Outrun(removals, BLUE, BLUE, BLUE)
    shelf = Shelf(store, removals, shared, clock)
    assert await shelf.put(red(), 0, clock.monotonic()) is None
    assert store.puts == [0, 1, 2, 3], "each with the count that it was compared with"
    assert await shelf.get(key_of(1)) == red()


async def test_outrun_by_one_that_means_it_it_is_not(removals, shared, clock):
    store = Outrun(removals, BLUE, RED, BLUE)
    shelf = Shelf(store, removals, shared, clock)
    assert await shelf.put(red(), 0, clock.monotonic()) is Reason.PURGED
    assert len(store.puts) == 2
    assert await shelf.get(key_of(1)) is None


async def test_outrun_again_and_again_it_is_let_be(removals, shared, clock):
    store = Outrun(removals, *[BLUE] * 50)
    shelf = Shelf(store, removals, shared, clock)
    assert await shelf.put(red(), 0, clock.monotonic()) is Reason.STORE_TROUBLE
    assert len(store.puts) == ATTEMPTS


async def test_trouble_is_told_and_not_tried_again(removals, shared, clock):
    class Troubled(Memory):
        puts = 0

        async def put(self, *_):
            self.puts += 1
            return Kept.TROUBLE

    store = Troubled(1_000_000)
    assert await Shelf(store, removals, shared, clock).put(red(), 0, clock.monotonic()) is Reason.STORE_TROUBLE
    assert store.puts == 1


async def test_one_that_was_ordered_before_the_request_came_fells_nothing(shelf, removals, clock):
    """It was learnt of only afterwards."""
    arrived = clock.monotonic()
    epoch = shelf.epoch
    removals.add(RED, 0.0, at=arrived - 0.001)
    assert await shelf.put(red(), epoch, arrived) is None
    removals.add(RED, 0.0, at=arrived)
    assert await shelf.put(red(2), epoch, arrived) is Reason.PURGED, "in the same moment is not before"


async def test_one_of_unknown_time_is_taken_for_later(shelf, removals, clock):
    epoch, arrived = shelf.epoch, clock.monotonic()
    removals.add(RED, 0.0)
    assert await shelf.put(red(), epoch, arrived) is Reason.PURGED


def test_it_tells_what_it_is(shelf):
    assert repr(shelf) == f"<Shelf {shelf._store!r} <Removals 0>>"
