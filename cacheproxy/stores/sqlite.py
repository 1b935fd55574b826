"""Entries in one SQLite file (WAL): one writer thread that batches, one reader thread, bounded in bytes.

A killed process leaves whole entries or none: a batch is a transaction, and each entry carries its checksum. A file
that is damaged or not ours is set aside with one log line, and a new one is begun; answers are never lost to a
caller by it. The event loop never waits for the disk.
"""

import asyncio
import logging
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cacheproxy.core import codec
from cacheproxy.core.model import Census, Entry
from cacheproxy.errors import Trouble

log = logging.getLogger("cacheproxy.store")

APPLICATION_ID = 0x43505831
SCHEMA_VERSION = 1
LINGER = 0.005
"""Seconds the writer waits after the first entry of a batch for others to come."""

_SCHEMA = """
CREATE TABLE entry (key BLOB NOT NULL UNIQUE, expires_at REAL NOT NULL, size INTEGER NOT NULL, blob BLOB NOT NULL);
CREATE INDEX entry_facts ON entry (expires_at, key, size);
"""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class _Foreign(Exception):
    """The file is a database, but not one of this format."""


class Sqlite:
    """A store in the file `path`, bounded to `capacity` bytes of entries; the oldest written go first."""

    def __init__(self, path: Path, capacity: int, pending_bytes: int = 64 * 2**20) -> None:
        """Open or create the file. Raises `Trouble` when that cannot be done at all."""
        self._path = path
        self._capacity = capacity
        self._pending_limit = pending_bytes
        self._pending: dict[bytes, Entry] = {}
        self._pending_bytes = 0
        self._writing: dict[bytes, Entry] = {}
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self._indexed = False
        self._generation = 0
        self._reader: tuple[int, sqlite3.Connection] | None = None
        self._condition = threading.Condition()
        self._sweep_before: float | None = None
        self._reset_wanted = False
        self._closing = False
        self._swept = 0
        self.dropped = 0
        self._connection = self._open()
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="sqlite-read")
        self._writer = threading.Thread(target=self._write_loop, name="sqlite-write", daemon=True)
        self._writer.start()

    def __repr__(self) -> str:
        return f"<Sqlite {self._path.name} {len(self._sizes)} entries {self._bytes} bytes>"

    # --- opening -----------------------------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                return self._connect()
            except (_Foreign, sqlite3.DatabaseError) as error:
                if not isinstance(error, _Foreign) and _code(error) not in _DAMAGED:
                    raise
                self._set_aside(error)
                return self._connect()
        except (OSError, sqlite3.Error) as error:
            raise Trouble(f"cannot use {self._path}: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        new = not self._path.exists() or self._path.stat().st_size == 0
        connection = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None, timeout=5.0)
        try:
            if not new:
                _verify(connection)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            if new:
                self._path.chmod(0o600)
                connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
                connection.executescript("BEGIN;" + _SCHEMA + "COMMIT;")
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_aside(self, why: Exception) -> None:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        aside = self._path.with_name(f"{self._path.name}.set-aside-{stamp}-{time.time_ns() % 10**6:06d}")
        for suffix in ("", "-wal", "-shm"):
            part = self._path.with_name(self._path.name + suffix)
            if part.exists():
                part.rename(aside.with_name(aside.name + suffix))
        log.warning(
            "cache file %s cannot be used (%s); set aside as %s, starting a new one", self._path, why, aside.name
        )

    # --- the event loop's side ---------------------------------------------------------------------------------

    async def get(self, key: bytes) -> Entry | None:
        entry = self._pending.get(key) or self._writing.get(key)
        if entry is not None:
            return entry
        if self._closing or (self._indexed and _short(key) not in self._sizes):
            return None
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, key)

    async def put(self, entry: Entry) -> None:
        with self._condition:
            replaced = self._pending.pop(entry.key, None)
            self._pending_bytes += entry.size - (replaced.size if replaced else 0)
            if self._pending_bytes > self._pending_limit or entry.size > self._capacity or self._closing:
                self._pending_bytes -= entry.size
                self.dropped += 1
                return
            self._pending[entry.key] = entry
            self._condition.notify()

    async def sweep(self, now: float) -> int:
        """Ask the writer to free what expired; how many entries went since the last call."""
        with self._condition:
            self._sweep_before = now
            self._condition.notify()
            swept, self._swept = self._swept, 0
        return swept

    def census(self) -> Census:
        return Census(len(self._sizes), self._bytes)

    async def close(self) -> None:
        with self._condition:
            self._closing = True
            self._condition.notify()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._writer.join)
        self._readers.shutdown(wait=False)

    # --- the reader thread -------------------------------------------------------------------------------------

    def _read(self, key: bytes) -> Entry | None:
        try:
            if self._reader is None or self._reader[0] != self._generation:
                if self._reader is not None:
                    self._reader[1].close()
                self._reader = (self._generation, sqlite3.connect(self._path, check_same_thread=False, timeout=1.0))
            row = self._reader[1].execute("SELECT blob FROM entry WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            self._damaged(error)
            raise Trouble(f"reading {self._path.name}: {error}") from error
        return codec.decode(row[0], key) if row else None

    def _damaged(self, error: sqlite3.Error) -> None:
        if _code(error) in _DAMAGED:
            with self._condition:
                self._reset_wanted = True
                self._condition.notify()

    # --- the writer thread -------------------------------------------------------------------------------------

    def _write_loop(self) -> None:
        self._guarded(self._index)
        while True:
            with self._condition:
                while not (self._pending or self._closing or self._sweep_before is not None or self._reset_wanted):
                    self._condition.wait()
                if self._pending and not self._closing:
                    self._condition.wait_for(lambda: self._closing, LINGER)
                self._writing, self._pending, self._pending_bytes = self._pending, {}, 0
                before, self._sweep_before = self._sweep_before, None
                reset, self._reset_wanted = self._reset_wanted, False
                closing = self._closing
            if reset:
                self._reset(sqlite3.DatabaseError("damaged"))
            self._guarded(self._write)
            self._writing = {}
            if before is not None:
                self._guarded(lambda before=before: self._remove("expires_at <= ?", before))
            if closing:
                self._connection.close()
                return

    def _guarded(self, step: "object") -> None:
        """Run a step of the writer; damage leads to a new file, anything else to one log line."""
        try:
            step()  # type: ignore[operator]
        except sqlite3.Error as error:
            if _code(error) in _DAMAGED:
                self._reset(error)
            else:
                log.warning("cache file %s: %s; a batch was not written", self._path, error)
                if self._connection.in_transaction:
                    self._connection.rollback()

    def _reset(self, error: sqlite3.Error) -> None:
        try:
            self._connection.close()
            self._set_aside(error)
            self._connection = self._connect()
            self._generation += 1
            self._sizes, self._bytes, self._indexed = {}, 0, True
        except (OSError, sqlite3.Error) as failure:
            log.error("cache file %s cannot be begun anew: %s", self._path, failure)

    def _index(self) -> None:
        """Learn which keys are in the file, so that a miss need not ask the disk."""
        sizes = {_short(key): size for key, size in self._connection.execute("SELECT key, size FROM entry")}
        self._sizes, self._bytes = sizes, sum(sizes.values())
        self._indexed = True

    def _write(self) -> None:
        if not self._writing:
            return
        rows = [(e.key, e.expires_at, e.size, codec.encode(e)) for e in self._writing.values()]
        for key, _, size, _ in rows:
            self._bytes += size - self._sizes.get(_short(key), 0)
            self._sizes[_short(key)] = size
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?)", rows)
        self._connection.execute("COMMIT")
        while self._bytes > self._capacity and self._remove(
            "rowid IN (SELECT rowid FROM entry ORDER BY rowid LIMIT ?)", 64
        ):
            continue

    def _remove(self, where: str, argument: float) -> int:
        query = f"DELETE FROM entry WHERE {where} RETURNING key, size"  # noqa: S608 - `where` is a literal of ours
        gone = self._connection.execute(query, (argument,)).fetchall()
        for key, size in gone:
            if self._sizes.pop(_short(key), None) is not None:
                self._bytes -= size
        self._swept += len(gone)
        return len(gone)


def _short(key: bytes) -> int:
    return int.from_bytes(key[:8], "big")


def _code(error: Exception) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def _verify(connection: sqlite3.Connection) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID or version != SCHEMA_VERSION:
        raise _Foreign(f"not a cache file of format {SCHEMA_VERSION}")
    connection.execute("SELECT key, expires_at, size, blob FROM entry LIMIT 1").fetchone()
