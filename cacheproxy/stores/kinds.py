"""Entries told apart by their labels: all with the same labels are of one kind. So a removal by labels need not look at
entries: it strikes out kinds, and later entries with these labels are of a new one.

Kinds are bounded in number. Entries with labels beyond that are of the kind `MIXED`: which labels they have is not
known here.
"""

from typing import NamedTuple

from cacheproxy.core import controls
from cacheproxy.core.model import Entry
from cacheproxy.core.removal import Selector

MIXED = 0
MOST = 100_000
"""Kinds that are told apart; each takes some 0.5 KB."""


class Labels(NamedTuple):
    """What makes a kind."""

    tags: tuple[str, ...]
    knowledge: tuple[str, ...]
    model: str
    namespace: str
    owner: bytes
    credential: bytes
    prefix: str


def labels(entry: Entry) -> Labels:
    """Those of `entry`."""
    return Labels(
        entry.tags, entry.knowledge, entry.model, entry.namespace, entry.owner, entry.credential, entry.prefix
    )


class Kinds:
    """The kinds that there are now, by number."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._numbers: dict[Labels, int] = {}
        self._labels: dict[int, Labels] = {}
        self._named: dict[tuple[str, str], set[int]] = {}
        """By tag, and by knowledge base."""
        self._last = MIXED

    def __len__(self) -> int:
        return len(self._labels)

    def labels(self, number: int) -> Labels | None:
        """The labels of a kind that still gets entries."""
        return self._labels.get(number)

    def find(self, its: Labels) -> int | None:
        """The kind with these labels."""
        return self._numbers.get(its)

    def next(self) -> int:
        """The number of a kind that is to be added; `MIXED` if there are too many."""
        if len(self._labels) >= self.most:
            return MIXED
        self._last += 1
        return self._last

    def add(self, number: int, its: Labels) -> None:
        """From now on what has these labels is of this kind."""
        if number == MIXED:
            return
        self._last = max(self._last, number)
        self._numbers[its] = number
        self._labels[number] = its
        for name in _names(its):
            self._named.setdefault(name, set()).add(number)

    def meant(self, selector: Selector) -> list[int]:
        """The kinds, other than `MIXED`, with such labels as `selector` means."""
        if selector.everything:
            return list(self._labels)
        within = [self._some(wanted) for wanted in _wanted(selector) if wanted]
        among = min(within, key=len) if within else self._labels
        return [number for number in among if selector.covers(self._labels[number])]

    def strike(self, number: int) -> None:
        """Give this kind no more entries: what comes with its labels is of another."""
        its = self._labels.pop(number, None)
        if its is None:
            return
        if self._numbers.get(its) == number:
            del self._numbers[its]
        for name in _names(its):
            of_name = self._named.get(name)
            if of_name is not None:
                of_name.discard(number)
                if not of_name:
                    del self._named[name]

    def _some(self, names: list[tuple[str, str]]) -> set[int]:
        return set().union(*(self._named.get(name, ()) for name in names))


def _names(its: Labels) -> set[tuple[str, str]]:
    bases = {("kb", spoken) for base in its.knowledge for spoken in controls.spoken(base)}
    return {("tag", tag) for tag in its.tags} | bases


def _wanted(selector: Selector) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Names of which a kind must have one."""
    return [("tag", tag) for tag in selector.tags], [("kb", base) for base in selector.kb]
