"""Recordings that replicas share: one leads, the others follow live, late, or go on where they were."""

import asyncio
import random

import pytest

from cacheproxy.errors import Trouble
from tests.rig import until
from tests.stores.recordings import LEASE, LONG, records, telling
from tests.stores.replicas import tagged

pytestmark = pytest.mark.redis

WINDOW = 30.0


async def kind_of(awaitable) -> str:
    """The kind of the trouble that comes of it."""
    with pytest.raises(Trouble) as caught:
        await awaitable
    return caught.value.kind


def names(server) -> list[str]:
    """Of what there is of recordings."""
    return sorted(key.decode() for key in server.cli("KEYS", "*:f:*"))


async def test_of_fifty_who_ask_at_once_on_two_replicas_one_leads(redis):
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        found = await asyncio.gather(*((here, there)[n % 2].claim(1) for n in range(50)))
        [lead] = [one for one in found if not isinstance(one, bytes)]
        assert len(lead.identity) == 16
        assert {one for one in found if isinstance(one, bytes)} == {lead.identity}
        assert (await there.lead(2)).identity != lead.identity


async def test_a_thousand_records_come_in_order_once_to_all_whenever_they_join(redis):
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        lead, told, dice = await here.lead(), records(1, 1000, 100), random.Random(3)
        early = [there.reading(1, lead.identity), there.reading(1, lead.identity), here.reading(1, lead.identity)]
        late, at = [], 0
        while at < 1000:
            size = dice.randrange(1, 40)
            await lead.append(told[at : min(at + size, 999)])
            at += size
            if dice.random() < 0.2:
                late.append(there.reading(1, lead.identity, dice.randrange(min(at, 999) + 1)))
        await until(lambda: all(len(one.come) >= 999 - one.after for one in early + late))
        await lead.end(told[999:], WINDOW)
        await asyncio.gather(*(one.task for one in early + late))
        assert len(late) > 5
        for one in early + late:
            assert one.come == told[one.after :]
        for after in (0, 1, 517, 999, 1000):
            assert await there.read(1, lead.identity, after) == told[after:]


async def test_what_is_too_large_for_a_message_comes_too_and_so_does_an_empty_record(redis):
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        await until(lambda: reading.opened)
        told = [b"", b"a\nb", *records(3, 3, 40_000), b"\0\xff" * 50_000, b""]
        await lead.append(told[:2])
        await lead.append(told[2:5])
        await lead.append(told[5:6])
        await lead.end(told[6:], WINDOW)
        await reading.task
        assert reading.come == told


async def test_an_end_without_records_is_one(redis):
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        await until(lambda: reading.opened)
        await lead.end((), 0)
        await reading.task
        assert reading.come == []
        [stream] = [name for name in names(redis) if name.endswith(lead.identity.hex())]
        assert redis.cli("PTTL", stream) > LONG * 900  # a lease at least: who missed the message reads it
        assert await there.read(1, lead.identity) == []


async def test_a_key_is_free_at_once_after_the_end_and_the_recording_stays_for_its_time_only(redis):
    async with telling() as tell:
        here, there = tell(redis.url, lease=LEASE), tell(redis.url, lease=LEASE)
        lead = await here.lead()
        await lead.end(records(1, 3), 3 * LEASE)
        again = await there.lead()
        assert again.identity != lead.identity
        assert await there.read(1, lead.identity, 1) == records(2, 2)
        await again.end((), 0)
        await until(lambda: names(redis) == [])
        assert await kind_of(there.read(1, lead.identity)) == "gone"
        assert await kind_of(lead.append([b"late"])) == "closed"


async def test_every_name_expires_from_its_first_moment_on_and_says_nothing(redis):
    async with telling() as tell:
        here, there = tell(redis.url, lease=LEASE), tell(redis.url, lease=LEASE)
        lead = await here.lead()
        for step in (None, lead.renew(), lead.append(records(1, 2))):
            if step is not None:
                await step
            for name in names(redis):
                assert 0 < redis.cli("PTTL", name) <= 2 * LEASE * 1000
            reading = there.reading(1, lead.identity)
            await until(lambda reading=reading: reading.opened)
            for name in names(redis):
                assert 0 < redis.cli("PTTL", name) <= 2 * LEASE * 1000
                assert name.startswith("cacheproxy:{0}:f:")
        assert len(names(redis)) == 4
        await until(lambda: names(redis) == [])


