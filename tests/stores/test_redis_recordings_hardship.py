"""Recordings while producers die, callers leave, and Redis or the way to it is in trouble: nobody waits for ever, nobody
reads what is not so, nothing is left behind."""

import asyncio
import subprocess
import sys

import pytest

from cacheproxy.errors import Trouble
from cacheproxy.stores.redis_lead import RedisLead
from tests.rig import ROOT, until
from tests.stores.entries import key_of
from tests.stores.recordings import LEASE, records, telling
from tests.stores.test_redis_recordings import WINDOW, kind_of, names

pytestmark = pytest.mark.redis


async def test_a_producer_that_is_killed_is_told_of_within_the_lease_and_one_leads_anew(redis):
    """SIGKILL in the middle: those who follow have all that was said, and know that it is not all."""
    command = [sys.executable, "-m", "tests.stores.recordings", redis.url, key_of(1).hex(), str(LEASE)]
    async with telling() as tell:
        there, yonder = tell(redis.url, lease=LEASE), tell(redis.url, lease=LEASE)
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            try:
                identity = bytes.fromhex(await asyncio.to_thread(process.stdout.readline))
                assert await there.claim(1) == identity
                readings = [one.reading(1, identity) for one in (there, there, yonder)]
                await until(lambda: all(len(one.come) > 3 for one in readings))
            finally:
                process.kill()
        died = asyncio.get_running_loop().time()
        ends = await asyncio.gather(*(one.task for one in readings), return_exceptions=True)
        assert asyncio.get_running_loop().time() - died < 4 * LEASE  # what a loaded machine takes included
        assert [end.kind for end in ends] == ["lost"] * 3
        count = len(readings[0].come)
        assert [one.come for one in readings] == [[b"%d" % number for number in range(count)]] * 3
        found = await asyncio.gather(*(one.claim(1) for one in (there, yonder) for _ in range(5)))
        [lead] = [one for one in found if isinstance(one, RedisLead)]
        await lead.abandon()
        await until(lambda: names(redis) == [])


async def test_who_leaves_leaves_nothing_behind(redis):
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        lead = await here.lead()
        for steps in range(20):
            reading = there.reading(1, lead.identity)
            for _ in range(steps):
                await asyncio.sleep(0)
            reading.task.cancel()
            await asyncio.gather(reading.task, return_exceptions=True)
        batches = there.recordings.follow(key_of(1), lead.identity, 0)
        await anext(batches)
        await batches.aclose()
        assert there.recordings._followers._followed == {}
        await until(lambda: not [name for name in names(redis) if name.endswith(":r")])
        pool = there.one.link.redis.connection_pool
        await until(lambda: pool.busy == 0)
        assert there.one.link.connections <= 2
        await lead.append(records(1, 1))
        assert lead.followers == 0


async def test_a_claim_that_nobody_waits_for_any_more_is_given_up(redis, relay):
    async with telling() as tell:
        here, there = tell(relay.url), tell(redis.url)
        await here.lead(2)
        relay.delay(0.02)
        for number, pause in enumerate((None, 0.0, 0.005, 0.03), start=3):
            asking = asyncio.create_task(here.claim(number))
            if pause is not None:
                await asyncio.sleep(pause)
            asking.cancel()
            [found] = await asyncio.gather(asking, return_exceptions=True)
            if isinstance(found, RedisLead):
                await found.abandon()  # this machine was too slow to be early
            await until(lambda: repr(here.recordings).startswith("<RedisRecordings <Errands 0"))
            assert isinstance(await there.claim(number), RedisLead)
        assert relay.opened == relay.open <= 2


async def test_what_a_producer_says_that_is_cancelled_is_said_and_it_can_still_end(redis, relay):
    async with telling() as tell:
        here, there = tell(relay.url), tell(redis.url)
        lead = await here.lead()
        relay.delay(0.005)
        for number in range(1, 9):
            saying = asyncio.create_task(lead.append(records(number, 1)))
            for _ in range(number - 1):
                await asyncio.sleep(0.002)
            if number > 1:
                saying.cancel()
            await asyncio.gather(saying, return_exceptions=True)
        await lead.end(records(9, 1), WINDOW)
        assert await there.read(1, lead.identity) == records(1, 9)
        assert relay.opened == 1


