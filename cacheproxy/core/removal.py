"""Which stored answers a removal means, and which running ones it forbids to be stored.

A removal counts one up. What was asked for before it, and is one of those it means, does not stand after it, wherever
it is on its way: every request remembers the count at its arrival, and is asked again before its answer is stored or a
stored one is served.
"""

import math
from collections import deque
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import NamedTuple

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


@dataclass(frozen=True, slots=True)
class Selector:
    """Which answers are meant: those for which everything that is stated holds. Of `tags`, `kb` and `entry_ids` any
    one is enough; `kb` names a knowledge base in every version, or as ``name@version`` in one; `older_than` is an age
    in seconds; `changed_documents` spares those that name the documents they depend on (labels ``doc:<name>``) and
    none of these; `everything` holds for all."""

    tags: frozenset[str] = frozenset()
    kb: frozenset[str] = frozenset()
    model: str | None = None
    namespace: str | None = None
    entry_ids: frozenset[str] = frozenset()
    older_than: float | None = None
    changed_documents: frozenset[str] | None = None
    everything: bool = False

    def means(self, entry: Entry, now: float) -> bool:
        """Whether `entry` is one of them at `now`."""
        if self.tags and self.tags.isdisjoint(entry.tags):
            return False
        if self.kb and all(self.kb.isdisjoint(controls.spoken(base)) for base in entry.knowledge):
            return False
        if self.model is not None and entry.model != self.model:
            return False
        if self.namespace is not None and entry.namespace != self.namespace:
            return False
        if self.older_than is not None and now - entry.stored_at <= self.older_than:
            return False
        if self.changed_documents is not None and self._spares(entry.tags):
            return False
        return not self.entry_ids or key.entry_id(entry.key) in self.entry_ids

    def _spares(self, tags: tuple[str, ...]) -> bool:
        """Whether all documents that an answer depends on are named, and none of them changed."""
        named = [tag.removeprefix(DOCUMENT) for tag in tags if tag.startswith(DOCUMENT)]
        changed = self.changed_documents or frozenset()
        return bool(named) and changed.isdisjoint(named)


@dataclass(frozen=True, slots=True)
class Order:
    """A removal that was asked for."""

    selector: Selector
    removal: Removal


@dataclass(frozen=True, slots=True)
class BadOrder:
    """What is wrong with one: the field, and what it must be."""

    name: str
    expected: str


def read(document: object) -> Order | BadOrder:
    """The order in the JSON `document` ``{selector, mode, dry_run, confirm}``."""
    if not isinstance(document, dict):
        return BadOrder("body", "a JSON object")
    unknown = document.keys() - {"selector", "mode", "dry_run", "confirm"}
    if unknown:
        return BadOrder(min(unknown)[:64], "left out: known are selector, mode, dry_run, confirm")
    mode, dry = document.get("mode", "hard"), document.get("dry_run", False)
    if mode not in ("hard", "soft"):
        return BadOrder("mode", "hard or soft")
    if not isinstance(dry, bool):
        return BadOrder("dry_run", "true or false")
    selector = _selector(document.get("selector"))
    if isinstance(selector, BadOrder):
        return selector
    if selector.everything and not dry and document.get("confirm") != CONFIRMATION:
        return BadOrder("confirm", f'"{CONFIRMATION}", because the selector means everything')
    return Order(selector, Removal.NONE if dry else Removal(mode))


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


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _namespace(value: object) -> str | None:
    return controls.escaped(value) if isinstance(value, str) else None


def _age(value: object) -> float | None:
    good = type(value) in (int, float) and 0 <= value <= controls.GREATEST  # type: ignore[operator] # a number
    return float(value) if good else None  # type: ignore[arg-type]


_READ = {
    "tags": (_names, "a name or a list of names"),
    "kb": (_names, "a name or a list of names"),
    "model": (_text, "a text"),
    "namespace": (_namespace, "a text"),
    "entry_ids": (_names, "an id or a list of ids"),
    "older_than": (_age, "a number of seconds, 0 or more"),
    "changed_documents": (_names, "a name or a list of names"),
}
if _READ.keys() | {"everything"} != {field.name for field in fields(Selector)}:
    raise AssertionError("a field of the selector cannot be asked for")


class _Known(NamedTuple):
    number: int
    selector: Selector
    now: float
    at: float


class Removals:
    """The removals that are known here, counted."""

    def __init__(self) -> None:
        self._latest: deque[_Known] = deque(maxlen=REMEMBERED)
        self._running: set[int] = set()
        self.epoch = 0
        """How many there have been."""

    def __repr__(self) -> str:
        return f"<Removals {self.epoch}>"

    @property
    def settled(self) -> int:
        """The number up to which all have been carried out: what a store gives from now on stands against those."""
        return min(self._running) - 1 if self._running else self.epoch

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

    def begin(self, selector: Selector, now: float) -> int:
        """The same, for a removal that a store is still to carry out. Use `finish` in every case."""
        number = self.add(selector, now)
        self._running.add(number)
        return number

    def finish(self, number: int) -> None:
        """It has been carried out, or given up: then nothing was promised."""
        self._running.discard(number)

    def stands(self, entry: Entry, epoch: int) -> bool:
        """Whether `entry`, which a request of this epoch asked for or found, may still be stored or served."""
        if epoch == self.epoch:
            return True
        if self.epoch - epoch > len(self._latest):
            return False
        return not any(known.number > epoch and known.selector.means(entry, known.now) for known in self._latest)
