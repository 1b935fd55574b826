"""The adaptive limit, on simulated backends in virtual time: what it finds, that it stays there, and what moves it."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.adaptive import Limit
from tests.core.simulated import Run, Slots, batch, middle, near
from tests.examples import tries

KINDS = pytest.mark.parametrize(
    ("streamed", "tail"),
    [(0, 0.0), (0, 0.3), (0, 0.8), (1, 0.0), (1, 0.8), (0.5, 0.8)],
    ids=["whole", "whole, noisy", "whole, heavy tail", "streams", "streams, heavy tail", "both, heavy tail"],
)

# --- what it finds -----------------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("slots", [4, 8, 16, 48])
def test_it_finds_the_slots_of_a_backend_and_stays_there(slots, streamed, tail):
    """From 8, with every request's size drawn anew; and the backend is kept busy meanwhile."""
    run = Run(Slots(slots, streamed=streamed, tail=tail), [Limit(1, 256, 8)])
    list(run.steps(200 * slots))
    begun = run.now
    values = list(run.steps(6000))
    assert near(middle(values), slots)
    assert near(values, slots)
    assert 6000 / (run.now - begun) >= 0.85 * slots / 1.05


@KINDS
@pytest.mark.parametrize("start", [4, 64])
def test_where_it_starts_does_not_matter(start, streamed, tail):
    run = Run(Slots(16, streamed=streamed, tail=tail), [Limit(4, 256, start)])
    list(run.steps(2500))
    assert near(middle(list(run.steps(3000))), 16)


@pytest.mark.parametrize("streamed", [0, 1])
@pytest.mark.parametrize("tail", [0.0, 0.5, 1.0])
def test_a_batch_is_not_kept_small_because_one_alone_would_be_quicker(streamed, tail):
    """An engine that is twice as slow with 32 as with a few, and does much more in all: it is given many times the
    least, but not all there is: what more would bring is slowness."""
    values = batch(Limit(4, 1024, 4), 32, 7000, tail=tail, streamed=streamed, slow=lambda _: 1.0)
    settled = middle(values[6000:])
    assert min(settled) >= 12
    assert max(settled) <= 200


def test_a_backend_that_load_does_not_slow_down_gets_the_most():
    run = Run(Slots(10_000, tail=0.3), [Limit(4, 64, 8)])
    list(run.steps(3000))
    assert max(run.steps(200)) == 64


def test_noise_alone_does_not_shrink_it():
    """Sizes that differ by a factor of a hundred, nothing waits anywhere: it only grows."""
    for seed in range(5):
        limit = Limit(2, 24, 12)
        run = Run(Slots(10_000, tail=1.2, jitter=0.3), [limit], rng=random.Random(seed))
        list(run.steps(2000))
        assert min(middle(list(run.steps(3000)))) >= 12


@pytest.mark.parametrize("most", [8, 3])
def test_its_bounds_hold(most):
    run = Run(Slots(1), [Limit(2, most, 3)])
    assert set(run.steps(1500)) <= {1, 2, 3, 4, 5, 6, 7, 8}
    assert max(run.steps(300)) <= 3
    run = Run(Slots(100), [Limit(2, most, 3)])
    list(run.steps(1000))
    assert max(run.steps(300)) == most


def test_one_slot_is_found_too():
    run = Run(Slots(1, tail=0.3), [Limit(1, 64, 16)])
    list(run.steps(2000))
    assert max(run.steps(1000)) <= 2


# --- what moves it -----------------------------------------------------------------------------------------------


@KINDS
def test_a_backend_that_has_lost_slots_is_given_less_and_gets_them_back(streamed, tail):
    run = Run(Slots(48, streamed=streamed, tail=tail), [Limit(4, 256, 16)])
    list(run.steps(6000))
    run.backend.slots = 12
    list(run.steps(5000))
    assert near(middle(list(run.steps(2000))), 12)
    run.backend.slots = 48
    list(run.steps(8000))
    assert near(middle(list(run.steps(2000))), 48)


