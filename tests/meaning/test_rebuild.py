"""A new plan's index is built from the rows of earlier ones, unseen until it is whole."""

import asyncio
import time

import numpy as np
import pytest

from cacheproxy.core.model import Row
from cacheproxy.errors import Trouble
from cacheproxy.meaning import rebuild as module
from cacheproxy.meaning.rebuild import rebuild
from tests.contract.index_fixtures import LATER, NOW, P, line, row
from tests.meaning.test_redisearch import eventually, keys, names_of
from tests.rig import until
from tests.stores.entries import key_of

pytestmark = pytest.mark.redis

MANY = 150


class Embedder:
    """Another embedder: question number n lies at n hundredths on another plane. Stops before step `halt`."""

    def __init__(self, halt: int | None = None) -> None:
        self.texts: list[str] = []
        self.steps = 0
        self.going = asyncio.Event()
        self._halt = halt

    async def __call__(self, texts: list[str]) -> np.ndarray:
        if self.steps == self._halt:
            await self.going.wait()
        self.steps += 1
        self.texts += texts
        return np.stack([self.vector(int(text.split()[-1])) for text in texts])

    @staticmethod
    def vector(number: int) -> np.ndarray:
        return line(0, 0, np.cos(number / 1000), np.sin(number / 1000))


class Broken(Exception):
    pass


async def refuse(texts: list[str]) -> np.ndarray:
    raise AssertionError("there is nothing to embed")


async def filled(index, numbers=range(MANY)) -> None:
    for number in numbers:
        await index.add(row(number))


async def seen(index, vector=None) -> set[bytes]:
    return {*await keys(index, vector, limit=3 * MANY)}


EVERY = {key_of(number) for number in range(MANY)}


async def test_another_schema_takes_the_vectors_over(redis, make):
    old, new = make(), make(algorithm="flat")
    await filled(old)
    assert await seen(new) == EVERY, "the old is searched as long as the new is not whole"
    assert not new.life.whole
    assert await rebuild(new, refuse, pause=0)
    assert new.life.whole
    drop = new.names.index
    assert redis.cli("FT.INFO", new.names.alias)[1].decode() == drop
    assert await seen(new) == EVERY
    found = await new.search(P, row(7).vector, "question number 7", 5, NOW)
    assert (found[0].key, round(found[0].similarity, 5), found[0].by_words) == (key_of(7), 1.0, 1)
    for name in names_of(redis):
        assert 0 < redis.cli("PTTL", name) <= 90_000_000


