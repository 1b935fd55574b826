"""Deferred requests of replicas on one Redis: each is asked once, by whichever has room."""

import asyncio
from collections import Counter

import pytest

from tests.fakes.backend import completion, plain
from tests.rig import Client, until

pytestmark = pytest.mark.redis
COUNT = 40


def says(text: str) -> dict:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


class Gated:
    """A backend that holds what it is asked until it is told otherwise, and counts."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.begun: Counter[str] = Counter()

    async def __call__(self, exchange) -> None:
        if exchange.seen.method == b"GET":
            await plain(exchange)
            return
        text = exchange.seen.json["messages"][-1]["content"]
        self.begun[text] += 1
        await self.open.wait()
        await asyncio.sleep(0.01)
        await exchange.json(completion(f"answer to {text}"))


@pytest.fixture
async def crowded(start, backend, session, redis):
    """Two proxies whose slots are taken, and their clients."""
    gated = backend.script = Gated()
    proxies = [
        await start(
            upstreams=[{"url": backend.url, "max_inflight": 2}], admission__p2__depth=0, jobs__path="/_jobs",
            redis__url=redis.url, redis__timeout="2s", flight__mode="off", jobs__lease=1.0, jobs__pause=0.05,
        )
        for _ in range(2)
    ]  # fmt: skip
    clients = [Client(proxy.base, session) for proxy in proxies]
    first = [asyncio.ensure_future(c.send(says(f"first {n} {m}"))) for n, c in enumerate(clients) for m in range(2)]
    await until(lambda: gated.begun.total() == 4)
    yield proxies, clients, gated
    gated.open.set()
    await asyncio.gather(*first, return_exceptions=True)


async def later(client: Client, text: str, key: str = "A"):
    return await client.send(says(text), key=key, X_Priority="P2", Prefer="respond-async")


async def ended(client: Client, where: str, key: str = "A"):
    async with asyncio.timeout(20):
        while (answer := await client.send(method="GET", path=where, key=key)).status == 202:
            await asyncio.sleep(0.02)
    return answer


async def test_each_is_asked_exactly_once_and_every_replica_tells_of_it(crowded):
    _, clients, gated = crowded
    taken = [await later(clients[n % 2], f"q{n}") for n in range(COUNT)]
    assert {one.status for one in taken} == {202}
    gated.open.set()
    for number, one in enumerate(taken):
        answer = await ended(clients[(number + 1) % 2], one.get("Location"))
        assert (answer.status, answer.text) == (200, f"answer to q{number}")
    assert {text: count for text, count in gated.begun.items() if count != 1} == {}
    hits = [(await clients[number % 2].send(says(f"q{number}"))).cache for number in range(COUNT)]
    assert hits == ["HIT"] * COUNT


async def test_another_credential_hears_nothing_of_it_from_any_replica(crowded):
    _, clients, _ = crowded
    where = (await later(clients[0], "second")).get("Location")
    for client in clients:
        assert (await client.send(method="GET", path=where, key="B")).status == 404
        assert (await client.send(method="DELETE", path=where, key="B")).status == 404
        assert (await client.send(method="GET", path=where)).status == 202


async def test_what_one_had_under_way_when_it_stopped_the_other_asks(crowded, backend):
    proxies, clients, gated = crowded
    where = (await later(clients[0], "second")).get("Location")
    holding = asyncio.Event()

    async def held(exchange):
        if exchange.seen.method == b"GET":
            await plain(exchange)
            return
        gated.begun[exchange.seen.json["messages"][-1]["content"]] += 1
        if gated.begun["second"] == 1:
            await holding.wait()
        await exchange.json(completion("at last"))

    backend.script = held
    gated.open.set()
    await until(lambda: gated.begun["second"] == 1)
    running = [proxy.house.deferral.deferring.running for proxy in proxies]
    assert sorted(running) == [0, 1]
    stopped = proxies[running.index(1)]
    await stopped.house.deferral.drain()
    answer = await ended(clients[running.index(0)], where)
    assert (answer.text, gated.begun["second"]) == ("at last", 2)
    holding.set()


async def test_nothing_of_it_can_be_read_in_redis(crowded, redis):
    _, clients, gated = crowded
    where = (await later(clients[0], "a question nobody may read", key="the-caller-key")).get("Location")
    gated.open.set()
    await ended(clients[0], where, "the-caller-key")
    with redis.line() as line:
        names = list(line.call("KEYS", "cacheproxy:{0}:d:*"))
        told = [line.call("HGETALL", key) for key in names]
    assert len(told) == 1
    for word in (b"nobody may read", b"the-caller-key", b"answer to"):
        assert word not in repr(told).encode() and word not in repr(names).encode()


async def test_without_redis_a_refusal_is_a_refusal(start, backend, session, own_redis):
    server = own_redis()
    gated = backend.script = Gated()
    proxy = await start(
        upstreams=[{"url": backend.url, "max_inflight": 1}], admission__p2__depth=0, redis__url=server.url,
        redis__timeout="200ms",
    )  # fmt: skip
    client = Client(proxy.base, session)
    first = asyncio.ensure_future(client.send(says("first")))
    await until(lambda: gated.begun.total() == 1)
    server.stop()
    assert (await later(client, "second")).status == 429
    gated.open.set()
    assert (await first).status == 200
