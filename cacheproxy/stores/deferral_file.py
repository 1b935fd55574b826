"""Requests that wait for their turn, in a file of the data directory, which outlives the process.

One thread reads and writes it. What is acknowledged is on the disk; who leaves does not stop what he has begun. A file
that is damaged is set aside, and a new one begun: what it held is lost.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from cacheproxy.core.deferral import Bounds, Row, State
from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock
from cacheproxy.stores.sqlite_file import is_damage, roll_back
from cacheproxy.stores.sqlite_side import Kind, open_side, set_aside

T = TypeVar("T")

KIND = Kind(
    "the file of deferred requests", 0x43505852, 1,
    "CREATE TABLE deferred (name TEXT PRIMARY KEY, owner BLOB NOT NULL, stage INTEGER NOT NULL, size INTEGER NOT NULL,"
    " attempts INTEGER NOT NULL, token TEXT NOT NULL, created REAL NOT NULL, started REAL NOT NULL,"
    " ended REAL NOT NULL, due REAL NOT NULL, expires REAL NOT NULL, gone REAL NOT NULL, sealed BLOB NOT NULL);"
    "CREATE INDEX due ON deferred (stage, due);"
    "CREATE INDEX own ON deferred (owner, stage, expires);"
    "CREATE INDEX size ON deferred (size);"
    "CREATE INDEX gone ON deferred (gone)",
    "SELECT name, sealed FROM deferred LIMIT 1",
)  # fmt: skip
_OPEN, _DONE, _FAILED = 0, 1, 2
_COLUMNS = "name, owner, stage, sealed, attempts, token, created, started, ended, due, expires"


class FileDeferrals:
    """The `Deferrals` in the file `path`, which several processes may share."""

    durable = True

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._connection: sqlite3.Connection | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="deferred")
        self._closed = False

    def __repr__(self) -> str:
        return f"<FileDeferrals {self._path.name}>"

    async def put(self, name: str, owner: bytes, sealed: bytes, bounds: Bounds) -> bool:
        def work(connection: sqlite3.Connection, now: float) -> bool:
            connection.execute("DELETE FROM deferred WHERE gone <= ?", (now,))
            held = connection.execute("SELECT coalesce(sum(size), 0) FROM deferred").fetchone()[0]
            own = connection.execute(
                "SELECT count(*) FROM deferred WHERE owner = ? AND stage = ? AND expires > ?", (owner, _OPEN, now)
            ).fetchone()[0]
            if held + len(sealed) > bounds.most_bytes or own >= bounds.most:
                return False
            expires = now + bounds.max_age
            connection.execute(
                "INSERT INTO deferred VALUES (?, ?, ?, ?, 0, '', ?, 0, 0, ?, ?, ?, ?)",
                (name, owner, _OPEN, len(sealed), now, now, expires, expires + bounds.ttl, sealed),
            )
            return True

        return await self._done(work)

    async def find(self, name: str) -> Row | None:
        def work(connection: sqlite3.Connection, now: float) -> Row | None:
            found = connection.execute(
                f"SELECT {_COLUMNS} FROM deferred WHERE name = ? AND gone > ?", (name, now)  # noqa: S608 - our own words
            ).fetchone()  # fmt: skip
            return None if found is None else _row(found, now)

        return await self._done(work, writes=False)

    async def claim(self, token: str, lease: float) -> Row | None:
        def work(connection: sqlite3.Connection, now: float) -> Row | None:
            found = connection.execute(
                f"UPDATE deferred SET token = ?, due = ?, started = ?, attempts = attempts + 1 WHERE name = ("  # noqa: S608
                "SELECT name FROM deferred WHERE stage = ? AND due <= ? AND expires > ? ORDER BY due LIMIT 1)"
                f" RETURNING {_COLUMNS}",
                (token, now + lease, now, _OPEN, now, now),
            ).fetchone()
            return None if found is None else _row(found, now)

        def look(connection: sqlite3.Connection, now: float) -> bool:
            return (
                connection.execute(
                    "SELECT 1 FROM deferred WHERE stage = ? AND due <= ? AND expires > ? LIMIT 1", (_OPEN, now, now)
                ).fetchone()
                is not None
            )

        # Nothing is written, nor synced, as long as none is due.
        return await self._done(work) if await self._done(look, writes=False) else None

    async def hold(self, name: str, token: str, lease: float) -> bool:
        def work(connection: sqlite3.Connection, now: float) -> bool:
            return _changed(connection, "due = ?", (now + lease,), name, token)

        return await self._done(work)

    async def release(self, name: str, token: str, pause: float, attempts: int) -> bool:
        def work(connection: sqlite3.Connection, now: float) -> bool:
            return _changed(connection, "token = '', due = ?, attempts = ?", (now + pause, attempts), name, token)

        return await self._done(work)

    async def finish(self, name: str, token: str, sealed: bytes, ttl: float, *, failed: bool) -> bool:
        def work(connection: sqlite3.Connection, now: float) -> bool:
            values = (_FAILED if failed else _DONE, now, now + ttl, len(sealed), sealed)
            return _changed(
                connection, "token = '', stage = ?, ended = ?, gone = ?, size = ?, sealed = ?", values, name, token
            )

        return await self._done(work)

    async def forget(self, name: str) -> None:
        def work(connection: sqlite3.Connection, _: float) -> None:
            connection.execute("DELETE FROM deferred WHERE name = ?", (name,))

        await self._done(work)

    async def census(self) -> tuple[int, int]:
        def work(connection: sqlite3.Connection, now: float) -> tuple[int, int]:
            still = connection.execute(
                "SELECT count(*) FROM deferred WHERE stage = ? AND expires > ?", (_OPEN, now)
            ).fetchone()[0]
            return still, connection.execute("SELECT coalesce(sum(size), 0) FROM deferred").fetchone()[0]

        return await self._done(work, writes=False)

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._writer.shutdown)
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    async def _done(self, work: Callable[[sqlite3.Connection, float], T], *, writes: bool = True) -> T:
        """What `work` gives, in the order in which it was asked for. Raises `Trouble`."""
        if self._closed:
            raise Trouble("closed", "closed")
        future = asyncio.get_running_loop().run_in_executor(self._writer, self._do, work, writes)
        future.add_done_callback(_seen)
        return await asyncio.shield(future)

    # --- the writer thread -------------------------------------------------------------------------------------

    def _do(self, work: Callable[[sqlite3.Connection, float], T], writes: bool) -> T:
        try:
            if self._connection is None:
                self._connection = open_side(self._path, KIND)
                self._connection.execute("PRAGMA synchronous=FULL")
            if not writes:
                return work(self._connection, self._clock.now())
            self._connection.execute("BEGIN IMMEDIATE")
            found = work(self._connection, self._clock.now())
            self._connection.execute("COMMIT")
            return found
        except sqlite3.Error as error:
            roll_back(self._connection)
            if is_damage(error):
                self._set_aside(error)
            raise Trouble(f"{self._path.name}: {error}", "disk") from error

    def _set_aside(self, why: Exception) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        try:
            set_aside(self._path, KIND, why)
        except OSError as error:
            raise Trouble(f"{self._path.name}: {error.strerror}", "disk") from error


def _seen(future: "asyncio.Future[Any]") -> None:
    """Also if its caller has gone."""
    if not future.cancelled():
        future.exception()


def _changed(connection: sqlite3.Connection, what: str, values: tuple[Any, ...], name: str, token: str) -> bool:
    cursor = connection.execute(
        f"UPDATE deferred SET {what} WHERE name = ? AND token = ? AND stage = ?",  # noqa: S608 - our own words
        (*values, name, token, _OPEN),
    )
    return cursor.rowcount == 1


def _row(found: tuple[Any, ...], now: float) -> Row:
    name, owner, stage, sealed, attempts, token, created, started, ended, due, expires = found
    state = {_DONE: State.DONE, _FAILED: State.FAILED}.get(stage, State.QUEUED)
    if stage == _OPEN:
        if token and now < due:
            state = State.RUNNING
        elif now >= expires:
            state, sealed, ended = State.FAILED, b"", expires
    return Row(name, owner, state, sealed, attempts, created, started, ended)