async def test_another_embedder_reads_the_questions_again(redis, make):
    """B72: what it finds are its own vectors, and before it has them all it finds nothing."""
    old, new = make(), make(revision="2")
    await filled(old)
    embedder = Embedder()
    assert await seen(new, Embedder.vector(0)) == set()
    assert await rebuild(new, embedder, pause=0)
    assert sorted(embedder.texts) == sorted(f"question number {number}" for number in range(MANY))
    assert embedder.steps == -(-MANY // module.AT_ONCE)
    assert await seen(new, Embedder.vector(0)) == EVERY
    (first, *_) = await new.search(P, Embedder.vector(9), "question number 9", 5, NOW)
    assert (first.key, round(first.similarity, 5)) == (key_of(9), 1.0)
    assert await seen(old) == EVERY, "the old goes on by itself"
    assert (await old.search(P, row(9).vector, "", 1, NOW))[0].similarity == pytest.approx(1, abs=1e-6)


async def test_a_build_under_way_is_never_half_seen(make):
    old, new = make(), make(revision="2")
    await filled(old)
    embedder = Embedder(halt=2)
    building = asyncio.create_task(rebuild(new, embedder, pause=0))
    await until(lambda: embedder.steps == 2)
    other = make(revision="2")
    for index in new, other:
        assert await seen(index, Embedder.vector(0)) == set()
    assert await seen(old) == EVERY
    embedder.going.set()
    assert await building
    for index in new, other:
        assert await seen(index, Embedder.vector(0)) == EVERY


async def test_new_rows_go_to_the_new_index_meanwhile_and_are_not_overwritten(redis, make):
    old, new = make(), make(algorithm="flat")
    await filled(old)
    await new.add(row(5000))
    younger = Row(key_of(3), P, line(0, 0, 0, 1), "another question", LATER + 5)
    await new.add(younger)
    assert key_of(5000) not in await seen(new), "it is not searched yet"
    assert await rebuild(new, refuse, pause=0)
    assert await seen(new) == EVERY | {key_of(5000)}
    (found,) = await new.search(P, line(0, 0, 0, 1), "", 1, NOW)
    assert (found.key, round(found.similarity, 5)) == (key_of(3), 1.0)
    name = new.names.row(new.names.index, key_of(3))
    assert redis.cli("PEXPIRETIME", name) == int((LATER + 5) * 1000)


async def test_what_stopped_goes_on_where_it_was(make):
    old = make()
    await filled(old)
    first, second = make(revision="2"), make(revision="2")
    calls = 0

    async def failing(texts: list[str]) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise Broken
        return await Embedder()(texts)

    with pytest.raises(Broken):
        await rebuild(first, failing, pause=0)
    assert not first.life.whole
    embedder = Embedder()
    assert await rebuild(second, embedder, pause=0)
    assert len(embedder.texts) == MANY - 2 * module.AT_ONCE
    assert await seen(first, Embedder.vector(0)) == EVERY
    assert await rebuild(first, refuse, pause=0)


async def test_a_builder_that_vanishes_leaves_the_rest_to_another(redis, make):
    old, first, second = make(), make(revision="2"), make(revision="2")
    await filled(old)
    embedder = Embedder(halt=1)
    building = asyncio.create_task(rebuild(first, embedder, pause=0))
    await until(lambda: embedder.steps == 1)
    assert not await rebuild(second, refuse, pause=0), "one builds at a time"
    building.cancel()
    await asyncio.wait([building])
    assert building.cancelled()
    assert not redis.cli("EXISTS", first.names.lock)
    assert await rebuild(second, Embedder(), pause=0)
    assert await seen(second, Embedder.vector(0)) == EVERY


async def test_who_has_lost_the_lock_stops(redis, make):
    old, new = make(), make(revision="2")
    await filled(old)
    embedder = Embedder(halt=1)
    building = asyncio.create_task(rebuild(new, embedder, pause=0))
    await until(lambda: embedder.steps == 1)
    assert 0 < redis.cli("PTTL", new.names.lock) <= 60_000, "it ends with its holder"
    redis.cli("SET", new.names.lock, "another", "PX", 50_000)
    embedder.going.set()
    assert not await building
    assert not new.life.whole
    assert redis.cli("GET", new.names.lock) == b"another"


async def test_of_many_that_start_at_once_one_builds(make):
    old = make()
    await filled(old)
    replicas = [make(revision="2") for _ in range(4)]
    embedders = [Embedder() for _ in replicas]
    results = await asyncio.gather(*(rebuild(i, e, pause=0) for i, e in zip(replicas, embedders, strict=True)))
    assert any(results)
    assert sum(len(embedder.texts) for embedder in embedders) == MANY
    for index in replicas:
        assert await seen(index, Embedder.vector(0)) == EVERY
        assert await rebuild(index, refuse, pause=0)


async def test_without_earlier_rows_there_is_nothing_to_build(redis, make):
    index = make()
    assert await rebuild(index, refuse, pause=0)
    assert index.life.whole
    await index.add(row(1))
    assert await keys(index) == [key_of(1)]
    with redis.monitor() as monitor:
        assert await rebuild(index, refuse, pause=0)
        assert "SCAN" not in monitor.names


async def test_a_build_looks_through_keys_in_small_steps_only(redis, make):
    old, new = make(), make(algorithm="flat")
    await filled(old)
    with redis.monitor() as monitor:
        assert await rebuild(new, refuse, pause=0)
        assert "SCAN" in monitor.names
        (taken,) = [heard.words for heard in monitor.heard() if heard.name == "SET"]
        assert (b"NX" in taken, b"PX" in taken) == (True, True)
        assert {*monitor.names} & {"KEYS", "FLUSHALL", "FLUSHDB"} == set()


async def test_what_is_damaged_or_gone_is_left_behind(redis, make):
    old, new = make(), make(algorithm="flat")
    await filled(old, range(10))
    names = [old.names.row(old.names.index, key_of(number)) for number in range(10)]
    redis.cli("HSET", names[0], "v", "short")
    redis.cli("HSET", names[1], "v", bytes(16))
    redis.cli("HDEL", names[2], "t")
    redis.cli("HSET", names[3], "x", "nan")
    redis.cli("HSET", names[4], "k", "k")
    redis.cli("HSET", names[5], "p", "no hex")
    redis.cli("HSET", names[6], "x", str(time.time() - 5))
    redis.cli("UNLINK", names[7])
    redis.cli("SET", names[7], "text", "EX", 100)
    assert await rebuild(new, refuse, pause=0)
    assert await seen(new) == {key_of(8), key_of(9)}


async def test_a_question_that_the_embedder_refuses_is_left_behind(make):
    old, new = make(), make(revision="2")
    await filled(old, range(10))

    async def picky(texts: list[str]) -> np.ndarray:
        vectors = await Embedder()(texts)
        vectors[[text.endswith("3") for text in texts]] = np.nan
        return vectors

    assert await rebuild(new, picky, pause=0)
    assert await seen(new, Embedder.vector(0)) == {key_of(number) for number in range(10) if number != 3}


@pytest.mark.parametrize("shape", [(9, 4), (11, 4), (0, 4)])
async def test_an_embedder_that_loses_count_is_not_believed(make, shape):
    old, new = make(), make(revision="2")
    await filled(old, range(10))

    async def careless(texts: list[str]) -> np.ndarray:
        return np.ones(shape, np.float32)

    with pytest.raises(Trouble):
        await rebuild(new, careless, pause=0)
    assert await seen(new) == set()


async def test_rows_of_several_earlier_plans_come_together(make):
    """Those whose vectors fit are taken first, so that they are not embedded again."""
    one, two, new = make(revision="0"), make(algorithm="flat", revision="3"), make(revision="3")
    await filled(one, range(20))
    await rebuild(two, Embedder(), pause=0)
    await filled(two, range(30, 40))
    embedder = Embedder()
    assert await rebuild(new, embedder, pause=0)
    assert embedder.texts == []
    assert await seen(new) == {key_of(number) for number in (*range(20), *range(30, 40))}


async def test_who_was_overtaken_follows_and_does_not_build_back(redis, make):
    """Replicas of two versions on one Redis, as while they are replaced one after the other."""
    old, new = make(), make(algorithm="flat")
    await filled(old, range(5))
    assert await rebuild(new, refuse, pause=0)
    await old.sweep(NOW)
    assert await rebuild(old, refuse, pause=0)
    await old.add(row(6))
    assert await seen(new) == await seen(old) == {key_of(number) for number in (*range(5), 6)}
    assert await old.remove([key_of(1), key_of(6)]) == 2
    assert await seen(new) == {key_of(number) for number in (0, 2, 3, 4)}
    assert redis.cli("FT.INFO", new.names.alias)[1].decode() == new.names.index
    for name in names_of(redis):
        if name.decode().startswith(old.names.rows(old.names.index)):
            redis.cli("UNLINK", name)
    for index in new, new, old:
        await index.sweep(NOW)
    assert redis.cli("FT._LIST") == [new.names.index.encode()]
    assert await seen(old) == {key_of(number) for number in (0, 2, 3, 4)}


async def test_what_is_removed_while_the_new_is_built_is_gone_from_both(make):
    old, new = make(), make(algorithm="flat")
    await filled(old, range(5))
    await new.add(row(3))
    assert await new.remove([key_of(3), key_of(4)]) == 2
    assert await seen(old) == await seen(new) == {key_of(0), key_of(1), key_of(2)}
    assert await rebuild(new, refuse, pause=0)
    assert await seen(new) == {key_of(0), key_of(1), key_of(2)}


async def test_a_prefix_of_pattern_signs_is_no_pattern(make):
    old, new = make(under="a*[b]?\\"), make(under="a*[b]?\\", algorithm="flat")
    other = make(under="ax[b]y\\")
    await filled(old, range(3))
    await other.add(row(9))
    assert await rebuild(new, refuse, pause=0)
    assert await seen(new) == {key_of(0), key_of(1), key_of(2)}


async def test_an_index_lost_while_it_is_built_is_made_again(redis, make):
    old, new = make(), make(revision="2")
    await filled(old)
    embedder = Embedder(halt=1)
    building = asyncio.create_task(rebuild(new, embedder, pause=0))
    await until(lambda: embedder.steps == 1)
    redis.cli("FT.DROPINDEX", new.names.index)
    embedder.going.set()
    try:
        assert await building
    except Trouble:
        assert await rebuild(new, Embedder(), pause=0)
    await eventually(new, EVERY, vector=Embedder.vector(0), limit=3 * MANY)