async def test_an_identity_opens_the_recording_of_its_own_key_alone(redis):
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        lead, other = await here.lead(1), await here.lead(2)
        await lead.append(records(1, 1))
        for number, identity, after in (
            (2, lead.identity, 0), (1, other.identity, 0), (3, lead.identity, 0), (1, bytes(16), 0),
            (1, lead.identity, 2), (2, other.identity, 1),
        ):  # fmt: skip
            assert await kind_of(there.read(number, identity, after)) == "gone"
        await lead.end(records(2, 1), WINDOW)
        assert await kind_of(there.read(1, lead.identity, 3)) == "gone"
        assert await there.read(1, lead.identity, 2) == []


async def test_what_was_begun_before_a_removal_takes_no_new_readers_and_those_it_has_read_it_to_the_end(redis):
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        lead = await here.lead()
        await lead.append(records(1, 2))
        reading = there.reading(1, lead.identity)
        await until(lambda: len(reading.come) == 2)
        await there.one.remove(tagged("something"))
        assert await kind_of(there.read(1, lead.identity)) == "gone"
        assert await kind_of(here.read(1, lead.identity, 1)) == "gone"
        newer = await here.lead()
        assert newer.identity != lead.identity
        assert await there.claim(1) == newer.identity
        await lead.end(records(3, 2), WINDOW)
        await reading.task
        assert reading.come == records(1, 4)
        # The end of the older has not freed the key of the newer.
        assert await there.claim(1) == newer.identity
        assert await kind_of(there.read(1, lead.identity)) == "gone"


async def test_a_removal_that_this_replica_does_not_know_yet_counts_too(redis):
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        await here.lead(2)
        lead = await here.lead()
        await there.one.remove(tagged("something"))
        assert (await here.lead()).identity != lead.identity
        assert here.one.epochs.head(0) == there.one.epochs.head(0)  # he knows of it: he may have asked before it


async def test_a_producer_that_said_nothing_for_a_lease_is_not_heard_any_more(redis):
    async with telling() as tell:
        here, there = tell(redis.url, lease=LEASE), tell(redis.url, lease=LEASE)
        lead = await here.lead()
        await lead.append(records(1, 1))
        reading = there.reading(1, lead.identity)
        assert await kind_of(reading.task) == "lost"
        assert reading.come == records(1, 1)
        newer = await there.lead()
        assert await kind_of(lead.append(records(2, 1))) == "lost"
        assert await kind_of(lead.renew()) == "lost"
        await newer.append(records(1, 1))
        assert await there.claim(1) == newer.identity


async def test_a_producer_that_renews_is_not_taken_for_dead(redis):
    async with telling() as tell:
        here, there = tell(redis.url, lease=LEASE), tell(redis.url, lease=LEASE)
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        for _ in range(8):
            await asyncio.sleep(LEASE / 3)
            await lead.renew()
        assert not reading.task.done()
        assert await there.claim(1) == lead.identity
        await lead.end(records(1, 1), WINDOW)
        await reading.task
        assert reading.come == records(1, 1)


async def test_what_is_given_up_is_lost_at_once_and_its_key_is_free(redis):
    async with telling() as tell:
        here, there = tell(redis.url), tell(redis.url)
        lead = await here.lead()
        await lead.append(records(1, 3))
        reading = there.reading(1, lead.identity)
        await until(lambda: len(reading.come) == 3)
        await lead.abandon()
        assert await kind_of(reading.task) == "lost"
        assert await kind_of(there.read(1, lead.identity)) == "lost"
        await lead.abandon()
        assert (await there.lead()).identity != lead.identity


async def test_what_grows_too_large_is_given_up(redis):
    async with telling() as tell:
        here, there = tell(redis.url, most=100_000), tell(redis.url)
        lead = await here.lead()
        reading = there.reading(1, lead.identity)
        await lead.append([b"x" * 60_000])
        await lead.append([b"y" * 40_000])
        await until(lambda: len(reading.come) == 2)
        assert await kind_of(lead.append([b"z"])) == "too_large"
        assert await kind_of(reading.task) == "lost"
        assert reading.come == [b"x" * 60_000, b"y" * 40_000]
        assert await kind_of(lead.append([b"z"])) == "too_large"
        assert (await there.lead()).identity != lead.identity


async def test_a_producer_knows_how_many_other_processes_follow(redis):
    async with telling() as tell:
        here, there, yonder = (tell(redis.url) for _ in range(3))
        lead = await here.lead()

        async def followed(count: int) -> None:
            async with asyncio.timeout(20):
                while lead.followers != count:
                    await lead.renew()

        readings = [one.reading(1, lead.identity) for one in (there, there, yonder)]
        await followed(2)
        readings[0].task.cancel()
        readings[2].task.cancel()
        await followed(1)
        assert readings[1].opened
        assert not readings[1].task.done()
        readings[1].task.cancel()
        await followed(0)
