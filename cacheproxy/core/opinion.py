"""A second opinion on two questions: the probability that the answer to one is an answer to the other. Pure.

What tells them apart is measured (core/contrast.py), each measure has a weight that was learnt, and their sum stands
for a probability (core/opinion_weights.py, written by tests/quality/train.py). Symmetric in the two, total over any
text, linear in its length. A measure without a weight counts for nothing.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum

from cacheproxy.core import opinion_weights
from cacheproxy.core.contrast import Reading, measures, read

__all__ = ["SHIPPED", "Opinion", "Reading", "read"]


@dataclass(frozen=True, slots=True)
class Opinion:
    """A classifier: the weights of the measures, and which probability their sum stands for.

    `curve`: sums and probabilities, both rising; found on pairs of sources that it had not learnt from. Between two of
    them it is a straight line, beyond the ends it is level.
    """

    weights: Mapping[str, float]
    bias: float
    curve: tuple[tuple[float, float], ...]

    def total(self, asked: Reading, stored: Reading, similarity: float) -> float:
        """The sum of what is measured, each by its weight."""
        found = measures(asked, stored, similarity)
        return self.bias + fsum(value * self.weights.get(name, 0.0) for name, value in found.items())

    def probability(self, asked: Reading, stored: Reading, similarity: float) -> float:
        """That the answer to `stored` is one to `asked`, 0…1."""
        return self.calibrated(self.total(asked, stored, similarity))

    def calibrated(self, total: float) -> float:
        """The probability that a sum stands for."""
        at = bisect_right(self.curve, total, key=lambda point: point[0])
        if at in (0, len(self.curve)):
            return self.curve[max(at - 1, 0)][1]
        (low, p), (high, q) = self.curve[at - 1 : at + 1]
        return p + (q - p) * (total - low) / (high - low)


SHIPPED = Opinion(opinion_weights.WEIGHTS, opinion_weights.BIAS, opinion_weights.CURVE)
"""The classifier that comes with the project."""
