"""Which threshold keeps to a target, by what was seen."""

import json
from dataclasses import replace

import pytest

from cacheproxy.core import advice, calibration
from cacheproxy.core.calibration import Calibration, Point, Scored, choose, curve, read, threshold_for, written
from cacheproxy.core.labelled import Miss, Pair, misses, pairs
from cacheproxy.core.model import Identity

EMBEDDER = Identity("m", "r1", 4)


def many(count: int, same: bool, similarity: float | None, *, passes: bool = True) -> list[Scored]:
    return [Scored(same, similarity, passes)] * count


def test_a_curve_counts_what_is_at_or_above_each_threshold():
    rows = [*many(3, True, 0.92), *many(2, False, 0.9199), *many(5, True, 0.99, passes=False), *many(4, True, None)]
    assert curve(rows, (0.9, 0.9199, 0.92, 0.93)) == (
        Point(0.9, 5, 2), Point(0.9199, 5, 2), Point(0.92, 3, 0), Point(0.93, 0, 0),
    )  # fmt: skip


def test_the_lowest_threshold_whose_upper_bound_is_within_the_target():
    """299 right ones in a row show 1 % at 95 % confidence; 298 do not."""
    points = curve([*many(299, True, 0.95), *many(50, False, 0.85)])
    assert choose(points, 0.01).threshold == 0.855
    assert choose(curve(many(298, True, 0.95)), 0.01) is None
    assert choose(curve(many(298, True, 0.95)), 0.01, 0.9).threshold == 0.5
    assert choose((), 0.5) is None
    assert choose(curve(many(9, False, 0.4)), 0.999) is None  # nothing served shows nothing


def test_a_single_wrong_one_needs_more_pairs():
    assert choose(curve([*many(472, True, 0.95), *many(1, False, 0.95)]), 0.01) is not None
    assert choose(curve([*many(471, True, 0.95), *many(1, False, 0.95)]), 0.01) is None


def test_another_embedder_knows_nothing():
    made = Calibration(EMBEDDER, curve(many(400, True, 0.9)))
    assert threshold_for(EMBEDDER, 0.01, made) == 0.5
    assert threshold_for(replace(EMBEDDER, revision=""), 0.01, made) == 0.5  # it does not say which
    for other in (
        {"name": "n"},
        {"revision": "r2"},
        {"dim": 5},
        {"prefix": "query: "},
        {"pooling": "cls"},
        {"precision": "int8"},
    ):
        assert threshold_for(replace(EMBEDDER, **other), 0.01, made) is None


def test_the_shipped_table_is_of_the_default_embedder_and_falls_with_the_threshold():
    shipped = calibration.SHIPPED
    assert shipped.embedder.name == "sentence-transformers/all-MiniLM-L6-v2"
    assert shipped.embedder.dim == 384
    served = [point.served for point in shipped.points]
    assert served == sorted(served, reverse=True)
    assert [point.threshold for point in shipped.points] == sorted({point.threshold for point in shipped.points})
    found = [threshold_for(shipped.embedder, error) for error in (0.001, 0.025, 0.05)]
    assert found[0] is None
    assert 0.88 <= found[1] <= 0.95
    assert found[2] <= found[1]
    assert threshold_for(replace(shipped.embedder, name="other"), 0.05) is None


def test_what_is_written_is_read():
    made = Calibration(EMBEDDER, curve([*many(3, True, 0.9), *many(2, False, 0.7)]))
    assert read(json.dumps(written(made)).encode()) == made
    told = advice.advice([*many(3, True, 0.9), *many(2, False, 0.7)], EMBEDDER, 0.01, 0.95)
    assert read(json.dumps(told).encode()) == made


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"embedder": None}, "`embedder` is missing"), ({"points": []}, "`points` is missing"),
        ({"embedder": {}}, "`embedder.name` must be text"), ({"embedder.dim": True}, "`embedder.dim` must be"),
        ({"embedder.dim": 0}, "`embedder.dim` must be"), ({"points": [7]}, "point 1: `threshold`"),
        ({"points": [{"threshold": 1.1, "served": 1, "wrong": 0}]}, "point 1: `threshold`"),
        ({"points": [{"threshold": float("nan"), "served": 1, "wrong": 0}]}, "point 1: `threshold`"),
        ({"points": [{"threshold": True, "served": 1, "wrong": 0}]}, "point 1: `threshold`"),
        ({"points": [{"threshold": 0.9, "served": 1.5, "wrong": 0}]}, "point 1: `served`"),
        ({"points": [{"threshold": 0.9, "served": 1, "wrong": -1}]}, "point 1: `wrong`"),
        ({"points": [{"threshold": 0.9, "served": 1, "wrong": 2}]}, "point 1: more are wrong"),
    ],
)  # fmt: skip
def test_what_is_no_calibration_is_said_clearly(change, says):
    document = written(Calibration(EMBEDDER, (Point(0.9, 1, 0),)))
    for name, value in change.items():
        outer, _, inner = name.partition(".")
        if inner:
            document[outer][inner] = value
        else:
            document[outer] = value
    with pytest.raises(ValueError, match=says):
        read(json.dumps(document).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b"\xff"])
