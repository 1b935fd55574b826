"""Learns the weights of `core.opinion` from pairs of questions, and writes cacheproxy/core/opinion_weights.py.

    python -m tests.quality.train --data DIR [--model DIR] [--vectors FILE.npz] [--write]

`--data`: a directory with the sets (JSON lines): pairs gptcache_mock (GPTCache, MIT), pawsx_en (PAWS-X, Google LLC, free
for any purpose); texts with intents banking77_test_intents (PolyAI, CC BY 4.0), clinc150_test_intents (Larson et al.,
CC BY 3.0). Those that are not there are left out. What is in tests/data/likeness is taken always. Sets under terms that
forbid this must not be put there. The same data give the same weights. Prints what the classifier does on each source
that it did not learn from.
"""

import argparse
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

from cacheproxy.core import contrast, likeness
from cacheproxy.core.opinion import Opinion
from tests.quality.lessons import OWN, Labelled, Vectors, collect
from tests.rig import ROOT

TARGET = ROOT / "cacheproxy" / "core" / "opinion_weights.py"
FOLDS = 4
RARE = 25
"""A measure that is not 0 in fewer pairs than this has no weight."""
RIDGE = 0.01
HEAD = """The weights of `core.opinion`. Data only, written by tests/quality/train.py.

Learnt from pairs of this project, and of BANKING77 (PolyAI, CC BY 4.0), CLINC150 (Larson et al., CC BY 3.0), PAWS-X
(Google LLC), GPTCache (MIT).
"""
BLOCK = 100
"""Pairs from which a share is told."""
PASSED = 3.0
"""A pair that the guards pass counts so many times as much: on those an opinion is asked."""
UNLEARNT = ("shortened", "tailed")
"""Kinds of made pairs that are not learnt from: whether a word more makes another question is a matter of taste, and
the guards have theirs. The classifier is only tried on them."""
Curve = tuple[tuple[float, float], ...]
SHARES = {"own": 1, "adversarial": 1, "more": 2, "gptcache": 2, "pawsx": 0.5, "banking": 2, "clinc": 1, "made": 3}
"""How much each source counts, however many pairs it has."""


class Table:
    """What is measured of the pairs: `x` of shape ``(pairs, measures)``."""

    def __init__(self, pairs: list[Labelled]) -> None:
        readings = {text: contrast.read(text) for pair in pairs for text in (pair.a, pair.b)}
        found = [contrast.measures(readings[p.a], readings[p.b], p.similarity) for p in pairs]
        count = Counter(name for measured in found for name, value in measured.items() if value)
        self.names = sorted(name for name, number in count.items() if number >= RARE)
        place = {name: at for at, name in enumerate(self.names)}
        self.x = np.zeros((len(pairs), len(self.names)))
        for row, measured in zip(self.x, found, strict=True):
            for name, value in measured.items():
                if name in place:
                    row[place[name]] = value
        self.scale = np.maximum(self.x.std(0), 0.1)
        self.x /= self.scale
        self.same = np.array([p.same for p in pairs])
        self.near = np.array([p.similarity for p in pairs])
        self.source = np.array([p.source for p in pairs])
        self.kind = np.array([p.kind for p in pairs])
        self.fold = np.array([zlib.crc32(p.a.encode()) % FOLDS for p in pairs])
        objections = [f"guard {guard.value}" for guard in likeness.DEFAULT]
        self.passed = np.array([not any(measured.get(name) for name in objections) for measured in found])

    def weights(self, chosen: np.ndarray) -> np.ndarray:
        """How much each pair counts; 1 in total, half of it for those that are the same."""
        chosen = chosen & ~np.isin(self.kind, UNLEARNT)
        weights = np.zeros(len(self.same))
        for source, share in SHARES.items():
            rows = chosen & (self.source == source)
            weights[rows] = share / max(rows.sum(), 1)
        weights[self.passed] *= PASSED
        for same in (True, False):
            rows = self.same == same
            weights[rows] *= 0.5 / weights[rows].sum()
        return weights


def fit(x: np.ndarray, same: np.ndarray, weights: np.ndarray, ridge: float) -> np.ndarray:
    """Logistic regression by Newton's method: a weight for each column, and the bias last."""
    rows = weights > 0
    x, same, weights = np.hstack([x[rows], np.ones((rows.sum(), 1))]), same[rows], weights[rows]
    penalty = np.full(x.shape[1], ridge)
    penalty[-1] = 0.0
    found = np.zeros(x.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(-np.clip(x @ found, -500, 500)))
        slope = x.T @ (weights * (p - same)) + penalty * found
        bend = (x * (weights * np.maximum(p * (1 - p), 1e-6))[:, None]).T @ x + np.diag(penalty + 1e-9)
        step = np.linalg.solve(bend, slope)
        found -= step
        if np.abs(step).max() < 1e-8:
            break
    return found


