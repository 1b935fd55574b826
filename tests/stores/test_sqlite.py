"""The cache file: what lasts, what it may take, and who may read it. Damage is in test_sqlite_damage.py."""

import asyncio
import os
import sqlite3
import stat
import threading
from collections.abc import AsyncIterator

import psutil
import pytest

from cacheproxy.core.model import Census
from cacheproxy.core.removal import Selector
from cacheproxy.errors import Trouble
from cacheproxy.stores.sqlite import Sqlite
from tests.rig import until
from tests.stores.entries import Lock, entry, felled, key_of, size

ROOMY = 50_000_000


@pytest.fixture
async def opened(tmp_path) -> AsyncIterator:
    """Opens stores on one file: ``store = opened(capacity)``."""
    stores: list[Sqlite] = []

    def begin(capacity: int = ROOMY, **options) -> Sqlite:
        stores.append(Sqlite(tmp_path / "data" / "cache.sqlite3", capacity, **options))
        return stores[-1]

    yield begin
    for store in stores:
        await store.close()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data" / "cache.sqlite3"


async def fill(store: Sqlite, numbers, length: int = 500) -> None:
    for number in numbers:
        await store.put(entry(number, length))
    await until(lambda: not store._pending and not store._writing)


async def test_entries_are_there_after_reopening(opened):
    store = opened()
    await fill(store, range(50))
    await store.close()
    store = opened()
    for number in range(50):
        assert await store.get(key_of(number)) == entry(number)
    assert await store.get(key_of(50)) is None
    await until(lambda: store.census() == Census(50, 50 * size(500)), what="the index")


async def test_closing_writes_what_is_pending(opened):
    """B79: a pending write is not lost at the end."""
    store = opened()
    for number in range(200):
        await store.put(entry(number))
    await store.close()
    store = opened()
    for number in range(200):
        assert await store.get(key_of(number)) == entry(number)


async def test_closing_lets_go_of_the_file(opened, file):
    """Nothing of it stays open, and the write-ahead log is folded in: the one file is the whole cache."""
    store = opened()
    await fill(store, range(5))
    assert await store.get(key_of(1)) is not None
    await store.close()
    held = [f.path for f in psutil.Process().open_files() if f.path.startswith(str(file))]
    assert held == []
    assert [f.name for f in file.parent.iterdir()] == [file.name]


async def test_a_store_that_is_closed_unused_leaves_no_thread(opened):
    before = set(threading.enumerate())
    store = opened()
    await store.close()
    await until(lambda: not [t for t in threading.enumerate() if t not in before and t.name.startswith("sqlite")])
    assert not store._writer.is_alive()


async def test_only_the_owner_can_read_it(opened, file):
    """Answers are private, whatever the umask says: the file, its log and its directory."""
    before = os.umask(0)
    try:
        store = opened()
        await fill(store, range(5))
        assert await store.get(key_of(1)) is not None
    finally:
        os.umask(before)
    modes = {f.name: stat.S_IMODE(f.stat().st_mode) for f in file.parent.iterdir()}
    assert len(modes) == 3
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


async def test_it_is_a_write_ahead_log_and_says_whose_it_is(opened, file):
    store = opened()
    await fill(store, range(3))
    other = sqlite3.connect(file)
    try:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert other.execute("PRAGMA application_id").fetchone() == (0x43505831,)
        assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        other.close()


async def test_many_puts_are_few_transactions(opened):
    store = opened()
    await fill(store, range(1))
    statements: list[str] = []
    store._connection.set_trace_callback(statements.append)
    for number in range(1000):
        await store.put(entry(number))
        if number % 50 == 0:
            await asyncio.sleep(0)
    await until(lambda: store.census().entries == 1000)
    await store.close()
    assert 1 <= statements.count("COMMIT") <= 50


async def test_what_waits_to_be_written_is_bounded(opened, file):
    """B78: while the disk hangs, entries beyond the limit are dropped and counted, none waits, and it goes on after."""
    store = opened(pending_bytes=20 * size(500))
    await fill(store, range(1))
    store._connection.execute("PRAGMA busy_timeout=60000")
    with Lock(file):
        await store.put(entry(1))
        await until(lambda: store._writing)
        for number in range(2, 100):
            await store.put(entry(number))
        assert store.dropped == 98 - 20
        for number in range(1, 22):
            assert await store.get(key_of(number)) == entry(number), "what waits can be got"
        assert await store.get(key_of(99)) is None
        for version in range(1, 500):
            await store.put(entry(21, version=version))
        assert store.dropped == 98 - 20, "a replacement takes no more room"
    await until(lambda: store.census() == Census(22, 22 * size(500)))
    await fill(store, [200])
    assert await store.get(key_of(200)) == entry(200)
    assert await store.get(key_of(21)) == entry(21, version=499)


async def test_an_entry_given_up_for_a_larger_one_gives_its_room_back(opened, file):
    """B78: what is pending is dropped for a newer one of its key that finds no room, and others can have its place."""
    store = opened(pending_bytes=2 * size(500))
    await fill(store, range(1))
    store._connection.execute("PRAGMA busy_timeout=60000")
    with Lock(file):
        await store.put(entry(1))
        await until(lambda: store._writing)
        await store.put(entry(2))
        await store.put(entry(3))
        await store.put(entry(2, 5000, version=1))
        assert await store.get(key_of(2)) is None
        await store.put(entry(4))
        assert await store.get(key_of(4)) == entry(4)
        assert store.dropped == 1
    await until(lambda: store.census().entries == 4)


