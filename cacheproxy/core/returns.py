"""When a refused request may come back, so that it finds room: each is told a time of its own, no two the same, as far
apart as slots come free for its class. Who keeps to it is let in, in the order in which it came first. Pure.
"""

import math
from collections import OrderedDict
from dataclasses import dataclass

LONGEST = 60.0
"""Seconds; the usual clients do not heed a longer `Retry-After`."""
REMEMBERED = 65_536
EARLY, LATE = 1.0, 60.0
"""How much too early or too late, in seconds, one may come and is still let in."""
_LASTING = 5.0
"""Seconds over which rates are averaged."""
_LEAST_SHARE = 0.05
"""The part of the slots that every class gets sooner or later."""


class Pace:
    """How many requests of each class are given a slot in a second, and how long one is held."""

    def __init__(self) -> None:
        self._counts = [0.0, 0.0, 0.0]
        self._when = 0.0
        self._held = 0.0

    def granted(self, priority: int, now: float) -> None:
        """A slot was given out."""
        self._fade(now)
        self._counts[priority] += 1

    def ended(self, seconds: float) -> None:
        """One that was held so long is free again."""
        self._held = seconds if not self._held else 0.9 * self._held + 0.1 * seconds

    def for_class(self, priority: int, slots: int, now: float) -> float:
        """Slots a second that come free for this class; infinite if it is not known how long they are held."""
        if not self._held:
            return math.inf
        self._fade(now)
        whole = slots / self._held
        return max(whole - sum(self._counts[:priority]) / _LASTING, _LEAST_SHARE * whole)

    def _fade(self, now: float) -> None:
        if now > self._when:
            faded = math.exp((self._when - now) / _LASTING)
            self._counts = [count * faded for count in self._counts]
            self._when = now


@dataclass(frozen=True, slots=True)
class _Told:
    """`since`: when it came first; `due`: when it may come again."""

    since: float
    due: float


class Returns:
    """Who was told to come back when."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._told: OrderedDict[bytes, _Told] = OrderedDict()
        self._last = [-math.inf, -math.inf, -math.inf]
        self._most = most

    def __repr__(self) -> str:
        return f"<Returns {len(self._told)}>"

    def tell(  # noqa: PLR0913 - one refusal, every fact about it
        self, name: bytes, priority: int, *, waiting: int, rate: float, now: float, since: float
    ) -> int:
        """In how many whole seconds a request that is refused now may come back. `name`: by what it is known then,
        empty for nothing; `waiting`: how many are before it; `rate`: slots a second for its class; `since`: when it
        came first."""
        known = self._told.get(name) if name else None
        if known is not None and known.due > now:
            return _whole(known.due - now)
        due = max(self._last[priority], now + waiting / rate) + 1 / rate
        due = min(max(due, now + 1.0), now + LONGEST)
        self._last[priority] = due
        if name:
            self._told[name] = _Told(since if known is None else min(since, known.since), due)
            self._told.move_to_end(name)
            if len(self._told) > self._most:
                self._told.popitem(last=False)
        return _whole(due - now)

    def keep(self, name: bytes, now: float) -> float | None:
        """When the request of this name came first, if it comes back as it was told; it is forgotten then."""
        told = self._told.get(name) if name else None
        if told is None or now < told.due - EARLY:
            return None
        del self._told[name]
        return told.since if now <= told.due + LATE else None


def _whole(seconds: float) -> int:
    """In whole seconds, rounded up; at least one."""
    return max(1, math.ceil(seconds - 1e-6))
