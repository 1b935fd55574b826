"""A cache file that is damaged or not ours: set aside whole with one log line, and a new one is begun. Never fatal."""

import asyncio
import contextlib
import logging
import random
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cacheproxy.errors import Trouble
from cacheproxy.stores.sqlite import Sqlite
from cacheproxy.stores.sqlite_file import APPLICATION_ID, SCHEMA_VERSION
from tests.rig import until
from tests.stores.entries import entry, key_of

ROOMY = 50_000_000
ENTRIES = 300


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "cache.sqlite3"


@pytest.fixture
async def opened(file) -> AsyncIterator:
    """Opens stores on the file: ``store = opened()``."""
    stores: list[Sqlite] = []

    def begin() -> Sqlite:
        stores.append(Sqlite(file, ROOMY))
        return stores[-1]

    yield begin
    for store in stores:
        await store.close()


@pytest.fixture(scope="module")
def image(tmp_path_factory) -> bytes:
    """A whole cache file of `ENTRIES` entries of 3,000 bytes."""
    path = tmp_path_factory.mktemp("image") / "cache.sqlite3"

    async def build() -> None:
        store = Sqlite(path, ROOMY)
        for number in range(ENTRIES):
            await store.put(entry(number, 3000))
        await store.close()

    asyncio.run(build())
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.read_bytes()


@pytest.fixture
def good(file, image) -> bytes:
    """The file is there and whole; its bytes."""
    file.write_bytes(image)
    return image


def aside(file: Path) -> list[Path]:
    """The files set aside, without their logs."""
    return sorted(p for p in file.parent.iterdir() if ".set-aside-" in p.name and not p.name.endswith(("-wal", "-shm")))


def lines(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "cacheproxy.store" and r.levelno >= logging.WARNING]


def keys_in(file: Path) -> set[bytes]:
    """What a plain look into the file finds."""
    connection = sqlite3.connect(file)
    try:
        return {key for (key,) in connection.execute("SELECT key FROM entry")}
    finally:
        connection.close()


async def works(store: Sqlite, number: int = 10_000) -> None:
    """A put is got back now, after it was written, and by the next process."""
    await store.put(entry(number))
    assert await store.get(key_of(number)) == entry(number)
    await until(lambda: not store._pending and not store._writing)
    assert await store.get(key_of(number)) == entry(number)
    await store.close()
    again = Sqlite(store._path, ROOMY)
    try:
        assert await again.get(key_of(number)) == entry(number)
    finally:
        await again.close()


async def recovers(store: Sqlite) -> None:
    """It works at the latest after the first write, which may find the damage and be lost."""
    await store.put(entry(9999))
    await until(lambda: not store._pending and not store._writing)
    await works(store)


def _foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.execute("INSERT INTO bookmarks VALUES ('https://example.org')")
    connection.commit()
    connection.close()


