"""Lists of what is stored: none is cut short by how little a page may look at, and none has what no lookup finds."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from cacheproxy.core.removal import Selector
from cacheproxy.ports import Page
from cacheproxy.stores import sqlite_browse
from cacheproxy.stores.memory import Memory
from cacheproxy.stores.sqlite import Sqlite
from cacheproxy.stores.tiered import Tiered
from tests.rig import until
from tests.stores import replicas
from tests.stores.entries import entry, key_of
from tests.stores.replicas import EVERYTHING, Join, joining

NOW = 2000.0


async def pages(store, selector: Selector = EVERYTHING, most: int = 2, now: float = NOW) -> list[list[bytes]]:
    """The keys of every page."""
    found, cursor = [], ""
    async with asyncio.timeout(30):
        while True:
            page = await store.browse(selector, now, cursor, most)
            found.append([row.entry.key for row in page.rows])
            if not (cursor := page.cursor):
                return found


class OneByOne(Memory):
    """A store whose pages have one row, whatever is asked for."""

    async def browse(self, selector: Selector, now: float, cursor: str, most: int, *, whole: bool = False) -> Page:
        return await super().browse(selector, now, cursor, min(most, 1), whole=whole)


@pytest.mark.parametrize("swapped", [False, True])
async def test_two_tiers_are_listed_as_far_as_both_have_come(swapped):
    """One gives less than is asked for, as a file does that looks at so many rows for a page."""
    keys = sorted(key_of(number) for number in range(8))
    behind, ahead = (
        (OneByOne(1_000_000), Memory(1_000_000)) if not swapped else (Memory(1_000_000), OneByOne(1_000_000))
    )
    for number in range(8):
        first = key_of(number) in keys[:5]
        await (behind if first is not swapped else ahead).put(entry(number, expires_at=NOW + 1))
    found = await pages(Tiered(ahead, behind), most=3)
    assert [key for page in found for key in page] == keys


async def test_a_file_is_listed_however_few_rows_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_browse, "ROWS", 5)
    store = Sqlite(tmp_path / "cache.sqlite3", 10_000_000)
    try:
        for number in range(23):
            await store.put(entry(number, expires_at=NOW + 1))
        await until(lambda: not store._pending and not store._writing)
        keys = sorted(key_of(number) for number in range(23))
        found = await pages(store, most=100)
        assert [len(page) for page in found] == [5, 5, 5, 5, 3]
        assert [key for page in found for key in page] == keys
        none = await pages(store, Selector(model="none"), most=100)
        assert none == [[]] * 5
    finally:
        await store.close()


@pytest.fixture
async def join() -> AsyncIterator[Join]:
    async with joining() as join:
        yield join


@pytest.mark.redis
async def test_what_is_of_another_generation_is_not_listed(join, redis):
    """A value that was written before Redis lost what it knew: no lookup finds it, and no list has it."""
    one = join(redis.url)
    await one.epochs.current()
    for number in range(4):
        assert await one.keep(replicas.entry(number)) is None
    names = [one.keys.entry(key_of(number)) for number in range(4)]
    with redis.line() as line:
        for name in names[:2]:
            value = line.call("GET", name)
            line.call("SET", name, bytes(byte ^ 1 for byte in value[:8]) + value[8:], "KEEPTTL")
    assert [await one.get(number) is not None for number in range(4)] == [False, False, True, True]
    found = await pages(one.store, most=100, now=one.clock.now())
    assert sorted(key for page in found for key in page) == sorted(key_of(number) for number in (2, 3))
