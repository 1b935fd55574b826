"""A Redis in every topology: how it is reached, who gets in, and who is followed when another server takes over."""

import asyncio
import shutil
import threading

import pytest

from cacheproxy.core.redis_url import Topology
from cacheproxy.errors import ConfigurationError, Trouble
from cacheproxy.stores.redis_cluster import Node
from cacheproxy.stores.redis_dial import Names
from cacheproxy.stores.redis_link import CLUSTER_SHARDS
from cacheproxy.stores.redis_trouble import trouble
from tests.examples import OPERATIONS
from tests.fakes import relay as replies
from tests.parts import redis as part
from tests.parts import redis_fleet
from tests.parts.redis_talk import Line
from tests.rig import until
from tests.stores.test_redis_pool import ask_at_random

pytestmark = [
    pytest.mark.redis,
    pytest.mark.skipif(not part.here(), reason="the packaged Redis exists for Linux on x86-64 only"),
]
QUICK = 0.2


async def kind_of(link, *command) -> str:
    """How a command fails."""
    with pytest.raises(Exception) as caught:
        await link.redis.execute_command(*(command or ("GET", "k")))
    return trouble(caught.value).kind


async def works(link) -> None:
    assert await link.redis.set("k", "v") is True
    assert await link.redis.get("k") == b"v"


async def test_by_tcp(redis, link_to):
    link = link_to(redis.url)
    await works(link)
    (client,) = [one for one in await link.redis.client_list() if one["name"] == "cacheproxy"]
    assert (client["db"], client["lib-name"], client["resp"]) == ("0", "", "3")
    assert (link.topology, link.shards, link.connections) == (Topology.SINGLE, 1, 1)
    assert repr(link) == f"<Link {redis.url} 1 connections>"
    assert repr(link.redis.connection_pool) == "<Pool 1 idle, 0 busy, 0 being made, 0 waiting, at most 16>"
    assert await link.everywhere() == [{}]


async def test_a_name_is_resolved(redis, link_to):
    await works(link_to(f"redis://localhost:{redis.port}"))


async def test_a_numbered_database(redis, link_to):
    await works(link_to(f"redis://127.0.0.1:{redis.port}/3"))
    assert redis.info("keyspace") == {"db3": redis.info("keyspace")["db3"]}


async def test_by_a_unix_socket(redis_start, link_to):
    server = redis_start(port=None, search=False)
    await works(link_to(server.url))
    await works(link_to(server.url + "?db=1"))
    assert set(server.info("keyspace")) == {"db0", "db1"}


async def test_as_a_user(redis_start, link_to):
    server = redis_start(search=False, acl=["user a@b on >p/w:%é ~* &* +@all"])
    link = link_to(f"redis://a%40b:p%2Fw:%25%C3%A9@127.0.0.1:{server.port}")
    await works(link)
    assert await link.redis.acl_whoami() == "a@b"
    assert "p/w" not in repr(link) + repr(link.redis) + repr(link._terms) + repr(link.target)
    unix = link_to(f"unix://a%40b:p%2Fw:%25%C3%A9@{server.socket}")
    await works(unix)


async def test_a_password_from_a_file_is_read_at_each_connection(redis_start, link_to, tmp_path):
    """Rotation needs no restart; what the file lacks is said."""
    server = redis_start(search=False, acl=["user app on >first ~* &* +@all"])
    file = tmp_path / "password"
    link = link_to(f"redis://other@127.0.0.1:{server.port}", username="app", password_file=str(file))
    for content, said in (
        (None, "cannot be read"), (b"", "is empty"), (b"\r\n", "is empty"), (b"\xff", "cannot be read"),
        (b"second", "does not accept"),
    ):  # fmt: skip
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(Exception) as caught:
            await link.redis.get("k")
        assert (trouble(caught.value).kind, said in str(trouble(caught.value))) == ("noauth", True)
    file.write_text("first\r\n")
    await works(link)
    server.cli("ACL", "SETUSER", "app", "resetpass", ">second")
    file.write_text("second")
    await works(link)
    await link.drop()
    await works(link)
    assert await link.redis.acl_whoami() == "app"


@pytest.mark.parametrize("kind", ["server", "mutual"])
async def test_by_tls(redis_start, link_to, tmp_path, kind):
    """Certificates that are renewed are read again."""
    made = part.certificates()
    server = redis_start(search=False, tls=kind)
    authority, shown = tmp_path / "ca.pem", tmp_path / "client.pem"
    shutil.copy(made.stranger, authority)
    shutil.copy(made.client, shown)
    link = link_to(server.url, ca_file=str(authority), cert_file=str(shown) if kind == "mutual" else None)
    assert await kind_of(link) == "tls"
    authority.write_text("half-written")
    assert await kind_of(link) == "tls"
    shutil.copy(made.authority, authority)
    await works(link)
    authority.unlink()
    await link.drop()
    await works(link)


