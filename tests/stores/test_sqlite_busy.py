"""The cache file under load: more than it can take, and an event loop that leaves its threads no time."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from cacheproxy.core.model import Census
from cacheproxy.stores import way
from cacheproxy.stores.sqlite import Sqlite
from cacheproxy.stores.way import GAP
from tests.rig import until
from tests.stores.entries import Lock, entry, key_of, size

Open = Callable[..., Sqlite]


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "cache.sqlite3"


@pytest.fixture
async def opened(file) -> AsyncIterator[Open]:
    """Opens stores on the file: ``store = opened(capacity)``."""
    stores: list[Sqlite] = []

    def begin(capacity: int = 50_000_000) -> Sqlite:
        stores.append(Sqlite(file, capacity))
        stores[-1]._connection.execute("PRAGMA busy_timeout=60000")
        return stores[-1]

    yield begin
    for store in stores:
        await store.close()


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    """The times that the event loop stands still for; here it only notes them."""
    noted: list[float] = []
    monkeypatch.setattr(way, "time", SimpleNamespace(sleep=noted.append))
    return noted


async def written(store: Sqlite) -> None:
    await until(lambda: not store._pending and not store._writing, what="the writer")


async def test_a_batch_larger_than_the_store_keeps_the_newest_and_the_file_its_size(opened, file):
    """B78: ten times the capacity waits while the disk hangs; the file does not grow by what cannot stay in it."""
    capacity = 100 * size(3000)
    store = opened(capacity)
    for number in range(100):
        await store.put(entry(number, 3000))
    await store.close()
    before = file.stat().st_size
    store = opened(capacity)
    await until(lambda: store.census().entries == 100, what="the index")
    with Lock(file):
        await store.put(entry(1000, 3000))
        await until(lambda: store._writing)
        await store.put(entry(99, 3000, version=1))
        for number in range(2000, 3000):
            await store.put(entry(number, 3000))
    await written(store)
    assert store.census() == Census(100, capacity)
    assert store.dropped == 901
    assert [n for n in range(3000) if await store.get(key_of(n)) is not None] == list(range(2900, 3000))
    await store.close()
    assert file.stat().st_size <= before + before // 20


async def test_of_a_batch_larger_than_the_store_the_newer_of_a_key_is_the_newest(opened, file):
    """An entry that is put again while it waits is as new as the last put of it."""
    store = opened(10 * size(500))
    await store.put(entry(0))
    await written(store)
    with Lock(file):
        await store.put(entry(1))
        await until(lambda: store._writing)
        for number in range(100, 130):
            await store.put(entry(number))
        await store.put(entry(100, version=1))
    await written(store)
    assert await store.get(key_of(100)) == entry(100, version=1)
    assert [n for n in range(130) if await store.get(key_of(n)) is not None] == [100, *range(121, 130)]


async def test_a_store_that_is_full_takes_no_more_room_for_larger_batches(opened, file):
    """B78: what has to go goes first, and what comes takes its room."""
    capacity = 400 * size(3000)
    store = opened(capacity)
    for number in range(400):
        await store.put(entry(number, 3000))
        if number % 10 == 0:
            await written(store)
    await written(store)
    before = store._connection.execute("PRAGMA page_count").fetchone()[0]
    with Lock(file):
        await store.put(entry(1000, 3000))
        await until(lambda: store._writing)
        for number in range(2000, 2399):
            await store.put(entry(number, 3000))
    await written(store)
    assert store.census() == Census(400, capacity)
    assert store.dropped == 0
    assert store._connection.execute("PRAGMA page_count").fetchone()[0] <= before + before // 20


async def test_the_loop_makes_way_for_a_writer_that_does_not_get_on(opened, file, pauses):
    """It stands still again and again, for a moment each, until the entry is written; and then no more."""
    store = opened()
    await store.put(entry(0))
    await written(store)
    with Lock(file):
        await store.put(entry(1))
        await until(lambda: len(pauses) >= 5)
    await written(store)
    assert set(pauses) == {GAP}
    assert GAP <= 0.001
    await until(lambda: store._way.loop is None)
    stood = len(pauses)
    await asyncio.sleep(0.1)
    assert len(pauses) == stood


async def test_the_loop_makes_way_for_a_read_that_does_not_get_on(opened, pauses):
    store = opened()
    await store.put(entry(1))
    await written(store)
    await until(lambda: store._way.loop is None)
    pauses.clear()
    gate = threading.Event()
    try:
        store._reader.thread.submit(gate.wait, 30)
        asked = asyncio.create_task(store.get(key_of(1)))
        await until(lambda: len(pauses) >= 5)
    finally:
        gate.set()
    assert await asked == entry(1)
    await until(lambda: store._way.loop is None)
    assert set(pauses) == {GAP}


async def test_the_loop_does_not_stand_still_for_threads_that_get_on(opened, file, pauses):
    """There is always work under load; only the same work as before is a reason."""
    store = opened()
    await store.put(entry(0))
    await written(store)
    with Lock(file):
        await store.put(entry(1))
        await until(lambda: store._writing)
        await store.put(entry(2))
        stood = len(pauses)
        store._way.make(asyncio.get_running_loop(), ({key_of(2): entry(2)}, {key_of(1): entry(1)}, object()))
        assert len(pauses) == stood
        store._way.make(asyncio.get_running_loop(), store._work())
        assert len(pauses) == stood + 1
    await written(store)


async def test_a_loop_that_never_rests_starves_neither_writer_nor_reader(opened):
    """With sixty tasks that only go round, each entry is written, and read from the file, as if the loop were idle."""
    store = opened()
    spinning = True

    async def spin() -> None:
        while spinning:
            await asyncio.sleep(0)

    async def work() -> None:
        async with asyncio.timeout(20):
            for number in range(25):
                await store.put(entry(number, 5000))
                while store._pending or store._writing:
                    await asyncio.sleep(0)
                assert await store.get(key_of(number)) == entry(number, 5000)

    spinners = [asyncio.create_task(spin()) for _ in range(60)]
    try:
        await work()
    finally:
        spinning = False
        await asyncio.gather(*spinners)
    assert store.census().entries == 25
