"""Memory in front of a slower store: what is found where, and who wins."""

import asyncio

import pytest

from cacheproxy.core.model import Entry
from cacheproxy.core.removal import Removal, Selector
from cacheproxy.errors import Trouble
from cacheproxy.stores.memory import Memory
from cacheproxy.stores.tiered import Tiered
from tests.stores.entries import entry, felled, key_of, size


class Gated(Memory):
    """A store whose `get` has its entry in hand and waits before it gives it."""

    def __init__(self) -> None:
        super().__init__(10_000_000)
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def get(self, key: bytes) -> Entry | None:
        self.asked.set()
        entry = self.peek(key)
        await self.gate.wait()
        return entry


async def test_the_slower_store_is_asked_once():
    front, back = Memory(1_000_000), Gated()
    tiered = Tiered(front, back)
    await back.put(entry(1))
    assert await tiered.get(key_of(1)) == entry(1)
    back.asked.clear()
    assert await tiered.get(key_of(1)) == entry(1)
    assert not back.asked.is_set()


async def test_what_the_front_let_go_is_found_in_the_back():
    """B78: the small memory is no limit on what is kept."""
    tiered = Tiered(Memory(4 * size(500)), Memory(1_000_000))
    for number in range(50):
        await tiered.put(entry(number))
    assert [n for n in range(50) if await tiered.get(key_of(n)) == entry(n)] == list(range(50))


async def _put_while_the_back_is_asked(front: Memory, newer: Entry) -> Tiered:
    """Ask for entry 1 (the old one), and put `newer` while the answer is on its way."""
    back = Gated()
    tiered = Tiered(front, back)
    await back.put(entry(1))
    back.gate.clear()
    asked = asyncio.create_task(tiered.get(key_of(1)))
    await back.asked.wait()
    await tiered.put(newer)
    back.gate.set()
    await asked
    return tiered


async def test_an_old_entry_on_its_way_does_not_replace_a_newer_one():
    newer = entry(1, version=1)
    tiered = await _put_while_the_back_is_asked(Memory(1_000_000), newer)
    assert await tiered.get(key_of(1)) == newer


async def test_an_old_entry_on_its_way_does_not_hide_a_newer_one_too_large_for_the_front():
    """When `put` has returned, `get` sees it: also if only the slower store could take it."""
    newer = entry(1, 50_000, version=1)
    tiered = await _put_while_the_back_is_asked(Memory(100_000), newer)
    assert await tiered.get(key_of(1)) == newer


@pytest.mark.parametrize("removal", [Removal.HARD, Removal.SOFT])
async def test_an_entry_on_its_way_does_not_outlive_its_removal(removal):
    """The slower store has given the entry out of its hand when it is removed; it must not be kept in front."""
    back = Gated()
    tiered = Tiered(Memory(1_000_000), back)
    await back.put(entry(1))
    back.gate.clear()
    asked = asyncio.create_task(tiered.get(key_of(1)))
    await back.asked.wait()
    await tiered.remove(felled(Selector(everything=True), removal))
    back.gate.set()
    await asked
    left = await tiered.get(key_of(1))
    assert left is None if removal is Removal.HARD else left is not None and left.fresh_until == 2000.0


async def test_what_the_slower_store_cannot_remove_is_gone_in_front_and_is_not_acknowledged():
    class Full(Memory):
        async def remove(self, *_: object) -> set[bytes]:
            raise Trouble("the disk is full")

    front = Memory(1_000_000)
    tiered = Tiered(front, Full(1_000_000))
    await tiered.put(entry(1))
    with pytest.raises(Trouble):
        await tiered.remove(felled(Selector(everything=True), Removal.HARD))
    assert front.census().entries == 0
