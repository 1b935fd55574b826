"""Removals in a cluster: counted in one shard, told to all, and one shard that is behind never passes for current."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from cacheproxy.core.outcome import Reason
from cacheproxy.core.removal import Removal
from cacheproxy.errors import Trouble
from tests.parts import redis as part
from tests.parts import redis_fleet as fleet
from tests.stores.entries import key_of
from tests.stores.replicas import Join, Replica, entry, hard, joining, tagged

pytestmark = pytest.mark.redis

RED, BLUE = ("red",), ("blue",)
ALL = range(60)


@pytest.fixture
async def join() -> AsyncIterator[Join]:
    async with joining() as join:
        yield join


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    if not part.here():
        pytest.skip("the packaged Redis exists for Linux on x86-64 only")
    made = fleet.cluster(tmp_path_factory.mktemp("cluster"), 2)
    yield made
    made.stop()


@pytest.fixture
def cluster(shared):
    """Two nodes, emptied; nothing lasts in them."""
    for node in shared.nodes:
        node.cli("FLUSHALL")
    yield shared
    assert lasting(shared) == []


def lasting(cluster) -> list[bytes]:
    """Keys without an expiry."""
    found = []
    for node in cluster.nodes:
        with node.line() as line:
            found += [name for name in line.call("KEYS", "*") if line.call("PTTL", name) == -1]
    return found


def joined(join: Join, cluster, count: int) -> list[Replica]:
    url = ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)
    return [join(f"redis+cluster://{url}", timeout=5) for _ in range(count)]


async def fill(one: Replica) -> None:
    """Even ones red, odd ones blue."""
    await one.epochs.current()
    for number in ALL:
        assert await one.keep(entry(number, tags=BLUE if number % 2 else RED)) is None
    assert len({one.keys.shard(key_of(number)) for number in ALL}) > 30


async def there(one: Replica) -> list[int]:
    return [number for number, found in zip(ALL, await asyncio.gather(*map(one.get, ALL)), strict=True) if found]


async def test_a_removal_on_one_holds_for_all_in_every_shard(join, cluster):
    a, b, c = joined(join, cluster, 3)
    await fill(a)
    assert await there(b) == await there(c) == list(ALL)
    asked = c.asking()
    assert (await b.remove(tagged("red"))).matched == 30
    for number in ALL[:10]:
        assert await c.keep(entry(number, tags=RED), asked) is Reason.PURGED
    for one in a, b, c:
        assert await there(one) == list(ALL)[1::2]
    assert await c.keep(entry(0, tags=RED)) is None
    assert (await a.get(0)).tags == RED


async def test_a_running_request_in_a_shard_that_nobody_has_met_does_not_keep_what_was_removed(join, cluster):
    a, b = joined(join, cluster, 2)
    await a.epochs.current()
    await b.epochs.current()
    asked = b.asking()
    await a.remove(tagged("red"))
    for number in ALL[::2]:
        assert await b.keep(entry(number, tags=RED), asked) is Reason.PURGED, number


async def test_a_head_that_is_behind_is_told(join, cluster):
    """As where a replica died between counting a removal and telling it: the next to come by tells it, and nothing is
    lost for it."""
    a, b = joined(join, cluster, 2)
    await fill(a)
    asked = b.asking()
    generation = a.epochs.generation
    tell, a.epochs._tell = a.epochs._tell, lambda *_: asyncio.sleep(0)
    number = await a.epochs.begin(hard(tagged("red")), a.clock.now())
    a.epochs._tell = tell
    await b.epochs.current()
    assert await there(b) == [one for one in ALL if one % 2]
    assert await b.keep(entry(7, tags=RED), asked) is Reason.PURGED
    heads = {shard: cluster.home(a.keys.head(shard)).cli("GET", a.keys.head(shard)) for shard in range(64)}
    told = {shard for shard, head in heads.items() if head and int(head.split()[1]) == number.number}
    assert told >= {a.keys.shard(key_of(one)) for one in ALL}
    assert {one.epochs.generation for one in (a, b)} == {generation}


async def test_looks_and_removals_at_once_lose_nothing_else(join, cluster):
    """A head that was read before a removal was told, and is looked at after, is no sign that Redis was set back."""
    a, b = joined(join, cluster, 2)
    await fill(a)
    await there(b)
    generation, over = a.epochs.generation, False

    async def look(one: Replica) -> None:
        while not over:
            assert len(await there(one)) == len(ALL)

    looking = [asyncio.create_task(look(one)) for one in (a, b, a, b)]
    for lap in range(3):
        number = await (a, b)[lap % 2].epochs.begin(hard(tagged("green")), a.clock.now())
        await (a, b)[lap % 2].epochs.finish(number)
    over = True
    await asyncio.gather(*looking)
    assert {a.epochs.generation, b.epochs.generation} == {generation}


@pytest.mark.parametrize("which", [0, 1], ids=["the first shard's", "another"])
async def test_a_node_that_was_emptied_begins_anew(join, cluster, which):
    a, b = joined(join, cluster, 2)
    await fill(a)
    await there(b)
    asked = b.asking()
    node = cluster.home(a.keys.head(0))
    node = node if which == 0 else next(other for other in cluster.nodes if other is not node)
    node.cli("FLUSHALL")
    lost = [number for number in ALL if cluster.home(a.keys.entry(key_of(number))) is node]
    found = await there(b)
    assert set(found).isdisjoint(lost)
    assert await there(b) == []
    assert await b.keep(entry(1, tags=BLUE), asked) is Reason.PURGED
    assert await b.keep(entry(1, tags=BLUE)) is None
    assert await there(a) == [1]


@pytest.mark.parametrize("who", ["who removed", "who had heard", "who had not heard", "a new one"])
async def test_a_node_that_comes_back_as_it_was_brings_nothing_back(join, cluster, who):
    """The node holds shards that nobody has looked at since the removal."""
    a, b, c, d = joined(join, cluster, 4)
    await fill(a)
    await there(c)
    await b.epochs.current()
    node = next(node for node in cluster.nodes if node is not cluster.home(a.keys.head(0)))
    node.cli("SAVE")
    await a.remove(tagged("red"))
    await b.epochs.current()
    node.kill()
    node.restart(keep=True)
    one = {"who removed": a, "who had heard": b, "who had not heard": c, "a new one": d}[who]
    back = [number for number in ALL[::2] if cluster.home(a.keys.entry(key_of(number))) is node]
    assert back
    for number in back:
        assert await patiently(one, number) is None, number


async def patiently(one: Replica, number: int):
    """An entry, once the connections that ended are seen and the cluster is well."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await one.get(number)
            except Trouble:
                await asyncio.sleep(0.02)


async def test_a_slot_that_moves_takes_its_head_along(join, cluster):
    a, b = joined(join, cluster, 2)
    await fill(a)
    await there(b)
    moved = a.keys.head(a.keys.shard(key_of(2)))
    origin = cluster.home(moved)
    target = next(node for node in cluster.nodes if node is not origin)
    asked = b.asking()
    cluster.move(moved, target)
    await a.remove(tagged("red"))
    assert await b.get(2) is None
    assert await b.keep(entry(2, tags=RED), asked) is Reason.PURGED
    assert await b.keep(entry(2, tags=BLUE)) is None
    assert await a.get(2) is not None
    cluster.move(moved, origin)


async def test_soft_removal_reaches_every_shard(join, cluster):
    a, b = joined(join, cluster, 2)
    await fill(a)
    assert (await b.remove(tagged("blue"), Removal.SOFT)).purged == 30
    found = await asyncio.gather(*map(a.get, ALL))
    assert [one.fresh_until < a.clock.now() for one in found] == [number % 2 == 1 for number in ALL]
