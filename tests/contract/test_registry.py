"""What every registry of versions promises, whatever it is kept in."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from cacheproxy.core.knowledge import Known
from cacheproxy.errors import Trouble
from cacheproxy.ports import Registry
from cacheproxy.stores.redis_registry import RedisRegistry
from cacheproxy.stores.registry import FileRegistry
from tests.stores.replicas import Replica, replica

KINDS = ["memory", "file", *(pytest.param(kind, marks=pytest.mark.redis) for kind in ("redis_acl", "redis_cluster"))]
ODD = "v1.2 {x}, \U0001f600\0 @%\n"
KNOWN = Known(ODD, 7, 12.5, (("/index", "1"), (ODD, ODD)), settled=False)


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture
async def join(kind, tmp_path, request) -> AsyncIterator[Callable[[], Registry]]:
    """Makes registries of this kind that share what is shared: in Redis, or one after the other in a file."""
    replicas: list[Replica] = []

    def build() -> Registry:
        if kind == "memory":
            return FileRegistry()
        if kind == "file":
            return FileRegistry(tmp_path / "knowledge.jsonl")
        servers = request.getfixturevalue("nodes") if kind == "redis_cluster" else [request.getfixturevalue(kind)]
        url = servers[0].url
        if kind == "redis_cluster":
            url = url.replace("redis://", "redis+cluster://").removesuffix("/0")
        replicas.append(replica(url))
        return RedisRegistry(replicas[-1].calls, replicas[-1].keys)

    if kind == "redis_cluster":
        for server in request.getfixturevalue("nodes"):
            server.cli("FLUSHALL")
    yield build
    for one in replicas:
        await one.close()


async def test_what_is_kept_is_told_whatever_its_names(join):
    one = join()
    assert await one.versions() == {}
    await one.keep(ODD, KNOWN)
    await one.keep("a", Known("1", None, 0.0))
    assert await one.versions() == {ODD: KNOWN, "a": Known("1", None, 0.0)}


async def test_a_smaller_number_does_not_take_the_place_of_a_greater(join):
    one = join()
    await one.keep("a", Known("three", 3, 0.0))
    await one.keep("a", Known("two", 2, 0.0))
    assert (await one.versions())["a"].version == "three"
    await one.keep("a", Known("three", 3, 1.0, settled=True))
    await one.keep("a", Known("no number", None, 0.0))
    assert (await one.versions())["a"].version == "no number"
    await one.keep("a", Known("one", 1, 0.0))
    assert (await one.versions())["a"].version == "one"


async def test_another_one_knows_it_too(join, kind):
    if kind == "memory":
        pytest.skip("it is of one process")
    one = join()
    await asyncio.gather(*(one.keep(str(number), Known("v", number, 0.0)) for number in range(20)))
    assert len(await join().versions()) == 20


async def test_a_damaged_file_is_set_aside(tmp_path, caplog):
    path = tmp_path / "knowledge.jsonl"
    await FileRegistry(path).keep("a", KNOWN)
    path.write_bytes(path.read_bytes() + b"{torn")
    assert await FileRegistry(path).versions() == {"a": KNOWN}
    assert "set aside" in caplog.text
    assert [file.name.startswith("knowledge.jsonl.set-aside") for file in tmp_path.iterdir()] == [True]


async def test_a_file_is_for_its_owner_alone_and_trouble_is_told(tmp_path):
    path = tmp_path / "here" / "knowledge.jsonl"
    one = FileRegistry(path)
    with pytest.raises(Trouble):
        await one.keep("a", KNOWN)
    assert await one.versions() == {}
    path.parent.mkdir()
    await one.keep("a", KNOWN)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.redis
async def test_in_redis_it_expires(redis):
    joined = replica(redis.url)
    await RedisRegistry(joined.calls, joined.keys).keep("a", KNOWN)
    (name,) = redis.cli("KEYS", "*:kb")
    assert int(redis.cli("PTTL", name)) > 365 * 86_400_000
    await joined.close()
