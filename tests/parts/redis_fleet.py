"""Several servers that act as one: a primary with replicas under Sentinels, and a cluster. Each is a `redis.Redis`."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.ports import free_port
from tests.parts import place, redis
from tests.parts.redis import Redis

SLOTS = 16384


def _until(met: Callable[[], object], what: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not met():
        if time.monotonic() > deadline:
            raise place.CannotInstall(f"{what} did not come within {seconds} s")
        time.sleep(0.01)


@contextlib.contextmanager
def _whole(servers: list[Redis]) -> Iterator[None]:
    """All of them or none: what does not come to be leaves no server."""
    try:
        yield
    except BaseException:
        for server in servers:
            server.kill()
        raise


def replica(directory: Path, primary: Redis, **options) -> Redis:
    """A server that follows `primary`; ready when it has its data."""
    config = [*options.pop("config", ()), f"replicaof 127.0.0.1 {primary.port}"]
    primary.cli("CONFIG", "SET", "repl-diskless-sync-delay", 0)
    server = redis.start(directory, config=config, **options)
    with _whole([server]):
        _until(lambda: server.info("replication").get("master_link_status") == "up", "the replica's link")
    return server


@dataclass
class Sentinels:
    """The watchers of one primary. `addresses`: where a client finds them, with `name`."""

    name: str
    servers: list[Redis]

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [("127.0.0.1", server.port) for server in self.servers]

    def primary(self) -> int:
        """The port of the primary, as the first Sentinel that lives says."""
        sentinel = next(server for server in self.servers if server.running)
        return int(sentinel.cli("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.name)[1])

    def fail_over(self) -> int:
        """Make a replica the primary, with the old one alive; the new one's port. Returns when all Sentinels say so; the
        old one is made its replica a while later."""
        before = self.primary()
        self.servers[0].cli("SENTINEL", "FAILOVER", self.name)
        return self.moved(before)

    def moved(self, before: int, seconds: float = 30) -> int:
        """Wait until the primary is another than the one at port `before`, for every Sentinel; its port."""
        living = [server for server in self.servers if server.running]

        def said() -> set[int]:
            # Not by the address for clients alone: that changes while the failover is still going on.
            return {int(_state(server, self.name)[b"port"]) for server in living}

        _until(lambda: len(said()) == 1 and before not in said(), "another primary", seconds)
        return said().pop()

    def stop(self) -> None:
        for server in self.servers:
            server.stop()


def sentinel(
    directory: Path, primary: Redis, replicas: list[Redis], *, name: str = "cache", count: int = 1, down_after: float = 0.5,
) -> Sentinels:  # fmt: skip
    """`count` Sentinels, a majority of which must agree, over a primary and its replicas; ready when each knows all of
    them and the other Sentinels. `down_after`: seconds of silence after which a server is down."""
    servers: list[Redis] = []
    for number in range(count):
        config = [
            f"sentinel monitor {name} 127.0.0.1 {primary.port} {count // 2 + 1}",
            f"sentinel down-after-milliseconds {name} {int(down_after * 1000)}",
            f"sentinel failover-timeout {name} 3000",
        ]
        server = redis.prepare(directory / f"sentinel{number}", search=False, config=config)
        server.command.append("--sentinel")
        servers.append(server)
    with _whole(servers):
        for server in servers:
            server.launch()
        for server in servers:
            server.wait()
            _until(lambda server=server: _knows(server, name, len(replicas), count), "what a Sentinel must know")
    return Sentinels(name, servers)


def _state(server: Redis, name: str) -> dict[bytes, bytes]:
    flat = server.cli("SENTINEL", "MASTER", name)
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _knows(server: Redis, name: str, replicas: int, count: int) -> bool:
    state = _state(server, name)
    followers = server.cli("SENTINEL", "REPLICAS", name)
    linked = sum(b"ok" in follower for follower in followers)  # master-link-status
    return int(state[b"num-other-sentinels"]) == count - 1 and len(followers) == linked == replicas


@dataclass
class Cluster:
    """Nodes that share the slots, each with an equal part in their order."""

    nodes: list[Redis]

    @property
    def url(self) -> str:
        return self.nodes[0].url

    def slot(self, key: str | bytes) -> int:
        return self.nodes[0].cli("CLUSTER", "KEYSLOT", key)

    def home(self, key: str | bytes) -> Redis:
        """The node that says it serves the slot of `key`."""
        slot = self.slot(key)
        return next(node for node in self.nodes if node.running and _serves(node, slot))

    def move(self, key: str | bytes, to: Redis) -> None:
        """Move the slot of `key`, with all keys in it; a client that has the old map is answered MOVED."""
        slot, origin = self.slot(key), self.home(key)
        for node, word, other in (to, "IMPORTING", origin), (origin, "MIGRATING", to):
            node.cli("CLUSTER", "SETSLOT", slot, word, other.cli("CLUSTER", "MYID"))
        while keys := origin.cli("CLUSTER", "GETKEYSINSLOT", slot, 100):
            origin.cli("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS", *keys)
        for node in (to, origin, *self.nodes):
            node.cli("CLUSTER", "SETSLOT", slot, "NODE", to.cli("CLUSTER", "MYID"))

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()


def cluster(directory: Path, nodes: int = 3, *, search: bool = False, config: list[str] = ()) -> Cluster:
    """Primaries without replicas that serve all slots together; ready when each says that the whole is well.

    `search`: each node with the modules, which here search only the node's own keys: there is no coordinator."""
    made: list[Redis] = []
    buses = [free_port() for _ in range(nodes)]
    for number, bus in enumerate(buses):
        lines = ["cluster-enabled yes", f"cluster-port {bus}", "cluster-announce-ip 127.0.0.1"]
        lines += ["cluster-node-timeout 2000", *config]
        made.append(redis.prepare(directory / f"node{number}", search=search, config=lines))
    with _whole(made):
        for node in made:
            node.launch()
        for number, node in enumerate(made):
            node.wait()
            node.cli("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            node.cli("CLUSTER", "ADDSLOTSRANGE", SLOTS * number // nodes, SLOTS * (number + 1) // nodes - 1)
        for node, bus in zip(made[1:], buses[1:], strict=True):
            made[0].cli("CLUSTER", "MEET", "127.0.0.1", node.port, bus)
        for node in made:
            _until(lambda node=node: _well(node, nodes), "a node's view of the cluster")
    return Cluster(made)


def _well(node: Redis, nodes: int) -> bool:
    told = bytes(node.cli("CLUSTER", "INFO")).decode()
    return "cluster_state:ok" in told and len(node.cli("CLUSTER", "SLOTS")) == nodes


def _serves(node: Redis, slot: int) -> bool:
    mine = node.cli("CLUSTER", "MYID")
    return any(first <= slot <= last and owner[2] == mine for first, last, owner, *_ in node.cli("CLUSTER", "SLOTS"))
