"""The quarantine's file: what was acknowledged is in it, and what cannot be read is not taken for empty."""

import asyncio
import sqlite3

import pytest

from cacheproxy.errors import Trouble
from cacheproxy.stores.quarantine import MemoryQuarantine
from cacheproxy.stores.quarantine_file import FileQuarantine
from tests.rig import until
from tests.stores.entries import Lock, key_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "quarantine.sqlite3"


@pytest.fixture
async def opened(path):
    made = []

    def begin(**options) -> FileQuarantine:
        made.append(FileQuarantine(path, **options))
        return made[-1]

    yield begin
    for one in made:
        await one.close()


def in_file(path) -> set[bytes]:
    with sqlite3.connect(path) as connection:
        found = {name for (name,) in connection.execute("SELECT name FROM quarantine")}
    connection.close()
    return found


async def test_what_is_acknowledged_is_in_the_file_for_its_owner_alone(opened, path):
    quarantine = opened()
    await quarantine.put({key_of(1): b"", key_of(2): b"note"})
    assert in_file(path) == {key_of(1), key_of(2)}
    await quarantine.lift([key_of(1)])
    assert in_file(path) == {key_of(2)}
    assert path.stat().st_mode & 0o777 == 0o600
    assert repr(quarantine) == "<FileQuarantine quarantine.sqlite3 1 names>"


async def test_it_holds_at_once_and_is_acknowledged_when_it_is_written(opened, path):
    quarantine = opened()
    await quarantine.among([])
    with Lock(path):
        putting = asyncio.create_task(quarantine.put({key_of(1): b""}))
        await until(lambda: len(quarantine) == 1)
        assert await quarantine.among([key_of(1)]) == {key_of(1): b""}
        assert not putting.done()
    await putting
    assert in_file(path) == {key_of(1)}


async def test_who_leaves_takes_nothing_back(opened, path):
    """Cancelled while it waits for the disk: it is written all the same, in its turn."""
    quarantine = opened()
    await quarantine.among([])
    with Lock(path):
        leaving = [asyncio.create_task(quarantine.put({key_of(n): b""})) for n in range(2)]
        await until(lambda: len(quarantine) == 2)
        for one in leaving:
            one.cancel()
        await asyncio.wait(leaving)
    await quarantine.lift([key_of(0)])
    assert in_file(path) == {key_of(1)}


@pytest.mark.parametrize("damage", [b"no database at all, " * 300, b"SQLite format 3\0" + b"\xff" * 8000])
async def test_a_damaged_file_is_set_aside(opened, path, damage, caplog):
    path.parent.mkdir()
    path.write_bytes(damage)
    quarantine = opened()
    assert await quarantine.among([key_of(1)]) == {}
    await quarantine.put({key_of(1): b""})
    assert in_file(path) == {key_of(1)}
    assert len(list(path.parent.glob("*.set-aside-*"))) == 1
    assert [line.levelname for line in caplog.records] == ["WARNING"]


async def test_of_a_file_that_is_damaged_further_on_what_can_be_read_is_kept(opened, path, caplog):
    first = FileQuarantine(path)
    await first.put({key_of(n): bytes(64) for n in range(3000)})
    await first.close()
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    path.write_bytes(content)
    quarantine = opened()
    await quarantine.among([])
    assert 100 < len(quarantine) < 3000
    assert len(in_file(path)) == len(quarantine)
    assert sum("set aside" in line.message for line in caplog.records) == 1


async def test_damage_while_it_runs_costs_nothing_that_is_known(opened, path):
    quarantine = opened()
    await quarantine.put({key_of(1): b"note"})
    quarantine._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.write(b"\xff" * path.stat().st_size)
    quarantine._connection.execute("PRAGMA shrink_memory")  # it reads from the disk again
    await quarantine.put({key_of(2): b""})
    assert in_file(path) == {key_of(1), key_of(2)}


async def test_a_file_of_another_kind_is_set_aside(opened, path):
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE quarantine (name BLOB, note BLOB)")
    other.close()
    assert await opened().among([key_of(1)]) == {}
    assert len(list(path.parent.glob("*.set-aside-*"))) == 1


async def test_what_cannot_be_read_is_trouble_until_it_can(opened, path):
    """It is not taken for empty: nothing may be served by meaning meanwhile."""
    path.mkdir(parents=True)
    quarantine = opened()
    for _ in range(2):
        with pytest.raises(Trouble):
            await quarantine.among([key_of(1)])
    with pytest.raises(Trouble):
        await quarantine.put({key_of(1): b""})
    path.rmdir()
    assert await quarantine.among([key_of(1)]) == {}


async def test_a_disk_that_takes_nothing_is_trouble(opened, path):
    quarantine = opened()
    await quarantine.put({key_of(1): b""})
    quarantine._connection.execute("PRAGMA query_only=1")
    with pytest.raises(Trouble):
        await quarantine.put({key_of(2): b""})
    assert await quarantine.among([key_of(1), key_of(2)]) == {key_of(1): b"", key_of(2): b""}
    quarantine._connection.execute("PRAGMA query_only=0")
    await quarantine.put({key_of(3): b""})
    assert key_of(3) in in_file(path)


async def test_bounded_those_not_used_for_longest_go_first(opened, path, caplog):
    quarantine = opened(most=3)
    await quarantine.put({key_of(n): b"" for n in range(3)})
    await quarantine.among([key_of(0)])
    await quarantine.put({key_of(3): b"", key_of(4): b""})
    assert in_file(path) == {key_of(0), key_of(3), key_of(4)}
    assert sum("forgotten" in line.message for line in caplog.records) == 1


async def test_closed_it_is_trouble(opened):
    quarantine = opened()
    await quarantine.put({key_of(1): b""})
    await quarantine.close()
    for work in quarantine.among([key_of(1)]), quarantine.put({key_of(2): b""}), quarantine.lift([key_of(1)]):
        with pytest.raises(Trouble):
            await work


async def test_in_memory_it_is_bounded_too(caplog):
    quarantine = MemoryQuarantine(2)
    for n in range(5):
        await quarantine.put({key_of(n): b""})
    assert await quarantine.among([key_of(n) for n in range(5)]) == {key_of(3): b"", key_of(4): b""}
    assert repr(quarantine) == "<MemoryQuarantine 2/2 names>"
    assert len(caplog.records) == 1
