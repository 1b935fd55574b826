"""When a backend is passed over and when it is given requests again: in a row, by rate, by trial, never by old news."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cacheproxy.core import health
from cacheproxy.core.health import Cause, Health, State, Terms
from tests.examples import tries

TERMS = Terms(failures=3, open=1.0, ejection=10.0, slow_start=10.0)


def refuse(one: Health, now: float, times: int = 1, *, cheap: bool = True) -> list[bool]:
    return [one.refused(now, one.era, 0.0, cheap=cheap) for _ in range(times)]


def break_off(one: Health, now: float, times: int = 1, *, spare: bool = True) -> list[bool]:
    return [one.failed(now, one.era, 0.0, spare=spare) for _ in range(times)]


def hush(one: Health, now: float, times: int = 1, *, spare: bool = True) -> list[bool]:
    return [one.silent(now, one.era, 0.0, spare=spare) for _ in range(times)]


# --- unreachable -------------------------------------------------------------------------------------------------


def test_one_that_could_not_be_reached_rests_and_after_some_times_is_given_nothing():
    one = Health(TERMS)
    assert refuse(one, 5.0, 2) == [False, False]
    assert (one.state(5.0), one.is_able(5.0), one.is_shut(5.0)) == (State.WELL, False, False)
    assert (one.is_able(5.99), one.is_able(6.0)) == (False, True)
    assert refuse(one, 6.0) == [True]
    assert (one.state(6.0), one.is_shut(6.0), one.again(6.0)) == (State.OPEN, True, 1.0)
    assert (one.state(7.0), one.is_able(7.0), one.is_shut(7.0)) == (State.HALF_OPEN, True, False)


def test_a_connection_ends_rest_and_row():
    one = Health(TERMS)
    refuse(one, 0.0, 2)
    assert one.connected(0.1) is False
    assert one.is_able(0.1)
    assert refuse(one, 0.2, 2) == [False, False]


def test_half_open_takes_one_request_at_a_time_and_a_connection_closes_it():
    one = Health(TERMS)
    refuse(one, 0.0, 3)
    assert one.begin(1.0)
    assert (one.is_able(1.0), one.is_shut(1.0), one.begin(1.0)) == (False, True, False)
    one.leave(one.era)
    assert one.is_able(1.0), "its owner left before anything was learned"
    assert one.begin(1.0)
    assert one.connected(1.5)
    assert (one.state(1.5), one.is_able(1.5)) == (State.WELL, True)


def test_one_that_refuses_is_tried_every_second_at_first_and_every_five_at_last():
    one, now, pauses = Health(TERMS), 0.0, []
    refuse(one, now, 3)
    for _ in range(12):
        pauses.append(one.again(now))
        now += pauses[-1]
        assert one.begin(now)
        assert refuse(one, now) == [False], "it was not well before"
    assert pauses == [1.0] * 5 + [2.0, 4.0] + [5.0] * 5
    assert one.ejections == 1


def test_where_trying_is_slow_the_pauses_double_to_half_a_minute():
    one, now, pauses = Health(TERMS), 0.0, []
    refuse(one, now, 3, cheap=False)
    for _ in range(8):
        pauses.append(one.again(now))
        now += pauses[-1]
        one.begin(now)
        refuse(one, now, cheap=False)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_chance_shortens_a_pause_by_a_fifth_at_most():
    for chance, pause in ((0.0, 1.0), (0.5, 0.9), (1.0, 0.8), (7.0, 0.8), (-1.0, 1.0)):
        one = Health(Terms(failures=1))
        one.refused(0.0, one.era, chance, cheap=True)
        assert one.again(0.0) == pytest.approx(pause)


def test_attempts_while_it_is_open_do_not_keep_it_so():
    """Such as a look at its metrics."""
    one = Health(TERMS)
    refuse(one, 0.0, 3)
    assert refuse(one, 0.9) == [False]
    assert one.again(0.9) == pytest.approx(0.1)


def test_what_began_before_is_no_evidence_after():
    one = Health(TERMS)
    era = one.era
    refuse(one, 0.0, 3)
    one.begin(1.0)
    one.connected(1.0)
    for _ in range(9):
        assert not one.refused(1.1, era, 0.0, cheap=True)
        assert not one.silent(1.1, era, 0.0, spare=True)
        assert not one.failed(1.1, era, 0.0, spare=True)
        assert not one.answered(1.1, era, 503, 0.0, spare=True)
    assert one.cause is None
    one.silent(1.2, one.era, 0.0, spare=True)
    one.silent(1.2, one.era, 0.0, spare=True)
    one.answered(1.2, era, 200, 0.0, spare=True)
    assert one.silent(1.2, one.era, 0.0, spare=True), "an old answer does not break the row"


# --- silent and failing ------------------------------------------------------------------------------------------


def test_silence_opens_where_there_are_others_and_is_never_shut():
    one = Health(TERMS)
    assert hush(one, 0.0, 3) == [False, False, True]
    assert (one.state(0.0), one.is_able(0.0), one.is_shut(0.0)) == (State.OPEN, False, False)
    assert one.begin(1.0)
    assert one.answered(1.0, one.era, 200, 0.0, spare=True)
    assert one.state(1.0) is State.WELL


def test_one_alone_is_never_passed_over_for_silence_or_errors():
    one = Health(TERMS)
    assert hush(one, 0.0, 50, spare=False) == break_off(one, 0.0, 50, spare=False) == [False] * 50
    assert one.is_able(0.0)


def test_an_answer_breaks_a_row_of_silence():
    one = Health(TERMS)
    hush(one, 0.0, 2)
    one.answered(0.0, one.era, 429, 0.0, spare=True)
    assert hush(one, 0.0, 2) == [False, False]


def test_a_light_request_is_no_trial_of_how_it_generates():
    one = Health(TERMS)
    hush(one, 0.0, 3)
    assert not one.begin(1.0, light=True)
    assert one.is_able(1.0)
    other = Health(TERMS)
    refuse(other, 0.0, 3)
    assert other.begin(1.0, light=True), "but of whether it is there"


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_errors_in_a_row_eject(status):
    one = Health(TERMS)
    told = [one.answered(0.0, one.era, status, 0.0, spare=True) for _ in range(3)]
    assert told == [False, False, True]
    assert (one.state(0.0), one.cause, one.again(0.0)) == (State.EJECTED, Cause.FAILING, 10.0)
    assert not one.is_shut(0.0)


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 501])
def test_what_is_the_request_s_own_fault_does_not(status):
    one = Health(TERMS)
    assert not any(one.answered(0.0, one.era, status, 0.0, spare=True) for _ in range(100))


def test_half_of_a_window_ejects_though_never_so_many_in_a_row():
    one, changed = Health(TERMS), []
    for turn in range(10):
        assert not one.ended(turn / 10, one.era)
        changed += break_off(one, turn / 10)
    assert changed == [False] * 9 + [True]
    other = Health(TERMS)
    for turn in range(60):
        other.ended(turn * 3.0, other.era)
        assert break_off(other, turn * 3.0) == [False], "too few in any window"
    third = Health(TERMS)
    for turn in range(300):
        third.ended(turn / 100, third.era)
        third.ended(turn / 100, third.era)
        assert break_off(third, turn / 100) == [False], "a third is not half"


def test_an_ejected_one_is_tried_when_its_time_is_over_and_out_for_longer_each_time():
    one, now, pauses = Health(TERMS), 0.0, []
    break_off(one, now, 3)
    for _ in range(8):
        pauses.append(one.again(now))
        assert not one.ended(now + 1, one.era), "what it ends meanwhile does not count"
        assert break_off(one, now + 1) == [False]
        now += pauses[-1]
        assert one.begin(now)
        assert break_off(one, now) == [False]
    assert pauses == [10, 20, 30, 40, 50, 60, 60, 60]
    now += 60
    assert one.begin(now)
    assert one.ended(now, one.era)
    assert one.is_able(now)


def test_a_relapse_soon_after_counts_on_and_a_late_one_begins_anew():
    one = Health(TERMS)
    break_off(one, 0.0, 3)
    one.begin(10.0)
    one.ended(10.0, one.era)
    break_off(one, 20.0, 3)
    assert one.again(20.0) == 20.0
    one.begin(40.0)
    one.ended(40.0, one.era)
    break_off(one, 40.0 + health.RELAPSE, 3)
    assert one.again(40.0 + health.RELAPSE) == 10.0
    assert one.ejections == 3


def test_old_errors_do_not_count_after_it_has_become_well():
    one = Health(TERMS)
    break_off(one, 0.0, 3)
    one.begin(10.0)
    one.ended(10.0, one.era)
    assert break_off(one, 10.0, 3) == [False, False, True]


def test_nor_does_the_window_they_were_in():
    one = Health(Terms(failures=1000))
    assert break_off(one, 0.0, 20) == [False] * 19 + [True]
    one.begin(10.0)
    one.ended(10.0, one.era)
    assert break_off(one, 10.0, 15) == [False] * 15


def test_errors_of_long_ago_are_in_no_window():
    one = Health(Terms(failures=1000))
    break_off(one, 0.0, 15)
    for turn in range(15):
        one.ended(50.0 + turn / 10, one.era)
    assert break_off(one, 52.0, 5) == [False] * 5


@pytest.mark.parametrize("fall", [hush, break_off])
def test_one_that_is_asked_first_is_tried_when_it_has_answered(fall):
    one = Health(TERMS)
    one.asked = True
    fall(one, 0.0, 3)
    assert not one.wants_proof(0.0)
    state, now = one.state(0.0), one.again(0.0)
    assert one.wants_proof(now)
    assert (one.state(now), one.is_able(now), one.begin(now), one.again(now)) == (state, False, False, 0.0)
    assert fall(one, now) == [False], "what fails meanwhile is nothing new"
    one.proved(now, one.era - 1, 0.0, answers=True)
    assert not one.is_able(now), "an answer to an earlier question"
    one.proved(now, one.era, 0.0, answers=False)
    assert one.again(now) == 2 * now
    now += one.again(now)
    one.proved(now, one.era, 0.0, answers=True)
    assert (one.state(now), one.wants_proof(now), one.is_able(now)) == (State.HALF_OPEN, False, True)
    assert one.begin(now)


def test_one_that_could_not_be_reached_is_asked_by_trying():
    one = Health(TERMS)
    one.asked = True
    refuse(one, 0.0, 3)
    assert not one.wants_proof(1.0)
    assert one.is_able(1.0)


# --- rest, slow start, probes ------------------------------------------------------------------------------------


def test_a_rest_is_as_long_as_was_asked_for_and_a_minute_at_most():
    one = Health(TERMS)
    one.rest(0.0, 7.0)
    one.rest(0.0, 3.0)
    assert (one.is_able(6.9), one.is_able(7.0), one.is_shut(1.0)) == (False, True, False)
    one.connected(1.0)
    assert not one.is_able(1.0), "that it can be reached is not why it rests"
    one.rest(0.0, 9e9)
    assert (one.is_able(59.9), one.is_able(60.0)) == (False, True)


def test_its_share_rises_from_a_tenth_after_it_was_out():
    one = Health(TERMS)
    assert one.share(0.0) == 1.0
    refuse(one, 0.0, 3)
    one.begin(1.0)
    one.connected(1.0)
    assert [one.share(now) for now in (1.0, 6.0, 11.0, 500.0)] == pytest.approx([0.1, 0.55, 1.0, 1.0])
    plain = Health(Terms(failures=1, slow_start=0.0))
    refuse(plain, 0.0)
    plain.connected(0.0)
    assert plain.share(0.0) == 1.0


def test_a_probe_holds_until_the_next_and_lets_in_what_it_kept_out():
    one = Health(TERMS)
    assert one.probed(0.0, well=False, reached=True, until=12.5)
    assert (one.state(12.4), one.is_shut(5.0)) == (State.OPEN, False)
    assert not one.probed(5.0, well=False, reached=True, until=17.5)
    assert one.state(17.4) is State.OPEN
    assert one.probed(17.4, well=True, reached=True, until=0.0)
    assert one.is_able(17.4)
    assert one.probed(18.0, well=False, reached=False, until=30.5)
    assert one.is_shut(30.4)


def test_a_probe_does_not_let_in_one_that_requests_have_found_silent_or_failing():
    one, other = Health(TERMS), Health(TERMS)
    hush(one, 0.0, 3)
    break_off(other, 0.0, 3)
    for this in (one, other):
        assert not this.probed(0.1, well=True, reached=True, until=9.0)
        assert not this.is_able(0.1)
    assert not other.probed(0.2, well=False, reached=True, until=900.0)
    assert other.again(0.2) == pytest.approx(9.8), "and does not prolong it either"


# --- whatever happens --------------------------------------------------------------------------------------------

STEPS = st.floats(0, 40, allow_nan=False)


class Life(RuleBasedStateMachine):
    """Anything may happen at any time; verdicts come late."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.now = Health(TERMS), 0.0
        self.eras = [0]
        self.trials: list[int] = []

    @rule(seconds=STEPS)
    def wait(self, seconds):
        self.now += seconds

    @rule()
    def begin(self):
        able, well = self.one.is_able(self.now), self.one.cause is None
        trial = self.one.begin(self.now)
        assert trial == (able and not well)
        if trial:
            assert self.one.era not in self.trials, "one at a time"
            self.trials.append(self.one.era)
        self.eras.append(self.one.era)

    @precondition(lambda self: self.trials)
    @rule()
    def leave(self):
        self.one.leave(self.trials.pop())

    @rule(data=st.data(), what=st.sampled_from(["refused", "silent", "failed", "error", "answered", "ended"]))
    def verdict(self, data, what):
        era = data.draw(st.sampled_from(self.eras))
        before = (self.one.era, self.one.cause)
        changed = {
            "refused": lambda: self.one.refused(self.now, era, 0.5, cheap=True),
            "silent": lambda: self.one.silent(self.now, era, 0.5, spare=True),
            "failed": lambda: self.one.failed(self.now, era, 0.5, spare=True),
            "error": lambda: self.one.answered(self.now, era, 500, 0.5, spare=True),
            "answered": lambda: self.one.answered(self.now, era, 200, 0.5, spare=True),
            "ended": lambda: self.one.ended(self.now, era),
        }[what]()
        assert changed == ((before[1] is None) != (self.one.cause is None))
        if era != before[0]:
            assert (self.one.era, self.one.cause) == before
        self.trials = [trial for trial in self.trials if trial == self.one.era]

    @rule()
    def connected(self):
        self.one.connected(self.now)
        self.trials = [trial for trial in self.trials if trial == self.one.era]

    @rule(seconds=st.floats(0, 1e6))
    def rest(self, seconds):
        self.one.rest(self.now, seconds)

    @invariant()
    def it_comes_back(self):
        """Within a minute from any state, unless a trial runs."""
        assert self.one.again(self.now) <= 60.001
        late = self.now + 60.001
        assert self.trials or self.one.is_able(late) or self.one.wants_proof(late)

    @invariant()
    def only_the_unreachable_is_shut(self):
        assert not self.one.is_shut(self.now) or self.one.cause is Cause.UNREACHABLE
        assert not (self.one.is_shut(self.now) and self.one.is_able(self.now))
        assert 0.1 <= self.one.share(self.now) <= 1.0


class AskedLife(Life):
    """The same, where it is asked before it is tried."""

    def __init__(self) -> None:
        super().__init__()
        self.one.asked = True

    @rule(old=st.booleans(), answers=st.booleans())
    def proved(self, old, answers):
        before = (self.one.era, self.one.cause)
        self.one.proved(self.now, self.one.era - old, 0.5, answers=answers)
        assert self.one.cause is before[1]
        self.trials = [trial for trial in self.trials if trial == self.one.era]

    @invariant()
    def it_is_not_tried_before(self):
        assert not (self.one.wants_proof(self.now) and self.one.is_able(self.now))


TestLife, TestAskedLife = Life.TestCase, AskedLife.TestCase
TestLife.settings = TestAskedLife.settings = tries(150)
