"""What a key may use in a minute, and how it stands. Pure.

The window moves with the time: what was used counts for a minute from then on. It is kept in slots, one for each second
of the clock in which anything was used, and a slot counts as a whole until the latest of it is a minute old: so never
more than the limit is used in any minute, a window has a fixed size whatever is used, and it is known when there is
room again.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cacheproxy.core.model import Fields

WINDOW = 60.0
"""Seconds for which a use counts."""
NAME_BYTES = 16
_LINE = b"x-ratelimit-"


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be used in a window; 0 for as much as one likes."""

    requests: int = 0
    tokens: int = 0

    def __bool__(self) -> bool:
        """Whether anything is limited."""
        return bool(self.requests or self.tokens)


NONE = Limits()


class Slot(NamedTuple):
    """What was used in one second of a clock: the latest of it `at` that time, in seconds."""

    second: int
    at: float
    requests: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Level:
    """How one kind stands. `wait`: seconds until there is room again, 0 if there is; `clears`: until nothing counts any
    more."""

    kind: str
    limit: int
    used: int
    wait: float
    clears: float


@dataclass(frozen=True, slots=True)
class Usage:
    """What came of a request to be let through: how each kind that is limited stands, the request counted if it was
    `admitted`, and in which slot it is counted then."""

    admitted: bool
    levels: tuple[Level, ...]
    second: int = 0


@dataclass(frozen=True, slots=True)
class Booking:
    """A request that was counted under `name`: how things stood then, `at` that time by the monotonic clock; and in
    which second it is counted, `here` and by what all replicas share, None if it is not."""

    name: bytes
    levels: tuple[Level, ...]
    at: float
    here: int
    common: int | None


class Window:
    """What one key has used. Times are of one clock, in seconds, and do not go back."""

    __slots__ = ("_slots",)

    def __init__(self) -> None:
        self._slots: list[Slot] = []

    def add(self, now: float, requests: int, tokens: int) -> int:
        """Count a use; the second of its slot."""
        second, slots = math.floor(now), self.slots(now)
        if slots and slots[-1].second == second:
            last = slots.pop()
            requests, tokens = last.requests + requests, last.tokens + tokens
        slots.append(Slot(second, now, requests, tokens))
        return second

    def take_back(self, second: int, requests: int) -> None:
        """Requests that were counted in that slot were none."""
        for at, slot in enumerate(self._slots):
            if slot.second == second:
                self._slots[at] = slot._replace(requests=max(0, slot.requests - requests))

    def slots(self, now: float) -> list[Slot]:
        """What still counts, the oldest first."""
        over = 0
        while over < len(self._slots) and self._slots[over].at + WINDOW <= now:
            over += 1
        del self._slots[:over]
        return self._slots


def name(fingerprint: bytes, limits: Limits) -> bytes:
    """16 bytes under which the uses of the credential with this fingerprint are counted, where these limits apply.
    Nobody can tell the one from the other."""
    text = b"%d %d" % (limits.requests, limits.tokens)
    return hashlib.blake2b(text, key=fingerprint, digest_size=NAME_BYTES, person=b"rate").digest()


def admits(limits: Limits, slots: Iterable[Slot]) -> bool:
    """Whether a request may be let through after these uses."""
    requests = tokens = 0
    for slot in slots:
        requests += slot.requests
        tokens += slot.tokens
    return (not limits.requests or requests < limits.requests) and (not limits.tokens or tokens < limits.tokens)


def levels(limits: Limits, slots: Sequence[Slot], now: float) -> tuple[Level, ...]:
    """How each kind that is limited stands after these uses, the oldest first."""
    found = []
    if limits.requests:
        found.append(_level("requests", limits.requests, [(slot.at, slot.requests) for slot in slots], now))
    if limits.tokens:
        found.append(_level("tokens", limits.tokens, [(slot.at, slot.tokens) for slot in slots], now))
    return tuple(found)


def _level(kind: str, limit: int, uses: list[tuple[float, int]], now: float) -> Level:
    used = left = sum(amount for _, amount in uses)
    wait = clears = 0.0
    for at, amount in uses:
        if amount <= 0:
            continue
        clears = min(WINDOW, max(0.0, at + WINDOW - now))
        if left >= limit:
            wait = clears
        left -= amount
    return Level(kind, limit, used, wait, clears)


def tightest(found: Iterable[Level]) -> Level:
    """The kind that is to be waited for longest. There must be one."""
    return max(found, key=lambda level: level.wait)


def seconds(wait: float) -> int:
    """Whole seconds after which the wait is over for certain, at least one."""
    return max(1, math.ceil(wait))


def lines(found: Iterable[Level], since: float = 0.0) -> Fields:
    """The header lines that say how it stands, `since` seconds after that was found out; in OpenAI's form."""
    return tuple(
        (_LINE + name + b"-" + level.kind.encode(), value)
        for level in found
        for name, value in (
            (b"limit", b"%d" % level.limit),
            (b"remaining", b"%d" % max(0, level.limit - level.used)),
            (b"reset", _span(level.clears - since)),
        )
    )


def merged(theirs: Fields, ours: Fields) -> Fields:
    """The lines of an answer with ours in place of those of the same names."""
    if not ours:
        return theirs
    names = {name for name, _ in ours}
    return (*(line for line in theirs if line[0].lower() not in names), *ours)


def _span(wait: float) -> bytes:
    """A span of time as OpenAI writes them: ``1s``, ``6m0s``; rounded up to whole seconds."""
    minutes, rest = divmod(max(0, math.ceil(wait)), 60)
    return b"%dm%ds" % (minutes, rest) if minutes else b"%ds" % rest
