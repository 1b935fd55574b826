"""What rules change in one system text: Unicode forms, clocks, ids, what the operator's patterns match. Pure.

Values that are moved leave a mark where they stood and go, under that mark, to the end of the last system text: the
model still knows them, and everything before them stays the same from call to call.
"""

import re
import unicodedata
from bisect import bisect_left
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

    def finditer(self, text: str | bytes) -> Iterator[Any]:
        """Its matches from left to right; bytes are UTF-8."""


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


@dataclass(frozen=True, slots=True)
class Found:
    """A place (half-open, in characters) that a rule names, and what is to stand there instead; None: it is moved, and
    `kind` is what its mark is called."""

    rule: str
    start: int
    end: int
    new: str | None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched for in system texts."""

    clock: Clock = Clock.OFF
    unit: Unit = Unit.DAY
    ids: Ids = Ids.OFF
    patterns: tuple[Pattern, ...] = ()


NOTHING = Search()


def search(text: str, wanted: Search) -> list[Found]:
    """What `wanted` finds in `text`: in order, not overlapping. Where two rules want the same place, clocks come before
    ids and those before patterns; nothing that would stay as it is."""
    if wanted == NOTHING or len(text) > LONGEST:
        return []
    taken: list[Found] = []
    starts: list[int] = []
    for one in (*_clocks(text, wanted), *_ids(text, wanted), *_matches(text, wanted)):
        at = bisect_left(starts, one.end)
        if text[one.start : one.end] != one.new and not (at and taken[at - 1].end > one.start):
            starts.insert(at, one.start)
            taken.insert(at, one)
    return taken


def _clocks(text: str, wanted: Search) -> Iterator[Found]:
    if wanted.clock is Clock.OFF:
        return
    for moment in moments(text, dates=wanted.clock is Clock.MOVE):
        coarse = moment.day if wanted.unit is Unit.DAY else moment.hour
        yield Found("clock", moment.start, moment.end, None if wanted.clock is Clock.MOVE else coarse, "time")


def _ids(text: str, wanted: Search) -> Iterator[Found]:
    for start, end in idents(text) if wanted.ids is not Ids.OFF else ():
        yield Found("ids", start, end, None if wanted.ids is Ids.MOVE else "", "id")


def _matches(text: str, wanted: Search) -> Iterator[Found]:
    for pattern in wanted.patterns:
        for match in islice(pattern.regex.finditer(text), MOST_MATCHES):
            start, end = match.span()
            if start < end:
                new = pattern.text if pattern.action is Action.REPLACE else ""
                new = coarser(text[start:end], wanted.unit) if pattern.action is Action.COARSEN else new
                yield Found("patterns", start, end, None if pattern.action is Action.MOVE else new, "value")


def coarser(value: str, unit: Unit) -> str:
    """`value` with its times coarsened; without any, with its numbers rounded down to their first digit."""
    found = moments(value)
    if found:
        return edit_text(value, [(m.start, m.end, m.day if unit is Unit.DAY else m.hour) for m in found])
    if (date := stamps.DATE.search(value)) and stamps.is_possible(date):
        return value  # a day, which is coarse already
    return _NUMBER.sub(lambda m: m.group()[0] + re.sub(r"\d", "0", m.group()[1:]), value)
