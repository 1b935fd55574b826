"""Entries for the store suites, made so that what comes back can be checked against its key alone; and a lock that
makes the writer of a cache file wait."""

import hashlib
import itertools
import sqlite3
from pathlib import Path

from cacheproxy.core.model import ENTRY_OVERHEAD, Answer, Endpoint, Entry, Form
from cacheproxy.core.removal import Felled, Removal, Selector

_numbers = itertools.count(10**9)


def key_of(number: int) -> bytes:
    """The 32-byte key of entry `number`."""
    return hashlib.blake2b(b"%d" % number, digest_size=32).digest()


def entry(number: int | bytes, length: int = 500, *, version: int = 0, expires_at: float = 1e9) -> Entry:
    """Entry `number` (or of this key) with a body of `length` bytes that only this number and version have."""
    key = number if isinstance(number, bytes) else key_of(number)
    return Entry(
        key=key,
        owner=key[:16],
        credential=key[:16],
        namespace="names",
        endpoint=Endpoint.CHAT,
        model="m",
        answer=Answer(Form.JSON, "application/json", body_of(key, length, version), has_usage=True),
        stored_at=1000.0 + version,
        fresh_until=expires_at - 1,
        expires_at=expires_at,
        took=0.25,
    )


def body_of(key: bytes, length: int, version: int = 0) -> bytes:
    """A body that can be told from every other, and that is damaged if a byte is."""
    seed = hashlib.blake2b(key + b"%d" % version).digest()
    return (seed * (length // len(seed) + 1))[:length]


def felled(selector: Selector, removal: Removal = Removal.HARD, now: float = 2000.0) -> Felled:
    """A removal that was counted after all that the suites put."""
    return Felled(next(_numbers), selector, removal, now)


def size(length: int) -> int:
    """What an entry with a body of `length` counts."""
    return length + ENTRY_OVERHEAD


class Lock:
    """Holds the file's write lock, so that the store's writer has to wait."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, *_: object) -> None:
        self._connection.execute("ROLLBACK")
        self._connection.close()
