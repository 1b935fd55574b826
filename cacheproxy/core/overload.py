"""Whether less urgent work must stay out for the sake of the urgent. Pure: time comes as an argument.

Two things together are an overload: the backend is busy, and P0 does not get through. It is busy by what it says itself
(its KV cache, its GPU) or by the slots that are taken; P0 does not get through when more and more of it wait, when the
oldest has waited too long, or when its answers begin too late.

| from        | to          | when                                                                                    |
|-------------|-------------|-----------------------------------------------------------------------------------------|
| `NORMAL`    | `NO_NEW_P2` | overload                                                                                |
| `NO_NEW_P2` | `PAUSE_P1`  | it has gone on for `patience`                                                           |
| any other   | one less    | for `calm` P0 got through in half the time that it may wait, or the backend had `room`  |

After a step down nothing goes up for as long as `calm`: load that comes and goes does not move the level each time. P0
itself is never kept out here: its queue has a bound of its own.
"""

import math
from dataclasses import dataclass

from cacheproxy.core.queues import Level

LATELY, BEFORE = 0.5, 3.0
"""Seconds: time constants of the two means of P0's queue that are compared."""
MORE, MARGIN = 1.25, 2.0
"""It grows while the later mean is more than so many times the earlier one and so many requests above it."""
UNSEEN = 1.0
"""Seconds without a look after which nothing counts as having gone on."""


@dataclass(frozen=True, slots=True)
class Terms:
    """`utilisation`: the part of the backend from which on it is busy, `room`: below which it has room; `budget`:
    seconds that P0 may wait; `first_byte`: seconds after which its answers begin at the latest; `patience`, `calm`:
    seconds, as above."""

    utilisation: float = 0.9
    room: float = 0.8
    budget: float = 1.0
    first_byte: float = 10.0
    patience: float = 2.0
    calm: float = 5.0


@dataclass(frozen=True, slots=True)
class Signals:
    """`used` of `slots` are taken; `waiting`: requests of P0 that wait, `oldest`: seconds that the first of them has
    waited; `utilisation`: the greatest part, 0 to 1, that a backend says is in use, None if none does; `first_byte`:
    seconds to the first byte of P0's answers lately, None if there were none."""

    used: int
    slots: int
    waiting: int
    oldest: float
    utilisation: float | None = None
    first_byte: float | None = None

    @property
    def busy(self) -> float:
        """The part of the backends that is in use, 0 to 1 and more."""
        taken = self.used / self.slots if self.slots > 0 else float(self.used > 0)
        return taken if self.utilisation is None else max(taken, self.utilisation)


class Overload:
    """The level, by what it has seen."""

    __slots__ = (
        "_before", "_calm_since", "_changed", "_fell", "_lately", "_looked", "_pressed_since", "_terms", "_waiting",
        "cause", "level",
    )  # fmt: skip

    def __init__(self, terms: Terms) -> None:
        self.level = Level.NORMAL
        self.cause = ""
        """What raised it last: ``growth``, ``wait`` or ``first_byte``."""
        self._terms = terms
        self._waiting = 0
        self._lately = self._before = 0.0
        self._looked: float | None = None
        self._changed = self._fell = -math.inf
        self._pressed_since: float | None = None
        self._calm_since: float | None = None

    def __repr__(self) -> str:
        return f"<Overload {self.level.name}, P0 waiting {self._lately:.1f} after {self._before:.1f}>"

    def look(self, now: float, signals: Signals) -> Level:
        """The level from `now` on, in seconds of a monotonic clock. Look whenever a signal has changed, and four times
        a second while anything waits or the level is not `NORMAL`."""
        self._age(now)
        self._waiting = signals.waiting
        cause = self._cause(signals)
        pressed = bool(cause) and signals.busy > self._terms.utilisation
        calm = signals.busy < self._terms.room or (not cause and signals.oldest <= self._terms.budget / 2)
        self._pressed_since = _since(self._pressed_since, now, holds=pressed)
        self._calm_since = _since(self._calm_since, now, holds=calm)
        if self._pressed_since is not None:
            self._rise(now, cause, self._pressed_since)
        elif self._calm_since is not None and self.level > Level.NORMAL:
            if now - max(self._calm_since, self._changed) >= self._terms.calm:
                self.level, self._changed, self._fell = Level(self.level - 1), now, now
        return self.level

    def _age(self, now: float) -> None:
        """What waited at the last look has waited until now."""
        if self._looked is None:
            self._looked = now
        passed = max(now - self._looked, 0.0)
        if passed > UNSEEN:
            self._pressed_since = self._calm_since = None
        self._lately += (self._waiting - self._lately) * -math.expm1(-passed / LATELY)
        self._before += (self._waiting - self._before) * -math.expm1(-passed / BEFORE)
        self._looked = max(now, self._looked)

    def _cause(self, signals: Signals) -> str:
        """Why P0 does not get through; empty if it does."""
        if signals.oldest > self._terms.budget:
            return "wait"
        if signals.waiting and self._lately > MORE * self._before + MARGIN:
            return "growth"
        if signals.first_byte is not None and signals.first_byte > self._terms.first_byte:
            return "first_byte"
        return ""

    def _rise(self, now: float, cause: str, since: float) -> None:
        if self.level is Level.PAUSE_P1 or now - self._fell < self._terms.calm:
            return
        if self.level is Level.NORMAL or now - max(since, self._changed) >= self._terms.patience:
            self.level, self._changed, self.cause = Level(self.level + 1), now, cause


def _since(since: float | None, now: float, *, holds: bool) -> float | None:
    """When what holds now began to."""
    if not holds:
        return None
    return now if since is None else since
