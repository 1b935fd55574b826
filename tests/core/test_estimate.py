"""Bounds of a share: known values, and that they hold as often as they say."""

import math
import random

import pytest

from cacheproxy.core.estimate import interval, lower, needed, upper


@pytest.mark.parametrize(
    ("wrong", "of", "low", "high"),
    [
        (0, 10, 0.0, 0.30850), (1, 10, 0.00253, 0.44502), (3, 10, 0.06674, 0.65245), (5, 100, 0.01643, 0.11283),
        (50, 100, 0.39832, 0.60168), (100, 100, 0.96378, 1.0), (7, 1000, 0.00282, 0.01437),
    ],
)  # fmt: skip
def test_the_bounds_are_those_of_the_tables(wrong, of, low, high):
    found = interval(wrong, of, 0.95)
    assert found == pytest.approx((low, high), abs=1.5e-5)
    assert (upper(wrong, of, 0.975), lower(wrong, of, 0.975)) == pytest.approx((high, low), abs=1.5e-5)


def test_nothing_seen_says_nothing():
    assert interval(0, 0) == (0.0, 1.0)
    assert (upper(0, 0), lower(0, 0)) == (1.0, 0.0)


def test_large_counts_are_as_exact():
    """No fault in n: the bound is known in closed form."""
    for of in (1, 3, 299, 10_000, 1_000_000):
        assert upper(0, of, 0.95) == pytest.approx(1 - 0.05 ** (1 / of), rel=1e-6)
    low, high = interval(500_000, 1_000_000)
    assert (low, high) == pytest.approx((0.49902, 0.50098), abs=2e-5)


def test_the_sides_mirror_each_other():
    for wrong, of in ((0, 7), (2, 9), (30, 31), (400, 1200)):
        low, high = interval(wrong, of, 0.9)
        assert interval(of - wrong, of, 0.9) == pytest.approx((1 - high, 1 - low), abs=1e-9)
        assert low <= wrong / of <= high


def test_more_confidence_is_a_wider_interval_and_more_seen_a_narrower_one():
    assert interval(3, 100, 0.9)[1] < interval(3, 100, 0.95)[1] < interval(3, 100, 0.99)[1]
    assert upper(30, 1000) < upper(3, 100)


@pytest.mark.parametrize("share", [0.005, 0.02, 0.1])
def test_the_upper_bound_holds_as_often_as_it_says(share):
    """Drawn again and again, the true share is above the bound in one of twenty cases at most."""
    drawn, missed = random.Random(7), 0
    for _ in range(400):
        wrong = sum(drawn.random() < share for _ in range(200))
        missed += upper(wrong, 200, 0.95) < share
    assert missed <= 400 * 0.05 + 3 * math.sqrt(400 * 0.05 * 0.95)


@pytest.mark.parametrize(
    ("most", "confidence", "wrong", "count"), [(0.01, 0.95, 0, 299), (0.01, 0.95, 1, 473), (0.5, 0.95, 0, 5)]
)
def test_how_many_are_needed(most, confidence, wrong, count):
    assert needed(most, confidence, wrong) == count
    assert upper(wrong, count, confidence) <= most < upper(wrong, count - 1, confidence)


@pytest.mark.parametrize(
    "call",
    [
        lambda: interval(2, 1), lambda: interval(-1, 1), lambda: interval(0, 1, 1.0), lambda: upper(0, 1, 0.0),
        lambda: needed(0.0), lambda: needed(1.0), lambda: needed(0.1, 1.5),
    ],
)  # fmt: skip
def test_what_cannot_be_a_count_is_refused(call):
    with pytest.raises(ValueError, match="must be"):
        call()
