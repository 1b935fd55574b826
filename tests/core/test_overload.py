"""The guide's rule of overload: what raises the level and how far, what lowers it, and that it does not flap."""

import itertools
import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.overload import Overload, Signals, Terms
from cacheproxy.core.queues import Level
from tests.examples import tries

NORMAL, NO_NEW_P2, PAUSE_P1 = Level
STEP = 0.25


def full(waiting: int, oldest: float = 0.1, **others) -> Signals:
    return Signals(16, 16, waiting, oldest if waiting else 0.0, **others)


IDLE = Signals(3, 16, 0, 0.0)


class Watch:
    """Looks four times a second, or each `step`; remembers each change: when, and to what."""

    def __init__(self, terms: Terms | None = None, step: float = STEP) -> None:
        self.overload = Overload(terms or Terms())
        self.now = 1000.0
        self.step = step
        self.changes: list[tuple[float, Level]] = []

    def see(self, seconds: float, signals: Signals | Callable[[float], Signals]) -> Level:
        """For so long these signals, or what they are so many seconds after the beginning."""
        begun = self.now
        while self.now < begun + seconds - 1e-9:
            before = self.overload.level
            level = self.overload.look(self.now, signals(self.now - begun) if callable(signals) else signals)
            if level is not before:
                self.changes.append((self.now - 1000.0, level))
            self.now += self.step
        return self.overload.level


def growing(rate: float, **others) -> Callable[[float], Signals]:
    """P0's queue grows by `rate` requests a second; each waits for a short time only."""
    return lambda passed: full(int(rate * passed), 0.1, **others)


# --- up ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [2, 5, 20])
@pytest.mark.parametrize("step", [0.25, 0.02])
def test_a_growing_queue_of_a_busy_backend_shuts_out_new_p2_and_then_pauses_p1(rate, step):
    """In that order, the second `patience` after the first; however often it is looked at."""
    watch = Watch(step=step)
    watch.see(1, full(0))
    assert watch.see(6, growing(rate)) is PAUSE_P1
    (first, one), (second, two) = watch.changes
    assert (one, two) == (NO_NEW_P2, PAUSE_P1)
    assert first <= 4
    assert second - first == pytest.approx(2.0, abs=2 * step)
    assert watch.overload.cause == "growth"


def test_a_queue_that_waits_longer_than_it_may_needs_not_grow():
    watch = Watch()
    watch.see(10, full(2, 0.9))
    assert watch.changes == []
    assert watch.see(3, full(2, 1.1)) is PAUSE_P1
    assert watch.overload.cause == "wait"


def test_answers_that_begin_too_late_count_as_growth():
    watch = Watch(Terms(first_byte=2.0))
    assert watch.see(5, full(0, first_byte=1.9)) is NORMAL
    assert watch.see(1, full(0, first_byte=2.1)) is NO_NEW_P2
    assert watch.overload.cause == "first_byte"


def test_what_does_not_go_on_does_not_pause_p1():
    watch = Watch()
    watch.see(1, full(3, 1.5))
    for _ in range(20):
        watch.see(1.0, full(1, 0.7))
        watch.see(1.5, full(3, 1.5))
    assert watch.changes == [(0.0, NO_NEW_P2)]


@pytest.mark.parametrize("utilisation", [None, 0.2, 0.85, math.nan])
def test_a_backend_that_is_not_busy_is_not_overloaded(utilisation):
    """Whatever P0's queue does: it waits for something else."""

    def seen(passed: float) -> Signals:
        return Signals(14, 16, int(10 * passed), 5.0, utilisation, 60.0)

    assert Watch().see(30, seen) is NORMAL


@pytest.mark.parametrize(("used", "utilisation"), [(15, None), (16, 0.3), (4, 0.95)])
def test_slots_and_what_the_backend_says_count_whichever_is_more(used, utilisation):
    assert Watch().see(5, Signals(used, 16, 3, 2.0, utilisation)) is PAUSE_P1


def test_no_slots_at_all_are_a_busy_backend_as_soon_as_one_is_taken():
    assert Signals(0, 0, 0, 0.0).busy == 0.0
    assert Signals(1, 0, 0, 0.0).busy == 1.0
    assert Signals(4, 16, 0, 0.0).busy == 0.25


# --- not up ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("waiting", [1, 2, 20])
def test_a_queue_of_the_same_length_does_not_grow(waiting):
    """At full load, for minutes; whenever it was as long from the beginning."""
    watch = Watch()
    for _ in range(8):
        watch.see(0.25, full(0))
    watch.see(10, full(waiting))
    settled = len(watch.changes)
    watch.see(300, full(waiting))
    assert len(watch.changes) <= settled + 1  # down
    assert watch.overload.level is NORMAL
    assert (settled == 0) == (waiting <= 2)


def test_a_short_queue_that_comes_and_goes_is_no_growth():
    """At exactly full load: now nobody waits, now one or two do, each for a short time."""
    rng = random.Random(1)
    watch = Watch(step=0.02)
    for _ in range(5000):
        watch.see(0.02, full(rng.choice((0, 0, 1, 1, 2)), rng.uniform(0, 0.4)))
    assert watch.changes == []


def test_a_moment_with_many_is_no_growth():
    """They are gone before a mean has seen them."""
    watch = Watch(step=0.01)
    watch.see(1, full(0))
    for _ in range(20):
        watch.see(0.03, full(8, 0.03))
        watch.see(1.0, full(0))
    assert watch.changes == []


