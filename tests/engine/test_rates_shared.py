"""What replicas count together, and what happens while that count cannot be asked."""

import asyncio
import random

import pytest

from cacheproxy.core.rates import Limits
from cacheproxy.engine import breaker
from cacheproxy.engine.rates import Rates
from cacheproxy.errors import RateLimited, Trouble
from cacheproxy.stores.rates import LocalCounters
from tests.engine.askings import A, Asking, B, hands, refused, shared, taken, theirs, told, used
from tests.engine.fakes import Hands, Notes
from tests.rig import until

__all__ = ["hands", "shared", "theirs"]


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
