"""What hangs on messages is how soon something comes, and nothing else."""

import asyncio

import pytest

from cacheproxy.errors import Trouble
from cacheproxy.stores import redis_followers
from tests.rig import until
from tests.stores.entries import key_of
from tests.stores.recordings import LEASE, records, telling
from tests.stores.test_redis_recordings import WINDOW, kind_of

pytestmark = pytest.mark.redis


async def test_a_message_that_is_lost_is_missed_at_the_next_and_at_the_latest_when_it_is_looked_for(redis):
    async with telling() as tell:
        here, there = tell(redis.url, lease=LEASE), tell(redis.url, lease=LEASE)
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        await until(lambda: reading.opened and there.recordings._followers.listening)
        for lap in range(4):
            await lead.append(records(3 * lap + 1, 1))
            redis.cli("CLIENT", "KILL", "TYPE", "pubsub")
            await lead.append(records(3 * lap + 2, 1))
            await lead.append(records(3 * lap + 3, 1))
            await until(lambda lap=lap: len(reading.come) == 3 * lap + 3)
        await until(lambda: there.recordings._followers.listening)
        hear, there.recordings._followers._hear = there.recordings._followers._hear, lambda message: None
        await lead.append(records(13, 1))
        await until(lambda: len(reading.come) == 13)
        there.recordings._followers._hear = hear
        await lead.end(records(14, 1), WINDOW)
        await reading.task
        assert reading.come == records(1, 14)


async def test_followed_without_messages_at_all(redis):
    """Who may not subscribe reads."""
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)

        async def deaf() -> None:
            raise Trouble("not permitted", "noperm")

        there.recordings._followers._listen = deaf
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        for number in range(1, 6):
            await lead.append(records(number, 1))
            await until(lambda number=number: len(reading.come) == number)
        await lead.end((), WINDOW)
        await reading.task


async def test_what_cannot_be_read_ends_nothing_else(redis):
    """As when a node of a cluster is down: what lies on the others goes on."""
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        followers = there.recordings._followers
        due, read, lost = followers._due, followers._read, there.one.keys.claim(key_of(1))

        async def half(shard, party) -> None:
            if party[0].place.claim == lost:
                raise Trouble("down", "clusterdown")
            await read(shard, party)

        followers._due = lambda: [(shard, [one]) for shard, party in due() for one in party]
        followers._read = half
        followers._listen = asyncio.Event().wait
        lead = await here.lead(2)
        readings = [there.reading(number, lead.identity) for number in (1, 2)]
        assert await kind_of(readings[0].task) == "clusterdown"
        await lead.end(records(1, 2), WINDOW)
        await readings[1].task
        assert readings[1].come == records(1, 2)


async def test_the_connection_for_listening_goes_when_nothing_is_followed_and_comes_again(redis, relay, monkeypatch):
    monkeypatch.setattr(redis_followers, "IDLE", LEASE / 2)
    async with telling() as tell:
        here, there = tell(redis.url, lease=LEASE), tell(relay.url, lease=LEASE)
        for _ in range(2):
            lead = await here.lead()
            reading = there.reading(1, lead.identity)
            await until(lambda: there.recordings._followers.listening)
            await lead.append(records(1, 1))
            await until(lambda reading=reading: reading.come)
            await lead.end((), WINDOW)
            await reading.task
            await until(lambda: relay.open == 1)


async def test_a_connection_for_listening_that_leads_nowhere_is_given_up(redis, relay_to):
    """Only that one is frozen: what comes is read three times a lease, until another is made."""
    relay = relay_to(redis.address)
    async with telling() as tell:
        here, there = tell(redis.url, lease=LEASE), tell(redis.url, lease=LEASE)
        listener, there.one.link.listener = there.one.link.listener, tell(relay.url, lease=LEASE).one.link.listener
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        await until(lambda: there.recordings._followers.listening)
        relay.freeze()
        for number in range(1, 7):
            await lead.append(records(number, 1))
            await until(lambda number=number: len(reading.come) == number)
        there.one.link.listener = listener
        await until(lambda: not there.recordings._followers.listening)
        await until(lambda: there.recordings._followers.listening)
        await lead.end((), WINDOW)
        await reading.task
        assert reading.come == records(1, 6)


async def test_a_message_that_comes_before_the_answer_to_the_first_read_is_not_lost(redis):
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        followers = there.recordings._followers
        other, lead = await here.lead(2), await here.lead(1)
        there.reading(2, other.identity)
        await until(lambda: followers.listening)
        script, hear, heard = followers._calls.script, followers._hear, []

        async def late(which, keys, *arguments):
            reply = await script(which, keys, *arguments)
            if not heard and f"{there.one.keys.claim(key_of(1))}:{lead.identity.hex()}" in keys:
                await lead.append(records(1, 1))
                await until(lambda: heard)
            return reply

        def hearing(message: bytes) -> None:
            heard.append(message)
            hear(message)

        followers._calls.script, followers._hear = late, hearing
        reading = there.reading(1, lead.identity)
        await until(lambda: reading.come)
        await lead.end((), WINDOW)
        await reading.task
        assert reading.come == records(1, 1)


async def test_a_message_that_is_missing_is_looked_for_when_the_next_comes(redis, caplog):
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        followers = there.recordings._followers
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        await until(lambda: reading.opened and followers.listening)
        hear, come = followers._hear, []

        def every_second(message: bytes) -> None:
            come.append(message)
            if len(come) % 2 == 0:
                hear(message)

        followers._hear = every_second
        for number in range(1, 11):
            await lead.append(records(number, 1))
            await until(lambda number=number: len(come) == number)
        await until(lambda: len(reading.come) == 10)
        assert reading.come == records(1, 10)
        assert caplog.records == []
