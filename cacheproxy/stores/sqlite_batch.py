"""Transactions of the cache file: rows that go, and rows that are written, each with its kind."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cacheproxy.core.model import Entry
from cacheproxy.stores.kinds import MIXED, Labels
from cacheproxy.stores.sqlite_file import ONE_ROWS_FAULT, drop_oldest, roll_back
from cacheproxy.stores.sqlite_index import Index, Place, encode, short_of
from cacheproxy.stores.sqlite_rows import Row, row_of


class Bounds(NamedTuple):
    """The bytes that all rows may count, and the number of the last removal that has struck out kinds."""

    capacity: int
    epoch: int


def write(connection: sqlite3.Connection, index: Index, writing: Mapping[bytes, Entry | None], bounds: Bounds) -> int:
    """Write these entries (None: remove what is there); how many could not be. Raises `sqlite3.Error`."""
    room = bounds.capacity  # what is older than all that fits would have to go again at once
    made: dict[bytes, Row | None] = {}
    for key, entry in reversed([*writing.items()]):
        room -= entry.size if entry else 0
        made[key] = row_of(entry) if entry is not None and room >= 0 else None
    rows = [row for row in reversed(made.values()) if row is not None]
    gone = [key for key, row in made.items() if row is None]
    lost = sum(writing[key] is not None for key in gone)
    try:
        transact(connection, index, rows, gone, bounds)
    except ONE_ROWS_FAULT:
        roll_back(connection)
        transact(connection, index, [], gone, bounds)
        lost += sum(not _write_one(connection, index, row, bounds) for row in rows)
    return lost


def _write_one(connection: sqlite3.Connection, index: Index, row: Row, bounds: Bounds) -> bool:
    try:
        transact(connection, index, [row], [], bounds)
    except ONE_ROWS_FAULT:
        roll_back(connection)
        transact(connection, index, [], [row.key], bounds)
        return False
    return True


def transact(
    connection: sqlite3.Connection, index: Index, rows: Sequence[Row], gone: Sequence[bytes], bounds: Bounds
) -> None:
    """Remove first: its room is used. What is oldest makes room. Counted once committed. Raises `sqlite3.Error`."""
    connection.execute("BEGIN IMMEDIATE")
    names = {row.key: short_of(row.key) for row in rows}
    leaving = [*gone, *(key for key, name in names.items() if index.size(name))]
    connection.executemany("DELETE FROM entry WHERE key = ?", [(key,) for key in leaving])
    changes: dict[int, Place | None] = dict.fromkeys(map(short_of, leaving))
    excess = index.bytes - bounds.capacity + sum(row.size for row in rows) - sum(map(index.size, changes))
    changes |= {short_of(key): None for key in drop_oldest(connection, excess)}
    kept = [row.kind if row.kind is not None else index.kinds.find(row.labels) for row in rows]
    empty = index.emptied(changes, kept)
    connection.executemany("DELETE FROM kind WHERE number = ?", [(number,) for number in empty])
    made: dict[Labels, int] = {}
    for row in rows:
        kind = row.kind if row.kind is not None else _kind(connection, index, made, row.labels, bounds.epoch)
        values = (row.key, row.expires_at, row.size, kind, row.blob)
        number = connection.execute("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?, ?)", values).lastrowid
        changes[names[row.key]] = Place(number or 0, kind, row.size)
    connection.execute("COMMIT")
    index.empty.clear()
    for its, number in made.items():
        index.kinds.add(number, its)
    for name, place in changes.items():
        index.note(name, place)
    index.prune()


def _kind(connection: sqlite3.Connection, index: Index, made: dict[Labels, int], its: Labels, epoch: int) -> int:
    """The kind of these labels; a new one is among those `made`."""
    known = index.kinds.find(its)
    number = known if known is not None else made.get(its)
    if number is None and len(index.kinds) + len(made) >= index.kinds.most:
        return MIXED
    if number is None:
        values = (epoch, encode(its))
        number = connection.execute("INSERT INTO kind (since, labels) VALUES (?, ?)", values).lastrowid or MIXED
        made[its] = number
    return number
