"""Takes out of a cache file what a removal means, some at a time, so that others need not wait long."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import Future
from typing import NamedTuple

from cacheproxy.core import codec
from cacheproxy.core.model import Entry
from cacheproxy.core.removal import Felled, Removal
from cacheproxy.stores.sqlite_index import Index
from cacheproxy.stores.sqlite_rows import Row, row_of

AT_ONCE = 200
"""Rows taken out, or looked at, at a time."""
_FACTS = 2048
"""Bytes of a stored form that usually hold all its facts."""
_Start = tuple[int, bytes, bytes]
"""A row: its number, its key, and the start of its stored form."""


class Slice(NamedTuple):
    """Rows that have to go, and those to be written in their place."""

    gone: list[bytes]
    rows: list[Row]


class Sweep:
    """A removal that is being carried out; `done` is told the keys of what it has taken out, or made stale."""

    def __init__(self, felled: Felled, done: "Future[set[bytes]]") -> None:
        self.felled = felled
        self.done = done
        self.gone: set[bytes] = set()
        self.over = False
        self._begun = False
        self._steps: Iterator[Slice] | None = None

    def is_wanted(self) -> bool:
        """Whether it is to go on: not if nobody waited for it any more when it was to begin."""
        self._begun = self._begun or self.done.set_running_or_notify_cancel()
        return self._begun

    def step(self, connection: sqlite3.Connection, index: Index) -> Slice | None:
        """What is to be carried out next, before the next step; None at the end. Raises `sqlite3.Error`."""
        if self._steps is None:
            if not index.is_struck(self.felled.number):
                index.strike(self.felled)
            self._steps = slices(connection, index, self.felled)
        found = next(self._steps, None)
        if found is None:
            self.over = True
            index.swept(self.felled.number)
        return found


def slices(connection: sqlite3.Connection, index: Index, felled: Felled) -> Iterator[Slice]:
    """All that `felled` means and was put before it, of what is there now. Each is carried out before the next is asked
    for. Raises `sqlite3.Error`."""
    ids = felled.selector.entry_ids
    if ids:
        numbers = index.numbers(ids)
        for at in range(0, len(numbers), AT_ONCE):
            yield _slice(connection, felled, _numbered(connection, numbers[at : at + AT_ONCE]))
        return
    gone: list[bytes] = []
    for kind in index.struck(felled):
        query = "SELECT key FROM entry WHERE kind = ? LIMIT ?"
        while keys := connection.execute(query, (kind, AT_ONCE - len(gone))).fetchall():
            gone += [key for (key,) in keys]
            if len(gone) < AT_ONCE:
                break  # no more of this kind
            yield Slice(gone, [])
            gone = []
    yield Slice(gone, [])
    for kind in index.mixed(felled):
        for starts in _of_kind(connection, kind):
            yield _slice(connection, felled, starts)


def _of_kind(connection: sqlite3.Connection, kind: int) -> Iterator[list[_Start]]:
    last, end = 0, connection.execute("SELECT max(rowid) FROM entry").fetchone()[0] or 0
    query = (
        "SELECT rowid, key, substr(blob, 1, ?) FROM entry "
        "WHERE kind = ? AND rowid > ? AND rowid <= ? ORDER BY rowid LIMIT ?"
    )
    while rows := connection.execute(query, (_FACTS, kind, last, end, AT_ONCE)).fetchall():
        last = rows[-1][0]
        yield rows


def _numbered(connection: sqlite3.Connection, numbers: list[int]) -> list[_Start]:
    query = "SELECT rowid, key, substr(blob, 1, ?) FROM entry WHERE rowid = ?"
    found = [connection.execute(query, (_FACTS, number)).fetchone() for number in numbers]
    return [row for row in found if row is not None]


def _slice(connection: sqlite3.Connection, felled: Felled, starts: list[_Start]) -> Slice:
    found = ((key, codec.described(start, key) or _whole(connection, key)) for _, key, start in starts)
    meant = [
        key
        for key, entry in found
        if entry is not None and entry.epoch < felled.number and felled.selector.means(entry, felled.now)
    ]
    if felled.removal is not Removal.SOFT:
        return Slice(meant, [])
    rows = [outdated(connection, key, felled.now) for key in meant]
    return Slice(meant, [row for row in rows if row is not None])


def _whole(connection: sqlite3.Connection, key: bytes) -> Entry | None:
    row = connection.execute("SELECT blob FROM entry WHERE key = ?", (key,)).fetchone()
    return codec.described(row[0], key) if row else None


def outdated(connection: sqlite3.Connection, key: bytes, now: float) -> Row | None:
    """The row of `key` with its lifetime over, of the same kind as before: another removal may have struck that out;
    None if it cannot be read."""
    row = connection.execute("SELECT kind, blob FROM entry WHERE key = ?", (key,)).fetchone()
    entry = codec.decode(row[1], key) if row else None
    return row_of(entry.past(now), row[0]) if entry is not None else None
