"""When a refused request may come back."""

from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.returns import EARLY, LATE, LONGEST, Pace, Returns
from tests.examples import tries


def tell(returns: Returns, name: bytes = b"x", *, now: float = 0.0, rate: float = 2.0, waiting: int = 0, since=None):
    return returns.tell(name, 1, waiting=waiting, rate=rate, now=now, since=now if since is None else since)


def test_each_is_told_a_time_of_its_own_as_far_apart_as_slots_come_free():
    returns = Returns()
    assert [tell(returns, b"%d" % n) for n in range(8)] == [1, 2, 2, 3, 3, 4, 4, 5]


def test_what_waits_already_comes_before():
    assert tell(Returns(), waiting=19, rate=2.0) == 10


def test_nobody_is_told_longer_than_clients_heed():
    returns = Returns()
    assert max(tell(returns, b"%d" % n, rate=0.5) for n in range(500)) == LONGEST


def test_an_unknown_rate_is_one_second():
    assert tell(Returns(), rate=float("inf"), waiting=1000) == 1


def test_who_keeps_to_it_has_the_time_at_which_it_came_first():
    returns = Returns()
    seconds = tell(returns, now=100.0, since=90.0, waiting=9)
    assert returns.keep(b"x", 100.0 + seconds) == 90.0
    assert returns.keep(b"x", 100.0 + seconds) is None  # once


def test_who_comes_too_early_or_far_too_late_is_as_anybody():
    returns = Returns()
    tell(returns, waiting=39)  # due at 20
    assert returns.keep(b"x", 20.0 - EARLY - 0.1) is None
    assert tell(returns, now=10.0) == 10  # and is told the same time again
    assert returns.keep(b"x", 20.0 + LATE + 1) is None


def test_a_request_without_a_name_is_not_remembered():
    returns = Returns()
    tell(returns, b"")
    assert returns.keep(b"", 1.0) is None


def test_what_is_remembered_is_bounded():
    returns = Returns(most=3)
    for number in range(10):
        tell(returns, b"%d" % number, rate=1000.0)
    assert returns.keep(b"0", 1.0) is None
    assert returns.keep(b"9", 1.0) is not None


@given(
    st.lists(st.tuples(st.floats(0, 2), st.integers(0, 50), st.floats(0.01, 1000)), max_size=50),
)
@tries(100)
def test_whoever_obeys_is_let_in(refusals):
    returns, now = Returns(), 0.0
    for number, (pause, waiting, rate) in enumerate(refusals):
        now += pause
        name = b"%d" % number
        seconds = returns.tell(name, 2, waiting=waiting, rate=rate, now=now, since=now)
        assert 1 <= seconds <= LONGEST
        assert returns.keep(name, now + seconds) == now


def test_the_pace_of_a_class_is_what_the_more_urgent_leave():
    pace = Pace()
    assert pace.for_class(2, 8, 0.0) == float("inf")
    pace.ended(0.2)
    assert pace.for_class(0, 8, 0.0) == 40.0
    for number in range(2000):
        pace.granted(0, number / 20)
    assert 18 < pace.for_class(1, 8, 100.0) < 22
    for number in range(4000):
        pace.granted(0, 100 + number / 40)
    assert pace.for_class(1, 8, 200.0) == 2.0  # never less than a twentieth
