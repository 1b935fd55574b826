"""Shares with the interval in which they lie, by drawing the same things again (bootstrap)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cacheproxy.core import estimate

DRAWS = 2_000
SEED = 20_261


def interval(
    columns: NDArray[np.float64], share: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> tuple[float, float]:
    """The 95 % interval of `share`. `columns`: shape ``(things, counts)``, what is counted of each; `share` is given
    sums of shape ``(draws, counts)``."""
    generator = np.random.default_rng(SEED)
    kinds, where = np.unique(columns, axis=0, return_inverse=True)
    many = np.bincount(where.ravel(), minlength=len(kinds))
    drawn = generator.multinomial(len(columns), many / len(columns), DRAWS)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = share(drawn @ kinds)
    shares = shares[np.isfinite(shares)]
    if not len(shares):
        return 0.0, 1.0
    low, high = np.quantile(shares, [0.025, 0.975])
    return float(low), float(high)


def ratio(columns: NDArray[np.float64], top: int, bottom: int) -> dict[str, float | None]:
    """Count `top` as a share of count `bottom`: {share, low, high}; `share` is None of nothing."""
    total = columns.sum(0)
    if not total[bottom]:
        return {"share": None, "low": 0.0, "high": 1.0}
    if total[top] in (0, total[bottom]):  # whatever is drawn of it is the same again
        low, high = estimate.interval(int(total[top]), int(total[bottom]))
    else:
        low, high = interval(columns, lambda sums: sums[:, top] / sums[:, bottom])
    return {"share": round(float(total[top] / total[bottom]), 4), "low": round(low, 4), "high": round(high, 4)}
