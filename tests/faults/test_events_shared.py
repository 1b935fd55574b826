"""Versions told on the stream in Redis: one replica carries each out, all obey it, also what was told while none ran."""

import asyncio
import json

import pytest

from cacheproxy.stores.redis_events import STREAM
from tests.proxy.test_knowledge import KB
from tests.rig import until

pytestmark = pytest.mark.redis


@pytest.fixture
def tell(redis):
    """Tells of a version: ``tell("v2")``."""

    def begin(version: str, **more) -> None:
        event = {
            "specversion": "1.0", "type": "kb.version.published", "source": "/index", "id": version,
            "subject": "handbook", "data": {"version": version, **more},
        }  # fmt: skip
        redis.cli("XADD", STREAM, "*", "event", json.dumps(event))

    yield begin
    redis.cli("DEL", STREAM)


async def falls(client) -> None:
    async with asyncio.timeout(10):
        while (await client.chat(Cache_Control="only-if-cached", **KB)).status != 504:
            await asyncio.sleep(0.005)


async def comes_to_be_served(client) -> None:
    async with asyncio.timeout(10):
        while (await client.chat(**KB)).cache != "HIT":
            await asyncio.sleep(0.005)


async def test_a_version_that_is_told_on_the_stream_holds_on_all(clients, proxies, tell, redis):
    one, other = clients
    await one.chat(**KB)
    await comes_to_be_served(other)
    tell("v2")
    await falls(one)
    assert (await other.chat(**KB)).cache == "MISS"
    known = await proxies[1].house.knowledge.versions()
    assert known["handbook"].version == "v2"
    await until(lambda: redis.cli("XPENDING", STREAM, "cacheproxy")[0] == 0)
    assert redis.cli("XLEN", STREAM) == 1
    await comes_to_be_served(one)


async def test_what_was_told_while_none_ran_is_obeyed_before_anything_is_served(sharing, redis, tell):
    for version in ("v2", "v3"):
        proxies, clients = await sharing(redis.url, 2)
        for client in clients:
            await client.chat(**KB)
            await comes_to_be_served(client)
        for proxy in proxies:
            await proxy.running.stop()
        tell(version)
        proxies, clients = await sharing(redis.url, 2)
        first = [(await client.chat(**KB)).cache for client in clients]
        assert first == ["MISS", "MISS"]
        await comes_to_be_served(clients[1])


async def test_an_event_that_is_poison_holds_nothing_up(proxies, tell, redis, session):
    redis.cli("XADD", STREAM, "*", "event", "secret")
    tell("v2")
    async with asyncio.timeout(10):
        while "handbook" not in (known := await proxies[0].house.knowledge.versions()):
            await asyncio.sleep(0.01)
    assert known["handbook"].version == "v2"
    await until(lambda: redis.cli("XPENDING", STREAM, "cacheproxy")[0] == 0)
    assert "unreadable" in "".join([await _metrics(session, proxy) for proxy in proxies])


async def _metrics(session, proxy) -> str:
    async with session.get(proxy.admin + "/metrics") as answer:
        return await answer.text()


async def test_what_was_told_while_redis_was_away_is_obeyed_before_anything_is_served(sharing, relay, tell, redis):
    (proxy,), (one,) = await sharing(relay.url, 1)
    await one.chat(**KB)
    await comes_to_be_served(one)
    for version in ("v2", "v3"):
        relay.refuse()
        relay.reset()
        await falls(one)
        await until(lambda: not proxy.house.gate.passes(["handbook"]))
        tell(version)
        relay.accept()
        seen = []
        async with asyncio.timeout(20):
            while not seen or seen[-1] != "HIT":
                seen.append((await one.chat(**KB)).cache)
                await asyncio.sleep(0.005)
        assert seen[0] == "MISS"


async def test_who_does_not_want_them_serves_without_them(sharing, redis, tell):
    _, (one,) = await sharing(redis.url, 1, kb__events=False)
    tell("v2")
    await one.chat(**KB)
    assert (await one.chat(**KB)).cache == "HIT"
    assert redis.cli("XINFO", "GROUPS", STREAM) == []
