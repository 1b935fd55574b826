"""Few connections and many requests: a wait that is bounded, never an error, and never one connection more (B66)."""

import asyncio

import pytest

from tests.faults.load import ask, burst, caches, hits_back, troubles
from tests.rig import until

pytestmark = pytest.mark.redis

FORBIDDEN = ("KEYS", "FLUSHALL", "FLUSHDB", "SCAN")
KNOWN = [f"known {n}" for n in range(20)]


class Watch:
    """How many connections there were at most, looked at all the time."""

    def __init__(self, count) -> None:
        self.most = 0
        self._count = count
        self._task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while True:
            self.most = max(self.most, self._count())
            await asyncio.sleep(0.001)

    def stop(self) -> int:
        self._task.cancel()
        return self.most


def mixed(count: int, name: str) -> list[str]:
    return [KNOWN[n % len(KNOWN)] if n % 2 else f"{name} {n}" for n in range(count)]


def ours(server) -> int:
    """Connections that the server says are ours."""
    return bytes(server.cli("CLIENT", "LIST")).count(b"name=cacheproxy")


async def test_three_hundred_at_once_on_two_connections(sharing, relay, redis):
    [proxy], [client] = await sharing(relay.url, 1, redis__max_connections=2)
    await burst([client], KNOWN)
    watch = Watch(lambda: relay.open)
    for time in range(3):
        answers = await burst([client], mixed(300, f"time {time}"), width=300)
        # All are answered; on a busy machine a look may be too late, which costs some hits.
        assert 0 < caches(answers)["HIT"] <= 150
        assert ours(redis) <= 2
    assert watch.stop() <= 2
    assert proxy.house.storage.shared.link.connections <= 2


async def test_four_proxies_have_four_times_as_many(sharing, relay, redis):
    _, clients = await sharing(relay.url, 4, redis__max_connections=2)
    await burst(clients[:1], KNOWN)
    watch = Watch(lambda: relay.open)
    answers = await burst(clients, mixed(300, "new"), width=300)
    assert 0 < caches(answers)["HIT"] <= 150
    assert 4 <= watch.stop() <= 8
    assert ours(redis) <= 8


def server_info(line, name: str) -> str:
    told = bytes(line.call("INFO", "everything")).decode()
    return next(said.partition(":")[2] for said in told.splitlines() if said.startswith(f"{name}:"))


async def test_a_server_that_takes_few_clients(sharing, own_redis, relay_to, session):
    """Whoever gets no connection goes on without; whoever has one goes on with it."""
    server = own_redis()
    relay = relay_to(server.address)
    with server.line() as line:  # one of the few
        line.call("CONFIG", "SET", "maxclients", 3)
        proxies, clients = await sharing(relay.url, 4, redis__max_connections=2, redis__timeout="250ms")
        assert len(await burst(clients, mixed(300, "new"), width=100)) == 300
        assert int(server_info(line, "rejected_connections")) > 0
        refused = [(await troubles(session, proxy)).get("redis (read)", {}) for proxy in proxies]
        assert any("refused" in counted for counted in refused)
        line.call("CONFIG", "SET", "maxclients", 100)
        await hits_back(clients, KNOWN[0])
    assert relay.open <= 8


async def test_one_round_trip_a_lookup_and_no_command_that_looks_at_everything(sharing, relay, redis):
    [proxy], [client] = await sharing(relay.url, 1)
    await burst([client], KNOWN, width=1)
    await ask(client, KNOWN[0])
    await until(lambda: not proxy.house.engine.flights.running, what="the end of the running answers")
    with redis.monitor() as monitor:
        relay.commands.clear()
        before = relay.round_trips
        for prompt in KNOWN:
            assert (await ask(client, prompt)).cache == "HIT"
        assert relay.round_trips - before == len(KNOWN)
        assert dict(relay.commands) == {"MGET": len(KNOWN)}
        before = relay.round_trips
        assert (await ask(client, "a new one")).cache == "MISS"
        await until(lambda: not proxy.house.engine.flights.running, what="the end of the running answer")
        # A lookup, the claim, the keeping; and what the others are told while it runs, none of it waited for.
        assert 3 <= relay.round_trips - before <= 6
        await burst([client], mixed(200, "new"))
        assert not set(monitor.names) & set(FORBIDDEN)
        said = {heard.name for heard in monitor.heard() if heard.source != "lua"}
        # Those: where a connection was made, and where it is looked for events.
        assert said - {"HELLO", "CLIENT", "INFO", "EXISTS"} == {"MGET", "EVALSHA"}


async def test_connections_lost_one_by_one_do_not_add_up(sharing, relay):
    """No growth over time: each that is lost is replaced, and none is forgotten."""
    [proxy], [client] = await sharing(relay.url, 1, redis__max_connections=2)
    await burst([client], KNOWN)
    for time in range(10):
        relay.reset()
        await until(lambda: relay.open <= 1, what="the end of the connections")  # one may be there anew already
        await burst([client], mixed(40, f"time {time}"))
        await hits_back([client], KNOWN[0])
        assert relay.open <= 2
    assert proxy.house.storage.shared.link.connections <= 2
