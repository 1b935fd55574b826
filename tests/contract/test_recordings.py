"""Recordings on every kind of Redis, as the user of configs/redis.conf."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from cacheproxy.errors import Trouble
from cacheproxy.stores.redis_lead import RedisLead
from tests.rig import until
from tests.stores.recordings import Tell, records, telling
from tests.stores.replicas import tagged

pytestmark = pytest.mark.redis


@pytest.fixture(params=["redis_acl", "redis_cluster", "valkey"])
def url(request) -> str:
    found = request.getfixturevalue("nodes" if request.param == "redis_cluster" else request.param)
    servers = found if isinstance(found, list) else [found]
    for server in servers:
        server.cli("FLUSHALL")
    url = servers[0].url
    return url.replace("redis://", "redis+cluster://").removesuffix("/0") if len(servers) > 1 else url


@pytest.fixture
async def tell() -> AsyncIterator[Tell]:
    async with telling() as tell:
        yield tell


async def test_one_leads_and_the_others_follow(url, tell):
    here, there = tell(url), tell(url)
    leads = [await here.lead(number) for number in range(8)]
    readings = []
    for number, lead in enumerate(leads):
        assert await there.claim(number) == lead.identity
        readings += [there.reading(number, lead.identity) for _ in range(2)]
    await until(lambda: all(one.opened for one in readings))
    await until(lambda: there.recordings._followers.listening)
    await asyncio.gather(*(lead.append(records(1, 3)) for lead in leads))
    for lead in leads:
        await lead.append(records(4, 5, 20_000))
        await lead.renew()
        assert lead.followers == 1
    await until(lambda: all(len(one.come) == 8 for one in readings))
    for lead in leads:
        await lead.end(records(9, 1), 30)
    for one in readings:
        await one.task
        assert one.come == [*records(1, 3), *records(4, 5, 20_000), *records(9, 1)]
    for number, lead in enumerate(leads):
        assert await here.read(number, lead.identity, 8) == records(9, 1)
        assert isinstance(await there.claim(number), RedisLead)


async def test_who_leaves_is_not_told_any_more_and_what_is_given_up_is_lost(url, tell):
    here, there = tell(url), tell(url)
    lead = await here.lead()
    reading, left = there.reading(1, lead.identity), here.reading(1, lead.identity)
    await until(lambda: reading.opened and left.opened)
    left.task.cancel()
    while lead.followers != 1:
        await lead.renew()
    await lead.abandon()
    with pytest.raises(Trouble, match="gave it up") as caught:
        await reading.task
    assert caught.value.kind == "lost"


async def test_a_removal_makes_it_take_no_new_readers(url, tell):
    here, there = tell(url), tell(url)
    leads = [await here.lead(number) for number in range(4)]
    await there.one.remove(tagged("something"))
    for number, lead in enumerate(leads):
        with pytest.raises(Trouble) as caught:
            await there.read(number, lead.identity)
        assert caught.value.kind == "gone"
        assert isinstance(await there.claim(number), RedisLead)
