"""Fixtures of a real Redis. A suite's conftest takes what it uses: ``from tests.redis_fixtures import redis, relay``.

Nothing here acts unasked. However many conftests take them, there is one shared server; a test that reconfigures,
freezes or kills a server starts its own with `redis_start`.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.relay import Relay
from tests.parts import redis as part

__all__ = ["redis", "redis_server", "redis_start", "relay", "relay_to"]

_shared = pytest.StashKey[part.Redis]()


@pytest.fixture(scope="session")
def redis_server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> part.Redis:
    """The shared server, with search; holds what earlier tests left."""
    if not part.here():
        pytest.skip("the packaged Redis exists for Linux on x86-64 only")
    if _shared not in pytestconfig.stash:
        server = part.start(tmp_path_factory.mktemp("redis"))
        pytestconfig.stash[_shared] = server
        pytestconfig.add_cleanup(server.stop)
    return pytestconfig.stash[_shared]


@pytest.fixture
def redis(redis_server: part.Redis) -> part.Redis:
    """The shared server, emptied: no key, index, alias, script or function."""
    if not redis_server.running:
        raise AssertionError("an earlier test ended the shared Redis; it should have started its own")
    for words in ("FLUSHALL",), ("SCRIPT", "FLUSH"), ("FUNCTION", "FLUSH"):
        redis_server.cli(*words)
    return redis_server


@pytest.fixture
def redis_start(tmp_path: Path) -> Iterator[Callable[..., part.Redis]]:
    """Starts servers of the test's own: ``server = redis_start(search=False, acl=[…])``; see `parts.redis.start`."""
    if not part.here():
        pytest.skip("the packaged Redis exists for Linux on x86-64 only")
    started: list[part.Redis] = []

    def begin(**options) -> part.Redis:
        started.append(part.start(tmp_path / f"redis{len(started)}", **options))
        return started[-1]

    yield begin
    for server in started:
        server.stop()


@pytest.fixture
async def relay_to() -> AsyncIterator[Callable[..., Relay]]:
    """Starts relays: ``relay = relay_to(server.address)``; a relay that fails by itself fails the test."""
    started: list[Relay] = []

    def begin(target, **options) -> Relay:
        started.append(Relay(target, **options).start())
        return started[-1]

    yield begin
    for one in started:
        await one.stop()
    assert [error for one in started for error in one.errors] == []


@pytest.fixture
async def relay(redis: part.Redis, relay_to: Callable[..., Relay]) -> Relay:
    """A relay before the shared server, emptied: clients take its `url`."""
    return relay_to(redis.address)
