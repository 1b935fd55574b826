"""Wherever Redis lives, two proxies share it, and no move of it costs an answer or brings back what was purged."""

import asyncio

import pytest

from tests.faults.load import ask, hits_back, purge, troubles, version_of
from tests.faults.traffic import PROMPTS, Traffic
from tests.parts import redis as part
from tests.parts import redis_fleet as fleet
from tests.rig import until

pytestmark = pytest.mark.redis


async def one_cache(proxies, clients, session, telling) -> None:
    """Shared each way, and purged for both."""
    assert [(await ask(client, "x")).cache for client in clients] == ["MISS", "HIT"]
    assert [(await ask(client, "y")).cache for client in reversed(clients)] == ["MISS", "HIT"]
    telling.version = 2
    status, told = await purge(session, proxies[0], model="m")
    assert (status, told["purged"]) == (200, 2)
    for prompt in "xy":
        answers = [await ask(client, prompt) for client in reversed(clients)]
        assert [(answer.cache, version_of(answer, prompt)) for answer in answers] == [("MISS", 2), ("HIT", 2)]
    assert [await troubles(session, proxy) for proxy in proxies] == [{}, {}]


async def test_a_unix_socket(sharing, own_redis, session, telling):
    server = own_redis(port=None)
    assert server.url.startswith("unix://")
    await one_cache(*await sharing(server.url), session, telling)


@pytest.mark.parametrize("tls", ["server", "mutual"])
async def test_tls(sharing, own_redis, session, telling, tls):
    server, files = own_redis(tls=tls), part.certificates()
    values = {"redis__ca_file": str(files.authority)}
    if tls == "mutual":
        values |= {"redis__cert_file": str(files.client), "redis__key_file": str(files.client)}
    await one_cache(*await sharing(server.url, **values), session, telling)


async def test_tls_of_a_stranger_costs_nothing(sharing, own_redis, session):
    server, files = own_redis(tls="server"), part.certificates()
    [proxy], [client] = await sharing(server.url, 1, redis__ca_file=str(files.stranger))
    assert [(await ask(client, "x")).cache for _ in range(5)] == ["MISS"] * 5
    assert set((await troubles(session, proxy))["redis (read)"]) == {"tls"}


async def test_a_failover_under_load_is_followed_by_name(sharing, redis_start, tmp_path, session, telling):
    """The primary is killed right after a purge: what it had felled does not rise on the new one."""
    primary = redis_start(search=False)
    replica = fleet.replica(tmp_path / "replica", primary, search=False)
    sentinels = fleet.sentinel(tmp_path, primary, [replica])
    try:
        host, port = sentinels.addresses[0]
        url = f"redis+sentinel://{host}:{port}/{sentinels.name}"
        proxies, clients = await sharing(url, redis__timeout="250ms")
        traffic = Traffic(clients)
        await hits_back(clients, "canary")
        await traffic.more(100)
        telling.version = 2
        assert (await purge(session, proxies[0]))[0] == 200
        traffic.least = 2
        primary.kill()
        await asyncio.to_thread(sentinels.moved, primary.port)
        await until(lambda: replica.info("replication")["role"] == "master", what="a primary")
        await hits_back(clients, "canary")
        await traffic.more(50)
        await traffic.stop()
        assert replica.cli("DBSIZE") > 5
        assert (await purge(session, proxies[1]))[0] == 200
    finally:
        sentinels.stop()
        replica.stop()


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory):
    made = fleet.cluster(tmp_path_factory.mktemp("cluster"), 2)
    yield made
    made.stop()


@pytest.fixture
def cluster(two_nodes: fleet.Cluster) -> fleet.Cluster:
    """Two nodes, empty."""
    for node in two_nodes.nodes:
        node.cli("FLUSHALL")
    return two_nodes


async def test_a_cluster_of_two_nodes(sharing, cluster, session, telling):
    """Shared and purged on both nodes, while a slot moves from one to the other under load."""
    proxies, clients = await sharing(f"redis+cluster://127.0.0.1:{cluster.nodes[0].port}", redis__timeout="1s")
    traffic = Traffic(clients, workers=4)
    await hits_back(clients, "canary")
    await traffic.more(200)
    assert all(len(node.cli("KEYS", "*:e:*")) > 3 for node in cluster.nodes)
    moved = next(key for key in cluster.nodes[0].cli("KEYS", "*:e:*"))
    await asyncio.to_thread(cluster.move, moved, cluster.nodes[1])
    await traffic.more(100)
    telling.version = 2
    assert (await purge(session, proxies[1]))[0] == 200
    traffic.least = 2
    await traffic.more(100)
    await traffic.stop()
    for prompt in PROMPTS:
        answers = [await ask(client, prompt) for client in clients]
        assert {version_of(answer, prompt) for answer in answers} == {2}
        assert answers[1].cache == "HIT"
    assert all(node.cli("PTTL", key) > 0 for node in cluster.nodes for key in node.cli("KEYS", "*"))


async def test_a_node_of_a_cluster_that_dies_costs_no_answer(sharing, cluster, telling):
    _, clients = await sharing(f"redis+cluster://127.0.0.1:{cluster.nodes[0].port}", redis__timeout="250ms")
    traffic = Traffic(clients, workers=4)
    await hits_back(clients, "canary")
    cluster.nodes[1].kill()
    await traffic.more(300)
    cluster.nodes[1].launch()
    await until(cluster.nodes[1]._answers, what="the node")
    for number in range(8):
        await hits_back(clients, f"after {number}")
    await traffic.stop()
