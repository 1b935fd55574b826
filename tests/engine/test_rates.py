"""Who is let through, what is counted when, and what callers are told."""

import pytest

from cacheproxy.core.rates import Limits
from cacheproxy.engine.rates import Rates, Toll
from cacheproxy.errors import CircuitOpen, RateLimited
from cacheproxy.stores.rates import LocalCounters
from tests.engine.askings import A, Asking, B, alone, hands, refused, shared, taken, theirs, told
from tests.engine.fakes import Notes

__all__ = ["alone", "hands", "shared", "theirs"]


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
