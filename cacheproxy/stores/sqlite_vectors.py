"""Rows of the vector index in a SQLite file (WAL) of the data directory: one writer thread that batches, bounded in
rows, those written first out.

Rows of another embedder are dropped when it is opened. What is lost here, or stays too long, costs no more than a
look: a row whose answer is gone is passed over, and removed then. A damaged file is set aside and a new one begun.
"""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from cacheproxy.errors import Trouble
from cacheproxy.stores.sqlite_file import ONE_ROWS_FAULT, is_damage, roll_back
from cacheproxy.stores.sqlite_side import Kind, open_side, set_aside
from cacheproxy.stores.way import Way, Work

T = TypeVar("T")
PlainRow = tuple[bytes, bytes, bytes, str, float]
"""Key, partition, the vector's bytes, text, absolute expiry."""

log = logging.getLogger("cacheproxy.store")

KIND = Kind(
    "the file of questions", 0x43505856, 1,
    "CREATE TABLE question (key BLOB NOT NULL UNIQUE, partition BLOB NOT NULL, vector BLOB NOT NULL,"
    " text BLOB NOT NULL, expires_at REAL NOT NULL);"
    "CREATE INDEX question_expiry ON question (expires_at);"
    "CREATE TABLE embedder (identity TEXT NOT NULL)",
    "SELECT key, partition, vector, text, expires_at, identity FROM question, embedder LIMIT 1",
)  # fmt: skip

LINGER = 0.02
"""Seconds the writer waits after the first row of a batch for others to come."""
MOST_PENDING = 20_000
"""Rows that wait for the writer; what comes while there are more is dropped."""
AT_ONCE = 500
"""Rows read, written or freed at once, so that removals need not wait long."""
_OLDER = (
    "SELECT rowid, key, partition, vector, text, expires_at FROM question WHERE rowid < ? ORDER BY rowid DESC LIMIT ?"
)


