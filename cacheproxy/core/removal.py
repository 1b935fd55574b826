"""Which stored answers a removal means, and which running ones it forbids to be stored.

A removal counts one up. What was asked for before it, and is one of those it means, does not stand after it, wherever
it is. On its way: every request remembers the count at its arrival, and is asked again before its answer is stored or
a stored one is served. In the store: every entry carries the count at which it was put, and is judged when it is taken
out, as long as the store may still hold something that was meant.
"""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from itertools import islice
from typing import NamedTuple, Protocol

from cacheproxy.core import controls, key
from cacheproxy.core.model import Entry

REMEMBERED = 1024
"""Removals that running requests are compared with one by one; what arrived before the oldest of them is taken to be
meant by one that is forgotten."""
DOCUMENT = "doc:"
"""What a label that names a document begins with."""
CONFIRMATION = "purge all"


class Removal(StrEnum):
    """What becomes of the answers that are meant."""

    HARD = "hard"  # gone
    SOFT = "soft"  # past their lifetime from now on
    NONE = "none"  # only counted


class Labelled(Protocol):
    """What labels alone say of an entry."""

    @property
    def tags(self) -> tuple[str, ...]: ...
    @property
    def knowledge(self) -> tuple[str, ...]: ...
    @property
    def model(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def owner(self) -> bytes: ...
    @property
    def credential(self) -> bytes: ...
    @property
    def prefix(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Selector:
    """Which answers are meant: those for which everything that is stated holds. Of several names in a set any one is
    enough; `kb` names a knowledge base in every version, or as ``name@version`` in one; `older_than` is an age in
    seconds; `changed_documents` spares those that name the documents they depend on (labels ``doc:<name>``) and none of
    these; `prefix` names families of prompts; `scope` whose the answers are, or with which credential they were
    fetched, in hexadecimal digits; `everything` holds for all."""

    tags: frozenset[str] = frozenset()
    kb: frozenset[str] = frozenset()
    model: str | None = None
    namespace: str | None = None
    entry_ids: frozenset[str] = frozenset()
    older_than: float | None = None
    changed_documents: frozenset[str] | None = None
    prefix: frozenset[str] = frozenset()
    scope: frozenset[str] = frozenset()
    everything: bool = False

    @property
    def by_labels(self) -> bool:
        """Whether labels alone tell what is meant."""
        return self.older_than is None and not self.entry_ids

    @property
    def labelled(self) -> bool:
        """Whether it states any labels."""
        return replace(self, entry_ids=frozenset(), older_than=None) != Selector()

    def means(self, entry: Entry, now: float) -> bool:
        """Whether `entry` is one of them at `now`."""
        if self.older_than is not None and now - entry.stored_at <= self.older_than:
            return False
        return self.covers(entry) and (not self.entry_ids or key.entry_id(entry.key) in self.entry_ids)

    def covers(self, entry: Labelled) -> bool:
        """Whether its labels are those of one that is meant."""
        if self.tags and self.tags.isdisjoint(entry.tags):
            return False
        if self.kb and all(self.kb.isdisjoint(controls.spoken(base)) for base in entry.knowledge):
            return False
        if self.model is not None and entry.model != self.model:
            return False
        if self.namespace is not None and entry.namespace != self.namespace:
            return False
        if self.prefix and entry.prefix not in self.prefix:
            return False
        if self.scope and self.scope.isdisjoint((entry.owner.hex(), entry.credential.hex())):
            return False
        return self.changed_documents is None or not self._spares(entry.tags)

    def _spares(self, tags: tuple[str, ...]) -> bool:
        """Whether all documents that an answer depends on are named, and none of them changed."""
        named = [tag.removeprefix(DOCUMENT) for tag in tags if tag.startswith(DOCUMENT)]
        changed = self.changed_documents or frozenset()
        return bool(named) and changed.isdisjoint(named)


@dataclass(frozen=True, slots=True)
class Order:
    """A removal that was asked for. `wait`: whether to wait until what is meant has left the store; None: only where it
    cannot be counted before."""

    selector: Selector
    removal: Removal
    wait: bool | None = None


@dataclass(frozen=True, slots=True)
class BadOrder:
    """What is wrong with one: the field, and what it must be."""

    name: str
    expected: str


def read(document: object) -> Order | BadOrder:
    """The order in the JSON `document` ``{selector, mode, dry_run, confirm, wait}``."""
    if not isinstance(document, dict):
        return BadOrder("body", "a JSON object")
    unknown = document.keys() - {"selector", "mode", "dry_run", "confirm", "wait"}
    if unknown:
        return BadOrder(min(unknown)[:64], "left out: known are selector, mode, dry_run, confirm, wait")
    mode, dry, wait = document.get("mode", "hard"), document.get("dry_run", False), document.get("wait")
    if mode not in ("hard", "soft"):
        return BadOrder("mode", "hard or soft")
    if not isinstance(dry, bool):
        return BadOrder("dry_run", "true or false")
    if not isinstance(wait, bool | None):
        return BadOrder("wait", "true or false")
    selector = _selector(document.get("selector"))
    if isinstance(selector, BadOrder):
        return selector
    if selector.everything and not dry and document.get("confirm") != CONFIRMATION:
        return BadOrder("confirm", f'"{CONFIRMATION}", because the selector means everything')
    return Order(selector, Removal.NONE if dry else Removal(mode), wait)


def _selector(given: object) -> Selector | BadOrder:
    if not isinstance(given, dict) or not given:
        return BadOrder("selector", "an object that states at least one thing")
    named = dict(given)
    everything = named.pop("all", None)
    if everything not in (None, True) or (everything and named):
        return BadOrder("selector.all", "true, alone")
    if everything:
        return Selector(everything=True)
    values: dict[str, object] = {}
    for name, value in named.items():
        read_one = _READ.get(name)
        if read_one is None:
            return BadOrder(f"selector.{name[:64]}", f"left out: known are {', '.join(_READ)}, all")
        good = read_one[0](value)
        if good is None:
            return BadOrder(f"selector.{name}", read_one[1])
        values[name] = good
    return Selector(**values)  # type: ignore[arg-type] # each was read as its field's type


def _names(value: object) -> frozenset[str] | None:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not given or not all(isinstance(name, str) and name for name in given):
        return None
    return frozenset(given)


def _fingerprints(value: object) -> frozenset[str] | None:
    names = _names(value)
    good = names and all(len(name) == 2 * key.FINGERPRINT_BYTES and not set(name) - _DIGITS for name in names)
    return names if good else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _namespace(value: object) -> str | None:
    return controls.escaped(value) if isinstance(value, str) else None


def _age(value: object) -> float | None:
    good = type(value) in (int, float) and 0 <= value <= controls.GREATEST  # type: ignore[operator] # a number
    return float(value) if good else None  # type: ignore[arg-type]


_DIGITS = frozenset("0123456789abcdef")
_READ = {
    "tags": (_names, "a name or a list of names"),
    "kb": (_names, "a name or a list of names"),
    "model": (_text, "a text"),
    "namespace": (_namespace, "a text"),
    "entry_ids": (_names, "an id or a list of ids"),
    "older_than": (_age, "a number of seconds, 0 or more"),
    "changed_documents": (_names, "a name or a list of names"),
    "prefix": (_names, "the id of a family of prompts or a list of these"),
    "scope": (_fingerprints, "32 hexadecimal digits or a list of these"),
}
if _READ.keys() | {"everything"} != {field.name for field in fields(Selector)}:
    raise AssertionError("a field of the selector cannot be asked for")


class _Known(NamedTuple):
    number: int
    selector: Selector
    now: float
    at: float


class Felled(NamedTuple):
    """A removal whose entries the store may still hold. `number`: as the store counts, and entries carry it; `era`: of
    which count, where a store can begin to count anew. The same number of another era is another removal."""

    number: int
    selector: Selector
    removal: Removal
    now: float
    era: bytes = b""


class Removals:
    """The removals that are known here, counted."""

    def __init__(self) -> None:
        self._latest: deque[_Known] = deque(maxlen=REMEMBERED)
        self._closed: deque[Felled] = deque(maxlen=REMEMBERED)
        self.epoch = 0
        """How many there have been."""
        self.open: dict[int, Felled] = {}
        """Those with which what comes out of the store has to be compared, by number."""
        self.closings = 0
        """How many of them have left nothing in the store."""

    def __repr__(self) -> str:
        return f"<Removals {self.epoch}>"

    def resume(self, start: int, left: Iterable[Felled]) -> None:
        """Count on from `start`; what these mean may still be in the store."""
        self.epoch = max(self.epoch, start)
        for felled in left:
            self.begin(felled)

    def add(self, selector: Selector, now: float, at: float = math.inf) -> int:
        """From here on, what `selector` means and was asked for before does not stand; the number of this removal.
        `at`: when it was ordered at the latest, by the monotonic clock, if it was learnt of only later."""
        self.epoch += 1
        self._latest.append(_Known(self.epoch, selector, now, at))
        return self.epoch

    def epoch_at(self, arrived: float) -> int:
        """How many there had certainly been at a time of the monotonic clock, whether they were known then or not."""
        for known in reversed(self._latest):
            if known.at < arrived:
                return known.number
        return 0

    def begin(self, felled: Felled) -> None:
        """The store may hold what is meant, until this is finished."""
        self.open[felled.number] = felled

    def finish(self, number: int) -> None:
        """The store holds nothing any more that this one means. What was taken out before is still judged by it."""
        if (felled := self.open.pop(number, None)) is not None:
            self._closed.append(felled)
            self.closings += 1

    def judge(self, entry: Entry, closings: int) -> Entry | None:
        """What the removals leave of `entry`, which the store gave to a look that began when there had been so many
        `closings`."""
        late = self.closings - closings
        if late > len(self._closed):
            return None
        for felled in (*self.open.values(), *islice(reversed(self._closed), late)):
            if entry.epoch < felled.number and felled.selector.means(entry, felled.now):
                if felled.removal is not Removal.SOFT:
                    return None
                entry = entry.past(felled.now)
        return entry

    def stands(self, entry: Entry, epoch: int) -> bool:
        """Whether `entry`, which a request of this epoch asked for or found, may still be stored or served."""
        if epoch == self.epoch:
            return True
        if self.epoch - epoch > len(self._latest):
            return False
        return not any(known.number > epoch and known.selector.means(entry, known.now) for known in self._latest)
