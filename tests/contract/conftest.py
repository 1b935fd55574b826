"""The stores of each kind that the suite is run on."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from cacheproxy.engine.guard import GuardedStore
from cacheproxy.ports import Store
from cacheproxy.stores import redis as redis_store
from cacheproxy.stores.memory import Memory
from cacheproxy.stores.sqlite import Sqlite
from cacheproxy.stores.tiered import Tiered
from tests.contract.shared import Shared
from tests.engine.fakes import Notes
from tests.parts import redis as part
from tests.parts import redis_fleet as fleet
from tests.parts.redis import Redis
from tests.redis_fixtures import redis, redis_acl, redis_acl_server, redis_server  # noqa: F401
from tests.stores.replicas import Replica, replica

PATIENT = 60.0
"""A deadline that a loaded machine does not miss: here a slow answer is no miss."""
ROOMY = 50_000_000

Make = Callable[..., Store]


def _memory(_path, capacity: int) -> Store:
    return Memory(capacity)


def _sqlite(path, capacity: int) -> Store:
    return Sqlite(path / "cache.sqlite3", capacity)


def _tiered(path, capacity: int) -> Store:
    """As in the field: the front holds a part of what the file holds."""
    return Tiered(Memory(capacity // 4), Sqlite(path / "cache.sqlite3", capacity))


def _guarded(path, capacity: int) -> Store:
    return GuardedStore(Sqlite(path / "cache.sqlite3", capacity), "cache file", PATIENT, Notes())


KINDS = {"memory": _memory, "sqlite": _sqlite, "tiered": _tiered, "guarded": _guarded}
"""Stores with a capacity of their own."""
SHARED = [pytest.param(kind, marks=pytest.mark.redis) for kind in ("redis", "redis_acl", "redis_cluster", "valkey")]
"""Where the capacity is the server's: on a server for anybody, on one for the user of configs/redis.conf, on several, on
Valkey."""


@pytest.fixture(scope="session")
def nodes(tmp_path_factory) -> Iterator[list[Redis]]:
    """A cluster of two."""
    if not part.here():
        pytest.skip("the packaged Redis exists for Linux on x86-64 only")
    cluster = fleet.cluster(tmp_path_factory.mktemp("cluster"), 2)
    yield cluster.nodes
    cluster.stop()


@pytest.fixture(scope="session")
def valkey(tmp_path_factory) -> Iterator[Redis]:
    """The fork of Redis, without search."""
    if not part.here():
        pytest.skip("the packaged Valkey exists for Linux on x86-64 only")
    server = part.start(tmp_path_factory.mktemp("valkey"), server="valkey", search=False)
    yield server
    server.stop()


@pytest.fixture(params=[*KINDS, *SHARED])
def kind(request) -> str:
    return request.param


@pytest.fixture
async def make(kind, tmp_path, request, monkeypatch) -> AsyncIterator[Make]:
    """Makes stores of this kind: ``store = make(capacity)``; shared ones have none, and begin empty."""
    made: list[Store] = []
    replicas: list[Replica] = []
    monkeypatch.setattr(redis_store, "COUNTING_SHARE", 0)

    def build(capacity: int = ROOMY) -> Store:
        if kind in KINDS:
            made.append(KINDS[kind](tmp_path / str(len(made)), capacity))
            return made[-1]
        servers = request.getfixturevalue("nodes") if kind == "redis_cluster" else [request.getfixturevalue(kind)]
        url = servers[0].url.replace("redis://", "redis+cluster://").removesuffix("/0")
        for server in servers:
            server.cli("FLUSHALL")
        replicas.append(replica(url if kind == "redis_cluster" else servers[0].url))
        made.append(Shared(replicas[-1], servers))
        return made[-1]

    yield build
    for store in made:
        await store.close()
    for one in replicas:
        await one.link.close()


@pytest.fixture(params=KINDS)
async def bounded(request, tmp_path) -> AsyncIterator[Make]:
    """The same for those with a capacity of their own."""
    made: list[Store] = []

    def build(capacity: int) -> Store:
        made.append(KINDS[request.param](tmp_path / str(len(made)), capacity))
        return made[-1]

    yield build
    for store in made:
        await store.close()


@pytest.fixture
def store(make) -> Store:
    return make()
