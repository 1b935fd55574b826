"""Dates and times: months, weekdays, clocks, "yesterday". Days and years are numbers, and have their guard. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cacheproxy.core.lexicon import Word

_ALSO_WORDS = frozenset({"may", "march", "mar", "sat", "sun", "mon", "wed", "second", "mars", "mai", "dom", "sab", "do",
                         "so", "mi", "di", "fr", "sa", "avr", "set", "out", "dez", "abr", "ago", "ene"})  # fmt: skip
_NUMERIC = re.compile(r"(\d{1,4})[-/](\d{1,2})[-/](\d{1,4})")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_HOURS = {"noon": "12:00", "midnight": "0:00"}
_AT = frozenset({"at", "by", "until", "till", "before", "after", "from"})
_TURNS = {
    "last": ("last",), "past": ("last",), "previous": ("last",), "this": ("this",), "next": ("next",),
    "coming": ("next",),
}  # fmt: skip
"""What a word before a weekday or month says."""
_NEUTRAL = frozenset({"now", "today"})


@dataclass(frozen=True, slots=True)
class Dates:
    """`days`: months, weekdays and dates in digits; `clocks`: times of day; `relative`: groups like "yesterday";
    `used`: the places of the words they were read from."""

    days: frozenset[str]
    clocks: frozenset[str]
    relative: frozenset[str]
    used: frozenset[int]


def dates(words: Sequence[Word], names: frozenset[str]) -> Dates:
    """When the things that `words` tell are. `names`: words that are written as names."""
    days: set[str] = set()
    clocks: set[str] = set()
    relative: set[str] = set()
    used: set[int] = set()
    for at, word in enumerate(words):
        if not word.traits and not word.counts:
            continue
        text = word.text
        if text[0].isdigit():
            clock, end = _clock(words, at)
            if clock:
                clocks.add(clock)
                used.update(range(at, end))
            elif found := _NUMERIC.fullmatch(text):
                days.add(_numeric(found))
                used.add(at)
            continue
        for guard, group in word.traits:
            if guard == "time" and group in _HOURS and at and words[at - 1].text in _AT:
                clocks.add(_HOURS[group])
                used.add(at)
            elif guard == "time":
                relative.add(group)
            elif guard in {"month", "weekday"} and (text not in _ALSO_WORDS or text in names or _counted(words, at)):
                days.add(f"{guard} {group}")
                used.add(at)
                relative.update(_TURNS.get(words[at - 1].text, ()) if at else ())
    return Dates(frozenset(days), frozenset(clocks), frozenset(relative), frozenset(used))


def _counted(words: Sequence[Word], at: int) -> bool:
    """Whether there is a number right beside the word at `at`."""
    beside = (*words[max(0, at - 1) : at], *words[at + 1 : at + 2])
    return any(word.text[0].isdigit() or word.number for word in beside)


def _clock(words: Sequence[Word], at: int) -> tuple[str, int]:
    """The time of day that starts at `at` as hours and minutes, and its end; empty if there is none."""
    after = words[at + 1].text if at + 1 < len(words) else ""
    half = after if after in {"am", "pm"} else ""
    found = _CLOCK.fullmatch(words[at].text)
    if not found and not (half or after in {"oclock", "uhr", "点", "時", "点钟"}):
        return "", at
    text = found.group(1) if found else words[at].text
    if not text.isdigit() or not text.isascii() or int(text[:4]) > 24:
        return "", at
    hour = int(text) % 12 + (12 if half == "pm" else 0) if half else int(text)
    return f"{hour}:{found.group(2) if found else '00'}", at + (1 if found and not half else 2)


def _numeric(found: re.Match[str]) -> str:
    """A date in digits; of year, month and day if the year comes first, else as it stands."""
    parts = [part.lstrip("0") or "0" for part in found.groups()]
    return "-".join(parts) if len(found.group(1)) == 4 else "/".join(parts)


def dates_differ(asked: Dates, stored: Dates) -> str:
    """What two texts say of time that is not the same; empty if nothing."""
    for ours, theirs in ((asked.days, stored.days), (asked.clocks, stored.clocks)):
        if ours != theirs:
            return f"{', '.join(sorted(ours - theirs))} / {', '.join(sorted(theirs - ours))}"
    left, right = asked.relative - stored.relative, stored.relative - asked.relative
    if left and right and not (left <= _NEUTRAL and right <= _NEUTRAL):
        return f"{', '.join(sorted(left))} / {', '.join(sorted(right))}"
    return ""
