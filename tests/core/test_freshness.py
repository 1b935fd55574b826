"""Fresh, stale, expired, too old: at every boundary, for every directive."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.controls import Controls
from cacheproxy.core.freshness import Allowance, Freshness, is_due, judge, lifetime, may_rescue
from cacheproxy.core.model import Answer, Endpoint, Entry, Form

ENTRY = Entry(
    key=b"k" * 32, owner=b"o" * 16, credential=b"c" * 16, namespace="", endpoint=Endpoint.CHAT, model="m",
    answer=Answer(Form.JSON, "application/json", b"{}", has_usage=False), stored_at=1000.0, fresh_until=1100.0,
    expires_at=1200.0, took=1.0,
)  # fmt: skip
FRESH, STALE, EXPIRED, TOO_OLD = Freshness.FRESH, Freshness.STALE, Freshness.EXPIRED, Freshness.TOO_OLD
REVALIDATE = Freshness.REVALIDATE


@pytest.mark.parametrize(
    ("now", "wishes", "state"),
    [
        (1000, {}, FRESH), (1099.999, {}, FRESH), (1100, {}, EXPIRED), (1150, {}, EXPIRED), (1200, {}, EXPIRED),
        (900, {}, FRESH),
        (1010, {"max_age": 10}, FRESH), (1010.1, {"max_age": 10}, TOO_OLD), (1000, {"max_age": 0}, TOO_OLD),
        (900, {"max_age": 0}, TOO_OLD),
        (1000, {"max_age": 1}, FRESH), (900, {"max_age": 1}, FRESH), (1050, {"max_age": inf}, FRESH),
        (1100, {"max_age": 500}, EXPIRED),
        (1050, {"min_fresh": 50}, FRESH), (1050, {"min_fresh": 50.1}, TOO_OLD), (1000, {"min_fresh": 0}, FRESH),
        (1110, {"max_stale": 10}, STALE), (1110.1, {"max_stale": 10}, EXPIRED), (1199, {"max_stale": inf}, STALE),
        (1200, {"max_stale": inf}, EXPIRED), (5000, {"max_stale": inf}, EXPIRED), (1050, {"max_stale": 10}, FRESH),
        (1100, {"max_stale": 0}, STALE), (1110, {"max_stale": inf, "max_age": 50}, TOO_OLD),
        (1110, {"max_stale": inf, "max_age": 200}, STALE),
        (1110, {"max_stale": inf, "min_fresh": 1}, TOO_OLD),
    ],
)  # fmt: skip
def test_what_an_entry_is(now, wishes, state):
    """RFC 9111 sections 4.2 and 5.2.1; a clock that went back makes nothing older than new."""
    assert judge(ENTRY, Controls(**wishes), now) is state


times = st.floats(0, 2000)
wishes = st.builds(
    Controls, max_age=st.none() | times, min_fresh=st.none() | times, max_stale=st.none() | times | st.just(inf)
)


@given(wishes, times)
def test_nothing_is_served_past_its_end(controls, now):
    """B40: absolute, whatever a request takes."""
    state = judge(ENTRY, controls, now)
    if now >= ENTRY.expires_at:
        assert state is EXPIRED
    if state is FRESH:
        assert now < ENTRY.fresh_until
    if state is STALE:
        assert controls.max_stale is not None
        assert now - ENTRY.fresh_until <= controls.max_stale


@given(wishes, times)
def test_a_directive_only_takes_away(controls, now):
    """max-age and min-fresh never make usable what was not; max-stale never makes unusable what was."""
    usable = {FRESH, STALE}
    relaxed = replace(controls, max_age=None, min_fresh=None)
    if judge(ENTRY, controls, now) in usable:
        assert judge(ENTRY, relaxed, now) in usable
    if judge(ENTRY, replace(controls, max_stale=None), now) in usable:
        assert judge(ENTRY, controls, now) in usable


@pytest.mark.parametrize(("spread", "expected"), [(0, 100), (1, 110), (-1, 90), (0.5, 105), (7, 110), (-7, 90)])
def test_a_lifetime_moves_by_a_tenth_at_most(spread, expected):
    assert lifetime(100.0, spread) == pytest.approx(expected)
    assert lifetime(0.0, spread) == 0.0


@pytest.mark.parametrize(
    ("now", "wishes", "state"),
    [
        (1099, {}, FRESH), (1100, {}, REVALIDATE), (1129.9, {}, REVALIDATE), (1130, {}, EXPIRED),
        (1110, {"max_stale": 5}, EXPIRED), (1110, {"max_stale": 20}, STALE), (1110, {"max_age": 50}, EXPIRED),
        (1110, {"min_fresh": 1}, EXPIRED), (1110, {"max_age": 500}, REVALIDATE), (1200, {}, EXPIRED),
    ],
)  # fmt: skip
def test_what_may_be_served_while_a_new_one_is_fetched(now, wishes, state):
    """RFC 5861 section 3; a request that says how old is too old has agreed to nothing past that."""
    assert judge(ENTRY, Controls(**wishes), now, Allowance(while_revalidate=30)) is state


@pytest.mark.parametrize(
    ("now", "wishes", "may"),
    [
        (1050, {}, True), (1100, {}, True), (1129.9, {}, True), (1130, {}, False), (1200, {}, False),
        (1110, {"max_age": 50}, False), (1110, {"min_fresh": 1}, False), (1110, {"no_cache": True}, False),
        (1150, {"stale_if_error": 60}, True), (1165, {"stale_if_error": 60}, False),
        (1201, {"stale_if_error": 600}, False),
    ],
)  # fmt: skip
def test_what_may_stand_in_for_a_failed_backend(now, wishes, may):
    """RFC 5861 section 4; an error that was kept never does."""
    assert may_rescue(ENTRY, Controls(**wishes), now, Allowance(if_error=30)) is may
    error = replace(ENTRY, answer=replace(ENTRY.answer, status=404))
    assert not may_rescue(error, Controls(**wishes), now, Allowance(if_error=30))


def test_a_refresh_is_due_only_near_the_end():
    """Never before the last share of a lifetime, never past its end; surer the later; never with a share of 0."""
    surest = 1e-9
    assert [is_due(ENTRY, now, surest, 0.1) for now in (1000, 1089.9, 1090, 1099.9, 1100, 1150)] == [
        False, False, True, True, False, False,
    ]  # fmt: skip
    draws = [(n + 0.5) / 1000 for n in range(1000)]
    chances = [sum(is_due(ENTRY, now, draw, 0.1) for draw in draws) for now in (1090.5, 1093, 1096, 1099)]
    assert chances == sorted(chances)
    assert chances[0] < 50
    assert chances[-1] > 600
    slow = replace(ENTRY, took=20.0)
    assert is_due(slow, 1061, surest, 0.1)
    assert not any(is_due(entry, 1099.9, surest, 0.0) for entry in (ENTRY, slow))
    assert not is_due(replace(ENTRY, answer=replace(ENTRY.answer, status=404)), 1099, surest, 0.1)
