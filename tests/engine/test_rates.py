"""Who is let through, what is counted when, and what happens while the count that replicas share cannot be asked."""

import asyncio
import random
from dataclasses import dataclass, field

import pytest

from cacheproxy.core.rates import Booking, Limits, Usage
from cacheproxy.engine import breaker
from cacheproxy.engine.rates import Rates, Toll
from cacheproxy.errors import CircuitOpen, RateLimited, Trouble
from cacheproxy.stores.rates import LocalCounters
from tests.engine.fakes import Hands, Notes
from tests.rig import until

A, B = b"a" * 16, b"b" * 16


@dataclass
class Asking:
    """A request at the gate."""

    tenant: bytes = A
    limits: Limits = field(default_factory=Limits)
    booking: Booking | None = None
    since: float | None = None


class Common:
    """A count that other replicas share, in this process: another clock, and trouble on demand."""

    def __init__(self, hands: Hands) -> None:
        self.counters = LocalCounters(hands)
        self.trouble: Exception | None = None
        self.hangs = False
        self.calls: list[str] = []
        self.free = asyncio.Event()
        self.free.set()

    async def _met(self, call: str) -> None:
        self.calls.append(call)
        if self.hangs:
            await asyncio.Event().wait()
        await self.free.wait()
        if self.trouble is not None:
            raise self.trouble

    async def admit(self, name, limits):
        await self._met("admit")
        return self.counters.admit(name, limits)

    async def book(self, uses, returns):
        await self._met("book")
        for name, requests, tokens in uses:
            self.counters.add(name, requests, tokens)
        for name, second, requests in returns:
            self.counters.take_back(name, second, requests)

    def usage(self, limits: Limits, who: bytes = A) -> Usage:
        """How it stands, by asking with limits that let nothing more through."""
        from cacheproxy.core import rates

        window = self.counters._windows.get(rates.name(who, limits))
        slots = window.slots(self.counters._clock.monotonic()) if window else []
        return Usage(False, rates.levels(limits, slots, self.counters._clock.monotonic()))


@pytest.fixture
def hands():
    return Hands()


@pytest.fixture
def theirs():
    return Common(Hands(steady=7_000.5))


@pytest.fixture
async def alone(hands):
    rates = Rates(own=LocalCounters(hands), common=None, deadline=0.2, clock=hands, journal=Notes())
    yield rates
    await rates.close()


@pytest.fixture
async def shared(hands, theirs):
    rates = Rates(own=LocalCounters(hands), common=theirs, deadline=0.2, clock=hands, journal=Notes())
    yield rates
    await rates.close()


async def taken(rates: Rates, limits: Limits, who: bytes = A) -> Asking:
    asking = Asking(who, limits)
    await rates.admit(asking)
    return asking


async def refused(rates: Rates, limits: Limits, who: bytes = A) -> RateLimited:
    asking = Asking(who, limits)
    with pytest.raises(RateLimited) as caught:
        await rates.admit(asking)
    assert asking.booking is None
    assert rates.fields(asking) == ()
    return caught.value


def told(fields) -> dict[str, str]:
    return {name.decode().removeprefix("x-ratelimit-"): value.decode() for name, value in fields}


def used(usage: Usage) -> list[int]:
    return [level.used for level in usage.levels]


async def test_more_requests_than_the_limit_wait_for_as_long_as_they_are_told(alone, hands):
    limits = Limits(requests=2)
    await taken(alone, limits)
    hands.move(10.25)
    await taken(alone, limits)
    error = await refused(alone, limits)
    assert (error.status, error.code, error.kind, error.retry) == (429, "rate_limit_exceeded", "requests", True)
    assert error.retry_after == 50
    assert "Limit 2, Used 2. Please try again in 50s." in error.message
    assert told(error.fields) == {"limit-requests": "2", "remaining-requests": "0", "reset-requests": "1m0s"}
    hands.move(error.retry_after - 1)
    assert (await refused(alone, limits)).retry_after == 1
    hands.move(1)
    await taken(alone, limits)


