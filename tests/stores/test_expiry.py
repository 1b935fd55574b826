"""Every stored byte has its end: a moment that no reading moves, after which a sweep leaves nothing of it."""

import random
import sqlite3
from pathlib import Path

import pytest

from cacheproxy.core.model import Census
from cacheproxy.stores.memory import Memory
from cacheproxy.stores.sqlite import Sqlite
from cacheproxy.stores.tiered import Tiered
from tests.rig import until
from tests.stores.entries import entry, key_of
from tests.stores.test_counts import FILE, agrees, expired, layers, opened, settled

ROOMY = 10**9
ENTRIES = 2050
"""More than one transaction of a sweep frees."""
NOTHING = Census(0, 0)


def pages(path: Path) -> tuple[int, int]:
    """Pages of the file, and how many of them are free."""
    connection = sqlite3.connect(path)
    [(count,)], [(free,)] = connection.execute("PRAGMA page_count"), connection.execute("PRAGMA freelist_count")
    connection.close()
    return count, free


async def filled(kind: str, path: Path) -> Memory | Sqlite | Tiered:
    store = opened(kind, path, ROOMY)
    await fill(store)
    return store


async def fill(store: Memory | Sqlite | Tiered) -> None:
    dice = random.Random(1)
    for number in range(ENTRIES):
        await store.put(entry(number, dice.randrange(2000), expires_at=1000.0 + dice.randrange(1000)))
        if number % 3 == 0:  # a replacement that ends sooner or later than what it replaces
            await store.put(entry(number, 100, version=1, expires_at=1000.0 + dice.randrange(1000)))
    await agrees(store)


async def swept(store, now: float) -> None:
    await store.sweep(now)
    await settled(store)
    for layer in layers(store):
        if isinstance(layer, Sqlite):
            await until(lambda layer=layer: not expired(layer._path, now), what="the sweep")


@pytest.mark.parametrize("kind", ["memory", "sqlite", "tiered"])
async def test_after_the_last_end_nothing_is_left(kind, tmp_path):
    """B78: no entry, no byte, no row, no list of what was there; and the room in the file is free again."""
    store = await filled(kind, tmp_path)
    ends = sorted(e.expires_at for e in [await store.get(key_of(n)) for n in range(ENTRIES)])
    for now in (ends[len(ends) // 3], ends[-1] - 0.5, ends[-1]):
        await swept(store, now)
        left = [e for e in [await store.get(key_of(n)) for n in range(ENTRIES)] if e is not None]
        assert sorted(e.expires_at for e in left) == [end for end in ends if end > now]
        await agrees(store)
        assert all(layer.census() == Census(len(left), sum(e.size for e in left)) for layer in layers(store))
    assert store.census() == NOTHING
    for layer in layers(store):
        if isinstance(layer, Memory):
            assert (layer._entries, layer._expiries) == ({}, [])
        else:
            assert (len(layer._index), layer._index.bytes) == (0, 0)
    if kind != "memory":
        count, free = pages(tmp_path / FILE)
        assert count > 300
        assert count - free < 10
        await fill(store)
        assert pages(tmp_path / FILE)[0] <= count * 1.1, "the free room is used"
    await store.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite", "tiered"])
async def test_reading_moves_no_end(kind, tmp_path):
    """However often an entry is used, also through a new front, it ends when it was to end."""
    store = await filled(kind, tmp_path)
    before = [(await store.get(key_of(n))).expires_at for n in range(ENTRIES)]
    if kind != "memory":
        await store.close()
        store = opened(kind, tmp_path, ROOMY)
    dice = random.Random(2)
    for _ in range(2000):
        number = dice.randrange(ENTRIES)
        assert (await store.get(key_of(number))).expires_at == before[number]
    await agrees(store)
    for layer in layers(store):
        if isinstance(layer, Sqlite):
            connection = sqlite3.connect(layer._path)
            rows = dict(connection.execute("SELECT key, expires_at FROM entry"))
            connection.close()
            assert rows == {key_of(n): before[n] for n in range(ENTRIES)}
    await swept(store, max(before))
    await until(lambda: [layer.census() for layer in layers(store)] == [NOTHING] * len(layers(store)))
    await store.close()