def held_out(table: Table) -> np.ndarray:
    """The sum for each pair by a classifier that has not learnt from its source; of made pairs, from its question."""
    sums = np.zeros(len(table.same))
    parts = [table.source == source for source in SHARES if source != "made"]
    parts += [(table.source == "made") & (table.fold == fold) for fold in range(FOLDS)]
    for part in parts:
        if part.any():
            found = fit(table.x, table.same, table.weights(~part), RIDGE)
            sums[part] = table.x[part] @ found[:-1] + found[-1]
    return sums


def calibrating(table: Table) -> np.ndarray:
    """The pairs whose probabilities are to be right: near ones that the guards pass. Those of `pawsx` are no
    questions."""
    return table.passed & (table.near >= 0.9) & (table.source != "pawsx") & ~np.isin(table.kind, UNLEARNT)


def curve(table: Table, sums: np.ndarray, rows: np.ndarray) -> Curve:
    """Which share of the pairs with such a sum are the same, among `rows` (isotonic regression). A point is of `BLOCK`
    pairs at least."""
    order = np.argsort(sums[rows], kind="stable")
    totals, same = sums[rows][order], table.same[rows][order].astype(float)
    blocks: list[list[float]] = []  # how many, the sum of their sums, how many are the same
    for at in range(0, len(order), BLOCK):
        some = slice(at, at + BLOCK)
        blocks.append([len(totals[some]), totals[some].sum(), same[some].sum()])
        while len(blocks) > 1 and blocks[-2][2] / blocks[-2][0] >= blocks[-1][2] / blocks[-1][0]:
            last = blocks.pop()
            blocks[-1] = [one + other for one, other in zip(blocks[-1], last, strict=True)]
    shares = np.maximum.accumulate([(right + 1) / (n + 2) for n, _, right in blocks])
    return tuple((round(float(b[1] / b[0]), 3), round(float(p), 4)) for b, p in zip(blocks, shares, strict=True))


def promised(table: Table, sums: np.ndarray) -> np.ndarray:
    """The probability of each pair by a curve that was not drawn from its question."""
    found = np.zeros(len(sums))
    for fold in range(FOLDS):
        others = curve(table, sums, calibrating(table) & (table.fold != fold))
        for at in np.flatnonzero(table.fold == fold):
            found[at] = Opinion({}, 0.0, others).calibrated(sums[at])
    return found


def report(table: Table, p: np.ndarray, least: float) -> None:
    rows = table.passed & (table.near >= 0.92)
    print(f"similarity >= 0.92, passed by the guards; least {least}")
    parts = [(s, table.source == s) for s in SHARES]
    parts += [
        (f"made: {k}", (table.source == "made") & (table.kind == k))
        for k in sorted(set(table.kind[table.source == "made"]))
    ]
    for name, part in parts:
        same, other = (rows & part & (table.same == it) for it in (True, False))
        kept, wrong = (p[it] >= least for it in (same, other))
        print(f"{name:24s} same {kept.sum():5d} of {same.sum():5d}   not the same {wrong.sum():4d} of {other.sum():4d}")
    print("reliability: promised, found, pairs")
    for low in (0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98):
        high = min([h for h in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.01) if h > low])
        some = calibrating(table) & (p >= low) & (p < high)
        if some.any():
            print(f"{p[some].mean():6.3f} {table.same[some].mean():6.3f} {some.sum():6d}")


def written(opinion: Opinion) -> str:
    head = f'"""{HEAD}"""\n\n'
    rows, row = [], ""
    for name, weight in sorted(opinion.weights.items()):
        item = f'"{name}": {weight:.3f}, '
        if len(row) + len(item) > 115:
            rows.append(f"    {row.rstrip()}")
            row = ""
        row += item
    body = "\n".join([*rows, f"    {row.rstrip()}"])
    points = "\n".join(f"    ({total}, {p})," for total, p in opinion.curve)
    return f"{head}WEIGHTS = {{\n{body}\n}}  # fmt: skip\nBIAS = {opinion.bias}\nCURVE = (\n{points}\n)\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=OWN)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--least", type=float, default=0.15)
    parser.add_argument("--write", action="store_true")
    told = parser.parse_args()
    if told.model is None:
        from tests.parts import embedder

        told.model = embedder.install()
    pairs = collect(told.data, Vectors(told.model, told.vectors))
    table = Table(pairs)
    sums = held_out(table)
    points = curve(table, sums, calibrating(table))
    found = fit(table.x, table.same, table.weights(np.ones(len(pairs), bool)), RIDGE)
    weights = {name: round(w, 3) for name, w in zip(table.names, found[:-1] / table.scale, strict=True)}
    opinion = Opinion({n: w for n, w in weights.items() if w}, round(float(found[-1]), 3), points)
    report(table, promised(table, sums), told.least)
    print(f"{len(pairs)} pairs, {len(opinion.weights)} weights, bias {opinion.bias}, curve {points}")
    if told.write:
        TARGET.write_text(written(opinion), "utf-8")


if __name__ == "__main__":
    main()
