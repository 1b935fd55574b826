"""What a store says it holds is what is there: after any run of puts, replacements, gets, sweeps and reopenings, its
census is a recount of what lies in memory and in the file. `CACHEPROXY_OPERATIONS` makes the runs longer."""

import asyncio
import random
import sqlite3
from collections import OrderedDict
from pathlib import Path

import pytest

from cacheproxy.core import codec
from cacheproxy.core.model import Census, Entry
from cacheproxy.ports import Store
from cacheproxy.stores.memory import LARGEST_SHARE, Memory
from cacheproxy.stores.sqlite import Sqlite
from cacheproxy.stores.tiered import Tiered
from tests.examples import OPERATIONS, SEED
from tests.rig import until
from tests.stores.entries import entry, key_of, size

ROOMY = 10**9
TIGHT = 40 * size(1000)
KEYS = 120
FILE = "cache.sqlite3"

pytestmark = pytest.mark.timeout(120 + OPERATIONS // 50)


def opened(kind: str, path: Path, capacity: int) -> Store:
    if kind == "memory":
        return Memory(capacity)
    file = Sqlite(path / FILE, capacity)
    return file if kind == "sqlite" else Tiered(Memory(capacity // 4 if capacity < ROOMY else capacity), file)


def layers(store: Store) -> list[Memory | Sqlite]:
    return [store._front, store._back] if isinstance(store, Tiered) else [store]


def recounted(layer: Memory | Sqlite) -> Census:
    """What lies there, counted from outside."""
    if isinstance(layer, Memory):
        held = layer._entries
        assert all(key == e.key for key, e in held.items())
        assert {(e.expires_at, key) for key, e in held.items()} <= set(layer._expiries), "each would be swept"
        return Census(len(held), sum(e.size for e in held.values()))
    connection = sqlite3.connect(layer._path)
    rows = connection.execute("SELECT key, expires_at, size, blob FROM entry").fetchall()
    connection.close()
    for key, expires_at, counted, blob in rows:
        found = codec.decode(blob, key)
        assert found is not None
        assert (found.size, found.expires_at) == (counted, expires_at)
    return Census(len(rows), sum(row[2] for row in rows))


def expired(path: Path, now: float) -> int:
    """Rows that a sweep at `now` has not yet freed."""
    connection = sqlite3.connect(path)
    [(rows,)] = connection.execute("SELECT count(*) FROM entry WHERE expires_at <= ?", (now,))
    connection.close()
    return rows


async def settled(store: Store) -> None:
    """Wait until the file's writer has nothing left to do."""

    def idle() -> bool:
        return not any(
            layer._pending or layer._writing or layer._sweep_before is not None
            for layer in layers(store) if isinstance(layer, Sqlite)
        )  # fmt: skip

    await until(idle, what="the writer")


async def agrees(store: Store) -> None:
    """Wait for the writer; then every layer's census is a recount."""
    await settled(store)
    for layer in layers(store):
        await until(lambda layer=layer: layer.census() == recounted(layer), what=f"{layer!r} to be {recounted(layer)}")


class Lru:
    """What is in memory, by its own rule: least recently used out first, nothing that would empty the rest."""

    def __init__(self, capacity: int) -> None:
        self.entries: OrderedDict[bytes, Entry] = OrderedDict()
        self._capacity = capacity

    def put(self, e: Entry) -> None:
        self.entries.pop(e.key, None)
        if e.size <= self._capacity // LARGEST_SHARE:
            self.entries[e.key] = e
        while sum(other.size for other in self.entries.values()) > self._capacity:
            self.entries.popitem(last=False)

    def get(self, key: bytes) -> Entry | None:
        if key in self.entries:
            self.entries.move_to_end(key)
        return self.entries.get(key)

    def sweep(self, now: float) -> int:
        gone = [key for key, e in self.entries.items() if e.expires_at <= now]
        for key in gone:
            del self.entries[key]
        return len(gone)


class Run:
    """A random run of operations; `last` is what was put last of each key and is not swept yet."""

    def __init__(self, kind: str, path: Path, capacity: int) -> None:
        self.dice = random.Random(f"{SEED} {kind} {capacity}")
        self._open = lambda: opened(kind, path, capacity)
        self.store = self._open()
        self.last: dict[bytes, Entry] = {}
        self.now = 1000.0

    def new(self, step: int) -> Entry:
        """New or a replacement; alive, or expired from the start."""
        length = self.dice.choice([0, 10, 700, 1000, 3000]) if self.dice.random() < 0.98 else 3 * TIGHT
        lasting = self.dice.choice([-10.0, 0.0, 30.0, 100.0, 1000.0])
        return entry(self.dice.randrange(KEYS), length, version=step, expires_at=self.now + lasting)

    async def reopen(self) -> None:
        if isinstance(self.store, Memory):
            return
        await self.store.close()
        self.store = self._open()

    async def sweep(self) -> int:
        self.now += self.dice.choice([1.0, 20.0, 50.0])
        await settled(self.store)
        self.last = {key: e for key, e in self.last.items() if e.expires_at > self.now}
        swept = await self.store.sweep(self.now)
        await settled(self.store)  # the writer has taken it up: what is put from now on is written after it
        for layer in layers(self.store):
            if isinstance(layer, Sqlite):
                await until(lambda layer=layer: not expired(layer._path, self.now), what="the sweep")
        return swept


@pytest.mark.parametrize("kind", ["memory", "sqlite", "tiered"])
async def test_with_room_for_all_everything_is_there_and_counted(kind, tmp_path):
    """B78: entry for entry what a dictionary would hold, and the census its number and bytes."""
    run = Run(kind, tmp_path, ROOMY)
    for step in range(OPERATIONS):
        act = run.dice.random()
        if act < 0.6:
            new = run.new(step)
            await run.store.put(new)
            run.last[new.key] = new
        elif act < 0.96:
            key = key_of(run.dice.randrange(KEYS))
            assert await run.store.get(key) == run.last.get(key)
        elif act < 0.985:
            await run.sweep()
        elif act < 0.99:
            await run.reopen()
        else:
            await agrees(run.store)
            wanted = Census(len(run.last), sum(e.size for e in run.last.values()))
            back = layers(run.store)[-1]
            await until(lambda back=back, wanted=wanted: back.census() == wanted, what=f"{back!r} to be {wanted}")
            assert run.store.census() == wanted
    assert len(run.last) > 10
    for key in map(key_of, range(KEYS)):
        assert await run.store.get(key) == run.last.get(key)
    await agrees(run.store)
    await run.store.close()


async def test_a_full_memory_holds_exactly_what_its_rule_says():
    """B78: entry for entry, sweep for sweep."""
    run = Run("memory", Path(), TIGHT)
    rule = Lru(TIGHT)
    for step in range(OPERATIONS):
        act = run.dice.random()
        if act < 0.6:
            new = run.new(step)
            await run.store.put(new)
            rule.put(new)
        elif act < 0.98:
            key = key_of(run.dice.randrange(KEYS))
            assert await run.store.get(key) == rule.get(key)
        else:
            swept = await run.sweep()
            assert swept == rule.sweep(run.now)
        assert list(run.store._entries.items()) == list(rule.entries.items())
        assert run.store.census() == Census(len(rule.entries), sum(e.size for e in rule.entries.values()))
    await agrees(run.store)


@pytest.mark.parametrize("kind", ["sqlite", "tiered"])
async def test_a_full_file_is_within_its_bound_and_counted(kind, tmp_path):
    """B78: whatever goes for room, the census is a recount, never above the bound, and nothing old is given."""
    run = Run(kind, tmp_path, TIGHT)
    for step in range(OPERATIONS):
        act = run.dice.random()
        key = key_of(run.dice.randrange(KEYS))
        if act < 0.7:
            new = run.new(step)
            await run.store.put(new)
            run.last[new.key] = new
            if act < 0.02 and new.size < TIGHT:
                await settled(run.store)
                assert await run.store.get(new.key) == new, "the newest is there"
        elif act < 0.97:
            if act > 0.95:
                found, _ = await asyncio.gather(run.store.get(key), settled(run.store))
            else:
                found = await run.store.get(key)
            assert found in (None, run.last.get(key)), "swept, gone for room, or the newest"
        elif act < 0.98:
            await run.sweep()
        elif act < 0.985:
            await run.reopen()
        else:
            await agrees(run.store)
            assert layers(run.store)[-1].census().bytes <= TIGHT
    await agrees(run.store)
    there = [e for e in [await run.store.get(key) for key in map(key_of, range(KEYS))] if e is not None]
    assert 5 < len(there) < KEYS
    assert all(e == run.last[e.key] for e in there)
    await run.store.close()
