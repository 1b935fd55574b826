"""What the writer of a cache file knows in memory of its rows: which there are, how large, and of which kind.

So a miss does not ask the disk, and what a removal means is counted without a look at the rows. Changed by the writer's
thread alone, once a transaction is through; others may ask whether a key is there.
"""

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

import orjson

from cacheproxy.core.key import entry_id
from cacheproxy.core.removal import Felled, Removal, Selector
from cacheproxy.stores.kinds import MIXED, Kinds, Labels

_BITS = 32
_MASK = (1 << _BITS) - 1


class Place(NamedTuple):
    """A row: its number, its kind, and the bytes it counts."""

    number: int
    kind: int
    size: int


def short(name: str) -> int:
    """What an entry is listed under, by its id."""
    return int(name[:16], 16)


def short_of(key: bytes) -> int:
    """The same, by its key."""
    return short(entry_id(key))


class Index:
    """The rows of one file."""

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        self._counts: Counter[int] = Counter()
        self._struck: dict[int, list[int]] = {}
        """Number of a removal -> kinds that it has still to take out."""
        self._leaving: dict[int, set[int]] = {}
        """The same for entries that were meant by their ids."""
        self._idle: set[int] = set()
        self.kinds = Kinds()
        self.empty: set[int] = set()
        """Kinds without rows that are still written in the file."""
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._rows)

    def has(self, key: bytes) -> bool:
        """Whether there may be a row of `key`."""
        return short_of(key) in self._rows

    def size(self, name: int) -> int:
        """The bytes that a row counts, 0 if there is none."""
        return self._rows.get(name, 0) & _MASK

    def note(self, name: int, place: Place | None) -> None:
        """The row under this name is now there."""
        before = self._rows.pop(name, None)
        if before is not None:
            self.bytes -= before & _MASK
            kind = before >> _BITS & _MASK
            self._counts[kind] -= 1
            if not self._counts[kind]:
                self._idle.add(kind)
        if place is not None:
            self.bytes += place.size
            self._counts[place.kind] += 1
            self._rows[name] = (place.number << _BITS | place.kind) << _BITS | place.size

    def emptied(self, names: Iterable[int], kept: Iterable[int | None]) -> list[int]:
        """The kinds without rows that are still written in the file, once the rows under `names` are gone and others
        of the kinds `kept` are there."""
        leaving = Counter(self._rows[name] >> _BITS & _MASK for name in names if name in self._rows)
        staying = set(kept)
        gone = [kind for kind, count in leaving.items() if self._counts[kind] == count and kind not in staying]
        return [*self.empty, *gone]

    def prune(self) -> None:
        """Kinds without rows get none any more. To be called when a transaction has been counted."""
        for kind in self._idle:
            if not self._counts[kind]:
                del self._counts[kind]
                self.kinds.strike(kind)
                self.empty.add(kind)
        self._idle.clear()

    def load(self, kinds: Iterable[tuple[int, bytes]], rows: Iterable[tuple[bytes, int, int, int]]) -> None:
        """What is in the file: kinds with their labels, and the rows' keys, numbers, kinds and sizes."""
        for key, number, kind, size in rows:
            self.note(short_of(key), Place(number, kind, size))
        for number, told in kinds:
            if number in self._counts:
                self.kinds.add(number, decode(told))
            else:
                self.empty.add(number)

    def count(self, selector: Selector) -> int | None:
        """How many rows are meant that no removal has struck out; None where they have to be looked at."""
        if selector.entry_ids:
            named = self._named(selector)
            return None if named is None else len(named)
        if not selector.by_labels or (self._counts.get(MIXED) and not selector.everything):
            return None
        return sum(self._counts[kind] for kind in self._meant(selector))

    def strike(self, felled: Felled, since: Collection[int] | None = None) -> None:
        """What is meant counts no more. `since`: only of these kinds."""
        selector = felled.selector
        if felled.removal is not Removal.HARD or selector.older_than is not None:
            return
        if selector.entry_ids:
            self._leaving[felled.number] = self._named(selector) or set()
            return
        meant = [kind for kind in self._meant(selector) if since is None or kind in since]
        self._struck[felled.number] = meant
        for kind in meant:
            self.kinds.strike(kind)

    def is_struck(self, number: int) -> bool:
        """Whether a removal has struck out what it means."""
        return number in self._struck or number in self._leaving

    def struck(self, felled: Felled) -> list[int]:
        """The kinds that it has to take out whole."""
        return self._struck.get(felled.number, [])

    def mixed(self, felled: Felled) -> list[int]:
        """The kinds in which it has to look at rows."""
        if felled.number in self._struck:
            return [] if felled.selector.everything else [MIXED]
        return [*self.kinds.meant(felled.selector), MIXED]

    def numbers(self, ids: Iterable[str]) -> list[int]:
        """Of the rows of these entries."""
        return [self._rows[short(name)] >> 2 * _BITS for name in ids if _is_id(name) and short(name) in self._rows]

    def swept(self, number: int) -> None:
        """A removal has taken out all that it means."""
        self._struck.pop(number, None)
        self._leaving.pop(number, None)

    def _meant(self, selector: Selector) -> list[int]:
        return [*self.kinds.meant(selector), *([MIXED] if selector.everything and self._counts.get(MIXED) else ())]

    def _named(self, selector: Selector) -> set[int] | None:
        """Those of the entries that are named which are meant; None where that cannot be told."""
        if selector.older_than is not None:
            return None
        leaving = set().union(*self._leaving.values())
        named = {short(name) for name in selector.entry_ids if _is_id(name)}
        found = {
            name: self._rows[name] >> _BITS & _MASK for name in named if name in self._rows and name not in leaving
        }
        kinds = {kind: self.kinds.labels(kind) for kind in found.values()}
        if MIXED in kinds and selector.labelled:
            return None
        covered = {kind for kind, its in kinds.items() if kind == MIXED or (its is not None and selector.covers(its))}
        return {name for name, kind in found.items() if kind in covered}


def learn(connection: sqlite3.Connection, left: Iterable[Felled]) -> Index:
    """Of the rows of a file, of which these removals may have left some undone. Raises `sqlite3.Error`."""
    index = Index()
    kinds = connection.execute("SELECT number, since, labels FROM kind ORDER BY number").fetchall()
    rows = connection.execute("SELECT key, rowid, kind, size FROM entry")
    index.load(((number, told) for number, _, told in kinds), rows)
    for felled in left:
        index.strike(felled, {number for number, since, _ in kinds if since < felled.number})
    return index


def encode(its: Labels) -> bytes:
    """Labels as they are kept in the file."""
    return orjson.dumps([*its[:4], its.owner.hex(), its.credential.hex(), its.prefix])


def decode(told: bytes) -> Labels:
    """Raises `ValueError`, `TypeError` if there are none."""
    tags, knowledge, model, namespace, owner, credential, prefix = orjson.loads(told)
    return Labels(
        tuple(tags), tuple(knowledge), model, namespace, bytes.fromhex(owner), bytes.fromhex(credential), prefix
    )


def _is_id(name: str) -> bool:
    return len(name) == 32 and all(digit in "0123456789abcdef" for digit in name)
