"""The estimate of wrong answers, and the threshold that follows it."""

import logging

import pytest

from cacheproxy.core.agreement import Agreement
from cacheproxy.core.estimate import interval
from cacheproxy.engine import truth as module
from cacheproxy.engine.truth import HIGHEST, STEP, WINDOW, Truth
from tests.engine.fakes import Hands, Notes

AGREE, DIFFER, UNKNOWN = Agreement.AGREE, Agreement.DIFFER, Agreement.UNKNOWN


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def truth(notes, hands) -> Truth:
    return Truth(notes, hands, 0.02, 0.92)


def feed(truth, *verdicts) -> None:
    for verdict in verdicts:
        truth.note(verdict)


def moves(notes) -> list[str]:
    return [label for event, label in notes.counted if event == "semantic_tightened"]


def test_nothing_is_known_at_first(truth):
    summary = truth.summary()
    assert (summary["false_hit_rate"], summary["low"], summary["high"], summary["samples"]) == (None, 0.0, 1.0, 0)
    assert (truth.threshold(0.92), truth.tightened) == (0.92, 0.0)


def test_the_estimate_is_the_share_of_wrong_ones_with_its_interval(truth, notes):
    feed(truth, *[AGREE] * 98, DIFFER, DIFFER)
    low, high = interval(2, 100, 0.95)
    assert truth.summary() == {
        "false_hit_rate": 0.02, "low": low, "high": high, "confidence": 0.95, "wrong": 2, "samples": 100,
        "verdicts": {"agree": 98, "differ": 2, "unknown": 0}, "target": 0.02, "tightened": 0.0,
    }  # fmt: skip
    assert low < 0.02 < high
    assert notes.counted == [("semantic_samples", "agree")] * 98 + [("semantic_samples", "differ")] * 2


def test_what_is_not_known_counts_for_nothing(truth, notes):
    feed(truth, AGREE, *[UNKNOWN] * 50)
    assert (truth.summary()["samples"], truth.summary()["verdicts"]["unknown"]) == (1, 50)
    assert notes.counted.count(("semantic_samples", "unknown")) == 50


def test_what_is_old_is_forgotten_also_if_nothing_new_comes(truth, hands):
    feed(truth, AGREE, DIFFER)
    hands.move(7 * 86_400)
    assert truth.estimate.of == 0


def test_too_many_wrong_ones_tighten_by_one_step_told_once(truth, notes, caplog):
    with caplog.at_level(logging.INFO):
        feed(truth, *[AGREE] * 5, *[DIFFER] * 3)
    assert truth.threshold(0.92) == pytest.approx(0.93)
    assert moves(notes) == ["up"]
    assert [(r.levelname, r.name) for r in caplog.records] == [("WARNING", "cacheproxy.semantic")]
    assert "3 of 8 samples, target 0.02" in caplog.text
    assert truth.summary()["samples"] == 0, "a step needs evidence of its own"
    assert truth.summary()["tightened"] == 0.01
    assert truth.era == 1, "what was served before is not evidence for the next one"


def test_each_step_has_its_own_evidence_up_to_the_highest_threshold(truth, notes, caplog):
    feed(truth, *[DIFFER] * 3)
    feed(truth, *[DIFFER] * 2)
    assert moves(notes) == ["up"]
    feed(truth, DIFFER)
    assert moves(notes) == ["up"] * 2
    feed(truth, *[DIFFER] * 100)
    assert truth.threshold(0.92) == HIGHEST
    assert moves(notes) == ["up"] * 7
    assert len([r for r in caplog.records if r.levelno >= logging.WARNING]) == 7, "and it is silent from then on"


@pytest.mark.parametrize(("base", "wanted"), [(0.9, 0.91), (0.985, HIGHEST), (0.99, 0.99), (0.995, 0.995), (1.0, 1.0)])
def test_a_step_never_lowers_what_was_wanted(truth, base, wanted):
    feed(truth, *[DIFFER] * 3)
    assert truth.threshold(base) == pytest.approx(wanted)


def test_one_or_two_wrong_ones_are_no_evidence(truth, notes):
    feed(truth, DIFFER, DIFFER)
    assert moves(notes) == []
    feed(truth, *[AGREE] * 400, DIFFER)
    assert moves(notes) == [], "nor is what chance brings within the target"


def test_it_loosens_only_when_it_is_as_certain_that_it_may(truth, notes, caplog):
    feed(truth, *[DIFFER] * 3, *[DIFFER] * 3)
    assert truth.tightened == pytest.approx(2 * STEP)
    of = next(n for n in range(1, WINDOW) if interval(0, n, module.SURE)[1] < 0.02)
    needed = max(of, module.LEAST_RIGHT << 1)
    with caplog.at_level(logging.INFO):
        feed(truth, *[AGREE] * (needed - 1))
        assert moves(notes) == ["up", "up"]
        feed(truth, AGREE)
    assert moves(notes) == ["up", "up", "down"]
    assert truth.tightened == pytest.approx(STEP)
    assert truth.estimate.of == 0
    feed(truth, *[AGREE] * (needed - 1))
    assert truth.tightened == pytest.approx(STEP), "and each step down has its own evidence too"
    feed(truth, AGREE)
    assert truth.tightened == 0.0
    feed(truth, *[AGREE] * WINDOW)
    assert (truth.threshold(0.92), truth.tightened) == (0.92, 0.0), "never below what the configuration says"
    assert moves(notes) == ["up", "up", "down", "down"]


def test_what_had_to_be_tightened_again_is_loosened_later(truth):
    feed(truth, *[DIFFER] * 3)
    feed(truth, *[AGREE] * 265)
    assert truth.tightened == 0.0
    feed(truth, *[DIFFER] * 6)
    feed(truth, *[AGREE] * 400)
    assert truth.tightened == pytest.approx(2 * STEP)
    feed(truth, *[AGREE] * 200)
    assert truth.tightened == pytest.approx(STEP)