class VectorFile:
    """The rows in the file `path`, of at most `most` rows of the embedder `identity`."""

    def __init__(self, path: Path, identity: str, most: int) -> None:
        self._path = path
        self._identity = identity
        self._most = most
        self._pending: dict[bytes, PlainRow] = {}
        self._writing: dict[bytes, PlainRow] = {}
        self._leaving: set[bytes] = set()
        self._waiters: list[Future[None]] = []
        self._reading: dict[object, None] = {}
        self._sweep_before: float | None = None
        self._closing = self._ailing = self._damaged = False
        self._connection: sqlite3.Connection | None = None
        self._condition = threading.Condition()
        self._opened: Future[None] = Future()
        self._way = Way(self._work)
        self.count = 0
        """Rows in the file."""
        self.dropped = 0
        """Rows that were put and not written."""
        self._writer = threading.Thread(target=self._write_loop, name="questions", daemon=True)
        self._writer.start()

    def __repr__(self) -> str:
        return f"<VectorFile {self._path.name} {self.count}/{self._most} rows>"

    # --- the event loop's side ---------------------------------------------------------------------------------

    def put(self, row: PlainRow) -> None:
        with self._condition:
            if self._closing or (len(self._pending) >= MOST_PENDING and row[0] not in self._pending):
                self.dropped += 1
                return
            self._pending.pop(row[0], None)
            self._pending[row[0]] = row
            self._condition.notify()
        self._way.watch()

    async def remove(self, keys: Iterable[bytes]) -> None:
        done: Future[None] = Future()
        with self._condition:
            if self._closing:
                return
            for key in keys:
                self._pending.pop(key, None)
                self._leaving.add(key)
            self._waiters.append(done)
            self._condition.notify()
        self._way.watch()
        await asyncio.wrap_future(done)

    async def rows(self) -> AsyncGenerator[list[PlainRow], None]:
        await asyncio.shield(asyncio.wrap_future(self._opened))
        if self._connection is None:
            return
        reader, thread = _Reader(self._path), ThreadPoolExecutor(1, thread_name_prefix="questions-read")
        before = 2**62
        try:
            while found := await self._aside(thread, partial(reader.page, before)):
                before = found[-1][0]
                yield [(key, at, vector, _text(text), expiry) for _, key, at, vector, text, expiry in found]
        except sqlite3.Error as error:
            log.warning("%s: %s; of the questions in it some are forgotten", self._path, error)
            with self._condition:
                self._damaged = is_damage(error)
                self._condition.notify()
        finally:
            thread.submit(reader.close)
            thread.shutdown(wait=False)

    async def _aside(self, thread: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        ticket = object()
        self._reading[ticket] = None
        self._way.watch()
        try:
            return await asyncio.get_running_loop().run_in_executor(thread, work)
        finally:
            del self._reading[ticket]

    def sweep(self, now: float) -> None:
        with self._condition:
            self._sweep_before = now
            self._condition.notify()

    async def close(self) -> None:
        with self._condition:
            self._closing = True
            self._condition.notify()
        await asyncio.to_thread(self._writer.join)

    def _work(self) -> Work:
        return self._pending or None, self._writing or None, next(iter(self._reading), None)

    # --- the writer thread -------------------------------------------------------------------------------------

    def _write_loop(self) -> None:
        self._step(_nothing)
        self._opened.set_result(None)
        closing = False
        while not closing:
            with self._condition:
                self._condition.wait_for(self._is_wanted)
                if not self._waiters and len(self._pending) < AT_ONCE:
                    self._condition.wait_for(lambda: self._closing or self._waiters, LINGER)
                self._writing = dict(islice(self._pending.items(), AT_ONCE))
                for key in self._writing:
                    del self._pending[key]
                leaving, self._leaving = self._leaving, set()
                waiters, self._waiters = self._waiters, []
                before, self._sweep_before = self._sweep_before, None
                damaged, self._damaged = self._damaged, False
                closing = self._closing and not self._pending
            if damaged:
                self._put_aside(sqlite3.DatabaseError("damaged"))
                self._step(_nothing)
            if (self._writing or leaving) and not self._step(partial(self._write, leaving)):
                self.dropped += len(self._writing)
            self._writing = {}
            for waiter in waiters:
                if waiter.set_running_or_notify_cancel():
                    waiter.set_result(None)
            if before is not None:
                self._step(partial(self._free, before))
        if self._connection is not None:
            self._connection.close()

    def _is_wanted(self) -> bool:
        told = self._sweep_before is not None or self._damaged or self._waiters
        return bool(self._pending or self._closing or told)

    def _step(self, work: Callable[[], None]) -> bool:
        """Do a piece of work. Damage leads to a new file and a second try; trouble to one log line until it ends."""
        for _ in range(2):
            try:
                self._open()
                work()
                self._ailing = False
                return True
            except sqlite3.Error as error:
                roll_back(self._connection)
                if not is_damage(error):
                    self._complain(error)
                    return False
                self._put_aside(error)
            except (Trouble, *ONE_ROWS_FAULT) as error:
                roll_back(self._connection)
                self._complain(error)
                return False
        return False

    def _complain(self, error: Exception) -> None:
        if not self._ailing:
            log.warning("%s: %s; questions are not written until it works again", self._path, error)
        self._ailing = True

    def _put_aside(self, why: Exception) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self.count = None, 0
        try:
            set_aside(self._path, KIND, why)
        except OSError as error:
            self._complain(error)

    def _open(self) -> None:
        """Open the file if it is not, and drop rows of another embedder. Raises `Trouble`, `sqlite3.Error`."""
        if self._connection is not None:
            return
        connection = self._connection = open_side(self._path, KIND)
        connection.execute("PRAGMA synchronous=NORMAL")
        if connection.execute("SELECT identity FROM embedder").fetchall() != [(self._identity,)]:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM question")
            connection.execute("DELETE FROM embedder")
            connection.execute("INSERT INTO embedder VALUES (?)", (self._identity,))
            connection.execute("COMMIT")
        self.count = connection.execute("SELECT count(*) FROM question").fetchone()[0]

    @property
    def _file(self) -> sqlite3.Connection:
        if self._connection is None:
            raise Trouble("not open")
        return self._connection

    def _write(self, leaving: set[bytes]) -> None:
        rows = list(self._writing.values())[-self._most :]
        self._file.execute("BEGIN IMMEDIATE")
        gone = self._delete("DELETE FROM question WHERE key = ?", [(key,) for key in (*leaving, *self._writing)])
        self._file.executemany("INSERT INTO question VALUES (?, ?, ?, ?, ?)", [
            (key, at, vector, text.encode("utf-8", "surrogatepass"), expiry) for key, at, vector, text, expiry in rows
        ])  # fmt: skip
        excess = self.count - gone + len(rows) - self._most
        if excess > 0:
            oldest = "DELETE FROM question WHERE rowid IN (SELECT rowid FROM question ORDER BY rowid LIMIT ?)"
            gone += self._delete(oldest, [(excess,)])
        self._file.execute("COMMIT")
        self.count += len(rows) - gone

    def _free(self, before: float) -> None:
        expired = "DELETE FROM question WHERE rowid IN (SELECT rowid FROM question WHERE expires_at <= ? LIMIT ?)"
        while gone := self._delete(expired, [(before, AT_ONCE)]):
            self.count -= gone

    def _delete(self, statement: str, rows: Sequence[tuple[object, ...]]) -> int:
        return max(0, self._file.executemany(statement, rows).rowcount)


class _Reader:
    """A connection of its own, in a thread of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def page(self, before: int) -> list[tuple[int, bytes, bytes, bytes, bytes, float]]:
        """Rows that were written before number `before`, youngest first. Raises `sqlite3.Error`."""
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, timeout=5.0)
        return self._connection.execute(_OLDER, (before, AT_ONCE)).fetchall()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogatepass")


def _nothing() -> None:
    """What is done once the file is open."""
