"""Entries in one SQLite file (WAL): one writer thread that batches, one reader thread, bounded in bytes.

A killed process leaves whole entries or none: a batch is a transaction, and each entry carries its checksum. A file
that turns out to be damaged is set aside and a new one begun; a disk that is full or slow costs entries, never an
answer. The event loop never waits for the disk; it makes way for the threads when it is so busy that they starve.
"""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from cacheproxy.core import codec
from cacheproxy.core.model import Census, Entry
from cacheproxy.core.removal import Removal, Selector
from cacheproxy.errors import Trouble
from cacheproxy.ports import Kept, Page
from cacheproxy.stores import pages
from cacheproxy.stores.sqlite_browse import Look, look_up, overlaid
from cacheproxy.stores.sqlite_file import ONE_ROWS_FAULT, begin_anew, drop_oldest, is_damage, open_file, roll_back
from cacheproxy.stores.sqlite_rows import Row, free_expired, meant, outdated, row_of, short
from cacheproxy.stores.way import Way, Work

log = logging.getLogger("cacheproxy.store")

LINGER = 0.005
"""Seconds the writer waits after the first entry of a batch for others to come."""
_Order = tuple[Selector, Removal, float, "Future[set[bytes]]"]


class Sqlite:
    """A store in the file `path`, bounded to `capacity` bytes of entries; the oldest written go first."""

    def __init__(self, path: Path, capacity: int, pending_bytes: int = 64 * 2**20) -> None:
        """Open or create the file. Raises `Trouble` when that cannot be done at all."""
        self._path = path
        self._capacity = capacity
        self._pending_limit = pending_bytes
        self._pending: dict[bytes, Entry | None] = {}  # None: to be removed
        self._pending_bytes = 0
        self._writing: dict[bytes, Entry | None] = {}
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self._indexed = False
        self._generation = 0
        self._damaged: int | None = None
        self._reader: tuple[int, sqlite3.Connection] | None = None
        self._condition = threading.Condition()
        self._sweep_before: float | None = None
        self._orders: list[_Order] = []
        self._closing = False
        self._swept = 0
        self._ailing = False
        self._reading: dict[object, None] = {}
        self._way = Way(self._work)
        self.dropped: int = 0
        """Entries that were put and not written: there was no room for them, or the file could not take them."""
        self._connection: sqlite3.Connection | None = open_file(path)
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="sqlite-read")
        self._writer = threading.Thread(target=self._write_loop, name="sqlite-write", daemon=True)
        self._writer.start()

    def __repr__(self) -> str:
        return f"<Sqlite {self._path.name} {len(self._sizes)} entries {self._bytes} bytes>"

    async def get(self, key: bytes) -> Entry | None:
        for place in (place for place in (self._pending, self._writing) if key in place):
            return place[key]
        if self._closing or (self._indexed and short(key) not in self._sizes):
            return None
        ticket = object()
        self._reading[ticket] = None
        self._way.watch()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, key)
        finally:
            del self._reading[ticket]

    async def put(self, entry: Entry, epoch: int | None = None) -> Kept:  # noqa: ARG002 - nothing can come between
        with self._condition:
            if self._closing:
                return Kept.TROUBLE
            replaced = self._pending.pop(entry.key, None)  # so that the newer one is among the newest
            self._pending_bytes -= replaced.size if replaced else 0
            if entry.size > min(self._capacity, self._pending_limit - self._pending_bytes):
                self.dropped += 1
                if not self._indexed or entry.key in self._writing or short(entry.key) in self._sizes:
                    # The older answer of this key must not outlive the newer one that cannot be kept.
                    self._pending[entry.key] = None
            else:
                self._pending[entry.key] = entry
                self._pending_bytes += entry.size
            self._condition.notify()
        self._way.watch()
        return Kept.YES

    def _work(self) -> Work:
        """What waits, what is being written, and the oldest read."""
        return self._pending or self._orders or None, self._writing or None, next(iter(self._reading), None)

    async def sweep(self, now: float) -> int:
        """Ask the writer to free what expired; how many entries went since the last call."""
        with self._condition:
            self._sweep_before = now
            self._condition.notify()
            swept, self._swept = self._swept, 0
        return swept

    async def remove(self, selector: Selector, removal: Removal, now: float) -> set[bytes]:
        done: Future[set[bytes]] = Future()
        with self._condition:
            if self._closing:
                raise Trouble("the cache file is closed")
            self._orders.append((selector, removal, now, done))
            self._condition.notify()
        self._way.watch()
        return await asyncio.wrap_future(done)

    async def browse(self, selector: Selector, now: float, cursor: str, most: int, *, whole: bool = False) -> Page:
        look = Look(selector, now, pages.place(cursor), most, whole)
        pending, writing = self._pending, self._writing  # in this order: what is pending may be being written next
        waiting = {**writing, **pending}
        found = await asyncio.to_thread(look_up, self._path, look)
        return overlaid(look, found, {**waiting, **self._pending})

    def census(self) -> Census:
        return Census(len(self._sizes), self._bytes)

    async def close(self) -> None:
        with self._condition:
            self._closing = True
            self._condition.notify()
        await asyncio.get_running_loop().run_in_executor(None, self._finish)

    def _finish(self) -> None:
        self._writer.join()
        self._readers.shutdown(wait=True)
        if self._reader is not None:
            self._reader[1].close()
        self._reader = None

    def _read(self, key: bytes) -> Entry | None:
        generation = self._generation
        try:
            if self._reader is None or self._reader[0] != generation:
                if self._reader is not None:
                    self._reader[1].close()
                self._reader = (generation, sqlite3.connect(self._path, check_same_thread=False, timeout=1.0))
            row = self._reader[1].execute("SELECT blob FROM entry WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            if is_damage(error):
                with self._condition:
                    self._damaged = generation
                    self._condition.notify()
            raise Trouble(f"reading {self._path.name}: {error}") from error
        return codec.decode(row[0], key) if row else None

    def _write_loop(self) -> None:
        self._step(self._index)
        closing = False
        while not closing:
            with self._condition:
                self._condition.wait_for(self._is_wanted)
                if self._pending:
                    self._condition.wait_for(lambda: self._closing, LINGER)
                self._writing, self._pending, self._pending_bytes = self._pending, {}, 0
                before, self._sweep_before = self._sweep_before, None
                orders, self._orders = self._orders, []
                damaged, self._damaged = self._damaged, None
                closing = self._closing
            if damaged == self._generation:
                self._begin_anew(sqlite3.DatabaseError("damaged"))
            if self._writing and not self._step(self._write):
                self._drop(sum(entry is not None for entry in self._writing.values()))
            self._writing = {}
            for order in orders:
                self._carry_out(*order)
            if before is not None:
                self._step(self._free_expired, before)
        if self._connection is not None:
            self._connection.close()

    def _is_wanted(self) -> bool:
        """Whether there is something for the writer to do."""
        told = self._sweep_before is not None or self._damaged is not None
        return bool(self._pending or self._orders or self._closing or told)

    def _step(self, work: Callable[..., None], *arguments: object) -> bool:
        """Do a piece of work. Damage leads to a new file and a second try; trouble to one log line until it ends."""
        for _ in range(2):
            try:
                if self._connection is None:
                    self._connection = open_file(self._path)
                    self._generation += 1
                    self._index()
                work(*arguments)
                self._ailing = False
                return True
            except sqlite3.Error as error:
                roll_back(self._connection)
                if not is_damage(error):
                    self._complain(error)
                    break
                self._begin_anew(error)
            except Trouble as error:
                self._complain(error)
                break
        return False

    def _drop(self, entries: int) -> None:
        with self._condition:
            self.dropped += entries

    @property
    def _file(self) -> sqlite3.Connection:
        if self._connection is None:
            raise Trouble("not open")
        return self._connection

    def _complain(self, error: Exception) -> None:
        if not self._ailing:
            log.warning("cache file %s: %s; answers are not written until it works again", self._path, error)
        self._ailing = True

    def _begin_anew(self, why: Exception) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._sizes, self._bytes, self._indexed = {}, 0, True
        try:
            self._connection = begin_anew(self._path, why)
        except (OSError, sqlite3.Error) as error:
            self._complain(error)
        self._generation += 1

    def _index(self) -> None:
        """Learn which keys are in the file, so that a miss need not ask the disk."""
        sizes = {short(key): size for key, size in self._file.execute("SELECT key, size FROM entry")}
        self._sizes, self._bytes = sizes, sum(sizes.values())
        self._indexed = True

    def _write(self) -> None:
        room = self._capacity  # what is older than all that fits would have to go again at once
        made: dict[bytes, Row | None] = {}
        for key, entry in reversed(self._writing.items()):
            room -= entry.size if entry else 0
            made[key] = row_of(entry) if entry is not None and room >= 0 else None
        rows = [row for row in reversed(made.values()) if row is not None]
        gone = [key for key, row in made.items() if row is None]
        lost = sum(self._writing[key] is not None for key in gone)
        try:
            self._transact(rows, gone)
        except ONE_ROWS_FAULT:
            roll_back(self._connection)
            self._transact([], gone)
            lost += sum(not self._write_one(row) for row in rows)
        self._drop(lost)

    def _write_one(self, row: Row) -> bool:
        try:
            self._transact([row], [])
        except ONE_ROWS_FAULT:
            roll_back(self._connection)
            self._transact([], [row[0]])
            return False
        return True

    def _transact(self, rows: Sequence[Row], gone: Sequence[bytes]) -> None:
        """Remove and write in one transaction, what has to go first: its room is used. Counted once committed."""
        connection = self._file
        connection.execute("BEGIN IMMEDIATE")
        leaving = [*gone, *(row[0] for row in rows if short(row[0]) in self._sizes)]
        connection.executemany("DELETE FROM entry WHERE key = ?", [(key,) for key in leaving])
        changes: dict[int, int | None] = dict.fromkeys(map(short, leaving))
        excess = self._bytes - self._capacity + sum(row[2] for row in rows)
        excess -= sum(self._sizes.get(name, 0) for name in changes)
        changes |= {short(key): None for key in drop_oldest(connection, excess)}
        connection.executemany("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?)", rows)
        connection.execute("COMMIT")
        changes.update((short(row[0]), row[2]) for row in rows)
        for name, new in changes.items():
            self._count(name, new)

    def _count(self, name: int, size: int | None) -> None:
        self._bytes += (size or 0) - self._sizes.pop(name, 0)
        if size is not None:
            self._sizes[name] = size

    def _carry_out(self, selector: Selector, removal: Removal, now: float, done: "Future[set[bytes]]") -> None:
        if not done.set_running_or_notify_cancel():
            return
        found: set[bytes] = set()
        if self._step(self._remove, selector, removal, now, found):
            done.set_result(found)
        else:
            done.set_exception(Trouble("the cache file cannot be read or written now"))

    def _remove(self, selector: Selector, removal: Removal, now: float, found: set[bytes]) -> None:
        """What is acknowledged as gone must not come back when the machine loses its power: synced."""
        self._file.execute("PRAGMA synchronous=FULL")
        try:
            for keys in meant(self._file, selector, now):
                found.update(keys)
                if removal is Removal.HARD and keys:
                    self._transact([], keys)
                elif removal is Removal.SOFT and keys:
                    rows = [outdated(self._file, key, now) for key in keys]
                    self._transact([row for row in rows if row is not None], keys)
        finally:
            roll_back(self._connection)
            self._file.execute("PRAGMA synchronous=NORMAL")

    def _free_expired(self, before: float) -> None:
        for keys in free_expired(self._file, before):
            for key in keys:
                self._count(short(key), None)
            self._swept += len(keys)
