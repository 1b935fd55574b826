"""The moments that a text says: dates with a time of day, and times of day that it calls the present. Pure.

A moment is everything that is said of it in one go: the date, one clock or several joined ones, the zone. So nothing
that is left after it was coarsened reads as a moment again. `moments` in a coarsened text finds nothing new.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from cacheproxy.core import quoted, stamps
from cacheproxy.core.chunks import KEPT, REMEMBERED, chunks
from cacheproxy.core.cues import Cues

_COLON = re.compile(r":(?<=[0-9]:)[0-5][0-9]")
_COMPACT = re.compile(r"T(?<=[0-9]{8}T)[0-2][0-9]")
_YEAR = re.compile(r"20(?<![0-9A-Za-z]20)[0-9]{2}(?![0-9])")
_OPENING, _CLOSING = re.compile(r"(?<!\w)\(\Z"), re.compile(r"\)(?!\w)")
_AT = re.compile(r"\bat \Z", re.IGNORECASE)
_MOST = 16
"""So many clocks a moment has at the most: more are a table."""
_DIGIT = re.compile("[0-9]")
_JOIN = 10
"""A year's last digit is nearer than this to the clock that is joined to it."""
_BEFORE = 64
"""No date with its weekday and what joins it to a clock is longer, in characters."""
_AFTER = 8
"""A month and a day after their year, and what shows that they end there."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment's place in its text (half-open, in characters) and what says it to the day and to the hour. `day` is
    empty where no date is said."""

    start: int
    end: int
    day: str
    hour: str


@dataclass(frozen=True, slots=True)
class _Chain:
    """Clocks that are joined by words or signs: one, a list, a range. `hour`: their text to the hour."""

    start: int
    end: int
    hour: str
    first: re.Match[str] | None
    count: int
    ranged: bool
    whole: bool
    """Each has seconds or a zone."""


@dataclass(frozen=True, slots=True)
class _Dated:
    """A moment with a date, and how many clocks it has."""

    moment: Moment
    count: int


def moments(text: str, *, dates: bool = False) -> list[Moment]:
    """The moments in `text`, sorted and disjoint, without those that `quoted` says are only shown.

    `dates`: also bare dates that the words before them on their line call the present; both their forms are their text.
    """
    found = [
        replace(moment, start=at + moment.start, end=at + moment.end)
        for at, chunk in chunks(text)
        for moment in (_remembered(chunk, dates) if len(chunk) <= KEPT else _said(chunk, dates))
    ]
    apart: list[Moment] = []
    for moment in found:
        if (not apart or moment.start >= apart[-1].end) and not quoted.announced(text, moment.start):
            apart.append(moment)
    return quoted.outside(text, apart, lambda moment: (moment.start, moment.end))


def _said(chunk: str, dates: bool) -> list[Moment]:
    """The moments in whole lines, also those that are only shown. What one is is decided by its line alone."""
    found = [*_clocks(chunk), *_compact(chunk), *(_days(chunk) if dates else ())]
    return sorted(found, key=lambda moment: moment.start)


_remembered = lru_cache(REMEMBERED)(_said)


def _clocks(text: str) -> Iterator[Moment]:
    """The moments that have a clock with colons."""
    done = 0
    cues = Cues(text)
    lefts: list[_Chain] = []
    for colon in _COLON.finditer(text):
        at = colon.start()
        start = at - 2 if at > 1 and text[at - 2] in "0123456789" else at - 1
        if start < done:
            continue
        chain = _longer(text, start, start, "", first=True)
        if not chain.first:
            continue
        low = max(done, start - _BEFORE)
        done = chain.end
        dated = _dated(text, chain, low)
        if dated:
            done = dated.moment.end
            dated = _with(text, lefts, dated)
        moment = dated.moment if dated else _bare(text, chain, chain.first, low, cues)
        if (dated or chain).count <= _MOST and moment:
            cues.skip(moment.start, moment.end)
            yield moment
        elif stamps.FIRST.match(text, start):
            if lefts and not stamps.TO_DATE.fullmatch(text, lefts[-1].end, start):
                lefts.clear()
            lefts.append(chain)


def _with(text: str, lefts: list[_Chain], dated: _Dated) -> _Dated:
    """`dated` from the start of `lefts` on: chains that are no moments, but would be one before a bare date there."""
    moment = dated.moment
    if not lefts or not stamps.TO_DATE.fullmatch(text, lefts[-1].end, moment.start):
        return dated
    ends = [*(left.start for left in lefts[1:]), moment.start]
    hours = [left.hour + text[left.end : end] for left, end in zip(lefts, ends, strict=True)]
    count = dated.count + sum(left.count for left in lefts)
    return _Dated(Moment(lefts[0].start, moment.end, moment.day, "".join([*hours, moment.hour])), count)