def test_looking_often_changes_nothing():
    """Twenty looks at one moment are as one."""
    watch = Watch()
    watch.see(1, full(0))
    for _ in range(200):
        watch.overload.look(watch.now, full(12, 0.05))
    assert watch.overload.level is NORMAL


# --- down --------------------------------------------------------------------------------------------------------


def pressed(terms: Terms | None = None) -> Watch:
    """One that has paused P1."""
    watch = Watch(terms)
    watch.see(4, full(5, 2.0))
    assert watch.overload.level is PAUSE_P1
    watch.changes.clear()
    return watch


@pytest.mark.parametrize(
    "signals",
    [IDLE, full(0), full(1, 0.3), Signals(12, 16, 4, 3.0), Signals(12, 16, 0, 0.0, 0.5)],
    ids=["idle", "busy, nobody waits", "busy, short waits", "room, long waits", "room by both accounts"],
)
def test_calm_lowers_it_by_one_each_time(signals):
    watch = pressed()
    begun = watch.now - 1000.0
    watch.see(20, signals)
    (first, one), (second, two) = watch.changes
    assert (one, two) == (NO_NEW_P2, NORMAL)
    assert first - begun == pytest.approx(5.0, abs=2 * STEP)
    assert second - first == pytest.approx(5.0, abs=2 * STEP)


@pytest.mark.parametrize("signals", [full(1, 0.6), full(3, 1.1), Signals(14, 16, 1, 0.6)])
def test_what_is_not_calm_does_not_lower_it(signals):
    """P0 waits more than half of what it may, and the backend has no room."""
    assert pressed().see(60, signals) is PAUSE_P1


def test_calm_that_is_broken_begins_anew():
    watch = pressed()
    for _ in range(10):
        watch.see(4, full(0))
        watch.see(0.25, full(1, 0.8))
    assert watch.changes == []


def test_time_that_nobody_looked_at_was_not_calm():
    """A process that slept for a minute."""
    watch = pressed()
    watch.see(1, IDLE)
    watch.now += 60
    watch.see(1, IDLE)
    assert watch.changes == []
    watch.see(5, IDLE)
    assert watch.changes == [(pytest.approx(watch.now - 1000, abs=1.5), NO_NEW_P2)]


# --- flapping ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [0.5, 1, 2, 5, 6, 8, 12, 20, 40])
@pytest.mark.parametrize("high", [3, 20])
@pytest.mark.parametrize("oldest", [0.2, 3.0])
def test_load_that_comes_and_goes_changes_it_once_a_calm_time_at_most(period, high, oldest):
    """A sawtooth of P0's queue, its wait with it: only two steps up may be nearer to each other, by `patience`."""
    watch = Watch(step=0.05)
    watch.see(300, lambda passed: full(round(high * (passed / period % 1)), oldest * (passed / period % 1)))
    up = raised(watch.changes)
    for earlier, later in itertools.pairwise(watch.changes):
        assert later[0] - earlier[0] >= (2.0 if earlier in up and later in up else 5.0) - 1e-6


def test_after_a_step_down_nothing_goes_up_for_a_while():
    """Neither from the middle nor from below; and `patience` counts from the step up."""
    watch = pressed()
    watch.see(5.1, full(0))
    watch.see(15, full(5, 2.0))
    (down, middle), (again, most) = watch.changes
    assert (middle, most) == (NO_NEW_P2, PAUSE_P1)
    assert again - down == pytest.approx(5.0, abs=2 * STEP)
    watch.changes.clear()
    watch.see(10.6, full(0))
    assert watch.overload.level is NORMAL
    watch.see(15, full(5, 2.0))
    times = [when for when, _ in watch.changes]
    assert [level for _, level in watch.changes] == [NO_NEW_P2, NORMAL, NO_NEW_P2, PAUSE_P1]
    assert times[2] - times[1] == pytest.approx(5.0, abs=2 * STEP)
    assert times[3] - times[2] == pytest.approx(2.0, abs=2 * STEP)


def raised(changes: list[tuple[float, Level]]) -> list[tuple[float, Level]]:
    """Those of the changes that went up."""
    levels = [NORMAL, *(level for _, level in changes)]
    return [change for change, before in zip(changes, levels, strict=False) if change[1] > before]


@given(
    st.lists(
        st.tuples(
            st.floats(0, 3), st.integers(0, 20), st.integers(0, 16), st.integers(0, 30), st.floats(0, 40),
            st.floats(0, 1.5) | st.none() | st.just(math.nan), st.floats(0, 100) | st.none(),
        ),
        max_size=200,
    )
)  # fmt: skip
@tries(300)
def test_it_moves_by_one_and_never_soon_after_a_step_down(looks):
    """Whatever it sees."""
    overload, now, level, fell = Overload(Terms()), 50.0, NORMAL, -math.inf
    for passed, used, slots, waiting, oldest, utilisation, first_byte in looks:
        now += passed
        found = overload.look(now, Signals(used, slots, waiting, oldest, utilisation, first_byte))
        assert abs(found - level) <= 1
        if found > level:
            assert now - fell >= 5.0
            assert overload.cause in {"growth", "wait", "first_byte"}
        if found < level:
            fell = now
        level = found


def test_a_clock_that_stands_still_or_goes_back_harms_nothing():
    overload = Overload(Terms())
    for now in (10.0, 10.0, 9.0, 11.0):
        assert overload.look(now, full(0)) is NORMAL


def test_it_says_what_it_is():
    watch = pressed()
    assert repr(watch.overload).startswith("<Overload PAUSE_P1, P0 waiting 5.0 after")