async def test_what_was_dropped_leaves_nothing_behind(opened, file):
    """B78: a flood of entries that find no room takes no room of its own."""
    store = opened(pending_bytes=20 * size(500))
    await fill(store, range(1))
    store._connection.execute("PRAGMA busy_timeout=60000")
    with Lock(file):
        await store.put(entry(1))
        await until(lambda: store._writing)
        for number in range(2, 2000):
            await store.put(entry(number))
        assert store.dropped == 1998 - 20
        assert len(store._pending) == 20
    await until(lambda: store.census().entries == 22)


async def test_reading_goes_on_while_the_file_is_locked_for_writing(opened, file):
    store = opened()
    await fill(store, range(5))
    store._connection.execute("PRAGMA busy_timeout=60000")
    with Lock(file):
        await store.put(entry(9))
        assert await store.get(key_of(3)) == entry(3)
        assert await store.get(key_of(9)) == entry(9)
    await until(lambda: store.census().entries == 6)


async def test_entries_are_found_before_the_index_is_read(opened, monkeypatch):
    """A large file is warm at once: the list of its keys comes later, and is right then."""
    store = opened()
    await fill(store, range(20))
    await store.close()
    gate = threading.Event()
    index = Sqlite._learn

    def later(self: Sqlite) -> None:
        gate.wait(30)
        index(self)

    monkeypatch.setattr(Sqlite, "_learn", later)
    store = opened()
    try:
        assert store.census().entries == 0
        assert await store.get(key_of(7)) == entry(7)
        assert await store.get(key_of(99)) is None
        await store.put(entry(99))
        await store.put(entry(7, 50, version=1))
        assert await store.get(key_of(99)) == entry(99)
    finally:
        gate.set()
    await until(lambda: store.census() == Census(21, 20 * size(500) + size(50)), what="the index")
    assert await store.get(key_of(7)) == entry(7, 50, version=1)
    assert await store.get(key_of(8)) == entry(8)


async def test_the_bound_holds_also_for_what_an_earlier_process_left(opened, file):
    """B78: reopened with less room, the oldest written go; the file itself does not grow beyond its bound either."""
    store = opened()
    await fill(store, range(600), 3000)
    await store.close()
    capacity = 300 * size(3000)
    store = opened(capacity)
    await until(lambda: store.census().entries == 600, what="the index")
    await fill(store, range(1000, 1010), 3000)
    await until(lambda: store.census().bytes <= capacity, what="the bound")
    assert await store.get(key_of(0)) is None
    assert await store.get(key_of(599)) == entry(599, 3000)
    assert await store.get(key_of(1009)) == entry(1009, 3000)
    before = file.stat().st_size
    for start in range(2000, 6000, 200):
        await fill(store, range(start, start + 200), 3000)
    await until(lambda: store.census().bytes <= capacity, what="the bound")
    await store.close()
    assert file.stat().st_size <= before + capacity // 4, "freed room is used again"
    rows = sqlite3.connect(file)
    count, total = rows.execute("SELECT count(*), sum(size) FROM entry").fetchone()
    rows.close()
    assert store.census() == Census(count, total)
    assert total <= capacity


async def test_a_batch_that_cannot_be_written_does_not_count(opened, file):
    """B78: counters agree with reality also when the disk refuses. Here: another process keeps the lock too long."""
    store = opened()
    await fill(store, range(2))
    store._connection.execute("PRAGMA busy_timeout=50")
    with Lock(file):
        await fill(store, range(10, 20))
        await until(lambda: not store._writing)
    await fill(store, [30])
    assert [n for n in (*range(2), *range(10, 20), 30) if await store.get(key_of(n)) is not None] == [0, 1, 30]
    assert store.census() == Census(3, 3 * size(500))
    assert store.dropped == 10


async def test_an_entry_that_cannot_be_written_costs_only_itself(opened):
    """Trouble with one entry never ends the writing of others."""
    store = opened()
    odd = entry(1)
    object.__setattr__(odd, "model", "\ud800")
    ended: list[object] = []
    hook, threading.excepthook = threading.excepthook, ended.append
    try:
        await store.put(odd)
        await until(lambda: not store._pending)
        await store.put(entry(2))
        await until(lambda: not store._pending, 5, "the writer")
        await until(lambda: store.census().entries == 1, 5, "the write")
    finally:
        threading.excepthook = hook
    assert ended == []
    assert store.dropped == 1
    await store.close()
    assert await opened().get(key_of(2)) == entry(2)


@pytest.mark.parametrize("what", ["a directory", "below a file"])
async def test_a_place_that_cannot_hold_a_file_is_trouble_at_opening(tmp_path, what):
    if what == "a directory":
        path = tmp_path / "cache.sqlite3"
        (path / "inside").mkdir(parents=True)
    else:
        (tmp_path / "plain").write_text("a file")
        path = tmp_path / "plain" / "cache.sqlite3"
    with pytest.raises(Trouble, match=r"cannot use .*cache\.sqlite3"):
        Sqlite(path, ROOMY)
    assert not [t for t in threading.enumerate() if t.name.startswith("sqlite-write")]


async def test_a_removal_is_synced_to_the_disk_before_it_is_told(opened):
    """What was acknowledged as gone must not come back after a power failure; WAL alone only promises a whole file."""
    store = opened()
    await fill(store, range(3))
    for act in (store.fell, store.settle):
        statements: list[str] = []
        store._connection.set_trace_callback(statements.append)
        one = felled(Selector(everything=True))
        await act(one)
        synced = statements.index("PRAGMA synchronous=FULL")
        assert synced < statements.index("COMMIT") < statements.index("PRAGMA synchronous=NORMAL")
        assert await store.remove(one) == (set(map(key_of, range(3))) if act == store.fell else set())
