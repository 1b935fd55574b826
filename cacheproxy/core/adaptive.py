"""How many requests a backend is given at once, found by the gradient of its latency. Pure: no clock, counts only.

The limit breathes: from time to time it sinks by some steps and rises again, and the regression of log seconds on log
inflight over that breath is the elasticity of latency. It is 0 while the backend works on all at once, 1 once each
further request only waits. Where it is 1/2, throughput divided by latency is at its greatest (Kleinrock, "Power and
deterministic rules of thumb", 1979): below that the limit grows, above it shrinks.

The two known ways compare with a latency at little load: with a long average (`Gradient2Limit` of Netflix'
concurrency-limits), which follows a queue that the limit itself has made, or with what is measured at a very low limit
(the gradient controller of Envoy's adaptive concurrency filter), beside which a large batch looks slow although it is
the better for it. A breath compares loads that are near each other, in size and in time: there is no baseline that
could drift, and what has changed for all of them cancels out.

| phase | the limit                       | until                                                                     |
|-------|---------------------------------|---------------------------------------------------------------------------|
| rest  | as found                        | some time has passed, or answers come much later than they did            |
| sink  | one less for each second answer | it is low; meanwhile the urgent still get through                         |
| low   | `DEPTH` of what was under way   | answers have come to what was sent down here                              |
| rise  | one more for each answer        | it is as found                                                            |
| high  | as found                        | answers have come to what was sent up here: then it is moved              |

Where others use the same backend, what one adds makes whole answers slower by little. So there is a bound besides:
while they take `BLOATED` times the least they took so far, the limit shrinks. If they do so even at the least limit, it
is not for waiting, and what they take there counts as the least.
"""

import math
from enum import Enum

POWER = 0.5
"""The elasticity that is aimed at."""
DEPTH = 0.6
"""The part of the load to which the limit sinks in a breath."""
PRIOR = 0.35
"""How far an elasticity is thought to lie from `POWER`, as a standard deviation: one that is measured counts the less
the greater its own error is beside that."""
SHY, BOLD = 0.5, 1.5
"""What the gain is multiplied by when the limit certainly turns, and when it goes on the same way."""
GAIN, LEAST_GAIN = 0.6, 0.15
"""How far the logarithm of the limit moves for an elasticity of one: at first and at most, and at the least."""
DOWN, UP = 0.5, 0.4
"""The most that the logarithm of the limit moves after one breath."""
MOVED = 0.1
"""From such a step on, what is still under way belongs to the old limit."""
USED = 0.8
"""While never more than this part of the limit is under way it does not sink to compare, nor grow; it shrinks only for
what is certain."""
CUT = 0.7
"""What it is multiplied by after a failure."""
CAUTION = 16
"""Breaths after a failure in which it grows by one at most from where it was cut to."""
BLOATED = 5.0
"""Times the least latency of whole answers from which on the limit shrinks in any case."""
SLOWER = 2.0
"""Times the usual latency that end a rest."""
FEWEST = 16
"""Samples of a phase, for small limits."""
FASTEST, SLOWEST = 1e-4, 1e5
"""Seconds; beyond them all are the same."""


class _Slope:
    """The regression of log seconds on log inflight, for answers of one kind."""

    __slots__ = ("_x", "_xx", "_xy", "_y", "_yy", "count", "lately", "least", "usual")

    def __init__(self) -> None:
        self.count = 0
        self.usual = math.nan
        """The mean of log seconds until it began anew last."""
        self.least = math.inf
        """Of these means."""
        self.lately = math.nan
        """The mean of late of log seconds."""
        self._x = self._y = self._xx = self._xy = self._yy = 0.0

    def clear(self) -> None:
        """Begin anew."""
        if self.count >= FEWEST:
            self.usual = self._y / self.count
            self.least = min(self.least, self.usual)
        self.count = 0
        self.lately = math.nan
        self._x = self._y = self._xx = self._xy = self._yy = 0.0

    def add(self, x: float, y: float, weight: float) -> None:
        """`weight`: of this one in the mean of late."""
        self.count += 1
        self._x += x
        self._y += y
        self._xx += x * x
        self._xy += x * y
        self._yy += y * y
        self.lately = self.lately + weight * (y - self.lately) if self.count > 1 else y

    @property
    def excess(self) -> float:
        """Of the mean over the least of those before."""
        return self._y / self.count - self.least if self.count >= FEWEST else -math.inf

    def estimate(self) -> tuple[float, float]:
        """The slope and the variance of its error; infinite where nothing can be told."""
        if self.count < 4:
            return 0.0, math.inf
        spread = self._xx - self._x * self._x / self.count
        if spread < 1e-6:
            return 0.0, math.inf
        slope = (self._xy - self._x * self._y / self.count) / spread
        rest = self._yy - self._y * self._y / self.count - slope * slope * spread
        return slope, max(rest / (self.count - 2), 4e-4) / spread


class _Phase(Enum):
    """Of a breath."""

    REST = "rest"
    SINK = "sink"
    LOW = "low"
    RISE = "rise"
    HIGH = "high"