@pytest.mark.parametrize("how", ["slow", "sliced"])
async def test_a_slow_way_slows_and_loses_nothing(redis, relay, how):
    async with telling() as tell:
        here, there = tell(relay.url), tell(relay.url)
        lead, told = await here.lead(), records(1, 60, 200)
        (relay.delay(0.01, 0.01) if how == "slow" else relay.slice(700, 0.001))
        readings = [there.reading(1, lead.identity) for _ in range(3)]
        for at in range(0, 60, 4):
            await lead.append(told[at : at + 4])
        await lead.end((), WINDOW)
        await asyncio.gather(*(one.task for one in readings))
        assert [one.come for one in readings] == [told] * 3


async def test_who_follows_goes_on_where_he_was_after_every_connection_was_cut(redis, relay):
    async with telling() as tell:
        here, there = tell(redis.url), tell(relay.url)
        lead, told = await here.lead(), records(1, 40)
        reading = there.reading(1, lead.identity)
        await until(lambda: reading.opened)
        for at in range(40):
            await lead.append(told[at : at + 1])
            if at % 8 == 3:
                relay.reset()
                await until(lambda at=at: len(reading.come) == at + 1)
        await lead.end((), WINDOW)
        await reading.task
        assert reading.come == told


async def test_when_redis_cannot_be_reached_who_follows_knows_after_a_lease_and_who_begins_before(redis, relay):
    async with telling() as tell:
        here, there = tell(redis.url, lease=LEASE), tell(relay.url, lease=LEASE, timeout=0.05)
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        await until(lambda: reading.opened)
        relay.freeze()
        frozen = asyncio.get_running_loop().time()
        telling_on = asyncio.create_task(_renew(lead))
        assert await kind_of(there.read(1, lead.identity)) == "timeout"
        assert not reading.task.done()
        assert await kind_of(reading.task) == "timeout"
        assert asyncio.get_running_loop().time() - frozen < 4 * LEASE
        relay.clear()
        telling_on.cancel()
        await asyncio.gather(telling_on, return_exceptions=True)
        await lead.end(records(1, 1), WINDOW)
        await until(lambda: there.one.link.redis.connection_pool.busy == 0)
        assert await there.read(1, lead.identity) == records(1, 1)


async def _renew(lead: RedisLead) -> None:
    while True:
        await lead.renew()
        await asyncio.sleep(LEASE / 4)


async def test_a_producer_without_redis_is_over_and_those_who_can_are_told_at_once(redis, relay):
    async with telling() as tell:
        here, there = tell(relay.url, timeout=0.1), tell(redis.url)
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        await lead.append(records(1, 1))
        await until(lambda: len(reading.come) == 1)
        relay.answer(b"-OOM command not allowed\r\n", "EVALSHA", times=1)
        assert await kind_of(lead.append(records(2, 1))) == "oom"
        assert await kind_of(lead.append(records(3, 1))) == "oom"
        assert await kind_of(lead.end(records(3, 1), 1)) == "oom"
        assert await kind_of(reading.task) == "lost"
        assert reading.come == records(1, 1)
        assert isinstance(await there.claim(1), RedisLead)


@pytest.mark.parametrize("gone", ["", ":l", "claim"])
async def test_a_name_that_redis_let_go_of_ends_no_more_than_it_must(redis, gone):
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        lead = await here.lead()
        await lead.append(records(1, 2))
        reading = there.reading(1, lead.identity)
        await until(lambda: len(reading.come) == 2)
        if gone == "claim":
            redis.cli("UNLINK", names(redis)[0])
            await lead.end(records(3, 1), WINDOW)  # others may lead too; who follows loses nothing
            await reading.task
            assert reading.come == records(1, 3)
            return
        stream = f"{names(redis)[0]}:{lead.identity.hex()}"
        assert redis.cli("UNLINK", stream + gone) == 1
        if gone:
            newer = await there.lead()  # what nobody can go on with holds nobody up
            await newer.abandon()
        assert await kind_of(lead.renew() if gone else lead.append(records(3, 1))) == "lost"
        assert await kind_of(reading.task) == "lost"
        assert isinstance(await there.claim(1), RedisLead)


