"""What recordings cost: round trips, connections, memory; and that what is sent together does not fail together."""

import asyncio

import pytest

from cacheproxy.errors import Trouble
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_scripts import Script
from tests.rig import until
from tests.stores.entries import key_of
from tests.stores.recordings import records, telling
from tests.stores.test_redis_recordings import WINDOW

pytestmark = pytest.mark.redis


async def test_one_round_trip_each_time_that_something_is_said(redis, relay):
    async with telling() as tell:
        here, there = tell(relay.url), tell(redis.url)
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        await until(lambda: reading.opened)
        await lead.append(records(1, 3))
        before, trips = relay.commands.copy(), relay.round_trips
        await lead.append(records(4, 50))
        await lead.renew()
        await lead.end(records(54, 2), WINDOW)
        assert dict(relay.commands - before) == {"EVALSHA": 3}
        assert relay.round_trips - trips == 3
        await reading.task
        assert reading.come == records(1, 55)


@pytest.mark.parametrize("known", [False, True])
async def test_each_of_the_scripts_that_go_together_has_its_own_answer(redis, link_to, known):
    """Also where the server does not know them yet."""
    calls, echo, wrong = Calls(link_to(redis.url)), Script("return ARGV[1]"), Script("return redis.call('GET')")
    if known:
        redis.cli("SCRIPT", "LOAD", echo.text)
        redis.cli("SCRIPT", "LOAD", wrong.text)
    asked = [(echo, ["a"], ["1"]), (wrong, ["a"], []), (echo, ["b"], [2])]
    first, second, third = await calls.scripts(asked)
    assert (first, third) == (b"1", b"2")
    assert isinstance(second, Trouble)


async def test_what_is_said_of_many_at_once_goes_together(redis, relay):
    async with telling() as tell:
        here, there = tell(relay.url), tell(redis.url)
        leads = [await here.lead(number) for number in range(20)]
        trips = relay.round_trips
        await asyncio.gather(*(lead.append(records(1, 5)) for lead in leads))
        assert relay.round_trips - trips < 10
        for number, lead in enumerate(leads):
            await lead.end((), WINDOW)
            assert await there.read(number, lead.identity) == records(1, 5)


async def test_what_goes_wrong_with_one_is_not_the_others(redis):
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        leads = [await here.lead(number) for number in range(8)]
        redis.cli("SET", f"{here.one.keys.claim(key_of(3))}:{leads[3].identity.hex()}:l", "not what it was")
        ends = await asyncio.gather(*(lead.append(records(1, 1)) for lead in leads), return_exceptions=True)
        assert [isinstance(end, Trouble) for end in ends] == [number == 3 for number in range(8)]
        assert ends[3].kind == "other"
        await leads[4].end((), WINDOW)
        assert await there.read(4, leads[4].identity) == records(1, 1)


async def test_a_claim_is_one_round_trip_once_redis_is_known(redis, relay):
    async with telling() as tell:
        here = tell(relay.url)
        await here.lead(1)
        before = relay.commands.copy()
        await here.lead(2)
        assert isinstance(await here.claim(1), bytes)
        assert dict(relay.commands - before) == {"EVALSHA": 2}


async def test_nobody_is_told_anything_while_nobody_follows(redis):
    async with telling() as tell:
        lead = await tell(redis.url).lead()
        with redis.monitor() as monitor:
            await lead.append(records(1, 5))
            assert monitor.names.count("PUBLISH") == 0
            assert [name for name in monitor.names if name.startswith("EVAL")] in (["EVALSHA"], ["EVALSHA", "EVAL"])


async def test_two_hundred_are_followed_over_two_connections(redis, relay):
    async with telling() as tell:
        here, there = tell(redis.url), tell(relay.url, connections=3)
        leads = await asyncio.gather(*(here.lead(number) for number in range(200)))
        readings = [there.reading(number, lead.identity) for number, lead in enumerate(leads)]
        await until(lambda: all(one.opened for one in readings))
        for lead in leads:
            await lead.append(records(1, 1))
        await until(lambda: all(one.come for one in readings))
        assert relay.open <= 2
        for number, lead in enumerate(leads):
            await lead.end(records(2, number % 3), WINDOW)
        await asyncio.gather(*(one.task for one in readings))
        assert [len(one.come) for one in readings] == [1 + number % 3 for number in range(200)]
        assert relay.opened <= 2


async def test_who_takes_nothing_is_held_little_for_and_gets_everything_in_the_end(redis):
    async with telling() as tell:
        here, there = tell(redis.url, most=2**25), tell(redis.url)
        lead, told = await here.lead(), records(1, 300, 20_000)
        batches = there.recordings.follow(key_of(1), lead.identity, 0)
        assert await anext(batches) == ()
        for at in range(0, 300, 2):
            await lead.append(told[at : at + 2])
        [[one]] = there.recordings._followers._followed.values()
        assert one._held <= 2**20 + 64 * 2**10
        assert lead.followers == 1
        await lead.end((), WINDOW)
        assert [record async for batch in batches for record in batch] == told


async def test_a_read_that_fails_once_is_no_trouble_for_who_begins(redis, relay):
    """As on a connection that Redis closed meanwhile, or while the loop was held up."""
    async with telling() as tell:
        here, there = tell(redis.url), tell(relay.url)
        lead = await here.lead()
        await lead.end(records(1, 2), WINDOW)
        await there.one.epochs.current()
        relay.answer(b"-LOADING Redis is loading the dataset in memory\r\n", "EVALSHA", times=1)
        assert await there.read(1, lead.identity) == records(1, 2)
