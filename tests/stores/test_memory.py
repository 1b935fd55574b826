"""The store in memory: which entry goes when room is needed."""

import pytest

from cacheproxy.stores.memory import LARGEST_SHARE, Memory
from tests.stores.entries import entry, key_of, size


async def test_what_was_asked_for_stays_and_what_was_not_goes():
    """B78: least recently used out first, fresh or not."""
    store = Memory(20 * size(100))
    for number in range(20):
        await store.put(entry(number, 100))
    for number in range(0, 20, 2):
        assert await store.get(key_of(number)) is not None
    for number in range(100, 110):
        await store.put(entry(number, 100))
    assert [n for n in range(20) if await store.get(key_of(n)) is not None] == list(range(0, 20, 2))


@pytest.mark.parametrize("times", [10, 5000])
async def test_the_order_of_use_outlives_the_housekeeping(times):
    """One key that is put again and again makes the store tidy its list of expiries; who was used last stays so."""
    store = Memory(20 * size(100))
    for number in range(19):
        await store.put(entry(number, 100))
    await store.get(key_of(0))
    for version in range(times):
        await store.put(entry(50, 100, version=version))
    await store.put(entry(51, 100))
    assert await store.get(key_of(0)) is not None, "used after all the others"
    assert await store.get(key_of(1)) is None, "used least recently"


async def test_sweeping_is_no_use():
    """Looking at what may have expired does not keep it in."""
    store = Memory(20 * size(100))
    await store.put(entry(0, 100, expires_at=10.0))
    await store.put(entry(0, 100, version=1, expires_at=1000.0))
    for number in range(1, 20):
        await store.put(entry(number, 100))
    assert await store.sweep(20.0) == 0
    await store.put(entry(20, 100))
    assert await store.get(key_of(0)) is None, "used least recently, whatever the sweep looked at"
    assert await store.get(key_of(1)) is not None


async def test_the_list_of_expiries_is_bounded():
    """B78: replacing one entry for ever takes no more and more memory."""
    store = Memory(100 * size(100))
    for version in range(20_000):
        await store.put(entry(version % 3, 100, version=version))
    assert len(store._expiries) < 3000
    assert await store.sweep(2e9) == 3


async def test_an_entry_that_would_empty_the_rest_is_not_kept():
    store = Memory(100_000)
    largest = 100_000 // LARGEST_SHARE - size(0)
    assert store.keep(entry(1, largest))
    assert not store.keep(entry(2, largest + 1))
    assert await store.get(key_of(1)) is not None
    assert await store.get(key_of(2)) is None
