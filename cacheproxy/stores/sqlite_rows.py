"""Rows of the cache file: an entry as a row, and those whose time has come."""

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from cacheproxy.core import codec
from cacheproxy.core.model import Entry
from cacheproxy.stores.kinds import Labels, labels
from cacheproxy.stores.sqlite_file import ONE_ROWS_FAULT

SWEEP_ROWS = 1000
"""Expired entries freed in one transaction, so that others need not wait long."""


class Row(NamedTuple):
    """Key, absolute expiry, the bytes it counts, the stored form, labels, and the kind, None for that of its labels."""

    key: bytes
    expires_at: float
    size: int
    blob: bytes
    labels: Labels
    kind: int | None = None


def row_of(entry: Entry, kind: int | None = None) -> Row | None:
    """None if this entry cannot be written."""
    try:
        return Row(entry.key, entry.expires_at, entry.size, codec.encode(entry), labels(entry), kind)
    except ONE_ROWS_FAULT:
        return None


def free_expired(connection: sqlite3.Connection, before: float) -> Iterator[list[bytes]]:
    """Remove what expired before that time, some at a time; their keys."""
    query = "DELETE FROM entry WHERE rowid IN (SELECT rowid FROM entry WHERE expires_at <= ? LIMIT ?) RETURNING key"
    while gone := connection.execute(query, (before, SWEEP_ROWS)).fetchall():
        yield [key for (key,) in gone]
