"""The guards on pairs of questions that were judged by hand, and on a bank's questions: what they let pass, what not."""

import json
from collections import Counter
from functools import cache

import pytest

from cacheproxy.core.likeness import judge, prepare
from tests.rig import ROOT

DATA = ROOT / "tests" / "data" / "likeness"
NEAR = 0.92
"""The similarity from which on a candidate comes to the guards, by default."""


@cache
def _rows(name):
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]


def _near(name):
    """Those that a vector takes for the same. What the model cannot read would come with any other model."""
    return [row for row in _rows(name) if row["similarity"] is None or row["similarity"] >= NEAR]


@pytest.mark.parametrize(("name", "most"), [("own", 0), ("adversarial", 0), ("more", 2)])
def test_what_is_not_the_same_is_not_served(name, most):
    served = [(row["a"], row["b"]) for row in _near(name) if not row["same"] and judge(row["a"], row["b"]) is None]
    assert len(served) <= most, served


@pytest.mark.parametrize(("name", "least"), [("own", 0.98), ("adversarial", 0.98), ("more", 0.94)])
def test_what_is_the_same_passes(name, least):
    """Guards that object to everything would serve nothing wrong either."""
    same = [row for row in _near(name) if row["same"]]
    lost = [(row["a"], row["b"]) for row in same if judge(row["a"], row["b"])]
    assert len(lost) <= (1 - least) * len(same), lost


def test_without_a_vector_most_of_what_differs_is_seen_too():
    """Also where the vectors are far apart: another embedder may put them near."""
    rows = [row for row in _rows("more") if not row["same"]]
    missed = [(row["a"], row["b"]) for row in rows if judge(row["a"], row["b"]) is None]
    assert len(missed) <= 0.06 * len(rows), missed


def test_each_kind_is_seen_and_each_language():
    kinds = Counter((row["kind"], row["lang"]) for row in _rows("more") if not row["same"])
    seen = Counter((row["kind"], row["lang"]) for row in _rows("more") if not row["same"] and judge(row["a"], row["b"]))
    assert not {kind: (seen[kind], count) for kind, count in kinds.items() if seen[kind] < count // 2 + count % 2}


def test_a_banks_customers_are_understood():
    """Of neighbours with one intent nearly all pass; of those with two, the guards stop some."""
    texts = {row["id"]: row for row in _rows("banking_texts")}
    features = {number: prepare(row["text"]) for number, row in texts.items()}
    asked, passed = Counter(), Counter()
    for row in _rows("banking_pairs"):
        same = texts[row["a"]]["intent"] == texts[row["b"]]["intent"]
        asked[same] += 1
        passed[same] += judge(features[row["a"]], features[row["b"]]) is None
    assert passed[True] >= 0.92 * asked[True], (passed, asked)
    assert passed[False] <= 0.6 * asked[False], (passed, asked)
