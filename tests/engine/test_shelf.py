"""The store as the engine sees it: a look is good for a lease, and what a removal has felled is neither given nor kept."""

import asyncio
from dataclasses import replace

import pytest

from cacheproxy.core.outcome import Reason
from cacheproxy.core.removal import Order, Removal, Removals, Selector
from cacheproxy.engine.purge import Purge
from cacheproxy.engine.shelf import ATTEMPTS, Alone, Shelf
from cacheproxy.errors import Trouble
from cacheproxy.ports import Kept
from cacheproxy.stores.memory import Memory
from tests.engine.fakes import Hands, Notes
from tests.stores.entries import entry, key_of

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


@pytest.mark.parametrize("removed", [True, False], ids=["carried out", "given up"])
async def test_a_removal_that_is_not_carried_out_yet_fells_what_is_found_meanwhile(alone, removals, removed):
    epochs = Alone(removals)
    number = await epochs.begin(RED, 0.0)
    mark = alone.mark()
    other = await epochs.begin(BLUE, 0.0)
    await epochs.finish(other, carried_out=True)
    later = alone.mark()
    await epochs.finish(number, carried_out=removed)
    assert not await alone.holds(mark, red())
    assert not await alone.holds(later, red()), "though one that was begun later is done"
    assert await alone.holds(mark, entry(2))
    assert await alone.holds(alone.mark(), red()), "found when it was over"


async def test_a_look_during_a_purge_is_not_served_after_it(removals, clock):
    """The whole way: the store is slow to remove, the look finds what is still there, and waits."""

    class Slow(Memory):
        async def remove(self, selector, removal, now):
            begun.set()
            await go_on.wait()
            return await super().remove(selector, removal, now)

    begun, go_on = asyncio.Event(), asyncio.Event()
    store, epochs = Slow(1_000_000), Alone(removals)
    shelf = Shelf(store, removals, epochs, clock)
    purge = Purge(stock=store, removals=removals, epochs=epochs, journal=Notes(), clock=clock)
    assert await shelf.put(red(), shelf.epoch, clock.monotonic()) is None
    asked = shelf.epoch, clock.monotonic()
    purging = asyncio.create_task(purge.carry_out(Order(RED, Removal.HARD)))
    await begun.wait()
    mark = shelf.mark()
    found = await shelf.get(key_of(1))
    assert found == red()
    go_on.set()
    assert (await purging).purged == 1
    assert not await shelf.holds(mark, found)
    assert await shelf.put(red(), *asked) is Reason.PURGED
    assert await shelf.get(key_of(1)) is None


@pytest.mark.parametrize("error", [Trouble("disk"), asyncio.CancelledError()], ids=["trouble", "cancelled"])
async def test_a_purge_that_fails_is_not_running_for_ever(removals, clock, error):
    class Failing(Memory):
        async def remove(self, *_):
            raise error

    store = Failing(1_000_000)
    purge = Purge(stock=store, removals=removals, epochs=Alone(removals), journal=Notes(), clock=clock)
    with pytest.raises(type(error)):
        await purge.carry_out(Order(RED, Removal.HARD))
    assert removals.settled == removals.epoch == 1


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
