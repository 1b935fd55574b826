"""A new version of a knowledge base, told at one proxy, holds on all: no answer older than the last acknowledged one."""

import asyncio

import pytest

from cacheproxy.errors import Trouble
from tests.proxy.test_knowledge import EVENT, KB, Desk, says
from tests.rig import until

pytestmark = pytest.mark.redis


async def test_what_one_was_told_the_other_knows(proxies, clients, session):
    one, other = clients
    await one.chat(**KB)
    assert (await other.chat(**KB)).cache == "HIT"
    assert (await Desk(session, proxies[0].admin).event())["purged"] == 1
    assert (await other.chat(**KB)).cache == "MISS"
    assert (await Desk(session, proxies[1].admin).event())["course"] == "repeated"
    late = {**EVENT, "id": "0", "data": {"version": "v1", "sequence": 1}}
    assert (await Desk(session, proxies[1].admin).event(late))["course"] == "outdated"


async def test_readers_never_get_what_is_older_than_what_was_acknowledged(sharing, session, backend, relay):
    """Through a Redis that is slow, readers of JSON and of streams on both proxies, versions told at each in turn."""
    relay.delay(0.003)
    proxies, clients = await sharing(relay.url)
    current = acknowledged = read = 0
    done, wrong = False, []

    async def script(exchange) -> None:
        seen = current
        await asyncio.sleep(0)
        await says(str(seen), X_Cache_KB=f"handbook@{seen}")(exchange)

    backend.script = script

    async def reader(number: int) -> None:
        nonlocal read
        while not done:
            least = acknowledged
            answer = await clients[number % 2].chat(seed=number % 3, stream=number % 4 > 1, **KB)
            read += 1
            if int(answer.text) < least:
                wrong.append((least, int(answer.text)))

    readers = [asyncio.create_task(reader(number)) for number in range(8)]
    for version in range(1, 8):
        current = version
        await Desk(session, proxies[version % 2].admin).put("handbook", str(version))
        acknowledged = version
        target = read + 40
        await until(lambda target=target: read >= target, 30)
    done = True
    await asyncio.gather(*readers)
    assert wrong == []


async def test_without_redis_no_version_is_acknowledged(sharing, session, own_redis):
    server = own_redis()
    proxies, [one] = await sharing(server.url, 1)
    await one.chat(**KB)
    server.kill()
    status, told = await Desk(session, proxies[0].admin).call("PUT", "/admin/kb/handbook", {"version": "v2"})
    assert (status, told["error"]["code"]) == (503, "store_trouble")
    with pytest.raises(Trouble):
        await proxies[0].house.knowledge.versions()
