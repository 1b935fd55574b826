"""A writer that is killed leaves whole entries or none, and a file that opens."""

import contextlib
import random
import sqlite3
import subprocess
import sys

from cacheproxy.core import codec
from cacheproxy.stores.sqlite import Sqlite
from tests.rig import ROOT, until
from tests.stores.entries import entry
from tests.stores.writer import CAPACITY

TIMES = 20


def _rows(path) -> list[tuple[bytes, int, bytes]]:
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return connection.execute("SELECT key, size, blob FROM entry").fetchall()
    finally:
        connection.close()


@contextlib.contextmanager
def writers(path):
    """A function that lets a writer change the file so many times and kills it."""
    command = [sys.executable, "-m", "tests.stores.writer", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def kill_after(changes: int) -> None:
            process.stdin.write(f"{changes}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "killed\n"

        yield kill_after
        process.stdin.close()
        assert process.wait(20) == 0


async def test_killed_at_any_moment_every_entry_is_whole(tmp_path, caplog):
    """Twenty times SIGKILL while it writes as fast as it can: nothing torn, nothing set aside, the counts are right."""
    path = tmp_path / "cache.sqlite3"
    await Sqlite(path, CAPACITY).close()
    dice = random.Random(7)
    seen = []
    with writers(path) as kill_after:
        for _ in range(TIMES):
            kill_after(dice.randrange(60))
            store = Sqlite(path, CAPACITY)
            await until(lambda store=store: store._indexed)
            rows = _rows(path)
            for key, size, blob in rows:
                got = codec.decode(blob, key)
                assert got is not None
                assert got == entry(key, len(got.answer.body))
                assert size == got.size
            for key, _, _ in rows[:: max(1, len(rows) // 20)]:
                assert await store.get(key) is not None
            assert store.census().entries == len(rows)
            assert store.census().bytes == sum(size for _, size, _ in rows)
            await store.close()
            seen.append(len(rows))
    assert max(seen) > 100
    assert len(set(seen)) > TIMES // 4, "killed at different moments"
    assert [r.getMessage() for r in caplog.records if r.name == "cacheproxy.store"] == []
    assert {p.name.removeprefix("cache.sqlite3") for p in tmp_path.iterdir()} <= {"", "-wal", "-shm"}


async def test_killed_while_the_file_is_begun(tmp_path, caplog):
    """A file that a killed process has only begun is begun again; there is nothing to set aside and nothing to say."""
    for changes in range(8):
        path = tmp_path / str(changes) / "cache.sqlite3"
        with writers(path) as kill_after:
            kill_after(changes)
        store = Sqlite(path, CAPACITY)
        await store.put(entry(1))
        await store.close()
        assert len(_rows(path)) >= 1
    assert [r.getMessage() for r in caplog.records if r.name == "cacheproxy.store"] == []
