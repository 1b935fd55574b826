"""Lists what is in the cache file, by key. Reads over a connection of its own, so that no lookup waits for it."""

import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from cacheproxy.core import codec
from cacheproxy.core.key import entry_id
from cacheproxy.core.model import Entry
from cacheproxy.core.removal import Selector
from cacheproxy.errors import Trouble
from cacheproxy.ports import Listed, Page
from cacheproxy.stores import pages

ROWS = 2_000
"""Rows looked at for one page."""
KEYS = 20_000
"""The same, where their keys alone tell what is meant."""
AT_ONCE = 100
"""Of these, after how many the event loop is let run."""
HEAVY = 8 * 2**20
"""Bytes of contents with which a page is full."""
_PAUSE = 0.0002
_FACTS = 2048
"""Bytes of a stored form that usually hold all its facts."""


class Look(NamedTuple):
    """What is looked for, after which key."""

    selector: Selector
    now: float
    after: bytes
    most: int
    whole: bool


class Found(NamedTuple):
    """What there is up to the key `end`, None for the end of the file."""

    rows: list[Listed]
    end: bytes | None


def look_up(path: Path, look: Look) -> Found:
    """What the file has. Raises `Trouble`."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=1.0)) as connection:
            return _found(connection, look)
    except sqlite3.Error as error:
        raise Trouble(f"listing {path.name}: {error}") from error


def _found(connection: sqlite3.Connection, look: Look) -> Found:
    ids, rows, weight = look.selector.entry_ids, list[Listed](), 0
    most = KEYS if ids else ROWS
    query = "SELECT key FROM entry WHERE key > ? ORDER BY key LIMIT ?"
    keys = [key for (key,) in connection.execute(query, (look.after, most))]
    for number, key in enumerate(keys, 1):
        if number % AT_ONCE == 0:
            time.sleep(_PAUSE)  # lest the event loop wait for the interpreter again and again
        if ids and entry_id(key) not in ids:
            continue
        row = _row(connection, key, look)
        if row is None:
            continue
        rows.append(row)
        weight += len(row.entry.answer.body)
        if len(rows) == look.most or weight >= HEAVY:
            return Found(rows, key)
    return Found(rows, keys[-1] if len(keys) == most else None)


def _row(connection: sqlite3.Connection, key: bytes, look: Look) -> Listed | None:
    """The row of `key`, if it is meant."""
    query = "SELECT size, substr(blob, 1, ?) FROM entry WHERE key = ?"
    row = connection.execute(query, (_FACTS, key)).fetchone()
    if row is None:
        return None
    size, start = row
    entry = codec.described(start, key)
    if entry is not None and not look.selector.means(entry, look.now):
        return None
    if entry is None or look.whole:
        row = connection.execute("SELECT blob FROM entry WHERE key = ?", (key,)).fetchone()
        entry = codec.decode(row[0], key) if row else None
    return Listed(entry, size) if entry is not None and look.selector.means(entry, look.now) else None


def overlaid(look: Look, found: Found, waiting: Mapping[bytes, Entry | None]) -> Page:
    """What was found, with what was to be written laid over it (None: to be removed)."""
    rows = [row for row in found.rows if row.entry.key not in waiting]
    for key, entry in waiting.items():
        within = key > look.after and (found.end is None or key <= found.end)
        if within and entry is not None and look.selector.means(entry, look.now):
            rows.append(Listed(entry, entry.size))
    return pages.page(rows, found.end, look.most)
