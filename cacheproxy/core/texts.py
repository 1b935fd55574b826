"""What each rule changes in one system text, as edits: line ends, Unicode, clocks, ids, the operator's patterns. Pure.

Values that are moved leave a mark where they stood and go, under that mark, to the end of the last system text: the
model still knows them, and everything before them stays the same from call to call.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Protocol

from cacheproxy.core import stamps
from cacheproxy.core.idents import idents
from cacheproxy.core.literal import Edit, edit_text
from cacheproxy.core.moments import moments

LONGEST = 2**17
"""Characters; in longer texts nothing is searched for: this is done while other callers wait, and the worst text of
this length takes some tenths of a second."""
MOST_MATCHES = 1000
"""Matches of one pattern in one text that are changed."""
MOVED = "[moved here from above]"
"""The line under which moved values stand."""

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]++")
_NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")
_NOTE = re.compile(r"^\[(\w+) (\d{1,6})\]: ", re.MULTILINE | re.ASCII)


class Clock(StrEnum):
    """What is done with times and dates."""

    OFF = "off"
    COARSEN = "coarsen"
    MOVE = "move"


class Unit(StrEnum):
    """What times are coarsened to."""

    DAY = "day"
    HOUR = "hour"


class Ids(StrEnum):
    """What is done with ids of one request, session or trace."""

    OFF = "off"
    MOVE = "move"
    DROP = "drop"


class Action(StrEnum):
    """What is done with what a pattern matches."""

    MOVE = "move"
    COARSEN = "coarsen"
    DROP = "drop"
    REPLACE = "replace"


class Regex(Protocol):
    """A compiled regular expression of an engine that takes linear time."""

    def finditer(self, text: str) -> Iterator[Any]:
        """Its matches from left to right."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """An expression of the operator's. `text`: what `replace` puts in place of a match."""

    regex: Regex
    action: Action
    text: str = ""


def moved_from(text: str) -> int:
    """Where the values begin that were moved to the end of `text`; its length if there are none."""
    if text.startswith(f"{MOVED}\n"):
        return 0
    at = text.rfind(f"\n\n{MOVED}\n")
    return len(text) if at < 0 else at


class Tail:
    """The values moved to the end of the last system text in one round, each under its mark."""

    def __init__(self, last: str) -> None:
        known = last[moved_from(last) :]
        self._begun = bool(known)
        self._blank = not last
        self._numbers: dict[str, int] = {}
        for kind, number in _NOTE.findall(known):
            self._numbers[kind] = max(self._numbers.get(kind, 0), int(number))
        self.notes: list[tuple[str, str]] = []
        """The rule and the line of each."""

    def move(self, rule: str, kind: str, value: str) -> str:
        """Take in `value`; the mark to leave in its place. Marks are numbered by place, not by value: equal values
        in one call may differ in the next."""
        number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
        mark = f"[{kind} {number}]"
        self.notes.append((rule, f"{mark}: {value}"))
        return mark

    @property
    def addition(self) -> str:
        """What is to be put at the end of the last system text."""
        lines = "\n".join(line for _, line in self.notes)
        if self._begun:
            return f"\n{lines}"
        return f"{MOVED}\n{lines}" if self._blank else f"\n\n{MOVED}\n{lines}"


def composed(text: str) -> list[Edit]:
    """Unicode normalisation form C (UAX 15)."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return []
    # An ASCII character composes with what follows it, never with what precedes it: such stretches compose alone.
    spans = [(max(0, m.start() - 1), m.end()) for m in _BEYOND_ASCII.finditer(text)]
    clusters = [(start, end, unicodedata.normalize("NFC", text[start:end])) for start, end in spans]
    return [(start, end, new) for start, end, new in clusters if new != text[start:end]]


def clock(text: str, how: Clock, unit: Unit, tail: Tail) -> list[Edit]:
    """Times and dates coarsened or moved."""
    end = moved_from(text)
    if end > LONGEST:
        return []
    found = [m for m in moments(text, dates=how is Clock.MOVE) if m.end <= end]
    if how is Clock.MOVE:
        return [(m.start, m.end, tail.move("clock", "time", text[m.start : m.end])) for m in found]
    edits = [(m.start, m.end, m.day if unit is Unit.DAY else m.hour) for m in found]
    return [(start, end, new) for start, end, new in edits if new != text[start:end]]


def ids(text: str, how: Ids, tail: Tail) -> list[Edit]:
    """Ids moved or dropped."""
    limit = moved_from(text)
    if limit > LONGEST:
        return []
    spans = [(start, end) for start, end in idents(text) if end <= limit]
    if how is Ids.DROP:
        return [(start, end, "") for start, end in spans]
    return [(start, end, tail.move("ids", "id", text[start:end])) for start, end in spans]


def matched(text: str, pattern: Pattern, unit: Unit, tail: Tail) -> list[Edit]:
    """What the operator's pattern matches, changed as it says."""
    limit = moved_from(text)
    if limit > LONGEST:
        return []
    edits: list[Edit] = []
    for match in islice(pattern.regex.finditer(text[:limit]), MOST_MATCHES):
        start, end = match.span()
        value = text[start:end]
        if not value:
            continue
        match pattern.action:
            case Action.MOVE:
                new = tail.move("patterns", "value", value)
            case Action.COARSEN:
                new = coarser(value, unit)
            case Action.DROP:
                new = ""
            case Action.REPLACE:
                new = pattern.text
        if new != value:
            edits.append((start, end, new))
    return edits


def coarser(value: str, unit: Unit) -> str:
    """`value` with its times coarsened; without any, with its numbers rounded down to their first digit."""
    found = moments(value)
    if found:
        return edit_text(value, [(m.start, m.end, m.day if unit is Unit.DAY else m.hour) for m in found])
    if (date := stamps.DATE.search(value)) and stamps.is_possible(date):
        return value  # a day, which is coarse already
    return _NUMBER.sub(lambda m: m.group()[0] + re.sub(r"\d", "0", m.group()[1:]), value)
