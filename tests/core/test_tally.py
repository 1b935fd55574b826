"""Counts that are bounded in number and in age: of faults, and of what was spent."""

from cacheproxy.core.spending import HOUR, Spending
from cacheproxy.core.tally import Tally


def test_a_tally_is_of_the_latest_cases():
    tally = Tally(3, 100.0)
    assert tally.counts(0.0) == (0, 0)
    for now, wrong in enumerate([True, True, False, False]):
        tally.add(float(now), wrong=wrong)
    assert tally.counts(4.0) == (1, 3)
    assert repr(tally) == "<Tally 1 of 3>"


def test_what_is_too_old_does_not_count():
    tally = Tally(10, 100.0)
    tally.add(0.0, wrong=True)
    tally.add(50.0, wrong=False)
    assert tally.counts(99.9) == (1, 2)
    assert tally.counts(100.0) == (0, 1)
    tally.clear()
    assert tally.counts(100.0) == (0, 0)


def test_no_more_calls_an_hour_than_are_granted():
    spending = Spending(2, 1000)
    assert [spending.begin(0.0), spending.begin(10.0), spending.begin(20.0)] == [True, True, False]
    assert not spending.begin(HOUR - 0.1)
    assert [spending.begin(HOUR), spending.begin(HOUR)] == [True, False]


def test_no_more_tokens_an_hour_than_are_granted():
    spending = Spending(100, 1000)
    assert spending.begin(0.0)
    spending.settle(999)
    assert spending.begin(10.0), "what is left may be overdrawn by one call"
    spending.settle(500)
    assert not spending.begin(20.0)
    assert repr(spending) == "<Spending 2/100 calls, 1499/1000 tokens>"
    assert spending.begin(HOUR), "the first call's hour is over"


def test_nothing_granted_is_nothing_spent():
    assert not Spending(0, 1000).begin(0.0)
    assert not Spending(10, 0).begin(0.0)
    spending = Spending(10, 10)
    spending.settle(5)
    assert repr(spending) == "<Spending 0/10 calls, 0/10 tokens>"
