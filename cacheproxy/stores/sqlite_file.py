"""The cache file itself: begun, verified, and set aside when it cannot be used."""

import logging
import sqlite3
import time
from pathlib import Path

from cacheproxy.errors import Trouble

log = logging.getLogger("cacheproxy.store")

APPLICATION_ID = 0x43505831
SCHEMA_VERSION = 2

_HEADER = b"SQLite format 3\0"
_BEGIN = f"""
BEGIN IMMEDIATE;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE entry (key BLOB NOT NULL UNIQUE, expires_at REAL NOT NULL, size INTEGER NOT NULL, kind INTEGER NOT NULL,
                    blob BLOB NOT NULL);
CREATE INDEX entry_facts ON entry (expires_at, key, size, kind);
CREATE INDEX entry_kind ON entry (kind);
CREATE TABLE kind (number INTEGER PRIMARY KEY AUTOINCREMENT, since INTEGER NOT NULL, labels BLOB NOT NULL);
CREATE TABLE removal (number INTEGER PRIMARY KEY, notice BLOB NOT NULL, swept INTEGER NOT NULL);
CREATE TABLE counted (reserved INTEGER NOT NULL, since REAL NOT NULL);
INSERT INTO counted VALUES (0, (julianday('now') - 2440587.5) * 86400.0);
COMMIT;
"""  # noqa: S608 - of numbers that stand here
_SURROUNDINGS = (
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT,
)  # fmt: skip
"""Results that speak of the disk or of other processes, not of what the file contains."""
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
ONE_ROWS_FAULT = (
    sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError, OverflowError,
    ValueError, TypeError,
)  # fmt: skip
"""What says that a value cannot be written, not that the file cannot."""


class ForeignFile(Exception):
    """The file is a database, but not one of this format."""


def is_damage(error: Exception) -> bool:
    """Whether an error of a running store says that the file itself is damaged."""
    return code_of(error) in _DAMAGE


def code_of(error: Exception) -> int | None:
    """The primary result code of SQLite."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def open_file(path: Path) -> sqlite3.Connection:
    """Open the file, or begin it; one that cannot be used is set aside and a new one begun. Raises `Trouble`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            return _connect(path)
        except (ForeignFile, sqlite3.Error) as error:
            if code_of(error) in _SURROUNDINGS:
                raise
            return begin_anew(path, error)
    except (OSError, sqlite3.Error, ForeignFile) as error:
        raise Trouble(f"cannot use {path}: {error}") from error


def begin_anew(path: Path, why: Exception) -> sqlite3.Connection:
    """Set the file aside, with one log line, and begin a new one. Raises `OSError`, `sqlite3.Error`."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = path.with_name(f"{path.name}.set-aside-{stamp}-{time.time_ns() % 10**9:09d}")
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    log.warning("cache file %s cannot be used (%s); set aside as %s, starting a new one", path, why, aside.name)
    return _connect(path)


def drop_oldest(connection: sqlite3.Connection, excess: int) -> list[bytes]:
    """Remove the entries written first, until they were `excess` bytes; their keys."""
    oldest: list[tuple[int, bytes]] = []
    if excess > 0:
        for number, key, size in connection.execute("SELECT rowid, key, size FROM entry ORDER BY rowid"):
            oldest.append((number, key))
            excess -= size
            if excess <= 0:
                break
    connection.executemany("DELETE FROM entry WHERE rowid = ?", [(number,) for number, _ in oldest])
    return [key for _, key in oldest]


def roll_back(connection: sqlite3.Connection | None) -> None:
    """End a transaction that failed, if one is open."""
    try:
        if connection is not None and connection.in_transaction:
            connection.rollback()
    except sqlite3.Error as error:
        log.debug("rollback: %s", error)


def _connect(path: Path) -> sqlite3.Connection:
    if not path.exists():
        path.touch(mode=0o600)
    with path.open("rb") as file:
        head = file.read(20)
    if head and (head[:16] != _HEADER or not {*head[18:20]} <= {1, 2}):
        raise ForeignFile("not a database that can be read and written")
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=5.0)
    try:
        if not _is_ours(connection):
            connection.execute("PRAGMA journal_mode=WAL")
            _begin(connection)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA secure_delete=ON")  # what is erased is not to be read in free parts of the file
        connection.execute("SELECT key, expires_at, size, kind, blob FROM entry LIMIT 1").fetchone()
        if connection.execute("SELECT reserved, since FROM counted").fetchone() is None:
            raise ForeignFile("without a count of removals")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_ours(connection: sqlite3.Connection) -> bool:
    """True: a file of this format; false: one that was not yet begun, or not to its end. Changes nothing."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if (application, version) == (APPLICATION_ID, SCHEMA_VERSION):
        return True
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if (application, version, tables) != (0, 0, 0):
        raise ForeignFile(f"not a cache file of format {SCHEMA_VERSION}")
    return False


def _begin(connection: sqlite3.Connection) -> None:
    """Make the tables; somebody else may be doing the same."""
    try:
        connection.executescript(_BEGIN)
    except sqlite3.OperationalError:
        if connection.in_transaction:
            connection.rollback()
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            raise
