"""What a count of faults tells of their share: bounds that hold with a stated confidence. Pure statistics.

The bounds are those of Clopper and Pearson, which hold for any share and any count, also for no fault at all.
"""

import math

_STEPS = 60
"""Halvings of the interval in which a bound is looked for: as exact as a float."""
_TERMS = 300
_TINY = 1e-300


def interval(wrong: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Between which shares the true one lies, with this confidence, if `wrong` of `of` were seen. (0, 1) if nothing
    was seen."""
    _check(wrong, of, confidence)
    tail = (1 - confidence) / 2
    return _low(wrong, of, tail), _high(wrong, of, tail)


def upper(wrong: int, of: int, confidence: float = 0.95) -> float:
    """The share that the true one does not exceed, with this confidence: all doubt is put on this side."""
    _check(wrong, of, confidence)
    return _high(wrong, of, 1 - confidence)


def lower(wrong: int, of: int, confidence: float = 0.95) -> float:
    """The share that the true one does not fall below, with this confidence."""
    _check(wrong, of, confidence)
    return _low(wrong, of, 1 - confidence)


def needed(most: float, confidence: float = 0.95, wrong: int = 0) -> int:
    """How many must be seen, with no more than `wrong` among them, for the upper bound to be `most` at the highest.
    `most`: above 0."""
    if not 0 < most < 1:
        raise ValueError("the share must be above 0 and below 1")
    _check(0, 0, confidence)
    low, high = wrong, max(wrong + 1, 2)
    while upper(wrong, high, confidence) > most:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if upper(wrong, middle, confidence) <= most else (middle, high)
    return high


def _check(wrong: int, of: int, confidence: float) -> None:
    if not 0 <= wrong <= of:
        raise ValueError("a part must be between nothing and the whole")
    if not 0 < confidence < 1:
        raise ValueError("the confidence must be above 0 and below 1")


def _low(wrong: int, of: int, tail: float) -> float:
    """The share at which so many or more are seen with the probability `tail`."""
    return 0.0 if wrong == 0 else _solved(wrong, of - wrong + 1, tail)


def _high(wrong: int, of: int, tail: float) -> float:
    """The share at which so many or fewer are seen with the probability `tail`."""
    return 1.0 if wrong == of else _solved(wrong + 1, of - wrong, 1 - tail)


def _solved(a: float, b: float, probability: float) -> float:
    """Where the beta distribution of `a` and `b` has reached `probability`."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _beta(a, b, middle) < probability else (low, middle)
    return (low + high) / 2


def _beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges on the other side
        return 1 - _beta(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    total = d
    for m in range(1, _TERMS):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away(1 + factor * d)
            c = _away(1 + factor / c)
            total *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return total


def _away(value: float) -> float:
    """`value`, away from zero, by which is divided."""
    return value if abs(value) > _TINY else _TINY
