"""Fixtures: proxies that share a Redis, and the rule that holds after every test: what lies in Redis expires."""

from collections.abc import Callable, Iterator

import pytest

from tests import rig
from tests.fakes.resp import Refused
from tests.faults.load import Telling
from tests.parts.redis import Redis
from tests.redis_fixtures import redis, redis_server, redis_start, relay, relay_to  # noqa: F401

PATIENT = "2s"
"""A deadline that no healthy Redis misses, however busy the machine is."""


def lasting(server: Redis) -> list[bytes]:
    """Keys that never expire."""
    found, cursor = [], b"0"
    with server.line() as line:
        while True:
            cursor, keys = line.call("SCAN", cursor, "COUNT", 1000)
            found += [key for key in keys if line.call("PTTL", key) == -1]
            if cursor == b"0":
                return found


@pytest.fixture(autouse=True)
def nothing_lasts(redis_server: Redis) -> Iterator[None]:  # noqa: F811
    """No key without expiry, whatever a test has done to the shared Redis; what another suite left there is its own."""
    before = set(lasting(redis_server))
    yield
    assert set(lasting(redis_server)) <= before


@pytest.fixture
def own_redis(redis_start) -> Iterator[Callable[..., Redis]]:  # noqa: F811
    """Starts servers of the test's own, after which nothing lasts in them either."""
    started: list[Redis] = []

    def begin(**options) -> Redis:
        started.append(redis_start(**{"search": False, **options}))
        return started[-1]

    yield begin
    for server in started:
        if server.running:
            server.thaw()
            try:
                assert lasting(server) == []
            except Refused as refused:  # a node that is no primary, or has no room
                assert str(refused).split()[0] in ("MASTERDOWN", "CLUSTERDOWN")


@pytest.fixture
def telling(backend) -> Telling:
    """The backend's script, by which answers can be told right or wrong."""
    backend.script = Telling()
    return backend.script


@pytest.fixture
def sharing(start, telling, session) -> Callable:
    """Starts proxies on one Redis: ``(proxies, clients) = await sharing(url, 2, redis__timeout=…)``."""

    async def begin(url: str, count: int = 2, **values) -> tuple[list[rig.InProcess], list[rig.Client]]:
        options = {"redis__timeout": PATIENT, "redis__url": url, **values}
        proxies = [await start(**options) for _ in range(count)]
        return proxies, [rig.Client(proxy.base, session) for proxy in proxies]

    return begin


@pytest.fixture
async def pair(sharing, redis):  # noqa: F811
    """Two proxies on the shared Redis, and their clients."""
    return await sharing(redis.url)


@pytest.fixture
def clients(pair) -> list[rig.Client]:
    return pair[1]


@pytest.fixture
def proxies(pair) -> list[rig.InProcess]:
    return pair[0]
