"""Entries in one SQLite file (WAL): one writer thread that batches, one reader thread, bounded in bytes.

A killed process leaves whole entries or none: a batch is a transaction, and each entry carries its checksum. A file
that turns out to be damaged is set aside and a new one begun; a disk that is full or slow costs entries, never an
answer. The event loop never waits for the disk; it makes way for the threads when it is so busy that they starve.
"""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from cacheproxy.core.model import Census, Entry
from cacheproxy.core.past import Past
from cacheproxy.core.removal import Felled, Removal, Selector
from cacheproxy.errors import Trouble
from cacheproxy.ports import Kept, Page
from cacheproxy.stores import pages
from cacheproxy.stores.sqlite_backlog import Backlog
from cacheproxy.stores.sqlite_batch import Bounds, transact, write
from cacheproxy.stores.sqlite_browse import Look, look_up, overlaid
from cacheproxy.stores.sqlite_file import begin_anew, is_damage, open_file, roll_back
from cacheproxy.stores.sqlite_index import Index, learn, short_of
from cacheproxy.stores.sqlite_reader import Reader
from cacheproxy.stores.sqlite_removals import begin, begun, past, remember, settle
from cacheproxy.stores.sqlite_rows import free_expired
from cacheproxy.stores.sqlite_sweep import Sweep
from cacheproxy.stores.way import Way, Work

log = logging.getLogger("cacheproxy.store")

