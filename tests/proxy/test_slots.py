"""The backends' slots: never more than there are, none lost, and whoever waits is told whenever there may be room."""

import contextlib
import heapq
from itertools import count

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cacheproxy.core.adaptive import Limit
from cacheproxy.core.affinity import Policy, Route
from cacheproxy.core.health import Terms
from cacheproxy.errors import AnswerError, CircuitOpen, UpstreamUnreachable
from cacheproxy.http.balance import Balance
from cacheproxy.http.upstream import Upstream
from tests.examples import tries

URLS = ["http://a:1", "http://b:1", "http://c:1"]
ROUTE = Route(b"h" * 16, (1, 2, 3))


class Time:
    """A clock and timers that a test moves."""

    def __init__(self) -> None:
        self.now, self._timers, self._ids = 0.0, [], count()

    def call_at(self, when, call):
        timer = _Timer(when, next(self._ids), call)
        heapq.heappush(self._timers, timer)
        return timer

    def pass_by(self, seconds: float) -> None:
        end = self.now + seconds
        while self._timers and self._timers[0].when <= end:
            timer = heapq.heappop(self._timers)
            self.now = max(self.now, timer.when)
            if not timer.cancelled:
                timer.call()
        self.now = end

    @property
    def pending(self) -> int:
        return sum(not timer.cancelled for timer in self._timers)


class _Timer:
    def __init__(self, when, number, call) -> None:
        self.when, self.number, self.call, self.cancelled = when, number, call, False

    def __lt__(self, other) -> bool:
        return (self.when, self.number) < (other.when, other.number)

    def cancel(self) -> None:
        self.cancelled = True


