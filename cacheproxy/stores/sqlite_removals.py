"""The removals that a cache file knows of: those whose entries it may still hold, and those of the past.

Numbers of removals are never used twice, also where a process ended before it had written one down: each process counts
on from a number that was set apart, on the disk, when it began.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from cacheproxy.core import notice
from cacheproxy.core.notice import Notice
from cacheproxy.core.past import Ordered, Past
from cacheproxy.core.removal import Felled, Selector
from cacheproxy.errors import Trouble

SET_APART = 1_000_000
REMEMBERED = 10_000
"""Removals of the past that are kept."""
_EVERYTHING = Notice(Selector(everything=True), 0.0)


class Record(NamedTuple):
    """What a file says when it is opened: the number to count on from, and the removals that are under way."""

    start: int
    open: list[Felled]


def begin(connection: sqlite3.Connection, least: int = 0) -> Record:
    """Set numbers apart, from `least` on at the earliest. Raises `sqlite3.Error`."""
    _synced(connection)
    connection.execute("BEGIN IMMEDIATE")
    start = max(least, connection.execute("SELECT reserved FROM counted").fetchone()[0])
    connection.execute("UPDATE counted SET reserved = ?", (start + SET_APART,))
    rows = connection.execute("SELECT number, notice FROM removal WHERE NOT swept ORDER BY number").fetchall()
    connection.execute("COMMIT")
    _unsynced(connection)
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()  # lest the file change when it is set aside
    return Record(start, [_felled(number, notice.decode(line) or _EVERYTHING) for number, line in rows])


def begun(connection: sqlite3.Connection) -> Record:
    """The same for a file that was just opened, which is closed if that fails. Raises `Trouble`."""
    try:
        return begin(connection)
    except sqlite3.Error as error:
        connection.close()
        raise Trouble(f"the cache file cannot be written: {error}") from error


def remember(connection: sqlite3.Connection, felled: Felled) -> None:
    """From now on this removal is known to whoever opens the file, also after a power failure. Raises
    `sqlite3.Error`."""
    line = notice.encode(Notice(felled.selector, felled.now, felled.removal))
    _synced(connection)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT OR REPLACE INTO removal VALUES (?, ?, 0)", (felled.number, line))
    connection.execute("UPDATE counted SET reserved = ?1 + ?2 WHERE reserved < ?1 + ?2 / 2", (felled.number, SET_APART))
    _forget(connection)
    connection.execute("COMMIT")
    _unsynced(connection)


def _forget(connection: sqlite3.Connection) -> None:
    """All but the latest; how far back they reach is remembered."""
    query = "SELECT number, notice FROM removal WHERE swept ORDER BY number DESC LIMIT -1 OFFSET ?"
    old = connection.execute(query, (REMEMBERED,)).fetchall()
    if old:
        told = notice.decode(old[0][1])
        if told is not None:
            connection.execute("UPDATE counted SET since = max(since, ?)", (told.now,))
        connection.executemany("DELETE FROM removal WHERE number = ?", [(number,) for number, _ in old])


def settle(connection: sqlite3.Connection, number: int, *, erase: bool) -> None:
    """The file holds nothing any more that this removal means; what went before is on the disk too. `erase`: nor do
    the parts of the file that are of no use now. Raises `sqlite3.Error`."""
    _synced(connection)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE removal SET swept = 1 WHERE number = ?", (number,))
    connection.execute("COMMIT")
    _unsynced(connection)
    if erase:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def past(path: Path) -> Past:
    """What is remembered. Raises `Trouble`."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=1.0)) as connection:
            connection.execute("BEGIN")
            since = connection.execute("SELECT since FROM counted").fetchone()[0]
            lines = connection.execute("SELECT notice FROM removal ORDER BY number").fetchall()
    except sqlite3.Error as error:
        raise Trouble(f"reading {path.name}: {error}") from error
    told = [notice.decode(line) for (line,) in lines]
    if None in told:
        return Past(float("inf"))  # what one of them means is not known
    return Past(since, tuple(Ordered(one.now, one.selector, one.removal) for one in told if one is not None))


def _felled(number: int, told: Notice) -> Felled:
    return Felled(number, told.selector, told.removal, told.now)


def _synced(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous=FULL")


def _unsynced(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")
