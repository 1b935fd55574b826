"""How often may be tried again: a share of what comes, some always, and all of it forgotten after a while."""

from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.retries import FLOOR, WINDOW, RetryBudget
from tests.examples import tries


def spent(budget: RetryBudget, now: float) -> int:
    """How many retries it has left, all taken."""
    count = 0
    while budget.allow(now):
        count += 1
    return count


def test_some_are_always_allowed():
    budget = RetryBudget(0.0)
    assert spent(budget, 0.0) == FLOOR
    assert repr(budget) == f"<RetryBudget {FLOOR} of 0>"


def test_a_share_of_the_requests_is():
    budget = RetryBudget(0.2)
    for _ in range(100):
        budget.note(0.0)
    assert spent(budget, 0.0) == FLOOR + 20


def test_after_the_window_all_begins_anew():
    budget = RetryBudget(0.5)
    for _ in range(100):
        budget.note(0.5)
    assert spent(budget, 1.0) == FLOOR + 50
    assert spent(budget, WINDOW - 0.1) == 0
    assert spent(budget, 1.0 + 2 * WINDOW) == FLOOR


@given(st.lists(st.tuples(st.floats(0, 5), st.booleans()), max_size=200), st.floats(0, 1))
@tries(100)
def test_never_more_than_the_share_and_the_floor_in_any_window(steps, share):
    budget, now, asked, tried = RetryBudget(share), 0.0, [], []
    for seconds, retries in steps:
        now += seconds
        asked.append(now)
        budget.note(now)
        if retries and budget.allow(now):
            tried.append(now)
        recent = [when for when in tried if int(when) > int(now) - WINDOW]
        assert len(recent) <= FLOOR + share * sum(int(when) > int(now) - WINDOW for when in asked) + 1
