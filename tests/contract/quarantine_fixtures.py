"""The quarantines of each kind that the suite is run on."""

from collections.abc import AsyncIterator, Callable

import pytest

from cacheproxy.ports import Quarantine
from cacheproxy.stores.quarantine import MemoryQuarantine
from cacheproxy.stores.quarantine_file import FileQuarantine
from cacheproxy.stores.quarantine_redis import RedisQuarantine
from tests.stores.replicas import Replica, replica

__all__ = ["join", "quarantine", "quarantine_kind"]

KINDS = ["memory", "file", *(pytest.param(kind, marks=pytest.mark.redis) for kind in ("redis_acl", "redis_cluster"))]


@pytest.fixture(params=KINDS)
def quarantine_kind(request) -> str:
    return request.param


@pytest.fixture
async def join(quarantine_kind, tmp_path, request) -> AsyncIterator[Callable[[], Quarantine]]:
    """Makes quarantines of this kind that share what is shared: in Redis, or one after the other in a file."""
    made: list[Quarantine] = []
    replicas: list[Replica] = []

    def build() -> Quarantine:
        if quarantine_kind == "memory":
            made.append(MemoryQuarantine())
        elif quarantine_kind == "file":
            made.append(FileQuarantine(tmp_path / "quarantine.sqlite3"))
        else:
            cluster = quarantine_kind == "redis_cluster"
            servers = request.getfixturevalue("nodes") if cluster else [request.getfixturevalue(quarantine_kind)]
            url = servers[0].url
            replicas.append(replica(url.replace("redis://", "redis+cluster://").removesuffix("/0") if cluster else url))
            made.append(RedisQuarantine(replicas[-1].calls, replicas[-1].keys))
        return made[-1]

    if quarantine_kind == "redis_cluster":
        for server in request.getfixturevalue("nodes"):
            server.cli("FLUSHALL")
    yield build
    for one in made:
        await one.close()
    for one in replicas:
        await one.close()


@pytest.fixture
def quarantine(join) -> Quarantine:
    return join()