def _newer(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    connection.close()


def _killed_while_beginning(path: Path) -> None:
    """What a process leaves that was killed between marking the file as ours and making its table."""
    path.unlink()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
    connection.close()


def _foreign_in_place(path: Path) -> None:
    path.unlink()
    _foreign(path)


DAMAGES = {
    "garbage": lambda path: path.write_bytes(bytes(range(256)) * 400),
    "text": lambda path: path.write_text("This is no database.\n" * 100),
    "short text": lambda path: path.write_text("x"),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "truncated to its head": lambda path: path.write_bytes(path.read_bytes()[:60]),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "a foreign database": _foreign_in_place,
    "a newer format": _newer,
    "begun and killed": _killed_while_beginning,
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_file_that_cannot_be_used_is_set_aside(opened, file, good, caplog, damage):
    """Found at opening: the old bytes are kept, one line says where, and a new file works."""
    DAMAGES[damage](file)
    before = file.read_bytes()
    assert before != good
    store = opened()
    assert await store.get(key_of(1)) is None
    assert [p.read_bytes() for p in aside(file)] == [before]
    said = lines(caplog)
    assert len(said) == 1, said
    assert str(file) in said[0]
    assert aside(file)[0].name in said[0]
    await works(store)
    assert lines(caplog) == said


async def test_an_empty_file_is_a_new_one(opened, file, caplog):
    file.touch()
    await works(opened())
    assert lines(caplog) == []
    assert aside(file) == []


async def test_the_log_of_a_lost_file_is_not_taken_for_the_new_ones(tmp_path, opened, file):
    """A killed process left its write-ahead log, and the file beside it is garbage: no mixture of the two is served."""
    source = tmp_path / "source" / "cache.sqlite3"
    running = Sqlite(source, ROOMY)
    for number in range(50):
        await running.put(entry(number, 3000))
    await until(lambda: running.census().entries == 50 and not running._writing)
    log = source.with_name("cache.sqlite3-wal").read_bytes()
    await running.close()
    assert len(log) > 50_000
    file.with_name("cache.sqlite3-wal").write_bytes(log)
    file.write_bytes(b"garbage" * 1000)
    store = opened()
    kept_log = aside(file)[0].with_name(aside(file)[0].name + "-wal")
    assert kept_log.read_bytes() == log
    for number in range(50):
        assert await store.get(key_of(number)) in (None, entry(number, 3000))
    await recovers(store)


@pytest.mark.parametrize("offset", range(100))
async def test_one_damaged_byte_in_the_head_never_makes_the_file_useless(file, good, offset):
    """Whatever byte of the first hundred is changed: the store opens, and works at the latest after the first write
    has found the damage."""
    data = bytearray(good)
    data[offset] ^= 0xFF
    file.write_bytes(data)
    store = Sqlite(file, ROOMY)
    try:
        await recovers(store)
    finally:
        await store.close()
    assert len(aside(file)) <= 1
    assert keys_in(file) & {key_of(10_000)}, "what was put last is in the file"


def _spoil(data: bytearray, dice: random.Random) -> None:
    """Overwrite bytes or pages behind the head anywhere, or cut the end off."""
    if dice.random() < 0.3:
        del data[dice.randrange(100, len(data)) :]
        return
    for _ in range(dice.choice([1, 5, 50])):
        start = dice.randrange(100, len(data))
        length = min(dice.choice([1, 16, 4096]), len(data) - start)
        data[start : start + length] = dice.randbytes(length)


@pytest.mark.parametrize("seed", range(20))
async def test_no_damage_gives_a_wrong_answer(opened, file, good, seed):
    """Wherever the file is damaged: an entry is got back whole or not at all, and the store goes on."""
    data = bytearray(good)
    _spoil(data, random.Random(seed))
    file.write_bytes(data)
    store = opened()
    for number in range(ENTRIES):
        with contextlib.suppress(Trouble):
            assert await store.get(key_of(number)) in (None, entry(number, 3000))
    await recovers(store)


def overwrite(file: Path) -> bytes:
    """Write over every page but the first, as a failing disk would; what stands behind the first page now."""
    length = file.stat().st_size
    with file.open("r+b") as raw:
        raw.seek(4096)
        raw.write(b"\xa5" * (length - 4096))
    return file.read_bytes()[4096:]


def kept(file: Path) -> list[bytes]:
    """What the files set aside hold behind the first page, which closing them may still have brought up to date."""
    return [path.read_bytes()[4096:] for path in aside(file)]


async def test_damage_found_by_reading_while_running(opened, file, good, caplog):
    """The read is trouble (a miss behind the guard); the file is set aside with one line, and a new one works."""
    store = opened()
    await until(lambda: store.census().entries == ENTRIES)
    before = overwrite(file)
    with pytest.raises(Trouble):
        await store.get(key_of(1))
    await until(lambda: lines(caplog), what="the line, which comes when the file is set aside")
    assert store.census().entries == 0
    assert await store.get(key_of(1)) is None
    assert kept(file) == [before]
    said = lines(caplog)
    assert len(said) == 1
    assert str(file) in said[0]
    assert aside(file)[0].name in said[0]
    await works(store)
    assert lines(caplog) == said


async def test_damage_found_by_writing_while_running(opened, file, good, caplog):
    store = opened()
    await until(lambda: store.census().entries == ENTRIES)
    before = overwrite(file)
    await store.put(entry(5000))
    await until(lambda: aside(file))
    await until(lambda: not store._pending and not store._writing)
    assert kept(file) == [before]
    assert len(lines(caplog)) == 1
    await works(store)


async def test_many_reads_of_a_damaged_file_set_one_file_aside(opened, file, good, caplog):
    """Reads that fail together, or while the new file is being begun, must not cost the new file too."""
    store = opened()
    await until(lambda: store.census().entries == ENTRIES)
    overwrite(file)
    results = await asyncio.gather(*(store.get(key_of(n)) for n in range(ENTRIES)), return_exceptions=True)
    assert any(isinstance(r, Trouble) for r in results)
    assert all(r is None or isinstance(r, Trouble) for r in results)
    await until(lambda: store.census().entries == 0)
    await works(store)
    assert len(aside(file)) == 1
    assert len(lines(caplog)) == 1


async def test_a_file_taken_away_while_running_is_survived(opened, file, good):
    """Somebody deletes the cache file: gets and puts go on, and the next process begins anew."""
    store = opened()
    await until(lambda: store.census().entries == ENTRIES)
    for path in file.parent.iterdir():
        path.unlink()
    with contextlib.suppress(Trouble):
        assert await store.get(key_of(1)) in (None, entry(1, 3000))
    await store.put(entry(7000))
    assert await store.get(key_of(7000)) == entry(7000)
    await store.close()
    await works(opened())
