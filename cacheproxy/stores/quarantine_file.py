"""The quarantine in a file of the data directory: read at first use, and looked at in memory from then on.

As long as it could not be read nothing is told. What is put or lifted holds in memory at once, and is synced to the
disk before it is acknowledged. A damaged file is set aside, and written anew with what is known or could be read.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cacheproxy.errors import Trouble
from cacheproxy.stores.quarantine import MOST, MemoryQuarantine
from cacheproxy.stores.sqlite_file import is_damage, roll_back
from cacheproxy.stores.sqlite_side import Kind, open_side, set_aside

log = logging.getLogger("cacheproxy.store")

KIND = Kind(
    "the quarantine's file", 0x43505851, 1,
    "CREATE TABLE quarantine (name BLOB NOT NULL UNIQUE, note BLOB NOT NULL)",
    "SELECT name, note FROM quarantine LIMIT 1",
)  # fmt: skip


class FileQuarantine:
    """A `Quarantine` in the file `path`, of at most `most` names."""

    def __init__(self, path: Path, most: int = MOST) -> None:
        self._path = path
        self._memory = MemoryQuarantine(most)
        self._is_read = False
        self._connection: sqlite3.Connection | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="quarantine")
        self._closed = False

    def __repr__(self) -> str:
        return f"<FileQuarantine {self._path.name} {len(self._memory)} names>"

    def __len__(self) -> int:
        return len(self._memory)

    async def put(self, notes: Mapping[bytes, bytes]) -> None:
        await self._read()
        gone = self._memory.keep(notes)
        kept = list(notes.items())
        await self._written(lambda: self._transact(kept, gone))

    async def lift(self, names: Iterable[bytes]) -> None:
        await self._read()
        leaving = list(names)
        self._memory.forget(leaving)
        await self._written(lambda: self._transact([], leaving))

    async def among(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        await self._read()
        return await self._memory.among(names)

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._writer.shutdown)
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    async def _read(self) -> None:
        if not self._is_read or self._closed:
            await self._written(lambda: None)

    async def _written(self, work: Callable[[], None]) -> None:
        """In the order in which it was asked for, though nobody waits for it any more. Raises `Trouble`."""
        if self._closed:
            raise Trouble("closed", "closed")
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._writer, self._do, work))

    # --- the writer thread -------------------------------------------------------------------------------------

    def _do(self, work: Callable[[], None]) -> None:
        try:
            if self._connection is None:
                self._open()
            work()
        except sqlite3.Error as error:
            roll_back(self._connection)
            if not is_damage(error):
                raise Trouble(f"{self._path.name}: {error}") from error
            self._set_aside(error)
            self._open()

    def _open(self) -> None:
        """Read the file, or bring a new one up to what is known. Raises `Trouble`, `sqlite3.Error`."""
        self._connection = open_side(self._path, KIND)
        self._connection.execute("PRAGMA synchronous=FULL")
        if not self._is_read:
            for name, note in self._connection.execute("SELECT name, note FROM quarantine ORDER BY rowid"):
                self._memory.keep({name: note})
            self._is_read = True
        else:
            self._transact(list(self._memory.notes.items()), [])

    def _set_aside(self, why: Exception) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._is_read = None, True  # what could be read has been
        try:
            set_aside(self._path, KIND, why)
        except OSError as error:
            raise Trouble(f"{self._path.name}: {error.strerror}") from error

    def _transact(self, kept: Sequence[tuple[bytes, bytes]], gone: Sequence[bytes]) -> None:
        if self._connection is None:
            raise Trouble("not open")
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("DELETE FROM quarantine WHERE name = ?", [(name,) for name in gone])
        self._connection.executemany("INSERT OR REPLACE INTO quarantine VALUES (?, ?)", kept)
        self._connection.execute("COMMIT")
