"""What of a system text is likely to be another from call to call: times, ids, lines with nonces. Pure."""

import re
from dataclasses import dataclass
from enum import StrEnum

from cacheproxy.core import quoted
from cacheproxy.core.idents import idents
from cacheproxy.core.moments import moments
from cacheproxy.core.noise import NONCES, nonce_lines
from cacheproxy.core.texts import moved_from

AROUND = 160
"""Characters before and behind a place that are looked at to tell what stands there."""
MOST_FENCES = 1000
BEHIND = 4096
"""Characters behind it that are looked at to tell whether it is part of something that is only shown."""
_BREAK = re.compile(r"\s")


class Kind(StrEnum):
    """What makes two prompts differ. All but the last are the names of the rules that mend it in a system text."""

    TOOLS = "tools"
    NEWLINES = "newlines"
    UNICODE = "unicode"
    NONCES = "nonces"
    CLOCK = "clock"
    IDS = "ids"
    TEXT = "text"


TOOL_NOISE = "tool_noise"
"""The rule that mends times and ids in descriptions of tools."""
SHOWN = frozenset({Kind.NONCES, Kind.CLOCK, Kind.IDS})
"""Kinds that are noise by their form, so that they may be shown to an operator."""


@dataclass(frozen=True, slots=True)
class Volatile:
    """A place in a text (half-open, in characters) and what stands there. `is_date`: a day without a time, so that it
    cannot be made coarser."""

    start: int
    end: int
    kind: Kind
    is_date: bool = False


def volatile(text: str, names: tuple[str, ...] = NONCES) -> list[Volatile]:
    """Everything volatile in `text`, sorted and disjoint: lines at its very head that have one of `names`, times, and
    ids; but for what was moved to its end."""
    heading = nonce_lines(text, names)
    start, end = heading[-1][1] if heading else 0, moved_from(text)
    found = [Volatile(*span, Kind.NONCES) for span in heading]
    timed = [
        Volatile(m.start, m.end, Kind.CLOCK, m.day == m.hour == text[m.start : m.end])
        for m in moments(text, dates=True)
    ]
    known = sorted([*timed, *(Volatile(*span, Kind.IDS) for span in idents(text))], key=lambda one: one.start)
    for one in known:
        if start <= one.start and one.end <= end:
            found.append(one)
            start = one.end
    return found


def volatile_at(text: str, at: int) -> Volatile | None:
    """The time or id that `at` is in, or right behind. Looks only at what stands around it: in the midst of code or of
    a document it finds what `volatile` leaves alone (see `is_said`)."""
    low = text.rfind("\n", max(0, at - 2 * AROUND), max(0, at - AROUND // 2)) + 1
    if not low and at > 2 * AROUND:
        low = found.end() if (found := _BREAK.search(text, at - AROUND, at)) else at - AROUND
    # Half of a pair of fences would turn inside out what is code.
    fence = max(text.rfind("```", low, at), text.rfind("~~~", low, at))
    low = fence + 3 if fence >= 0 else low
    high = found.start() if (found := _BREAK.search(text, at + AROUND, at + 2 * AROUND)) else at + AROUND
    spans = (Volatile(low + one.start, low + one.end, one.kind, one.is_date) for one in volatile(text[low:high], ()))
    return next((one for one in spans if one.start <= at <= one.end), None)


def is_said(text: str, start: int, end: int) -> bool:
    """Whether what stands there is said, not only shown, as far as what stands before and not far behind tells. In a
    text of more than `MOST_FENCES` pieces of code it is taken for shown."""
    if text.count("```", 0, end) + text.count("~~~", 0, end) > 2 * MOST_FENCES:
        return False
    return bool(quoted.outside(text[: end + BEHIND], [(start, end)], lambda place: place))
