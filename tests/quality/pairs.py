"""What is served of labelled pairs."""

from collections.abc import Sequence

import numpy as np

from cacheproxy.core.calibration import Scored
from cacheproxy.core.labelled import Pair
from cacheproxy.meaning import tuning
from cacheproxy.meaning.tuning import Judge
from tests.quality import serving, shares
from tests.quality.sets import Pairs

SAME, SERVED, KEPT, WRONG, OTHER = range(5)


async def scored(given: Pairs, model=None) -> tuple[list[Scored], list[Scored]]:
    """Each pair by its bare similarity, and as it is served; embedded by `model`, or by what is written."""
    if model is not None:
        found = [await tuning.scored(model, judge, given.pairs) for judge in (serving.bare(), serving.default())]
        return found[0], found[1]
    assert given.similarities is not None
    bare = [Scored(p.same, s, passes=s is not None) for p, s in zip(given.pairs, given.similarities, strict=True)]
    judge = serving.default()
    return bare, [
        Scored(p.same, one.similarity, await _passes(judge, p, one)) for p, one in zip(given.pairs, bare, strict=True)
    ]


async def _passes(judge: Judge, pair: Pair, one: Scored) -> bool:
    served = one.similarity is not None and one.similarity >= tuning.LOWEST
    return served and await judge.agrees(pair.a, pair.b, one.similarity)


def measured(rows: Sequence[Scored], threshold: float) -> dict:
    """Recall of what is the same, the wrong share of what is served, and the share that is served of what is not the
    same."""
    columns = np.zeros((len(rows), 5))
    for at, one in enumerate(rows):
        served = one.passes and one.similarity is not None and one.similarity >= threshold
        columns[at] = one.same, served, served and one.same, served and not one.same, not one.same
    total = columns.sum(0)
    return {
        "served": int(total[SERVED]),
        "wrong": int(total[WRONG]),
        "recall": shares.ratio(columns, KEPT, SAME),
        "wrong_share": shares.ratio(columns, WRONG, SERVED),
        "traps_served": shares.ratio(columns, WRONG, OTHER),
        "at_ten": at_ten(rows),
    }


def at_ten(rows: Sequence[Scored]) -> dict | None:
    """The wrong share where a tenth of all pairs is served, and the threshold that serves so many."""
    passing = sorted((one.similarity, one.same) for one in rows if one.passes and one.similarity is not None)
    count = round(len(rows) / 10)
    if not count or len(passing) < count:
        return None
    best = passing[-count:]
    return {"threshold": round(best[0][0], 4), "error": round(sum(not same for _, same in best) / count, 4)}


def by_kind(given: Pairs, bare: Sequence[Scored], default: Sequence[Scored], threshold: float) -> list[dict]:
    """How many of each kind are served."""
    kinds: dict[tuple[bool, str], list[int]] = {}
    for pair, one, other in zip(given.pairs, bare, default, strict=True):
        counts = kinds.setdefault((pair.same, pair.kind), [0, 0, 0])
        counts[0] += 1
        for place, row in ((1, one), (2, other)):
            counts[place] += row.passes and row.similarity is not None and row.similarity >= threshold
    return [
        {"kind": kind, "same": same, "pairs": counts[0], "bare": counts[1], "default": counts[2]}
        for (same, kind), counts in sorted(kinds.items())
        if kind
    ]