class Limit:
    """How many requests one backend is given at once: fixed where `least` and `most` are the same, else found between
    them, beginning with `start`. Raises `ValueError`."""

    __slots__ = (
        "_caution", "_cut_to", "_gain", "_least", "_limit", "_low", "_most", "_peak", "_peak_before", "_phase", "_rest",
        "_since_cut", "_slopes", "_step_before", "_steps", "_strange", "_value",
    )  # fmt: skip

    def __init__(self, least: int, most: int, start: int | None = None) -> None:
        if not 1 <= least <= most:
            raise ValueError(f"there is no limit between {least} and {most}")
        self._least = least
        self._most = most
        self._limit = float(min(max(least if start is None else start, least), most))
        self._value = round(self._limit)
        self._slopes = (_Slope(), _Slope())
        self._gain = GAIN
        self._step_before = 0.0
        self._peak = self._peak_before = 0
        """The most that was under way, in this breath and in the one before."""
        self._phase = _Phase.REST
        self._steps = 0
        """Samples of this phase."""
        self._rest = FEWEST
        """Samples of a rest."""
        self._strange = 0
        """So many samples more may be of what was sent under another limit."""
        self._low = 0
        """Where this breath turns."""
        self._since_cut = most
        self._cut_to = math.inf
        self._caution = 0

    def __repr__(self) -> str:
        return f"<Limit {self._value} of {self._least} to {self._most}>"

    @property
    def value(self) -> int:
        """What the backend may be given now. Changes in `sample` and `failed` alone."""
        return self._value

    def sample(self, seconds: float, inflight: int, streamed: bool) -> None:
        """The first byte of an answer's body came `seconds` after its request was sent, as one of `inflight` under way
        then, itself included. Not of its head: many engines send the head of a stream before they have begun."""
        self._since_cut += 1
        if self._least == self._most or inflight < 1 or not seconds >= 0:
            return
        slope = self._slopes[bool(streamed)]
        self._strange -= 1
        if self._strange < 0 and inflight <= self._limit + 1:
            self._peak = max(self._peak, inflight)
            time = math.log(min(max(seconds, FASTEST), SLOWEST))
            slope.add(math.log(inflight), time, 1 / max(self._value, FEWEST))
        self._steps += 1
        self._breathe(slope, inflight)

    def failed(self) -> None:
        """A request was refused by overload, or timed out: less, but once only for all who were under way."""
        self._since_cut += 1
        if self._least == self._most or self._since_cut < self._value:
            return
        self._since_cut = 0
        self._limit = max(CUT * self._limit, self._least)
        self._cut_to, self._caution = self._limit, CAUTION
        self._begin(moved=True)

    @property
    def _load(self) -> int:
        """The most that was under way lately."""
        return max(self._peak, self._peak_before, 1)

    @property
    def _is_used(self) -> bool:
        return self._load > USED * round(self._limit)

    def _breathe(self, slope: _Slope, inflight: int) -> None:
        if self._phase is _Phase.REST:
            slower = slope.count >= max(self._value, FEWEST) and slope.lately > slope.usual + math.log(SLOWER)
            if slower:
                self._begin(moved=False)
            if slower or self._steps >= self._rest:
                self._low = max(min(math.ceil(DEPTH * self._load), self._value - 1), 1)
                self._enter(_Phase.SINK if self._is_used else _Phase.HIGH)
        else:
            self._turn(inflight)

    def _turn(self, inflight: int) -> None:
        if self._phase is _Phase.SINK:
            if self._steps >= 2:
                self._value -= self._value > self._low
                self._enter(_Phase.SINK if self._value > self._low else _Phase.LOW)
        elif self._phase is _Phase.LOW:
            self._steps -= inflight > self._low
            if self._steps >= max(8, 1.5 * self._low):
                self._enter(_Phase.RISE)
        elif self._phase is _Phase.RISE:
            self._value += self._value < round(self._limit)
            if self._value >= round(self._limit):
                self._enter(_Phase.HIGH)
        elif self._steps >= max(FEWEST, 3 * self._limit):
            self._judge()

    def _enter(self, phase: _Phase) -> None:
        self._phase = phase
        self._steps = 0

    def _begin(self, *, moved: bool) -> None:
        """A breath. The smaller the steps have become, the longer it rests."""
        for slope in self._slopes:
            slope.clear()
        self._peak, self._peak_before = 0, min(self._peak, round(self._limit))
        self._value = round(self._limit)
        self._strange = round(2 * self._limit) if moved else 0
        self._rest = max(FEWEST, self._strange + round(self._limit * (1 if moved else 4 / self._gain)))
        self._enter(_Phase.REST)

    def _judge(self) -> None:
        """Move by what this breath has shown."""
        limit = self._limit
        step = self._step()
        bloat = self._slopes[False].excess - math.log(BLOATED)
        if bloat > 0:
            step = min(step, max(-bloat, -DOWN))
            if limit <= self._least:
                self._slopes[False].least = math.inf
        moved = limit * math.exp(step)
        if step > 0 and self._caution and moved > self._cut_to:
            moved = min(moved, max(limit + 1, self._cut_to))
        self._limit = min(max(moved, self._least), self._most)
        self._caution = max(self._caution - 1, 0)
        self._begin(moved=abs(math.log(self._limit / limit)) > MOVED)

    def _step(self) -> float:
        """Of the logarithm of the limit."""
        if self._value == 1:
            return UP if self._is_used else 0.0  # there is nothing below that it could be compared with
        weighed = precision = 0.0
        for slope in self._slopes:
            elasticity, variance = slope.estimate()
            weighed += min(max(elasticity, -0.5), 1.5) / variance
            precision += 1 / variance
        if precision == 0:
            return 0.0
        error = 1 / precision
        step = POWER - weighed * error
        is_certain = abs(step) > 2 * math.sqrt(error)
        if not (self._is_used or (is_certain and step < 0)):
            return 0.0
        step *= PRIOR**2 / (PRIOR**2 + error)
        if step * self._step_before >= 0:
            self._gain = min(self._gain * BOLD, GAIN)
        elif is_certain:
            self._gain = max(self._gain * SHY, LEAST_GAIN)
        self._step_before = step
        return min(max(self._gain * step, -DOWN), UP)