async def test_a_redis_that_was_set_back_ends_what_it_lost_a_part_of(redis):
    """As after a failover to a replica that had not everything."""
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        lead = await here.lead()
        await lead.append(records(1, 2))
        stream = f"{names(redis)[0]}:{lead.identity.hex()}"
        redis.cli("HSET", f"{stream}:l", "n", 1)
        assert await kind_of(lead.append(records(3, 1))) == "lost"
        assert await kind_of(there.read(1, lead.identity)) == "lost"


async def test_a_restart_of_redis_ends_all(redis_start):
    server = redis_start(search=False)
    async with telling() as tell:
        here, there = tell(server.url, lease=LEASE), tell(server.url, lease=LEASE)
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        await until(lambda: reading.opened)
        server.restart(keep=True)
        ends = await asyncio.gather(lead.append(records(1, 1)), reading.task, return_exceptions=True)
        assert all(isinstance(end, Trouble) for end in ends[1:])
        again = await there.lead()
        assert again.identity != lead.identity
        assert await kind_of(here.read(1, lead.identity)) == "gone"
        reading = here.reading(1, again.identity)
        await again.end(records(1, 3), WINDOW)
        await reading.task
        assert reading.come == records(1, 3)


async def test_closing_ends_what_is_led_and_followed(redis):
    async with telling() as tell:
        here, there, yonder = (tell(redis.url) for _ in range(3))
        lead = await here.lead()
        reading, other = there.reading(1, lead.identity), yonder.reading(1, lead.identity)
        await until(lambda: reading.opened and other.opened)
        await yonder.recordings.close()
        assert await kind_of(other.task) == "closed"
        await here.recordings.close()
        assert await kind_of(reading.task) == "lost"
        assert await kind_of(lead.renew()) == "closed"
        assert await kind_of(here.claim(1)) == "closed"
        assert await kind_of(yonder.read(1, lead.identity)) == "closed"


class Deaf:
    """A way on which answers are lost: the next `times` of them, after the words were carried out."""

    def __init__(self, lead: RedisLead, times: int) -> None:
        self.lead, self.speech, self.times = lead, lead._speech, times
        self.words: list[object] = []
        lead._speech = self

    async def ask(self, words):
        self.words.append(words)
        reply = await self.speech.ask(words)
        self.times -= 1
        if self.times >= 0:
            raise Trouble("no answer", "timeout")
        return reply


async def test_an_answer_that_is_lost_ends_nothing_and_nothing_is_said_twice(redis):
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        await until(lambda: reading.opened)
        deaf = Deaf(lead, 0)
        for deaf.times, number in (1, 1), (2, 4), (0, 7):
            await lead.append(records(number, 3))
        deaf.times = 2
        await lead.renew()
        for words in deaf.words:  # those that come late
            assert (await deaf.speech.ask(words))[0] == b"said"
        await lead.append(records(10, 1))
        deaf.times = 2
        await lead.end(records(11, 2), WINDOW)
        await reading.task
        assert reading.come == records(1, 12)
        assert await here.read(1, lead.identity) == records(1, 12)


async def test_when_no_answer_comes_again_and_again_it_is_over(redis):
    async with telling() as tell:
        here, there = tell(redis.url, lease=LEASE), tell(redis.url, lease=LEASE)
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        await until(lambda: reading.opened)
        Deaf(lead, 10**6)
        assert await kind_of(lead.append(records(1, 1))) == "timeout"
        assert await kind_of(lead.renew()) == "timeout"
        assert await kind_of(reading.task) == "lost"
        assert reading.come == records(1, 1)


async def test_a_server_that_cannot_be_reached_for_a_moment_ends_nothing(redis, relay):
    """Longer than a few attempts take: it is said again for as long as nobody can have taken the producer for dead."""
    async with telling() as tell:
        here, there = tell(relay.url), tell(redis.url)
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        await until(lambda: reading.opened)
        trying = Deaf(lead, 0)
        relay.refuse()
        relay.reset()
        saying = asyncio.create_task(lead.append(records(1, 3)))
        await until(lambda: len(trying.words) > 5)
        assert not saying.done()
        relay.accept()
        await saying
        await lead.end(records(4, 1), WINDOW)
        await reading.task
        assert reading.come == records(1, 4)
