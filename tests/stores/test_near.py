"""Copies near by: never older than they may be, never of what a removal known here means, never in place of news."""

import asyncio

import pytest

from cacheproxy.core.removal import Removal, Removals, Selector
from cacheproxy.errors import Trouble
from cacheproxy.ports import Kept
from cacheproxy.stores.memory import Memory
from cacheproxy.stores.near import Near
from tests.engine.fakes import Hands
from tests.stores.entries import entry, felled, key_of

AGE = 5.0
CAPACITY = 100_000


class Far(Memory):
    """A store that counts how often it is asked, and that can be slow, in trouble, or outrun."""

    def __init__(self) -> None:
        super().__init__(10_000_000)
        self.asked = 0
        self.gate: asyncio.Event | None = None
        self.trouble: Trouble | None = None
        self.kept = Kept.YES

    async def get(self, key):
        self.asked += 1
        found = self.trouble or self.peek(key)
        if self.gate is not None:
            await self.gate.wait()
        return found

    async def put(self, entry, epoch=None):
        if self.kept is Kept.YES:
            self.keep(entry)
        return self.kept


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def removals() -> Removals:
    return Removals()


@pytest.fixture
def far() -> Far:
    return Far()


@pytest.fixture
def near(far, removals, clock) -> Near:
    return Near(far, removals, clock, capacity=CAPACITY, max_age=AGE)


async def test_what_was_got_is_served_from_here_for_its_age(near, far, clock):
    far.keep(entry(1))
    assert await near.get(key_of(1)) == entry(1)
    clock.move(AGE * 0.9)
    assert await near.get(key_of(1)) == entry(1)
    assert far.asked == 1
    clock.move(AGE * 0.2)
    far.keep(entry(1, version=1))
    assert await near.get(key_of(1)) == entry(1, version=1), "the age counts from the copy, uses do not prolong it"
    assert far.asked == 2


async def test_what_was_put_is_served_from_here(near, far):
    assert await near.put(entry(1)) is Kept.YES
    assert await near.get(key_of(1)) == entry(1)
    assert far.asked == 0


@pytest.mark.parametrize("kept", [Kept.OUTRUN, Kept.TROUBLE])
async def test_what_the_far_store_did_not_take_is_not_served_and_neither_is_what_it_replaces(near, far, kept):
    await near.put(entry(1))
    far.kept = kept
    assert await near.put(entry(1, version=1)) is kept
    far.drop(key_of(1))
    assert await near.get(key_of(1)) is None


async def test_a_removal_that_is_known_ends_a_copy_at_once(near, far, removals):
    """B37: known by a message or by any lookup, whoever ordered it; what it does not mean stays."""
    for number in (1, 2):
        await near.put(entry(number))
    removals.add(Selector(entry_ids=frozenset({"nothing"})), 2000.0)
    assert await near.get(key_of(1)) == entry(1)
    removals.add(Selector(everything=True), 2000.0)
    far.drop(key_of(1))
    assert await near.get(key_of(1)) is None
    assert await near.get(key_of(2)) == entry(2)
    assert far.asked == 2


async def test_what_was_on_its_way_when_a_removal_came_is_no_copy(near, far, removals):
    far.keep(entry(1))
    far.gate = asyncio.Event()
    asked = asyncio.create_task(near.get(key_of(1)))
    await asyncio.sleep(0)
    removals.add(Selector(everything=True), 2000.0)
    far.gate.set()
    await asked
    far.drop(key_of(1))
    assert await near.get(key_of(1)) is None


async def test_what_was_on_its_way_when_something_newer_was_put_does_not_replace_it(near, far):
    far.keep(entry(1))
    far.gate = asyncio.Event()
    asked = asyncio.create_task(near.get(key_of(1)))
    await asyncio.sleep(0)
    await near.put(entry(1, version=1))
    far.gate.set()
    await asked
    assert await near.get(key_of(1)) == entry(1, version=1)


@pytest.mark.parametrize("removal", [Removal.HARD, Removal.SOFT])
async def test_its_own_removals_are_strict(near, far, removal):
    await near.put(entry(1))
    assert await near.remove(felled(Selector(everything=True), removal)) == {key_of(1)}
    left = await near.get(key_of(1))
    assert left is None if removal is Removal.HARD else left.fresh_until == 2000.0


async def test_counting_removes_no_copy(near, far):
    await near.put(entry(1))
    await near.count(Selector(everything=True), 2000.0)
    await near.get(key_of(1))
    assert far.asked == 0


async def test_copies_are_bounded_in_bytes(near, far):
    for number in range(100):
        await near.put(entry(number, 4000))
    await near.put(entry(1000, CAPACITY // 2))
    for number in reversed(range(100)):
        await near.get(key_of(number))
        far.drop(key_of(number))
    await near.get(key_of(1000))
    held = 100 - (far.asked - 1)
    assert 0 < held * entry(1, 4000).size <= CAPACITY
    assert await near.get(key_of(1000)) == entry(1000, CAPACITY // 2), "too large for a copy, and served all the same"


async def test_trouble_is_passed_on_and_no_copy(near, far):
    far.trouble = Trouble("gone")
    assert await near.get(key_of(1)) is far.trouble
    far.trouble = None
    assert await near.get(key_of(1)) is None


async def test_while_the_far_store_is_in_trouble_copies_go_on(near, far, clock):
    await near.put(entry(1))
    far.trouble = Trouble("gone")
    assert await near.get(key_of(1)) == entry(1)
    clock.move(AGE * 1.1)
    assert await near.get(key_of(1)) is far.trouble


async def test_closing_forgets(near, far):
    await near.put(entry(1))
    assert "1 copies" in repr(near)
    assert near.census() == far.census()
    assert await near.sweep(2e9) == 1
    await near.close()
    assert "0 copies" in repr(near)