def test_certificates_that_cannot_be_used(link_to, tmp_path):
    (tmp_path / "junk.pem").write_text("junk")
    for terms in {"ca_file": "junk.pem"}, {"cert_file": "junk.pem"}, {"ca_file": "none.pem"}, {"key_file": "junk.pem"}:
        paths = {name: str(tmp_path / file) for name, file in terms.items()}
        with pytest.raises(ConfigurationError, match=r"redis\.ca_file, redis\.cert_file"):
            link_to("rediss://localhost", **paths)


async def test_one_who_leaves_does_not_take_the_name_from_the_others():
    names = Names()
    leaves, stays = (asyncio.ensure_future(names.find("localhost", 1)) for _ in range(2))
    await asyncio.sleep(0)
    leaves.cancel()
    assert ("127.0.0.1", 1) in [info[4] for info in await stays]


async def test_a_name_server_that_hangs_costs_one_thread(redis, link_to, monkeypatch):
    """B63: whoever asks is not kept longer than he waits, however many they are."""
    resumed = threading.Event()
    find = __import__("socket").getaddrinfo

    def hang(_, *rest, **options):
        resumed.wait(20)
        return find("127.0.0.1", *rest, **options)

    monkeypatch.setattr("socket.getaddrinfo", hang)
    link = link_to(f"redis://redis.test:{redis.port}")
    for _ in range(5):
        asked = [asyncio.wait_for(link.redis.get("k"), 0.01) for _ in range(10)]
        assert {type(error) for error in await asyncio.gather(*asked, return_exceptions=True)} == {TimeoutError}
    assert sum(thread.name == "redis-names" for thread in threading.enumerate()) == 1
    resumed.set()
    await works(link)