async def test_refusals_do_not_count(alone, hands):
    limits = Limits(requests=1)
    await taken(alone, limits)
    for _ in range(59):
        hands.move(1)
        await refused(alone, limits)
    hands.move(1)
    await taken(alone, limits)


async def test_a_request_is_let_through_while_any_tokens_are_left_and_its_cost_counts_in_full(alone, hands):
    limits = Limits(tokens=100)
    first, second = await taken(alone, limits), await taken(alone, limits)
    alone.spend(first, 99)
    third = await taken(alone, limits)
    assert told(alone.fields(third)) == {"limit-tokens": "100", "remaining-tokens": "1", "reset-tokens": "1m0s"}
    hands.move(20)
    alone.spend(second, 5_000)
    error = await refused(alone, limits)
    assert (error.kind, error.retry_after) == ("tokens", 60)
    assert told(error.fields) == {"limit-tokens": "100", "remaining-tokens": "0", "reset-tokens": "1m0s"}
    assert "tokens per min (TPM): Limit 100, Used 5099." in error.message
    hands.move(60)
    await taken(alone, limits)


async def test_each_credential_is_counted_by_itself_and_so_is_each_set_of_limits(alone):
    await taken(alone, Limits(requests=1))
    await taken(alone, Limits(requests=1), B)
    await taken(alone, Limits(requests=2))
    await refused(alone, Limits(requests=1))
    await refused(alone, Limits(requests=1), B)
    await taken(alone, Limits(requests=2))


async def test_where_nothing_is_limited_nothing_is_counted_or_told(shared, theirs):
    asking = await taken(shared, Limits())
    shared.spend(asking, 100)
    shared.give_back(asking)
    assert asking.booking is None
    assert shared.fields(asking) == ()
    assert theirs.calls == []
    assert repr(shared).startswith("<Rates <LocalCounters of 0 keys>")


async def test_tokens_are_not_counted_where_they_are_not_limited(shared, theirs):
    asking = await taken(shared, Limits(requests=5))
    shared.spend(asking, 100)
    await shared.close()
    assert theirs.calls == ["admit"]
    assert "limit-tokens" not in told(shared.fields(asking))


async def test_a_request_that_did_not_go_to_the_backend_is_given_back_once(alone, hands):
    limits = Limits(requests=1)
    asking = await taken(alone, limits)
    hands.move(5)
    alone.give_back(asking)
    alone.give_back(asking)
    assert alone.fields(asking) == ()
    await taken(alone, limits)
    await refused(alone, limits)


async def test_the_time_that_has_passed_since_is_taken_off_what_is_told(alone, hands):
    asking = await taken(alone, Limits(requests=3, tokens=7))
    hands.move(20)
    assert told(alone.fields(asking)) == {
        "limit-requests": "3", "remaining-requests": "2", "reset-requests": "40s",
        "limit-tokens": "7", "remaining-tokens": "7", "reset-tokens": "0s",
    }  # fmt: skip


async def test_no_answer_tells_how_things_stand_where_hits_are_hidden_but_a_refusal_does(hands):
    rates = Rates(own=LocalCounters(hands), common=None, deadline=1, clock=hands, journal=Notes(), hidden=True)
    assert rates.fields(await taken(rates, Limits(requests=1))) == ()
    assert told((await refused(rates, Limits(requests=1))).fields)["remaining-requests"] == "0"


async def test_what_replicas_share_decides(shared, theirs, hands):
    limits = Limits(requests=2)
    other = Rates(own=LocalCounters(hands), common=theirs, deadline=0.2, clock=hands, journal=Notes())
    await taken(shared, limits)
    await taken(other, limits)
    assert (await refused(shared, limits)).retry_after == 60
    assert theirs.calls == ["admit"] * 3
    await other.close()