@KINDS
@pytest.mark.parametrize("times", [3, 10])
def test_a_backend_that_becomes_slow_is_given_as_many_as_before(streamed, tail, times):
    """All answers take three times as long, ten times, and later as long as before: its slots are the same."""
    run = Run(Slots(16, streamed=streamed, tail=tail), [Limit(4, 256, 8)])
    list(run.steps(3000))
    for factor in (times, 1):
        run.backend.seconds, run.backend.first = 1.0 * factor, 0.05 * factor
        list(run.steps(3500))
        assert near(middle(list(run.steps(1500))), 16)


@pytest.mark.parametrize("streamed", [0, 1])
def test_a_slow_down_of_a_batch_and_its_end_are_outlived(streamed):
    def slow(done: int) -> float:
        return 3.0 if 3000 <= done < 6000 else 1.0

    values = batch(Limit(4, 1024, 8), 32, 9000, tail=0.5, streamed=streamed, slow=slow)
    assert all(10 <= value <= 200 for value in middle(values[2000:]))


def test_a_queue_that_it_has_made_is_no_baseline():
    """For as long as 300 times the whole queue takes: the limit does not creep up."""
    run = Run(Slots(8, tail=0.3), [Limit(1, 256, 8)])
    list(run.steps(2000))
    for _ in range(10):
        assert max(run.steps(2400)) <= 14


@pytest.mark.parametrize("proxies", [2, 3])
def test_several_before_one_backend_do_not_drive_each_other_up(proxies):
    """Streams: together they find its slots. Whole answers: they hold a queue that has a bound."""
    for streamed, most in ((1, 24), (0, 16 * 7)):
        run = Run(Slots(16, streamed=streamed, tail=0.5), [Limit(2, 256, 4) for _ in range(proxies)])
        list(run.steps(5000))
        assert max(run.steps(20_000)) <= most


def test_what_is_not_used_does_not_grow():
    """At a third of the load that the limit allows, whatever the latency."""
    limit = Limit(4, 256, 16)
    for i in range(5000):
        limit.sample(0.1, 1 + i % 7, i % 2 == 0)
        assert limit.value == 16


def test_little_traffic_leaves_it_where_it_is():
    """A night of one request at a time, its latency anything: in the morning it is as large as before."""
    rng = random.Random(1)
    limit = Limit(2, 256, 16)
    for _ in range(20_000):
        limit.sample(rng.lognormvariate(0, 1), rng.choice((1, 1, 1, 2, 3)), rng.random() < 0.5)
    assert limit.value >= 14


def test_traffic_below_its_capacity_is_not_held_back():
    """Eight of ten slots on the average: what it admits is what comes."""
    run = Run(Slots(16, tail=0.5), [Limit(4, 256, 8)], load=0.8 * 16 / 1.05)
    list(run.steps(3000))
    worst = 0
    for _ in run.steps(6000):
        worst = max(worst, run._waiting)
    assert worst <= 40


def test_one_at_a_time_is_no_end():
    """There is nothing below one that it could be compared with: it tries two."""
    limit = Limit(1, 8, 1)
    rng = random.Random(1)
    for _ in range(2000):
        limit.sample(rng.uniform(0.9, 1.1), limit.value, False)
    assert limit.value >= 6
    limit = Limit(1, 8, 1)
    for _ in range(2000):
        limit.sample(1.0, 0, False)  # nothing was under way: that is no sample
    assert limit.value == 1


# --- breaths -----------------------------------------------------------------------------------------------------


def test_it_never_falls_by_more_than_one_for_two_answers_to_compare():
    """A breath takes the limit down by steps: there is always an answer that lets the next one in."""
    limit = Limit(4, 4 + 60, 64)
    since, before = 0, limit.value
    seen = set()
    for _ in range(2000):
        limit.sample(1.0, limit.value, False)
        since += 1
        if limit.value < before:
            assert (limit.value, since >= 2) == (before - 1, True)
            since = 0
        before = limit.value
        seen.add(before)
    assert min(seen) == 39
    assert max(seen) == 64


