"""How often an answer by meaning was wrong, as far as samples tell; and how much more alike questions must be for it.

Above the target, with enough evidence, the threshold rises by a step; then the evidence begins anew, so that each step
has its own. It falls again by steps, once it is as certain that it may. Of this process alone, and not kept over a
restart.
"""

import logging
import math
from dataclasses import dataclass

from cacheproxy.core.agreement import Agreement
from cacheproxy.core.estimate import interval
from cacheproxy.core.tally import Tally
from cacheproxy.ports import Clock, Journal

log = logging.getLogger("cacheproxy.semantic")

STEP = 0.01
HIGHEST = 0.99
WINDOW, DAYS = 1000, 7
CONFIDENCE = 0.95
"""Of the interval that is told."""
SURE = 0.99
"""Of the interval by which the threshold moves: it is looked at after every sample, and chance has as many tries. So a
share that is just the target is taken for more once in some 40 windows, one of 5 % is found after some 190 samples, one
of 10 % after some 45."""
LEAST_WRONG = 3
"""Wrong answers without which nothing is tightened."""
LEAST_RIGHT = 150
"""Samples without which nothing is loosened; twice as many for each time that it had to be tightened again."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The share of wrong answers among hits by meaning, between which bounds it lies, and what that rests on."""

    rate: float
    low: float
    high: float
    wrong: int
    of: int


class Truth:
    """`target`: the share of wrong answers that is tolerated; `base`: the threshold that the configuration states."""

    def __init__(self, journal: Journal, clock: Clock, target: float, base: float) -> None:
        self._journal = journal
        self._clock = clock
        self._target = target
        self._most_steps = max(0, math.ceil((HIGHEST - base) / STEP - 1e-9))
        self._tally = Tally(WINDOW, DAYS * 86_400.0)
        self._verdicts = dict.fromkeys(Agreement, 0)
        self._steps = 0
        self._tightened = 0
        self.era = 0
        """How often the thresholds have moved: what was served before tells nothing of those of now."""
        self._known: tuple[tuple[int, int], Estimate] | None = None

    def __repr__(self) -> str:
        return f"<Truth {self._tally!r} +{self.tightened:.2f}>"

    @property
    def tightened(self) -> float:
        """By how much questions must be more alike than the configuration says."""
        return self._steps * STEP

    def threshold(self, base: float) -> float:
        """The similarity that is wanted where the configuration says `base`."""
        return max(base, min(base + self.tightened, HIGHEST))

    def note(self, verdict: Agreement) -> None:
        """A sample has been compared."""
        self._journal.count("semantic_samples", verdict.value)
        self._verdicts[verdict] += 1
        if verdict is Agreement.UNKNOWN:
            return
        self._tally.add(self._clock.now(), wrong=verdict is Agreement.DIFFER)
        self._move()

    @property
    def estimate(self) -> Estimate:
        """What is known now."""
        wrong, of = counts = self._tally.counts(self._clock.now())
        if self._known is None or self._known[0] != counts:
            low, high = interval(wrong, of, CONFIDENCE)
            self._known = counts, Estimate(wrong / of if of else 0.0, low, high, wrong, of)
        return self._known[1]

    def summary(self) -> dict[str, object]:
        """The same as plain data."""
        now = self.estimate
        return {
            "false_hit_rate": now.rate if now.of else None,
            "low": now.low,
            "high": now.high,
            "confidence": CONFIDENCE,
            "wrong": now.wrong,
            "samples": now.of,
            "verdicts": {verdict.value: count for verdict, count in self._verdicts.items()},
            "target": self._target,
            "tightened": round(self.tightened, 4),
        }

    def _move(self) -> None:
        wrong, of = self._tally.counts(self._clock.now())
        low, high = interval(wrong, of, SURE)
        if low > self._target and wrong >= LEAST_WRONG:
            if self._steps < self._most_steps:
                self._tighten(wrong, of)
        elif high < self._target and self._steps and of >= self._patience:
            self._loosen(wrong, of)

    @property
    def _patience(self) -> int:
        return min(LEAST_RIGHT << (self._tightened - 1), WINDOW)

    def _tighten(self, wrong: int, of: int) -> None:
        self._steps += 1
        self._tightened += 1
        self.era += 1
        self._tally.clear()
        self._journal.count("semantic_tightened", "up")
        log.warning(
            "answers by meaning are wrong too often (%d of %d samples, target %g): thresholds are higher by %.2f now",
            wrong, of, self._target, self.tightened,
        )  # fmt: skip

    def _loosen(self, wrong: int, of: int) -> None:
        self._steps -= 1
        self.era += 1
        self._tally.clear()
        self._journal.count("semantic_tightened", "down")
        log.info(
            "answers by meaning are right again (%d of %d samples wrong): thresholds are higher by %.2f now",
            wrong, of, self.tightened,
        )  # fmt: skip