async def test_who_hammers_costs_the_shared_count_one_question_a_second(shared, theirs, hands):
    limits = Limits(requests=1, tokens=1000)
    first = await taken(shared, limits)

    def move(seconds: float) -> None:
        hands.move(seconds)
        theirs.counters._clock.move(seconds)

    move(20.25)
    assert (await refused(shared, limits)).retry_after == 40
    move(0.8)
    for _ in range(50):
        error = await refused(shared, limits)
    assert (error.retry_after, told(error.fields)["reset-requests"]) == (39, "39s")
    assert theirs.calls == ["admit"] * 2
    move(0.3)
    await refused(shared, limits)
    assert theirs.calls == ["admit"] * 3
    shared.spend(first, 5)  # now it may have to wait longer
    await refused(shared, limits)
    assert theirs.calls.count("admit") == 4
    shared.give_back(first)
    await until(lambda: used(theirs.usage(limits)) == [0, 5])
    await taken(shared, limits)


async def test_a_refusal_is_not_repeated_when_the_wait_is_over(shared, theirs, hands):
    limits = Limits(requests=1)
    await taken(shared, limits)
    for one in (hands, theirs.counters._clock):
        one.move(59.5)
    await refused(shared, limits)
    for one in (hands, theirs.counters._clock):
        one.move(0.6)
    await taken(shared, limits)


@pytest.mark.parametrize("seed", range(40))
async def test_who_obeys_is_let_through_whichever_count_refused(theirs, seed):
    """Two replicas, clocks whose seconds begin at other times, uses as they come."""
    dice = random.Random(seed)
    clocks = [Hands(steady=100.0 + dice.random()) for _ in range(2)]
    replicas = [Rates(own=LocalCounters(c), common=theirs, deadline=5, clock=c, journal=Notes()) for c in clocks]
    limits = Limits(requests=dice.choice([0, 2, 5]), tokens=dice.choice([10, 50]))

    def move(seconds: float) -> None:
        for one in (*clocks, theirs.counters._clock):
            one.move(seconds)

    refusals = 0
    for _ in range(60):
        move(dice.choice([0.0, 0.01, 0.3, 2.0, dice.random() * 20]))
        rates, asking = dice.choice(replicas), Asking(A, limits)
        try:
            await rates.admit(asking)
        except RateLimited as error:
            refusals += 1
            move(error.retry_after + 0.001)
            await dice.choice(replicas).admit(asking)
        rates.spend(asking, dice.randrange(12))
        await until(lambda: all(one._telling is None for one in replicas))
    assert refusals > 3
    for rates in replicas:
        await rates.close()


async def test_what_is_spent_or_given_back_is_told_to_all_replicas(shared, theirs):
    limits = Limits(requests=9, tokens=1000)
    first, second = await taken(shared, limits), await taken(shared, limits)
    theirs.counters._clock.move(3)
    for _ in range(3):
        shared.spend(first, 100)
    shared.give_back(second)
    await until(lambda: used(theirs.usage(limits)) == [1, 300])
    assert theirs.calls.count("book") == 1


async def test_what_is_spent_meanwhile_is_told_together(shared, theirs):
    limits = Limits(tokens=1000)
    askings = [await taken(shared, limits, who) for who in (A, B)]
    theirs.free.clear()
    shared.spend(askings[0], 1)
    await until(lambda: "book" in theirs.calls)
    for _ in range(10):
        shared.spend(askings[0], 1)
        shared.spend(askings[1], 1)
        await asyncio.sleep(0)
    assert theirs.calls.count("book") == 1
    theirs.free.set()
    await until(lambda: [used(theirs.usage(limits, who)) for who in (A, B)] == [[11], [10]])
    assert theirs.calls.count("book") == 2


async def test_what_has_not_been_told_at_the_end_is_told_then(shared, theirs):
    asking = await taken(shared, Limits(tokens=1000))
    shared.spend(asking, 70)
    await shared.close()
    assert used(theirs.usage(Limits(tokens=1000))) == [70]


