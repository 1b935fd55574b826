"""Fixtures: proxies in processes of their own, two on one Redis and one that has all for itself."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.examples import NAMES, SEED
from tests.proxy.test_knowledge import Desk
from tests.redis_fixtures import redis, redis_server, relay, relay_to  # noqa: F401
from tests.rig import Client
from tests.strict import lore
from tests.strict.lore import Lore
from tests.strict.readers import Group

PATIENT = {
    "CACHEPROXY_SEMANTIC__MODE": "on", "CACHEPROXY_SEMANTIC__MODEL": "fake", "CACHEPROXY_SEMANTIC__DIMENSIONS": str(lore.DIM),
    "CACHEPROXY_SEMANTIC__EMBED_TIMEOUT": "2s", "CACHEPROXY_SEMANTIC__SEARCH_TIMEOUT": "2s",
    "CACHEPROXY_SEMANTIC__VERIFIER": "off", "CACHEPROXY_SEMANTIC__PROMOTE_AFTER": "1", "CACHEPROXY_ACCESS__SCOPE": "shared",
    "CACHEPROXY_REDIS__TIMEOUT": "2s",
}  # fmt: skip
"""Deadlines that nothing healthy misses, however busy the machine is; and a new caller waits for the backend's word
between the look and the answer."""


@pytest.fixture
def knowledge(backend) -> Lore:
    """The backend's script."""
    backend.script = Lore(SEED)
    return backend.script


@pytest.fixture
def group(spawn, backend, session, knowledge, monkeypatch) -> Callable:
    """Starts proxies that know the same versions: ``await group("shared", "--redis-url", url, count=2)``."""
    for told in NAMES:
        monkeypatch.delenv(told, raising=False)

    async def begin(name: str, *arguments: str, count: int = 1, **environment: str) -> Group:
        told = {**PATIENT, "CACHEPROXY_SEMANTIC__URL": backend.url, **environment}
        proxies = [await spawn(*arguments, **told) for _ in range(count)]
        return Group(name, [Client(proxy.base, session) for proxy in proxies], [proxy.admin for proxy in proxies])

    return begin


@dataclass
class Place:
    """Proxies that share what is kept, and their admin listeners; both in the same order."""

    clients: list[Client]
    desks: list[Desk]


@pytest.fixture(params=["memory", "disk", pytest.param("redis", marks=pytest.mark.redis)])
async def place(request, start, session, tmp_path) -> Place:
    """Where answers are kept: by one proxy, in memory or on its disk; by two, in Redis."""
    if request.param == "redis":
        options = {"redis__url": request.getfixturevalue("redis").url, "redis__timeout": "2s"}
    elif request.param == "disk":
        options = {"store__data_dir": str(tmp_path / "data"), "store__memory_bytes": "64KiB"}
    else:
        options = {}
    proxies = [await start(**options) for _ in range(2 if request.param == "redis" else 1)]
    return Place([Client(proxy.base, session) for proxy in proxies], [Desk(session, proxy.admin) for proxy in proxies])
