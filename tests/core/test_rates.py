"""What a key may use in a minute: never more than the limit in any minute, and who waits as long as told gets in."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cacheproxy.core import rates
from cacheproxy.core.rates import WINDOW, Level, Limits, Slot, Window

PAUSES = st.one_of(st.floats(0, 0.3), st.floats(0, 5), st.floats(0, 100), st.sampled_from([0.0, 1.0, 59.0, 60.0]))


def let_through(window: Window, limits: Limits, now: float, tokens: int = 0) -> bool:
    """Ask at `now`; what it costs is counted at once."""
    if not rates.admits(limits, window.slots(now)):
        return False
    window.add(now, 1, tokens)
    return True


def waits(window: Window, limits: Limits, now: float) -> float:
    return rates.tightest(rates.levels(limits, window.slots(now), now)).wait


@given(st.lists(PAUSES, max_size=60), st.integers(1, 12), st.floats(0, 10**6))
def test_in_no_minute_are_more_requests_let_through_than_the_limit_says(pauses, limit, now):
    window, limits, taken = Window(), Limits(requests=limit), []
    for pause in pauses:
        now += pause
        if let_through(window, limits, now):
            taken.append(now)
    for first, last in zip(taken, taken[limit:], strict=False):
        assert last - first >= WINDOW - 1e-6


@given(st.lists(st.tuples(PAUSES, st.integers(0, 40)), max_size=60), st.integers(0, 8), st.integers(1, 50))
@example([(0.0903662618674291, 1), (0.0, 0)], 0, 1)
def test_who_comes_again_after_the_seconds_that_were_told_is_let_through(steps, requests, tokens):
    window, limits, now = Window(), Limits(requests, tokens), 1000.0
    for pause, cost in steps:
        now += pause
        if not let_through(window, limits, now, cost):
            wait = rates.seconds(waits(window, limits, now))
            assert 1 <= wait <= WINDOW
            now += wait + 1e-6  # floats
            assert let_through(window, limits, now, cost)


@given(st.lists(st.tuples(PAUSES, st.integers(0, 40)), max_size=60), st.integers(1, 50))
def test_nobody_waits_more_than_a_second_longer_than_the_uses_themselves_would_have_it(steps, tokens):
    window, limits, now = Window(), Limits(tokens=tokens), 1000.0
    uses: list[tuple[float, int]] = []
    for pause, cost in steps:
        now += pause
        if let_through(window, limits, now, cost):
            uses.append((now, cost))
            continue
        due = next(
            at for at in sorted({at + WINDOW for at, _ in uses if at + WINDOW > now})
            if sum(cost for used, cost in uses if used + WINDOW > at) < tokens
        )  # fmt: skip
        assert due - 1e-6 <= now + waits(window, limits, now) <= due + 1 + 1e-6


def test_what_was_used_late_in_a_second_counts_for_a_whole_minute():
    window, limits = Window(), Limits(requests=1)
    assert let_through(window, limits, 100.9)
    assert not let_through(window, limits, 160.5)
    assert waits(window, limits, 160.5) == pytest.approx(0.4)
    assert let_through(window, limits, 160.9)


def test_a_use_that_exceeds_what_is_left_is_counted_as_a_whole():
    window, limits = Window(), Limits(tokens=10)
    window.add(100.0, 1, 9)
    assert rates.admits(limits, window.slots(100.0))
    window.add(130.0, 1, 500)
    assert rates.levels(limits, window.slots(140.0), 140.0) == (Level("tokens", 10, 509, 50.0, 50.0),)
    assert not rates.admits(limits, window.slots(189.9))
    assert rates.admits(limits, window.slots(190.0))


def test_a_window_has_a_bounded_size_whatever_is_used():
    window, now = Window(), 0.0
    for _ in range(20_000):
        now += 0.01
        window.add(now, 1, 1_000_000)
    assert len(window.slots(now)) <= WINDOW + 1
    assert window.slots(now + WINDOW) == []


def test_requests_that_were_taken_back_do_not_count():
    window, limits = Window(), Limits(requests=2)
    first = window.add(10.0, 1, 0)
    window.add(20.5, 1, 0)
    assert not rates.admits(limits, window.slots(21.0))
    window.take_back(first, 1)
    assert rates.admits(limits, window.slots(21.0))
    window.take_back(first, 1)
    window.take_back(15, 1)
    assert [slot.requests for slot in window.slots(21.0)] == [0, 1]


def test_how_things_stand_is_told_for_what_is_limited_alone():
    slots = [Slot(100, 100.5, 2, 30), Slot(110, 110.25, 1, 0)]
    assert rates.levels(Limits(), slots, 120.0) == ()
    requests, tokens = rates.levels(Limits(3, 20), slots, 120.0)
    assert requests == Level("requests", 3, 3, 40.5, 50.25)
    assert tokens == Level("tokens", 20, 30, 40.5, 40.5)
    assert rates.levels(Limits(4), slots, 120.0) == (Level("requests", 4, 3, 0.0, 50.25),)
    assert bool(Limits()) is False
    assert bool(Limits(tokens=1)) is True


def test_the_kind_that_is_to_be_waited_for_longest_is_told():
    few, many = Level("requests", 1, 1, 3.0, 3.0), Level("tokens", 1, 9, 4.5, 4.5)
    assert rates.tightest([few, many]) is many
    assert rates.tightest([few, Level("tokens", 9, 0, 0.0, 0.0)]) is few


@pytest.mark.parametrize(("wait", "told"), [(0.0, 1), (0.2, 1), (1.0, 1), (1.001, 2), (59.5, 60), (60.0, 60)])
def test_seconds_are_rounded_up(wait, told):
    assert rates.seconds(wait) == told


def test_the_lines_have_the_form_that_clients_of_openai_read():
    requests, tokens = Level("requests", 60, 1, 0.0, 59.2), Level("tokens", 150_000, 150_016, 3.0, 59.99)
    assert rates.lines([requests, tokens]) == (
        (b"x-ratelimit-limit-requests", b"60"),
        (b"x-ratelimit-remaining-requests", b"59"),
        (b"x-ratelimit-reset-requests", b"1m0s"),
        (b"x-ratelimit-limit-tokens", b"150000"),
        (b"x-ratelimit-remaining-tokens", b"0"),
        (b"x-ratelimit-reset-tokens", b"1m0s"),
    )
    resets = [rates.lines([requests], since)[2][1] for since in (0.3, 58.2, 58.3, 59.2, 80.0)]
    assert resets == [b"59s", b"1s", b"1s", b"0s", b"0s"]


def test_our_lines_take_the_place_of_the_backends():
    theirs = ((b"X-RateLimit-Remaining-Requests", b"5"), (b"x-request-id", b"r"))
    ours = rates.lines([Level("requests", 3, 1, 0.0, 0.0)])
    assert rates.merged(theirs, ours) == ((b"x-request-id", b"r"), *ours)
    assert rates.merged(theirs, ()) is theirs


def test_a_name_is_of_one_credential_and_of_the_limits_that_hold():
    names = {rates.name(who * 16, limits) for who in (b"a", b"b") for limits in (Limits(1), Limits(2), Limits(1, 1))}
    assert len(names) == 6
    assert {len(name) for name in names} == {rates.NAME_BYTES}
    assert rates.name(b"a" * 16, Limits(1)) in names
    assert not any(b"aaaa" in name for name in names)


def test_a_slot_begins_with_its_second():
    window = Window()
    assert window.add(-0.5, 1, 0) == math.floor(-0.5)
    assert window.add(7.99, 1, 0) == 7
