"""The stream of events on every kind of Redis, as the user of configs/redis.conf."""

from collections.abc import AsyncIterator, Callable

import pytest

from cacheproxy.stores.redis_events import STREAM, RedisEvents
from tests.stores.replicas import Replica, replica

pytestmark = pytest.mark.redis


@pytest.fixture(params=["redis_acl", "redis_cluster", "valkey"])
def servers(request) -> list:
    name = request.param
    found = request.getfixturevalue("nodes") if name == "redis_cluster" else [request.getfixturevalue(name)]
    for server in found:
        server.cli("FLUSHALL")
    return found


@pytest.fixture
async def join(servers) -> AsyncIterator[Callable[[str], RedisEvents]]:
    """Makes readers, each with connections of its own."""
    replicas: list[Replica] = []

    def build(name: str) -> RedisEvents:
        url = servers[0].url
        if len(servers) > 1:
            url = url.replace("redis://", "redis+cluster://").removesuffix("/0")
        replicas.append(replica(url))
        return RedisEvents(replicas[-1].calls, "group", name, abandoned=0.0 if name == "heir" else 60.0)

    yield build
    for one in replicas:
        await one.close()


def tell(servers, *texts: str) -> None:
    for text in texts:
        told = [server.cli("CLUSTER", "KEYSLOT", STREAM) for server in servers[:1]] if len(servers) > 1 else []
        home = next(server for server in servers if not told or _holds(server, told[0]))
        home.cli("XADD", STREAM, "*", "event", text)


def _holds(server, slot: int) -> bool:
    rows = server.cli("CLUSTER", "SLOTS")
    return any(low <= slot <= high and node[1] == server.port for low, high, node, *_ in rows)


async def test_an_event_goes_to_one_reader_and_is_done_or_taken_over(servers, join):
    tell(servers, "1", "2")
    one, other, heir = join("a"), join("b"), join("heir")
    first, second = await one.take()
    assert [first.fields, second.fields] == [{b"event": b"1"}, {b"event": b"2"}]
    assert await other.take() == []
    assert await other.oldest() == first.identity
    await one.done(first.identity)
    assert await other.oldest() == second.identity
    assert [notice.identity for notice in await heir.take()] == [second.identity]
    await heir.hold(second.identity)
    await heir.done(second.identity)
    assert await one.oldest() is None
