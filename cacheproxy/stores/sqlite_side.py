"""A small SQLite file beside the cache file: opened, verified, and set aside when it cannot be used."""

import logging
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from cacheproxy.errors import Trouble
from cacheproxy.stores.sqlite_file import is_damage

log = logging.getLogger("cacheproxy.store")


@dataclass(frozen=True, slots=True)
class Kind:
    """What such a file is. `application_id` and `version` tell it from others; `tables` makes its tables, `probe` reads
    from each; `what`: for a person."""

    what: str
    application_id: int
    version: int
    tables: str
    probe: str


def open_side(path: Path, kind: Kind) -> sqlite3.Connection:
    """Open the file, or begin it; one that cannot be used is set aside and a new one begun. Raises `Trouble`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            return _connect(path, kind)
        except (_OtherFile, sqlite3.Error) as error:
            if not isinstance(error, _OtherFile) and not is_damage(error):
                raise
            set_aside(path, kind, error)
            return _connect(path, kind)
    except (OSError, sqlite3.Error, _OtherFile) as error:
        raise Trouble(f"cannot use {path}: {error}") from error


def set_aside(path: Path, kind: Kind, why: Exception) -> None:
    """Give the file another name, with one log line. Raises `OSError`."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = path.with_name(f"{path.name}.set-aside-{stamp}-{time.time_ns() % 10**9:09d}")
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    log.warning("%s %s cannot be used (%s); set aside as %s, starting a new one", kind.what, path, why, aside.name)


class _OtherFile(Exception):
    """The file is none of this kind."""


def _connect(path: Path, kind: Kind) -> sqlite3.Connection:
    if not path.exists():
        path.touch(mode=0o600)
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=5.0)
    try:
        if not _is_ours(connection, kind):
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("BEGIN IMMEDIATE")
            if not _is_ours(connection, kind):  # another process may have been first
                connection.execute(f"PRAGMA application_id = {kind.application_id}")
                connection.execute(f"PRAGMA user_version = {kind.version}")
                for statement in kind.tables.split(";"):
                    connection.execute(statement)
            connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA secure_delete=ON")  # what is erased is not to be read in free parts of the file
        connection.execute(kind.probe).fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _is_ours(connection: sqlite3.Connection, kind: Kind) -> bool:
    """Whether the tables are there; False for a file with nothing in it. Raises `_OtherFile`."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if (application, version) == (kind.application_id, kind.version):
        return True
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] or application or version:
        raise _OtherFile(f"not one of format {kind.version}")
    return False
