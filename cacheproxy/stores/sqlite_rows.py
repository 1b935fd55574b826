"""Rows of the cache file: an entry as a row, and the rows that a removal means."""

import sqlite3
from collections.abc import Iterator

from cacheproxy.core import codec
from cacheproxy.core.model import Entry
from cacheproxy.core.removal import Selector
from cacheproxy.stores.sqlite_file import ONE_ROWS_FAULT

Row = tuple[bytes, float, int, bytes]
"""Key, absolute expiry, bytes it counts, the stored form."""

AT_ONCE = 1000
"""Rows looked at before what they mean is carried out, in one transaction."""
SWEEP_ROWS = 1000
"""Expired entries freed in one transaction, so that others need not wait long."""
_FACTS = 2048
"""Bytes of a stored form that usually hold all its facts."""


def row_of(entry: Entry) -> Row | None:
    """None if this entry cannot be written."""
    try:
        return entry.key, entry.expires_at, entry.size, codec.encode(entry)
    except ONE_ROWS_FAULT:
        return None


def short(key: bytes) -> int:
    """What a key is counted under."""
    return int.from_bytes(key[:8], "big")


def meant(connection: sqlite3.Connection, selector: Selector, now: float) -> Iterator[list[bytes]]:
    """The keys of the rows that `selector` means, of those there now, some at a time. They may be removed or written
    anew between two times."""
    last, end = 0, connection.execute("SELECT max(rowid) FROM entry").fetchone()[0] or 0
    query = "SELECT rowid, key, substr(blob, 1, ?) FROM entry WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT ?"
    while rows := connection.execute(query, (_FACTS, last, end, AT_ONCE)).fetchall():
        last = rows[-1][0]
        found = ((key, codec.described(start, key) or _whole(connection, key)) for _, key, start in rows)
        yield [key for key, entry in found if entry is not None and selector.means(entry, now)]


def _whole(connection: sqlite3.Connection, key: bytes) -> Entry | None:
    row = connection.execute("SELECT blob FROM entry WHERE key = ?", (key,)).fetchone()
    return codec.described(row[0], key) if row else None


def outdated(connection: sqlite3.Connection, key: bytes, now: float) -> Row | None:
    """The row of `key` with its lifetime over; None if it cannot be read."""
    row = connection.execute("SELECT blob FROM entry WHERE key = ?", (key,)).fetchone()
    entry = codec.decode(row[0], key) if row else None
    return row_of(entry.past(now)) if entry is not None else None


def free_expired(connection: sqlite3.Connection, before: float) -> Iterator[list[bytes]]:
    """Remove what expired before that time, some at a time; their keys."""
    query = "DELETE FROM entry WHERE rowid IN (SELECT rowid FROM entry WHERE expires_at <= ? LIMIT ?) RETURNING key"
    while gone := connection.execute(query, (before, SWEEP_ROWS)).fetchall():
        yield [key for (key,) in gone]