# Sentinels


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Two Sentinels over a primary and a replica."""
    directory = tmp_path_factory.mktemp("fleet")
    servers = [part.start(directory / "first", search=False)]
    servers.append(redis_fleet.replica(directory / "second", servers[0], search=False))
    watch = redis_fleet.sentinel(directory, servers[0], servers[1:], count=2)
    yield watch, {server.port: server for server in servers}
    for server in (watch, *servers):
        server.stop()


def sentinel_url(addresses, rest: str = "cache") -> str:
    return f"redis+sentinel://{','.join(f'{host}:{port}' for host, port in addresses)}/{rest}"


def roles(fleet):
    """The primary and the replica."""
    watch, servers = fleet
    primary = servers[watch.primary()]
    return primary, next(server for server in servers.values() if server is not primary)


async def test_sentinels_that_do_not_know(fleet, link_to, relay_to):
    watch, _ = fleet
    late = relay_to(watch.servers[0].address)
    late.answer(replies.LOADING, "SENTINEL")
    late.delay(0.05)
    both = [("127.0.0.1", late.port), watch.addresses[1]]
    assert await kind_of(link_to(sentinel_url(both, "unknown"))) == "masterdown"
    assert await kind_of(link_to(sentinel_url(watch.addresses, "unknown"))) == "masterdown"
    assert await kind_of(link_to(sentinel_url([("127.0.0.1", 1)]))) == "refused"


async def test_connections_made_at_once_share_one_question(fleet, link_to, relay_to):
    watch, _ = fleet
    asked = relay_to(watch.servers[0].address)
    link = link_to(sentinel_url([("127.0.0.1", asked.port)]), max_connections=8)
    await asyncio.gather(*(link.redis.get("k") for _ in range(50)))
    assert (link.connections, asked.commands["SENTINEL"]) == (8, 1)
    await until(lambda: asked.open == 0)


async def test_a_replica_is_never_taken_for_the_primary(fleet, link_to, relay_to):
    """A Sentinel that has not heard of a failover, or a primary that has become a replica: neither reads nor writes."""
    primary, replica = roles(fleet)
    stale = relay_to(fleet[0].servers[0].address)
    port = str(replica.port).encode()
    stale.answer(b"*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n" % (len(port), port), "SENTINEL", times=2)
    link = link_to(sentinel_url([("127.0.0.1", stale.port)]))
    assert await kind_of(link) == "readonly"
    assert await kind_of(link, "PING") == "readonly"
    await works(link)
    assert primary.cli("GET", "k") == b"v"


async def test_sentinels_with_a_password(fleet, link_to, tmp_path):
    watch, _ = fleet
    roles(fleet)[0].cli("ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all")
    for server in watch.servers:
        server.cli("ACL", "SETUSER", "default", "resetpass", ">watch")
    (tmp_path / "password").write_text("watch")
    url = sentinel_url(watch.addresses).replace("//", "//app:pw@")
    assert await kind_of(link_to(url)) == "noauth"
    link = link_to(url, sentinel_password_file=str(tmp_path / "password"))
    await works(link)
    assert await link.redis.acl_whoami() == "app"
    for server in watch.servers:
        with Line(server.socket, ("default", "watch"), 10) as line:
            line.call("ACL", "SETUSER", "default", "nopass")


async def test_a_failover_is_followed_by_name(fleet, link_to):
    """B67: also while connections to the old primary are open, and whichever Sentinel is gone."""
    watch, _ = fleet
    old, new = roles(fleet)
    link = link_to(sentinel_url([("127.0.0.1", 1), *watch.addresses], "cache/1"), max_connections=2)
    await works(link)
    watch.servers[0].freeze()
    await link.drop()
    await works(link)
    assert old.cli("CLIENT", "LIST").count(b"name=cacheproxy") == 1
    watch.servers[0].thaw()
    assert watch.fail_over() == new.port
    assert old.info("replication")["role"] == "master"  # it is told much later, and answers as before until then
    await until(lambda: link.connections == 0)
    await works(link)
    assert new.cli("CLIENT", "LIST").count(b"name=cacheproxy") == 1
    assert set(new.info("keyspace")) >= {"db1"}
    await link.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


# A cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = redis_fleet.cluster(tmp_path_factory.mktemp("cluster"), config=["cluster-require-full-coverage no"])
    yield made
    made.stop()


def cluster_url(cluster) -> str:
    return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes[:2])


def clients(node) -> int:
    listed = bytes(node.cli("CLIENT", "LIST")).decode()
    return sum("name=cacheproxy" in line for line in listed.splitlines())


async def test_a_cluster(cluster, link_to):
    link = link_to(cluster_url(cluster), max_connections=1)
    assert (link.shards, link.topology) == (CLUSTER_SHARDS, Topology.CLUSTER)
    names = [f"{{{shard}}}:k" for shard in range(link.shards)]
    await asyncio.gather(*(link.redis.set(name, name) for name in names * 5))
    assert await asyncio.gather(*(link.redis.get(name) for name in names)) == [name.encode() for name in names]
    assert all(node.cli("DBSIZE") > 0 for node in cluster.nodes)
    async with link.redis.pipeline() as pipeline:
        for name in names:
            pipeline.execute_command("GET", name)
        assert await pipeline.execute() == [name.encode() for name in names]
    assert await link.redis.eval("return redis.call('GET', KEYS[1])", 1, names[5]) == names[5].encode()
    assert await link.redis.execute_command("MGET", "{1}:k", "{1}:l") == [b"{1}:k", None]
    found = []
    for options in await link.everywhere():
        cursor, keys = await link.redis.execute_command("SCAN", 0, "COUNT", 1000, **options)
        assert cursor == 0
        found += keys
    assert sorted(found) == sorted(name.encode() for name in names)
    assert link.connections == sum(clients(node) for node in cluster.nodes) == 3


async def test_a_slot_that_moves_is_followed(cluster, link_to):
    """Also while it moves: what has gone already is asked for where it is (ASK), on that connection alone."""
    link = link_to(cluster_url(cluster), max_connections=2)
    await link.redis.mset({"{moved}a": "1", "{moved}b": "2"})
    origin = cluster.home("{moved}")
    to = next(node for node in cluster.nodes if node is not origin)
    slot = cluster.slot("{moved}")
    to.cli("CLUSTER", "SETSLOT", slot, "IMPORTING", origin.cli("CLUSTER", "MYID"))
    origin.cli("CLUSTER", "SETSLOT", slot, "MIGRATING", to.cli("CLUSTER", "MYID"))
    origin.cli("MIGRATE", "127.0.0.1", to.port, "{moved}a", 0, 5000)
    read = ["{moved}a", "{moved}b"] * 20
    assert await asyncio.gather(*(link.redis.get(key) for key in read)) == [b"1", b"2"] * 20
    cluster.move("{moved}", to)
    manager = link.redis.nodes_manager
    manager.nodes_cache.pop(f"127.0.0.1:{to.port}")  # one that joined after the map was learned
    assert await asyncio.gather(*(link.redis.get(key) for key in read)) == [b"1", b"2"] * 20
    async with link.redis.pipeline() as pipeline:
        for key in read:
            pipeline.execute_command("GET", key)
        assert await pipeline.execute() == [b"1", b"2"] * 20
    await link.redis.set("{moved}a", "3")
    assert to.cli("GET", "{moved}a") == b"3"
    assert {type(node) for nodes in manager.slots_cache.values() for node in nodes} == {Node}


async def test_one_node_of_a_cluster_that_fails(cluster, link_to):
    """Costs what is on it, as long as it is gone."""
    link = link_to(cluster_url(cluster), QUICK, max_connections=2)
    homes = {node.port: name for name in (f"{{{n}}}" for n in range(99)) for node in [cluster.home(name)]}
    gone = cluster.nodes[0]
    await works_on(link, homes.values())
    gone.freeze()
    try:
        lost = homes.pop(gone.port)
        assert await kind_of(link, "GET", lost) in ("timeout", "clusterdown")
        with pytest.raises(Trouble):
            await link.survey()
        for node in cluster.nodes[1:]:
            assert await link.redis.get(homes[node.port]) == b"v"
    finally:
        gone.thaw()
    await settle(cluster)
    await works_on(link, [lost, *homes.values()])


async def works_on(link, names) -> None:
    for name in names:
        assert await link.redis.set(name, "v") is True
        assert await link.redis.get(name) == b"v"


async def settle(cluster) -> None:
    """Wait until every node finds the cluster well."""
    await until(lambda: all(b"cluster_state:ok" in node.cli("CLUSTER", "INFO") for node in cluster.nodes), 30)


async def together(link, *names) -> list:
    async with link.redis.pipeline() as pipeline:
        for name in names:
            pipeline.execute_command("GET", name)
        return await pipeline.execute()


async def test_a_node_that_another_took_over(cluster, link_to):
    """Whoever still holds the old map learns the new one."""
    link = link_to(cluster_url(cluster), max_connections=2)
    gone, heir = cluster.nodes[2], cluster.nodes[0]
    name = next(name for name in (f"{{{n}}}" for n in range(99)) if cluster.home(name) is gone)
    await works_on(link, [name])
    cluster.move(name, heir)
    gone.kill()
    try:
        with pytest.raises(Exception) as caught:
            await together(link, name)
        assert trouble(caught.value).kind in ("reset", "refused")
        assert await together(link, name) == [b"v"]
    finally:
        gone.launch()
        gone.wait()
        await settle(cluster)


async def test_a_cluster_reached_by_its_other_nodes(cluster, link_to):
    """A host that is gone, or is no cluster, is passed over as long as there is another."""
    await works_on(link_to(f"redis+cluster://127.0.0.1:1,127.0.0.1:{cluster.nodes[1].port}"), ["a", "b", "c"])


async def test_a_cluster_that_is_none(redis, link_to):
    with pytest.raises(Exception) as caught:
        await link_to(f"redis+cluster://127.0.0.1:{redis.port}").redis.get("k")
    assert str(trouble(caught.value)) == "the server is no cluster: write redis:// in place of redis+cluster://"


async def test_a_map_is_learned_though_nobody_waits_for_it(cluster, link_to, relay_to):
    slow = relay_to(cluster.nodes[0].address)
    slow.delay(0.03, ways=[replies.DOWN])
    link = link_to(f"redis+cluster://127.0.0.1:{slow.port}")

    async def tried() -> bool:
        try:
            async with asyncio.timeout(0.01):
                await link.redis.get("k")
        except TimeoutError:
            return False
        return True

    for _ in range(500):
        if await tried():
            break
    else:
        raise AssertionError("the map was never learned")
    assert slow.opened == 1


async def test_cancelled_at_any_moment_in_a_cluster(cluster, link_to):
    """No answer is another's, no connection is lost, though the map is learned anew meanwhile."""
    link = link_to(cluster_url(cluster), max_connections=2)
    dropping = asyncio.ensure_future(drop_often(link))
    seen = await ask_at_random(link, OPERATIONS // 3)
    dropping.cancel()
    assert min(seen["answered"], seen["cancelled"]) > OPERATIONS // 20
    # What nobody waits for any more may still be on its way.
    await until(lambda: all("0 busy, 0 being made, 0 waiting" in repr(pool) for pool in link._pools))
    await until(lambda: link.connections == sum(clients(node) for node in cluster.nodes) <= 6)


async def drop_often(link) -> None:
    while True:
        await asyncio.sleep(0.05)
        await link.drop()


# Life


async def test_a_listener_has_a_connection_of_its_own(redis, link_to):
    link = link_to(redis.url, max_connections=1)
    listener = link.listener()
    await listener.subscribe("news")
    assert (await listener.get_message(timeout=10))["type"] == "subscribe"
    await link.redis.publish("news", "one")
    assert (await listener.get_message(timeout=10))["data"] == b"one"
    assert link.connections == 2
    await listener.aclose()
    assert link.connections == 1


async def test_closed_it_gives_nothing(redis, link_to):
    link = link_to(redis.url)
    await works(link)
    await link.close()
    assert link.connections == 0
    assert await kind_of(link) == "closed"
    await link.close()