def rested() -> Limit:
    """One at the beginning of a rest, after several breaths."""
    limit = Limit(4, 16, 16)
    rng = random.Random(1)
    for is_low in (False, True) * 5:
        while (limit.value < 16) is is_low:
            limit.sample(rng.uniform(0.9, 1.1), limit.value, False)
    for _ in range(3 * 16):
        limit.sample(1.0, 16, False)
    return limit


@pytest.mark.parametrize(("times", "at_once"), [(4.0, True), (1.0, False)])
def test_answers_that_come_much_slower_are_looked_into_at_once(times, at_once):
    """The rest between two breaths is long when all is as it was."""
    limit = rested()
    for _ in range(16):
        limit.sample(1.0, 16, False)
    assert limit.value == 16
    for _ in range(2 * 16):
        limit.sample(times, 16, False)
    assert (limit.value < 16) == at_once


def test_it_stays_low_until_answers_have_come_to_what_was_sent_there():
    """Those that were sent before say nothing of what it is like down there."""
    limit = rested()
    while limit.value > 10:
        limit.sample(1.0, 16, False)
    for _ in range(500):
        limit.sample(1.0, 16, False)
        assert limit.value == 10
    for _ in range(40):
        limit.sample(1.0, 10, False)
    assert limit.value > 10


def test_kinds_have_a_slope_each():
    """Streams begin at once and whole answers take long; which are more changes with the load, and means nothing."""
    limit = Limit(4, 32, 12)
    rng = random.Random(1)
    for _ in range(4000):
        inflight = limit.value
        streamed = rng.random() > inflight / 40
        limit.sample((0.1 if streamed else 10.0) * rng.uniform(0.9, 1.1), inflight, streamed)
    assert limit.value > 24


# --- failures ----------------------------------------------------------------------------------------------------


def test_a_failure_cuts_once_for_all_that_were_under_way():
    limit = Limit(2, 64, 32)
    for _ in range(22):
        limit.failed()
    assert limit.value == 22
    for _ in range(16):
        limit.failed()
    assert limit.value == 16
    for _ in range(300):
        limit.failed()
    assert limit.value == 2


def test_a_failure_ends_a_breath():
    limit = Limit(2, 64, 20)
    while limit.value > 15:
        limit.sample(1.0, limit.value, False)
    limit.failed()
    assert limit.value == 14


def test_a_backend_that_refuses_is_approached_with_caution():
    """It never queues, so that latency tells nothing: few of the many are refused."""
    run = Run(Slots(16, refuses=16, tail=0.3), [Limit(2, 256, 8)])
    list(run.steps(1000))
    before = run.refused
    values = list(run.steps(6000))
    assert run.refused - before <= 0.003 * 6000
    assert near(middle(values), 16)
    assert max(values) <= 19


# --- form --------------------------------------------------------------------------------------------------------


def test_a_fixed_one_is_fixed():
    limit = Limit(16, 16, 3)
    for i in range(1000):
        limit.sample(float(i), 16, True)
        limit.failed()
    assert limit.value == 16
    assert repr(limit) == "<Limit 16 of 16 to 16>"


@pytest.mark.parametrize(("least", "most"), [(0, 4), (5, 4), (-1, -1)])
def test_impossible_bounds_are_refused(least, most):
    with pytest.raises(ValueError, match="no limit"):
        Limit(least, most)


@given(
    st.tuples(st.integers(1, 20), st.integers(0, 300)),
    st.integers(-5, 400) | st.none(),
    st.lists(
        st.tuples(st.floats(allow_nan=True, allow_infinity=True), st.integers(-3, 500), st.booleans()) | st.none()
    ),
    st.integers(1, 40),
)
@tries(150)
def test_any_sample_leaves_it_within_its_bounds(bounds, start, samples, times):
    """Also where a breath turns: never below the part of the least that it sinks to, never above the most."""
    least, most = bounds[0], bounds[0] + bounds[1]
    limit = Limit(least, most, start)
    for sample in samples * times:
        if sample is None:
            limit.failed()
        else:
            limit.sample(*sample)
        assert max(int(0.6 * least) - 1, 1) <= limit.value <= most