@pytest.mark.parametrize("trouble", [Trouble("no answer", "timeout"), RuntimeError("a fault of ours")])
async def test_while_the_shared_count_fails_this_processs_own_goes_on_from_what_it_let_through(shared, theirs, trouble):
    limits = Limits(requests=3, tokens=50)
    first = await taken(shared, limits)
    await taken(shared, limits)
    shared.spend(first, 10)
    theirs.trouble = trouble
    third = await taken(shared, limits)
    assert told(shared.fields(third))["remaining-requests"] == "0"
    assert told(shared.fields(third))["remaining-tokens"] == "40"
    assert (await refused(shared, limits)).kind == "requests"
    shared.spend(third, 40)
    assert shared.breaker.closed is False


async def test_a_shared_count_that_hangs_costs_its_deadline_once(theirs, hands):
    rates = Rates(own=LocalCounters(hands), common=theirs, deadline=0.02, clock=hands, journal=Notes())
    theirs.hangs = True
    limits = Limits(requests=2)
    await taken(rates, limits)
    second, third = Asking(A, limits), Asking(A, limits)
    with pytest.raises(StopIteration):  # nobody waits for a part that has just failed
        rates.admit(second).send(None)
    assert second.booking is not None
    with pytest.raises(RateLimited):
        rates.admit(third).send(None)
    await rates.close()


async def test_when_the_shared_count_works_again_it_decides_again(shared, theirs, monkeypatch):
    monkeypatch.setattr(breaker, "FIRST_GAP", 0.001)
    limits = Limits(requests=100)
    theirs.trouble = Trouble("gone")
    await taken(shared, limits)
    theirs.trouble = None

    async def again() -> bool:
        await taken(shared, limits)
        return shared.breaker.closed

    for _ in range(90):
        if await again():
            break
        await asyncio.sleep(0.005)
    before = used(theirs.usage(limits))[0]
    asking = await taken(shared, limits)
    assert asking.booking is not None
    assert asking.booking.common is not None
    assert used(theirs.usage(limits)) == [before + 1]


async def test_a_call_that_failed_is_not_made_again(shared, theirs, monkeypatch):
    """The answer alone may have been lost: it would be counted twice."""
    monkeypatch.setattr(breaker, "FIRST_GAP", 0.001)
    limits = Limits(tokens=1000)
    asking = await taken(shared, limits)
    theirs.trouble = Trouble("gone")
    shared.spend(asking, 10)
    await until(lambda: not shared.breaker.closed)
    theirs.trouble = None
    for _ in range(30):
        await asyncio.sleep(breaker.FIRST_GAP)
    assert theirs.calls == ["admit", "book"]
    shared.spend(asking, 5)  # tried in the background
    await until(lambda: shared.breaker.closed)
    assert used(theirs.usage(limits)) == [5]


async def test_who_leaves_while_the_shared_count_is_asked_is_not_let_through(shared, theirs):
    theirs.free.clear()
    asking = Asking(A, Limits(requests=1))
    task = asyncio.create_task(shared.admit(asking))
    await until(lambda: theirs.calls == ["admit"])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asking.booking is None
    theirs.free.set()
    await taken(shared, Limits(requests=1))


class Inner:
    """A gate that lets in, or raises."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    async def enter(self, standing, route, avoid=()):
        if self.error is not None:
            raise self.error
        return "slot"


async def test_where_nobody_waits_the_limits_hold_too_and_each_request_is_counted_once(alone, hands):
    inner = Inner()
    toll, limits = Toll(alone, inner, hands), Limits(requests=2)
    first = Asking(A, limits)
    assert await toll.enter(first, None) == "slot"
    assert await toll.enter(first, None, ["the first backend"]) == "slot"  # tried on another one
    inner.error = CircuitOpen("No backend.")
    with pytest.raises(CircuitOpen):
        await toll.enter(Asking(A, limits), None)
    inner.error = None
    assert await toll.enter(Asking(A, limits), None) == "slot"
    with pytest.raises(RateLimited):
        await toll.enter(Asking(A, limits), None)