class Told:
    """A limit that says what it is told to."""

    def __init__(self, value: int) -> None:
        self.value, self.next, self.samples, self.failures = value, value, [], 0

    def sample(self, seconds, inflight, streamed) -> None:
        self.samples.append((seconds, inflight, streamed))
        self.value = self.next

    def failed(self) -> None:
        self.failures += 1
        self.value = max(1, self.value // 2)


def balanced(limits=(2, 2, 2), *, policy=Policy.AFFINITY, terms=Terms(failures=2), weights=(1, 1, 1)):  # noqa: B008
    """A balance of several upstreams, its time, their limits."""
    time, told = Time(), [Told(limit) for limit in limits]
    upstreams = [Upstream(url, weight) for url, weight in zip(URLS, weights, strict=False)][: len(limits)]
    balance = Balance(
        upstreams, policy=policy, limits=told, terms=terms, now=lambda: time.now, call_at=time.call_at
    )  # fmt: skip
    return balance, time, told


def column(balance: Balance, name: str) -> list:
    return [row[name] for row in balance.rows()]


# --- one by one --------------------------------------------------------------------------------------------------


def test_what_is_free_is_given_and_no_more():
    balance, _, _ = balanced((2, 1, 3))
    assert (balance.slots, balance.used) == (6, 0)
    leases = [balance.take(7, ROUTE) for _ in range(6)]
    assert sorted(lease.upstream.url for lease in leases) == ["http://a:1"] * 2 + ["http://b:1"] + ["http://c:1"] * 3
    assert balance.take(7, ROUTE) is balance.take(7, None) is None
    assert (column(balance, "slots_used"), balance.used) == ([2, 1, 3], 6)
    for lease in leases:
        lease.end()
        lease.end()
    assert (column(balance, "slots_used"), column(balance, "inflight")) == ([0, 0, 0], [0, 0, 0])


def test_a_group_is_given_its_own_only():
    balance, _, _ = balanced()
    assert {balance.take(0b101, None).upstream.url for _ in range(4)} == {"http://a:1", "http://c:1"}
    assert balance.take(0b101, None) is None
    assert balance.take(0b111, None).upstream.url == "http://b:1"
    assert balance.take(0b010, None, [balance.stations[0].upstream]).upstream.url == "http://b:1"
    with pytest.raises(UpstreamUnreachable):
        balance.take(0b010, None, [balance.stations[1].upstream])


def test_a_seat_counts_as_load_and_takes_no_slot():
    balance, _, _ = balanced((1, 1), policy=Policy.LEAST_INFLIGHT)
    seats = [balance.seat(None) for _ in range(5)]
    assert (balance.used, sum(column(balance, "inflight"))) == (0, 5)
    lighter = column(balance, "inflight").index(2)
    assert balance.take(3, None).upstream is balance.stations[lighter].upstream
    assert balance.take(3, None) is not None
    for seat in seats:
        seat.end()
    assert (balance.used, sum(column(balance, "inflight"))) == (2, 2)


def test_the_one_in_charge_is_told_of_room_and_may_take_it_at_once():
    """Never while it is being told already, however much ends meanwhile."""
    balance, _, _ = balanced((2,))
    inside, taken = [], []

    def on_room() -> None:
        assert not inside
        inside.append(True)
        if len(taken) < 5:
            taken.append(balance.take(1, None))
            taken[-1].end()
        inside.clear()

    first, second = balance.take(1, None), balance.take(1, None)
    balance.on_room = on_room
    first.end()
    assert len(taken) == 5
    second.end()
    assert balance.used == 0


def test_on_end_is_called_once_and_before_others_hear_of_the_room():
    balance, _, _ = balanced((1,))
    heard = []
    balance.on_room = lambda: heard.append("room")
    lease = balance.take(1, None)
    lease.on_end = lambda: heard.append("end")
    lease.end()
    lease.end()
    assert heard == ["end", "room"]


# --- limits ------------------------------------------------------------------------------------------------------


def test_the_first_byte_of_an_answer_s_body_is_a_sample():
    """Of what takes a slot and was answered well; what was too much, or too late, is a failure."""
    balance, time, (limit,) = balanced((8,))
    lease, other, seat = balance.take(1, None), balance.take(1, None), balance.seat(None)
    lease.sent(time.now)
    seat.sent(time.now)
    lease.answered(2.5, 200, streamed=True)
    seat.answered(2.5, 200, streamed=True)
    assert limit.samples == []
    for held in (lease, seat):
        held.began(4.0)
        held.began(5.0)
    assert limit.samples == [(4.0, 2, True)]
    for status in (400, 404, 500, 502):
        other.sent(3.0)
        other.answered(3.0, status, streamed=False)
        other.began(3.0)
    assert (len(limit.samples), limit.failures) == (1, 0)
    for status in (429, 503):
        other.answered(3.0, status, streamed=False)
    other.silent(late=True)
    other.silent(late=False)
    seat.silent(late=True)
    assert limit.failures == 3


def test_a_limit_that_rises_is_room_and_one_that_falls_takes_nothing_away():
    balance, time, (limit,) = balanced((2,))
    heard = []
    leases = [balance.take(1, None) for _ in range(2)]
    balance.on_room = lambda: heard.append(balance.used)
    limit.next = 3
    leases[0].sent(time.now)
    leases[0].answered(1.0, 200, streamed=False)
    leases[0].began(1.0)
    assert heard == [2]
    leases.append(balance.take(1, None))
    leases[0].answered(1.0, 429, streamed=False)
    assert (limit.value, balance.used, balance.take(1, None)) == (1, 3, None)
    leases.pop().end()
    leases.pop().end()
    assert (balance.used, balance.take(1, None)) == (1, None)
    leases.pop().end()
    assert balance.take(1, None) is not None


# --- who is given something --------------------------------------------------------------------------------------


def test_one_that_is_out_is_passed_over_and_waited_for_no_longer_than_it_is():
    """While another does well its room is waited for; the moment that one may be tried, whoever waits is told."""
    balance, time, _ = balanced((1, 1))
    for _ in range(2):
        lease = balance.take(0b01, None)
        lease.unreachable(OSError())
        lease.end()
    assert column(balance, "state") == ["open", "well"]
    with pytest.raises(CircuitOpen) as caught:
        balance.take(0b01, None)
    assert (caught.value.status, caught.value.code, caught.value.retry_after) == (503, "circuit_open", 1)
    busy = balance.take(0b11, None)
    assert balance.take(0b11, None) is None
    heard = []
    balance.on_room = lambda: heard.append(time.now)
    time.pass_by(0.7)
    assert heard == []
    time.pass_by(0.4)
    assert len(heard) == 1 and 0.8 <= heard[0] <= 1.0
    assert column(balance, "state") == ["half-open", "well"]
    trial = balance.take(0b11, None)
    assert trial.upstream is balance.stations[0].upstream
    assert balance.take(0b11, None) is None, "one trial at a time"
    trial.end()
    assert len(heard) == 2, "it learned nothing: the next may try"
    busy.end()


def test_a_sole_upstream_is_shut_only_while_it_cannot_be_reached():
    balance, time, _ = balanced((9,))
    for _ in range(30):
        lease = balance.take(1, None)
        lease.broke()
        lease.answered(time.now, 500, streamed=False)
        lease.end()
    for _ in range(30):
        lease = balance.take(1, None)
        lease.silent(late=False)
        lease.end()
    assert column(balance, "state") == ["well"]
    for _ in range(2):
        balance.take(1, None).unreachable(OSError())
    for give in (lambda: balance.take(1, None), lambda: balance.seat(None)):
        with pytest.raises(CircuitOpen):
            give()
    time.pass_by(1.0)
    trial = balance.seat(None, light=True)
    with pytest.raises(CircuitOpen):
        balance.seat(None)
    trial.connected()
    assert column(balance, "state") == ["well"]
    balance.seat(None)


def test_at_most_half_are_ejected():
    balance, _, _ = balanced((9, 9, 9), policy=Policy.ROUND_ROBIN)
    for _ in range(30):
        for station in balance.stations:
            lease = balance.take(7, None, [other.upstream for other in balance.stations if other is not station])
            lease.answered(0.0, 500, streamed=False)
            lease.end()
    assert sorted(column(balance, "state")) == ["ejected", "well", "well"]


def test_silence_of_all_shuts_nobody_out():
    balance, _, _ = balanced((9, 9))
    for _ in range(10):
        for mask in (1, 2):
            lease = balance.take(mask, None)
            lease.silent(late=False)
            lease.end()
    assert column(balance, "state") == ["open", "open"]
    assert {balance.take(3, None).upstream.url for _ in range(4)} == {"http://a:1", "http://b:1"}


def test_one_that_asks_to_rest_is_passed_over_for_so_long():
    balance, time, _ = balanced((1, 1))
    balance.take(1, None).rest(7.0)
    balance.stations[0].used = 0
    busy = balance.take(3, None)
    assert busy.upstream is balance.stations[1].upstream
    assert balance.take(3, None) is None
    heard = []
    balance.on_room = lambda: heard.append(time.now)
    time.pass_by(10.0)
    assert heard == [7.0]
    assert balance.take(3, None).upstream is balance.stations[0].upstream


def test_light_requests_do_not_hide_that_it_does_not_generate():
    """Lists of models that are answered well are no reason to take a backend for well."""
    balance, _, _ = balanced((9, 9))
    for _ in range(2):
        bad, light = balance.take(1, None), balance.seat(None, [balance.stations[1].upstream], light=True)
        bad.answered(0.0, 500, streamed=False)
        light.answered(0.0, 200, streamed=False)
        light.whole()
        bad.whole()
        bad.end()
        light.end()
    assert column(balance, "state") == ["ejected", "well"]


def test_light_requests_do_not_hide_silence():
    balance, _, _ = balanced((9, 9))
    for _ in range(2):
        bad, light = balance.take(1, None), balance.seat(None, [balance.stations[1].upstream], light=True)
        bad.silent(late=False)
        light.answered(0.0, 200, streamed=False)
        bad.end()
        light.end()
    assert column(balance, "state") == ["open", "well"]


def test_whoever_finds_it_reachable_again_tells_how_it_answers():
    """What comes of the request that was the trial counts from then on."""
    balance, time, _ = balanced((9, 9), terms=Terms(failures=1))
    balance.take(1, None).unreachable(OSError())
    time.pass_by(1.0)
    trial = balance.take(1, None)
    trial.connected()
    assert column(balance, "state") == ["well", "well"]
    trial.answered(time.now, 500, streamed=False)
    assert column(balance, "state") == ["ejected", "well"]


@pytest.mark.parametrize("what", ["open", "rest", "unreachable", "ejected"])
def test_where_the_only_one_that_did_well_no_longer_does_the_others_are_room(what):
    """Whoever waited for its sake is told."""
    balance, _, _ = balanced((1, 1), terms=Terms(failures=1))
    balance.stations[0].health.rest(0.0, 60.0)
    lease = balance.take(3, None)
    assert lease.upstream is balance.stations[1].upstream
    assert balance.take(3, None) is None
    heard = []
    balance.on_room = lambda: heard.append(balance.take(3, None))
    {
        "open": lambda: lease.silent(late=False),
        "rest": lambda: lease.rest(9.0),
        "unreachable": lambda: lease.unreachable(OSError()),
        "ejected": lease.broke,
    }[what]()
    assert [given.upstream for given in heard if given] == [balance.stations[0].upstream]


def test_where_one_is_reachable_again_there_is_room():
    balance, _, _ = balanced((2, 1))
    balance.take(1, None).unreachable(OSError())
    other = balance.take(3, None)
    assert (other.upstream, balance.take(3, None)) == (balance.stations[1].upstream, None)
    heard = []
    balance.on_room = lambda: heard.append(balance.take(3, None))
    balance.connected(balance.stations[0].upstream)
    assert heard[0].upstream is balance.stations[0].upstream


def test_after_it_was_out_its_part_rises_slowly():
    balance, time, _ = balanced((1000, 1000), policy=Policy.LEAST_INFLIGHT)
    for _ in range(2):
        balance.take(1, None).unreachable(OSError())
    balance.stations[0].inflight = balance.stations[0].used = 0
    time.pass_by(1.0)
    balance.take(1, None).connected()
    shares = []
    for _ in range(3):
        leases = [balance.take(3, None) for _ in range(110)]
        shares.append(sum(lease.upstream is balance.stations[0].upstream for lease in leases))
        for lease in leases:
            lease.end()
        time.pass_by(5.0)
    assert shares[0] in range(8, 12)
    assert shares[1] in range(36, 42)
    assert shares[2] in range(53, 58)


def test_a_drained_one_is_given_nothing_and_the_last_cannot_be():
    balance, _, _ = balanced((4, 4))
    running = balance.take(1, None)
    heard = []
    assert balance.drain("http://a:1", on=True) is True
    assert balance.drain("http://nobody:1", on=True) is None
    assert {balance.take(3, None).upstream.url for _ in range(4)} == {"http://b:1"}
    assert balance.take(3, None) is None
    assert balance.slots == 4
    with pytest.raises(CircuitOpen):
        balance.take(1, None)
    assert balance.drain("http://b:1", on=True) is False
    assert column(balance, "draining") == [True, False]
    assert column(balance, "inflight") == [1, 4]
    balance.on_room = lambda: heard.append("room")
    assert balance.drain("http://a:1", on=False) is True
    assert heard == ["room"]
    assert balance.take(3, None).upstream.url == "http://a:1"
    assert balance.drain("http://a:1", on=True)
    assert balance.drain("http://b:1", on=True, force=True) is True
    running.end()


def test_a_timer_that_is_early_is_set_again():
    """As those of an event loop may be, by the resolution of its clock."""
    balance, time, _ = balanced((1, 1))
    heard, early = [], [1e-6]
    balance._call_at = lambda when, call: time.call_at(when - (early.pop() if early else 0.0), call)
    balance.rest(balance.stations[0], 5.0)
    balance.on_room = lambda: heard.append(balance.stations[0].health.is_able(time.now))
    time.pass_by(6.0)
    assert heard[-1] is True


def test_closed_it_wakes_nobody():
    balance, time, _ = balanced((1, 1))
    for _ in range(2):
        balance.take(1, None).unreachable(OSError())
        balance.stations[0].used = 0
    assert time.pending == 1
    balance.close()
    assert time.pending == 0
    balance.rest(balance.stations[1], 5.0)
    assert time.pending == 0


@pytest.mark.parametrize("policy", list(Policy))
def test_nobody_starves(policy):
    """Whatever ends when: who is well and has room gets something before long."""
    balance, _, _ = balanced((3, 3, 3), policy=policy, weights=(1, 5, 10))
    got, held = dict.fromkeys(URLS, 0), []
    for turn in range(300):
        route = Route(turn.to_bytes(16), (turn,)) if turn % 3 else None
        lease = balance.take(7, route)
        got[lease.upstream.url] += 1
        held.append(lease)
        if len(held) > turn % 5 + 1:
            held.pop(turn % len(held)).end()
            held.pop(0).end()
    assert min(got.values()) >= 5


# --- whatever happens --------------------------------------------------------------------------------------------


class Places(RuleBasedStateMachine):
    """Takes, ends, failures, limits and time in any order. Whoever was refused for want of room is a waiter: when there
    would be room for it, it must have been told since."""

    def __init__(self) -> None:
        super().__init__()
        self.balance, self.time, self.limits = balanced((2, 1, 3))
        self.leases: list = []
        self.waiters: set[tuple[int, int]] = set()
        self.inside = 0
        self.balance.on_room = self.on_room

    def on_room(self) -> None:
        assert self.inside == 0, "told within itself or within take"
        self.inside += 1
        for group, avoided in list(self.waiters):
            self.give(group, avoided)
        self.inside -= 1

    def give(self, group: int, avoided: int) -> None:
        avoid = [s.upstream for i, s in enumerate(self.balance.stations) if avoided >> i & 1]
        inside, self.inside = self.inside, 1
        try:
            lease = self.balance.take(group, None, avoid)
        except AnswerError:
            self.waiters.discard((group, avoided))
            return
        finally:
            self.inside = inside
        if lease is None:
            self.waiters.add((group, avoided))
            return
        self.waiters.discard((group, avoided))
        station = next(s for s in self.balance.stations if s.upstream is lease.upstream)
        assert group >> self.balance.stations.index(station) & 1
        assert not station.draining
        assert lease.upstream not in avoid
        assert station.used <= station.limit.value
        self.leases.append((lease, True))

    @rule(group=st.integers(1, 7), avoided=st.integers(0, 7))
    def take(self, group, avoided):
        self.give(group, avoided if avoided % 3 == 0 else 0)

    @rule()
    def seat(self):
        with contextlib.suppress(CircuitOpen):
            self.leases.append((self.balance.seat(None), False))

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def end(self, data):
        lease, _ = self.leases.pop(data.draw(st.integers(0, len(self.leases) - 1)))
        lease.end()
        lease.end()

    @precondition(lambda self: self.leases)
    @rule(
        data=st.data(),
        what=st.sampled_from(["connected", "unreachable", "slow", "silent", "good", "bad", "broke", "rest"]),
    )
    def verdict(self, data, what):
        lease, _ = data.draw(st.sampled_from(self.leases))
        lease.sent(self.time.now)
        {
            "connected": lease.connected,
            "unreachable": lambda: lease.unreachable(OSError()),
            "slow": lambda: lease.unreachable(TimeoutError()),
            "silent": lambda: lease.silent(late=True),
            "good": lambda: (lease.answered(self.time.now, 200, streamed=True), lease.whole()),
            "bad": lambda: lease.answered(self.time.now, 503, streamed=False),
            "broke": lease.broke,
            "rest": lambda: lease.rest(3.0),
        }[what]()

    @rule(at=st.integers(0, 2), value=st.integers(1, 5))
    def limit(self, at, value):
        self.limits[at].next = value

    @rule(at=st.integers(0, 2), on=st.booleans())
    def drain(self, at, on):
        others = any(not s.draining for i, s in enumerate(self.balance.stations) if i != at)
        assert self.balance.drain(URLS[at], on=on) is (others or not on)

    @rule(seconds=st.floats(0, 20))
    def wait(self, seconds):
        self.time.pass_by(seconds)

    @invariant()
    def counts_are_exact(self):
        for station in self.balance.stations:
            mine = [slot for lease, slot in self.leases if lease.upstream is station.upstream]
            assert (station.inflight, station.used) == (len(mine), sum(mine))
        assert any(not station.draining for station in self.balance.stations)

    @invariant()
    def no_room_is_left_that_somebody_waits_for(self):
        for group, avoided in self.waiters:
            avoid = [s.upstream for i, s in enumerate(self.balance.stations) if avoided >> i & 1]
            try:
                able = self.balance._able(group, avoid)
            except AnswerError:
                continue
            assert not any(self.balance.stations[i].has_room for i in able)

    def teardown(self):
        for lease, _ in self.leases:
            lease.end()
        assert self.balance.used == 0
        for _ in range(3):  # what leaves the queue in the end was given or refused, and gives back
            self.time.pass_by(70.0)
            while self.leases:
                self.leases.pop()[0].end()


TestPlaces = Places.TestCase
TestPlaces.settings = tries(200)


def test_the_limits_of_the_settings_are_those_of_the_upstreams():
    """A real limit, with its bounds, behind the same places."""
    balance = Balance([Upstream("http://a:1")], limits=[Limit(2, 2)], now=lambda: 0.0)
    assert [balance.take(1, None) is not None for _ in range(3)] == [True, True, False]
    assert Balance([Upstream("http://a:1")], now=lambda: 0.0).slots == 16