def test_what_is_no_json_is_said(data):
    with pytest.raises(ValueError, match="not valid JSON"):
        read(data)


# --- lines -----------------------------------------------------------------------------------------------------------


def test_pairs_are_read():
    data = (
        '\ufeff{"a": "x\u2028", "b": "y", "same": true, "kind": "k", "more": 1}\r\n\n{"a": "x", "b": "", "same": false}'
    )
    assert pairs(data.encode()) == [Pair("x\u2028", "y", True, "k"), Pair("x", "", False)]
    assert pairs(b"") == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "not valid JSON"), (b"[1]", "not a JSON object"), (b'{"a": "x"}', "`b` is missing"),
        (b'{"a": "x", "b": 1, "same": true}', "`b` must be text"), (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": "x", "b": "y"}', "`same` is missing"),
        (b'{"a": "x", "b": "y", "same": 1}', "`same` must be true or false"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(line, says):
    good = b'{"a": "x", "b": "y", "same": true}\n'
    with pytest.raises(ValueError, match=f"^line 3: {says}"):
        pairs(good + b"\n" + line + b"\n" + good)


def test_near_misses_are_read():
    rows = [
        {"similarity": 0.9, "reason": "below_threshold", "same": True, "asked": "h", "time": 1.0},
        {"similarity": 1, "reason": "unlike:numbers", "same": False}, {"similarity": 0.95, "reason": "verifier"},
        {"similarity": 0.9, "reason": "below_threshold", "same": None},
    ]  # fmt: skip
    found = misses("\n".join(json.dumps(row) for row in rows).encode())
    assert found[0] == Miss(0.9, "below_threshold", True)
    assert [(miss.same, miss.passes) for miss in found] == [(True, True), (False, False), (None, False), (None, True)]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"reason": "x"}, "`similarity` is missing"), ({"similarity": "0.9", "reason": "x"}, "`similarity` must be a number"),
        ({"similarity": True, "reason": "x"}, "`similarity` must be a number"), ({"similarity": 1.5, "reason": "x"}, "between"),
        ({"similarity": float("nan"), "reason": "x"}, "between"), ({"similarity": 0.9}, "`reason` is missing"),
        ({"similarity": 0.9, "reason": "x", "same": "yes"}, "`same` must be true or false"),
    ],
)  # fmt: skip
def test_a_bad_line_of_the_log_is_named(row, says):
    with pytest.raises(ValueError, match=f"^line 1: .*{says}"):
        misses(json.dumps(row).encode())


# --- what is said ----------------------------------------------------------------------------------------------------


def test_the_threshold_is_said_and_marked():
    told = advice.advice([*many(400, True, 0.95), *many(100, False, 0.85)], EMBEDDER, 0.01, 0.95)
    assert (told["ok"], told["threshold"], told["same"], told["not_same"]) == (True, 0.855, 400, 100)
    lines = list(advice.lines(told))
    (marked,) = [line for line in lines if line.endswith("<")]
    assert marked.split()[:4] == ["0.855", "100.0%", "400", "0"]
    assert lines[-1].startswith("threshold 0.855: 0 of 400 served are wrong, with 95% confidence no more than 0.75%")
    shown = [line.split()[0] for line in lines[4:-2]]
    assert shown == ["0.850", "0.855", "0.950", "0.990"]


def test_too_few_pairs_are_said_with_how_many_would_do():
    told = advice.advice(many(20, True, 0.95), EMBEDDER, 0.01, 0.95)
    assert (told["ok"], told["threshold"]) == (False, None)
    assert "too few pairs: with no more wrong, 299 served pairs would show it" in told["why"]
    told = advice.advice([*many(199, True, 0.95), *many(1, False, 0.95)], EMBEDDER, 0.01, 0.95)
    assert "473 served pairs would show it, 299 with none wrong" in told["why"]


def test_pairs_that_are_too_often_wrong_are_said():
    told = advice.advice([*many(50, True, 0.95), *many(50, False, 0.95)], EMBEDDER, 0.01, 0.95)
    assert "50 of 100 served are wrong" in told["why"]
    assert "too few" not in told["why"]


@pytest.mark.parametrize("rows", [[], many(5, True, None, passes=False), many(5, False, 0.99, passes=False)])
def test_pairs_of_which_none_is_served_are_said(rows):
    told = advice.advice(rows, None, 0.01, 0.95)
    assert "none of these pairs is served" in told["why"]
    assert list(advice.lines(told))[-1].startswith("no threshold: none")