def _longer(text: str, start: int, end: int, hour: str, *, first: bool = False) -> _Chain:
    """What stands from `start` to `end`, to the hour `hour`, with every clock that is joined to it. `first`: the first
    clock is at `end` itself."""
    clocks: list[re.Match[str]] = []
    hours = [hour]
    ranged = False
    join = None
    while first or (join := stamps.MORE.match(text, end)):
        between = join.group() if join else ""
        clock = stamps.CLOCK.match(text, end + len(between))
        if not clock or not stamps.is_half_day(clock):
            break
        closing = _closing(text, between, clock.end())
        if closing is None:
            break
        clocks.append(clock)
        hours += between, stamps.to_the_hour(clock), closing
        end = clock.end() + len(closing)
        ranged = ranged or between.strip() not in {"", "(", ",", "/", "|"}
        first = False
    whole = all(clock["second"] or clock["zone"] for clock in clocks)
    return _Chain(start, end, "".join(hours), clocks[0] if clocks else None, len(clocks), ranged, whole)


def _closing(text: str, before: str, end: int) -> str | None:
    """What closes at `end` the parenthesis that `before` ends with, if it does; None if nothing closes it there."""
    if not before.endswith("("):
        return ""
    return ")" if _CLOSING.match(text, end) else None


def _dated(text: str, chain: _Chain, low: int) -> _Dated | None:
    """The moment of a chain with a date before it (not before `low`), after it or around it."""
    near = text[max(low, chain.start - _JOIN) : chain.start]
    date = stamps.BEFORE.search(text, low, chain.start) if _DIGIT.search(near) else None
    if date and stamps.is_possible(date):
        closing = _closing(text, date.group(), chain.end)
        return None if closing is None else _moment(text, date.start(), chain, closing, date["date"])
    year = stamps.YEAR.match(text, chain.end)
    date = stamps.YEARLESS.search(text, low, chain.start) if year else None
    if year and date and stamps.is_possible(date, int(year["year"])):
        return _moment(text, date.start(), chain, year.group(), f"{date['date']} {year['year']}")
    date = stamps.AFTER.match(text, chain.end)
    if not date or not stamps.is_possible(date) or not stamps.FIRST.match(text, chain.start):
        return None
    start, day = chain.start, date["date"]
    if date["on"] and _AT.search(text[max(0, start - 4) : start]):
        start, day = start - 3, f"{date['on']} {day}"
    return _moment(text, start, chain, date.group(), day)


def _moment(text: str, start: int, chain: _Chain, rest: str, day: str) -> _Dated:
    """The moment from `start` over the chain and the `rest` after it, with all clocks that are joined to that."""
    hour = text[start : chain.start] + chain.hour + rest
    whole = _longer(text, start, chain.end + len(rest), hour)
    return _Dated(Moment(start, whole.end, day, whole.hour), chain.count + whole.count)


def _bare(text: str, chain: _Chain, clock: re.Match[str], low: int, cues: Cues) -> Moment | None:
    """The moment of a chain without a date that the words before it call the present: no range, no list of times.
    `clock`: its first one."""
    if chain.count > 1 and (chain.ranged or not chain.whole):
        return None
    if not cues.may_call(chain.start) or not stamps.FIRST.match(text, chain.start):
        return None
    if not clock["second"] and clock["zone"].lstrip().startswith("-"):
        return None
    date = stamps.YEARLESS.search(text, low, chain.start) or stamps.WEEKDAY.search(text, low, chain.start)
    start, day = (date.start(), date["date"]) if date and stamps.is_possible(date) else (chain.start, "")
    if not cues.call_present(start, plain=not (clock["second"] or clock["half"])):
        return None
    end, hour = chain.end, text[start : chain.start] + chain.hour
    if not day and _OPENING.search(text[max(0, start - 2) : start]) and _CLOSING.match(text, end):
        start, end, hour = start - 1, end + 1, f"({hour})"
    return Moment(start, end, day, hour)


def _compact(text: str) -> Iterator[Moment]:
    """The moments of ISO 8601's basic form."""
    for sign in _COMPACT.finditer(text):
        found = stamps.COMPACT.match(text, sign.start() - 8)
        if found and stamps.is_possible(found):
            hour = f"{found['date']}T{found['hour']}00{'00' if found['second'] else ''}{found['zone'] or ''}"
            yield Moment(found.start(), found.end(), found["date"], hour)


def _days(text: str) -> Iterator[Moment]:
    """The bare dates that the words before them call today's."""
    done = 0
    cues = Cues(text, days=True)
    for year in _YEAR.finditer(text):
        date = stamps.DATE.search(text, max(done, year.start() - _BEFORE), year.end() + _AFTER)
        while date and date.end() < year.end():
            date = stamps.DATE.search(text, date.end(), year.end() + _AFTER)
        if not date or date.start() > year.start() or not stamps.is_possible(date):
            continue
        done = date.end()
        if cues.call_present(date.start(), plain=True):
            yield Moment(date.start(), done, date.group(), date.group())