LINGER = 0.005
"""Seconds the writer waits after the first entry of a batch for others to come."""
REST = 0.002
"""Seconds that a removal rests after each of its steps."""
T = TypeVar("T")


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
        self._index = Index()
        self._indexed = False
        self._reached = 0
        self._struck = 0
        self._generation = 0
        self._damaged: int | None = None
        self._condition = threading.Condition()
        self._sweep_before: float | None = None
        self._backlog = Backlog()
        self._closing = False
        self._swept = 0
        self._ailing = False
        self._reading: dict[object, None] = {}
        self._way = Way(self._work)
        self.dropped = 0
        """Entries that were put and not written: there was no room for them, or the file could not take them."""
        self._connection: sqlite3.Connection | None = open_file(path)
        self.record = begun(self._connection)
        self._reader = Reader(path, lambda: self._generation, self._tell_damage)
        self._writer = threading.Thread(target=self._write_loop, name="sqlite-write", daemon=True)
        self._writer.start()

    def __repr__(self) -> str:
        return f"<Sqlite {self._path.name} {len(self._index)} entries {self._index.bytes} bytes>"

    async def get(self, key: bytes) -> Entry | None:
        for place in (place for place in (self._pending, self._writing) if key in place):
            return place[key]
        if self._closing or (self._indexed and not self._index.has(key)):
            return None
        ticket = object()
        self._reading[ticket] = None
        self._way.watch()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._reader.thread, self._reader.read, key)
        finally:
            del self._reading[ticket]

    async def put(self, entry: Entry, epoch: int | None = None) -> Kept:
        if epoch is not None and epoch < self._reached:
            return Kept.OUTRUN
        with self._condition:
            if self._closing:
                return Kept.TROUBLE
            replaced = self._pending.pop(entry.key, None)  # so that the newer one is among the newest
            self._pending_bytes -= replaced.size if replaced else 0
            if entry.size > min(self._capacity, self._pending_limit - self._pending_bytes):
                self.dropped += 1
                if not self._indexed or entry.key in self._writing or self._index.has(entry.key):
                    # The older answer of this key must not outlive the newer one that cannot be kept.
                    self._pending[entry.key] = None
            else:
                self._pending[entry.key] = entry
                self._pending_bytes += entry.size
            self._condition.notify()
        self._way.watch()
        return Kept.YES

    def _work(self) -> Work:
        return self._pending or self._backlog.calls or None, self._writing or None, next(iter(self._reading), None)

    async def sweep(self, now: float) -> int:
        """Ask the writer to free what expired; how many entries went since the last call."""
        with self._condition:
            self._sweep_before = now
            self._condition.notify()
            swept, self._swept = self._swept, 0
        return swept

    async def count(self, selector: Selector, now: float, also: Collection[bytes] = ()) -> int | None:  # noqa: ARG002 - ages are not known here
        return await self._asked(lambda: self._count(selector, also))

    async def fell(self, felled: Felled, also: Collection[bytes] = ()) -> int | None:
        self._reached = max(self._reached, felled.number)
        return await self._asked(lambda: self._fell(felled, also))

    async def remove(self, felled: Felled) -> set[bytes]:
        self._reached = max(self._reached, felled.number)
        gone = await self._told(lambda: self._backlog.order(felled))
        return {key for key in gone if felled.removal is Removal.SOFT or not self._has(key)}

    async def settle(self, felled: Felled) -> None:
        await self._asked(lambda: settle(self._file, felled.number, erase=bool(felled.selector.scope)))

    async def past(self) -> Past:
        """The removals that the file remembers. Raises `Trouble`."""
        return await asyncio.to_thread(past, self._path)

    async def _asked(self, work: Callable[[], T]) -> T:
        """What the writer makes of `work`, between two batches. Raises `Trouble`."""
        return await self._told(lambda: self._backlog.ask(work))

    async def _told(self, order: "Callable[[], Future[T]]") -> T:
        with self._condition:
            if self._closing:
                raise Trouble("the cache file is closed")
            done = order()
            self._condition.notify()
        self._way.watch()
        return await asyncio.wrap_future(done)

    def _has(self, key: bytes) -> bool:
        return key in self._pending or key in self._writing or self._index.has(key)

    async def browse(self, selector: Selector, now: float, cursor: str, most: int, *, whole: bool = False) -> Page:
        look = Look(selector, now, pages.place(cursor), most, whole)
        pending, writing = self._pending, self._writing  # in this order: what is pending may be being written next
        waiting = {**writing, **pending}
        found = await asyncio.to_thread(look_up, self._path, look)
        return overlaid(look, found, {**waiting, **self._pending})

    def census(self) -> Census:
        return Census(len(self._index), self._index.bytes)

    async def close(self) -> None:
        with self._condition:
            self._closing = True
            self._condition.notify()
        await asyncio.get_running_loop().run_in_executor(None, self._finish)

    def _finish(self) -> None:
        self._writer.join()
        self._reader.close()

    def _tell_damage(self, generation: int) -> None:
        with self._condition:
            self._damaged = generation
            self._condition.notify()

    def _write_loop(self) -> None:
        self._step(self._learn)
        closing = False
        while not closing:
            with self._condition:
                self._condition.wait_for(self._is_wanted)
                if self._pending and not self._backlog.calls:
                    self._condition.wait_for(lambda: self._closing or self._backlog.calls, LINGER)
                self._writing, self._pending, self._pending_bytes = self._pending, {}, 0
                before, self._sweep_before = self._sweep_before, None
                calls = self._backlog.take()
                damaged, self._damaged = self._damaged, None
                closing = self._closing
            if damaged == self._generation:
                self._begin_anew(sqlite3.DatabaseError("damaged"))
            if self._writing and not self._step(self._write):
                self._drop(sum(entry is not None for entry in self._writing.values()))
            self._writing = {}
            for work, done in calls:
                self._answer(work, done)
            if before is not None:
                self._step(self._free_expired, before)
            if (sweep := self._backlog.next()) is not None:
                self._go_on(sweep)
        self._backlog.end()
        if self._connection is not None:
            self._connection.close()

    def _is_wanted(self) -> bool:
        """Whether there is something for the writer to do."""
        told = self._sweep_before is not None or self._damaged is not None
        return bool(self._pending or self._backlog or self._closing or told)

    def _step(self, work: Callable[..., None], *arguments: object) -> bool:
        """Do a piece of work. Damage leads to a new file and a second try; trouble to one log line until it ends."""
        for _ in range(2):
            try:
                if self._connection is None:
                    self._connection = open_file(self._path)
                    self._generation += 1
                    self._learn()
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
        self._index, self._indexed = Index(), True
        try:
            self._connection = begin_anew(self._path, why)
            begin(self._connection, self._reached)
        except (OSError, sqlite3.Error) as error:
            self._complain(error)
        self._generation += 1

    def _learn(self) -> None:
        """Which rows are in the file, and which of them were removed and are still there."""
        self._index, self._indexed = learn(self._file, self.record.open), True

    def _write(self) -> None:
        self._drop(write(self._file, self._index, self._writing, self._bounds))

    @property
    def _bounds(self) -> Bounds:
        return Bounds(self._capacity, self._struck)

    def _answer(self, work: Callable[[], object], done: "Future[object]") -> None:
        if not done.set_running_or_notify_cancel():
            return
        found: list[object] = []
        if self._step(lambda: found.append(work())):
            done.set_result(found[-1])
        else:
            done.set_exception(Trouble("the cache file cannot be read or written now"))

    def _fell(self, felled: Felled, also: Collection[bytes]) -> int | None:
        remember(self._file, felled)
        count = self._count(felled.selector, also)
        self._index.strike(felled)
        self._struck = max(self._struck, felled.number)
        return count

    def _count(self, selector: Selector, also: Collection[bytes]) -> int | None:
        count = self._index.count(selector) if self._indexed else None
        return None if count is None else count + sum(not self._index.has(key) for key in also)

    def _go_on(self, sweep: Sweep) -> None:
        """One step of it; the next when its turn comes again."""
        if not self._step(self._take, sweep):
            sweep.done.set_exception(Trouble("the cache file cannot be read or written now"))
        elif sweep.over:
            sweep.done.set_result(sweep.gone)
        else:
            self._backlog.again(sweep)
            with self._condition:
                self._condition.wait_for(lambda: self._closing or self._backlog.calls, REST)

    def _take(self, sweep: Sweep) -> None:
        self._struck = max(self._struck, sweep.felled.number)
        step = sweep.step(self._file, self._index)
        if step is not None and step.gone:
            transact(self._file, self._index, step.rows, step.gone, self._bounds)
            sweep.gone.update(step.gone)

    def _free_expired(self, before: float) -> None:
        for keys in free_expired(self._file, before):
            for key in keys:
                self._index.note(short_of(key), None)
            self._index.prune()
            transact(self._file, self._index, [], [], self._bounds)  # of kinds, what is of no use now
            self._swept += len(keys)
