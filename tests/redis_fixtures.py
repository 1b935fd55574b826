"""Fixtures of a real Redis. A suite's conftest takes what it uses: ``from tests.redis_fixtures import redis, relay``.

Nothing here acts unasked. However many conftests take them, there is one shared server; a test that reconfigures,
freezes or kills a server starts its own with `redis_start`.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.relay import Relay
from tests.parts import redis as part
from tests.rig import ROOT

__all__ = ["redis", "redis_acl", "redis_acl_server", "redis_server", "redis_start", "relay", "relay_to"]

_shared = pytest.StashKey[part.Redis]()
_shared_acl = pytest.StashKey[part.Redis]()
USER, PASSWORD = "cacheproxy", "a-password-of-the-rig"


def users() -> list[str]:
    """The users of configs/redis.conf, with the password of the rig."""
    lines = (ROOT / "configs" / "redis.conf").read_text().splitlines()
    return [line.replace(">THE-PASSWORD", f">{PASSWORD}") for line in lines if line.startswith("user ")]


def login(url: str) -> str:
    """The URL with that user and password."""
    return url.replace("://", f"://{USER}:{PASSWORD}@")


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
    return _emptied(redis_server)


def _emptied(server: part.Redis) -> part.Redis:
    if not server.running:
        raise AssertionError("an earlier test ended the shared Redis; it should have started its own")
    for words in ("FLUSHALL",), ("SCRIPT", "FLUSH"), ("FUNCTION", "FLUSH"):
        server.cli(*words)
    return server


@pytest.fixture(scope="session")
def redis_acl_server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> part.Redis:
    """A shared server, with search, that lets in the user of configs/redis.conf alone; its `url` logs in."""
    if not part.here():
        pytest.skip("the packaged Redis exists for Linux on x86-64 only")
    if _shared_acl not in pytestconfig.stash:
        server = part.start(tmp_path_factory.mktemp("redis-acl"), acl=users())
        pytestconfig.stash[_shared_acl] = server
        pytestconfig.add_cleanup(server.stop)
    server = pytestconfig.stash[_shared_acl]
    return replace(server, url=login(server.url))


@pytest.fixture
def redis_acl(redis_acl_server: part.Redis) -> part.Redis:
    """That server, emptied."""
    return _emptied(redis_acl_server)


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
