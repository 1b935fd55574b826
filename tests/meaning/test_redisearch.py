"""The vector index in a real Redis: names, traffic, loss and recovery, strangers and liars."""

import asyncio
import math
import random
import re
import time

import numpy as np
import pytest

from cacheproxy.core.fusion import fused
from cacheproxy.core.key import entry_id
from cacheproxy.core.model import Identity
from cacheproxy.core.redis_url import read
from cacheproxy.errors import Trouble
from cacheproxy.meaning import crowds, redisearch_life, redisearch_schema
from cacheproxy.meaning.rebuild import rebuild
from cacheproxy.meaning.redisearch_errors import Missing, told
from cacheproxy.meaning.redisearch_hits import Hits
from cacheproxy.meaning.redisearch_schema import Plan
from cacheproxy.stores.redis_link import Link, LinkTerms
from cacheproxy.stores.redis_trouble import trouble
from tests.contract.index_fixtures import NOW, P, line, row
from tests.engine.fakes import Notes
from tests.meaning.redis import index_of
from tests.redis_fixtures import users
from tests.rig import until
from tests.stores.entries import key_of

pytestmark = pytest.mark.redis

SECRET = "what is the launch code of project aurora"


async def keys(index, vector=None, text="", limit=20, now=NOW, partition=P) -> list[bytes]:
    return [near.key for near in await index.search(partition, line(1) if vector is None else vector, text, limit, now)]


async def eventually(index, wanted: set[bytes], **options) -> None:
    """Wait until a search finds just these: rows are picked up in the background."""
    deadline = time.monotonic() + 10
    while {*await keys(index, **options)} != wanted:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def names_of(server) -> list[bytes]:
    cursor, found = b"0", []
    while True:
        cursor, some = server.cli("SCAN", cursor, "COUNT", 1000)
        found += some
        if cursor == b"0":
            return found


# What stands in Redis


async def test_no_name_has_a_word_and_every_key_expires(redis, make):
    index = make()
    for number in range(5):
        await index.add(row(number, text=SECRET))
    await index.search(P, line(1), SECRET, 5, NOW)
    names = [name.decode() for name in names_of(redis)]
    digest = index.names.digest
    assert sorted(names) == sorted(f"cacheproxy:{{0}}:v:{digest}:{entry_id(key_of(n))}" for n in range(5))
    for name in names:
        assert 0 < redis.cli("PTTL", name) <= 90_000_000
    listed = [name.decode() for name in redis.cli("FT._LIST")]
    assert listed == [index.names.index]
    assert re.fullmatch(r"cacheproxy:\{0\}:i:1:[0-9a-f]{16}:[0-9a-f]{16}", listed[0])


async def test_a_row_expires_when_it_says(redis, make):
    index = make()
    await index.add(row(1, expires_at=NOW + 777.5))
    (name,) = names_of(redis)
    assert redis.cli("PEXPIRETIME", name) == int((NOW + 777.5) * 1000)
    await index.add(row(2, expires_at=time.time() - 1))
    assert len(names_of(redis)) == 1


async def test_what_a_search_and_a_row_cost_in_commands(redis, make):
    """One round trip each; nothing that looks through the keys."""
    index = make(client_options={"connections": 1})
    await index.add(row(1))
    with redis.monitor() as monitor:
        await index.add(row(2))
        await index.search(P, line(1), "some words", 5, NOW)
        await index.search(P, line(1), "", 5, NOW)
        await index.remove([key_of(1), key_of(2), key_of(3)])
        assert monitor.names == ["MULTI", "HSET", "PEXPIREAT", "EXEC", *["FT.SEARCH"] * 3, "UNLINK"]


async def test_nothing_ever_looks_through_all_keys_but_a_rebuild(redis, make):
    with redis.monitor() as monitor:
        index = make()
        await index.search(P, line(1), "words", 5, NOW)
        first = " ".join(monitor.names)
        assert "MULTI HSET PEXPIRE EXEC FT.SEARCH UNLINK" in first, "a probe is gone soon, whatever happens"
        await index.add(row(1))
        redis.cli("FT.DROPINDEX", index.names.index)
        await index.search(P, line(1), "words", 5, NOW)
        await index.sweep(NOW)
        assert {*monitor.names} & {"KEYS", "SCAN", "FLUSHALL", "FLUSHDB", "DBSIZE", "RANDOMKEY"} == set()


@pytest.mark.parametrize("protocol", [2, 3])
async def test_either_protocol_will_do(make, protocol):
    index = make(client_options={"protocol": protocol})
    await index.add(row(1, text="some words"))
    (found,) = await index.search(P, line(1), "words", 5, NOW)
    assert (found.key, found.by_meaning, found.by_words) == (key_of(1), 1, 1)
    assert await index.sweep(NOW) == 0


async def test_one_connection_is_enough_for_many_at_once(make):
    index = make(client_options={"connections": 1})
    calls = [index.add(row(number)) for number in range(40)] + [keys(index) for _ in range(40)]
    await asyncio.gather(*calls)
    assert len(await keys(index, limit=100)) == 40


async def test_prefixes_do_not_meet(make):
    one, other, odd = make(under="one"), make(under="one:two"), make(under="a*[b]?{c}\\")
    await one.add(row(1))
    await other.add(row(2))
    await odd.add(row(3))
    for index, number in (one, 1), (other, 2), (odd, 3):
        assert await keys(index) == [key_of(number)]
        assert await index.remove([key_of(9 - number)]) == 0


NEEDED = (
    "hello client|setinfo client|setname ping multi exec hset hmget pexpireat pexpire exists unlink set get scan"
    " ft.create ft.search ft.info ft._list ft.dropindex ft.aliasadd ft.aliasupdate"
)
"""Every command that the index sends, a rebuild included."""


async def test_a_user_who_may_do_no_more_than_is_needed(redis_start, make):
    commands = " ".join(f"+{command}" for command in NEEDED.split())
    server = redis_start(acl=[f"user proxy on >pass ~cacheproxy:* -@all {commands}"])
    login = {"username": "proxy", "password": "pass"}
    assert {*NEEDED.split()} <= {word[1:] for word in users()[-1].split()} | {"hello"}, "what is recommended"
    old, new = (make(server=server, client_options=login, algorithm=kind) for kind in ("hnsw", "flat"))
    await old.add(row(1, text="some words"))
    await old.add(row(2, expires_at=NOW + 500))
    assert await rebuild(new, None, pause=0)
    (found, *_) = await new.search(P, row(1).vector, "words", 5, NOW)
    assert (found.key, found.by_words) == (key_of(1), 1)
    assert await new.sweep(NOW + 600) == 1
    assert await new.remove([key_of(1)]) == 1
    await old.remove([key_of(1), key_of(2)])
    for _ in range(3):
        await new.sweep(NOW)
    assert server.cli("FT._LIST") == [new.names.index.encode()]
    refused = make(server=server, client_options=login, under="elsewhere")
    with pytest.raises(Trouble) as caught:
        await refused.add(row(1))
    assert caught.value.kind == "noperm"


async def test_the_proxys_own_client_will_do(redis, make):
    link = Link(read(redis.url), LinkTerms(timeout=10, max_connections=2))
    index = index_of(link.redis, Plan(Identity("embedder", "1", 4)))
    await asyncio.gather(*(index.add(row(number, text="some words")) for number in range(50)))
    assert len(await keys(index, text="words", limit=100)) == 50
    assert link.connections <= 2
    redis.cli("FT.DROPINDEX", index.names.index)
    await eventually(index, {key_of(number) for number in range(50)}, limit=100)
    assert await index.remove([key_of(1)]) == 1
    assert await index.sweep(NOW) == 0
    await index.close()
    await link.close()


async def test_a_crowd_is_searched_in_its_own_way_and_found_the_same(redis, make, monkeypatch):
    """A server would look at each row of a large partition. Only a search that took long has its partition counted."""
    monkeypatch.setattr(crowds, "LEAST", 100)
    small, index = bytes(32), make(dim=32)
    dice = np.random.default_rng(1)
    for number in range(160):
        vector = dice.standard_normal(32)
        await index.add(row(number, vector, f"word{number} and so on", partition=P if number < 150 else small))

    async def ask(partition=P):
        return await index.search(partition, line(1, dim=32), "and word7 so words more on", 8, NOW)

    def sent() -> list[tuple[int, bool, bool]]:
        """Searches until now, whether one counts, whether one walks the graph."""
        searches = [heard.words for heard in monitor.heard() if heard.name == "FT.SEARCH"]
        return len(searches), any(b"NOCONTENT" in s for s in searches), any(b"BATCHES" in s[2] for s in searches)

    monkeypatch.setattr(crowds, "SLOW", 60)
    before = await ask()
    with redis.monitor() as monitor:
        assert await ask() == before
        assert sent() == (2, False, False)
    monkeypatch.setattr(crowds, "SLOW", 0)
    await ask()
    await ask(small)
    with redis.monitor() as monitor:
        assert {near.key for near in await ask()} >= {
            near.key for near in before if near.by_meaning or near.by_words == 1
        }
        assert sent() == (3, True, True)
    with redis.monitor() as monitor:
        await ask()
        assert sent() == (2, False, True), "a count lasts"
    with redis.monitor() as monitor:
        assert len(await ask(small)) == 8
        assert sent() == (3, True, False), "it is small"


async def test_a_search_that_nobody_waited_for_was_slow(relay, make, monkeypatch):
    monkeypatch.setattr(crowds, "SLOW", 0.01)
    index = make(client_options={"port": relay.port})
    await index.add(row(1))
    relay.delay(0.2)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.03):
            await keys(index)
    assert index._crowds.due(P.hex(), 1e9)


# Made by whoever comes first


@pytest.mark.parametrize("attempt", range(3))
async def test_two_that_come_at_once_make_one_index(redis, make, attempt):
    journals = [Notes() for _ in range(4)]
    replicas = [make(journal=journal) for journal in journals]
    await asyncio.gather(*(index.add(row(number)) for number, index in enumerate(replicas)))
    assert len(redis.cli("FT._LIST")) == 1
    for index in replicas:
        assert {*await keys(index)} == {key_of(number) for number in range(4)}
    assert [journal.counted for journal in journals] == [[]] * 4


async def test_the_first_look_is_one_for_all(redis, make):
    index = make()
    with redis.monitor() as monitor:
        await asyncio.gather(*(keys(index) for _ in range(20)))
        assert monitor.names.count("FT.CREATE") == 1
        assert monitor.names.count("FT.ALIASADD") == 1


async def test_a_first_look_goes_on_when_its_caller_vanishes(redis, make):
    index = make()
    task = asyncio.create_task(keys(index))
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    await until(lambda: index.life.whole, what="the index")
    assert len(redis.cli("FT._LIST")) == 1


async def test_closing_ends_a_look(relay, make, redis):
    index = make(client_options={"port": relay.port})
    relay.freeze()
    task = asyncio.create_task(keys(index))
    await until(lambda: index.life._looking is not None)
    await index.close()
    with pytest.raises(Trouble):
        await task


# Lost and found


@pytest.fixture
def lost(redis_start):
    return redis_start()


def drop(server, index) -> None:
    server.cli("FT.DROPINDEX", index.names.index)


def flush(server, index) -> None:
    server.cli("FLUSHALL")


def restart(server, index) -> None:
    server.restart()


def unpoint(server, index) -> None:
    server.cli("FT.ALIASDEL", index.names.alias)


@pytest.mark.parametrize("lose", [drop, flush, restart, unpoint])
async def test_a_lost_index_is_made_again(lost, make, lose):
    journal = Notes()
    index = make(server=lost, journal=journal)
    for number in range(30):
        await index.add(row(number))
    lose(lost, index)
    if lose is restart:
        with pytest.raises(Trouble):  # the connection of before
            await keys(index)
    stay = lose in (drop, unpoint)
    await eventually(index, {key_of(n) for n in range(30)} if stay else set(), limit=50)
    await index.add(row(50))
    await eventually(index, {key_of(n) for n in ([*range(30), 50] if stay else [50])}, limit=50)
    assert journal.counted == [] if lose is unpoint else [("index_recreated", "")]


async def test_of_two_who_miss_it_one_makes_it_and_counts_it(redis, make):
    journals = Notes(), Notes()
    first, second = (make(journal=journal) for journal in journals)
    await first.add(row(1))
    await keys(second)
    redis.cli("FT.DROPINDEX", first.names.index)
    await asyncio.gather(keys(first), keys(second))
    await eventually(first, {key_of(1)})
    await eventually(second, {key_of(1)})
    assert journals[0].counted + journals[1].counted == [("index_recreated", "")]


async def test_a_missing_alias_is_not_looked_for_at_every_search(redis, make, monkeypatch):
    """While another plan's rows wait to be carried over there is nothing to search."""
    old, new = make(), make(revision="2")
    await old.add(row(1))
    assert await keys(new) == []
    with redis.monitor() as monitor:
        for _ in range(10):
            assert await keys(new) == []
        assert monitor.names.count("FT.INFO") <= 3
        assert monitor.names.count("FT.SEARCH") <= 11


@pytest.mark.parametrize("metric", ["L2", "IP"])
async def test_an_index_that_measures_otherwise_is_not_believed(redis, make, metric):
    """B70: the distance is checked to be 1 - cosine when the index is first met."""
    index = make()
    redis.cli(
        "FT.CREATE", index.names.index, "ON", "HASH", "PREFIX", 1, index.names.rows(index.names.index), "SCHEMA",
        "p", "TAG", "w", "TEXT", "x", "NUMERIC", "v", "VECTOR", "FLAT", 6, "TYPE", "FLOAT32", "DIM", 4,
        "DISTANCE_METRIC", metric,
    )  # fmt: skip
    redis.cli("FT.ALIASADD", index.names.alias, index.names.index)
    for call in keys(index), index.add(row(1)), keys(index):
        with pytest.raises(Trouble, match="cosine"):
            await call
    redis.cli("FT.DROPINDEX", index.names.index)
    await index.add(row(1))
    assert await keys(index) == [key_of(1)]


@pytest.mark.parametrize("dim", [1, 2, 3, 768])
async def test_vectors_of_any_dimension(make, dim):
    index = make(dim=dim)
    await index.add(row(1, line(1, dim=dim), dim=dim))
    (found,) = await index.search(P, line(-2, dim=dim), "", 5, NOW)
    assert found.similarity == pytest.approx(-1, abs=1e-6)


# Strangers


@pytest.mark.parametrize("other", [
    {"name": "other"}, {"revision": "2"}, {"pooling": "cls"}, {"prefix": "query: "}, {"precision": "int8"}, {"dim": 3},
])  # fmt: skip
async def test_vectors_of_another_embedder_are_never_met(make, other):
    """B72: even where dimension and vectors are the same."""
    first, second = make(), make(**other)
    dim = other.get("dim", 4)
    await first.add(row(1, text="the same words"))
    assert await keys(second, line(1, dim=dim), "the same words") == []
    await second.add(row(2, line(1, dim=dim), text="the same words"))
    assert await keys(first, text="the same words") == [key_of(1)]
    assert await second.remove([key_of(1)]) == 0
    assert await keys(first) == [key_of(1)]


async def test_rows_of_another_format_are_never_met(make, monkeypatch):
    """B72: they stay until they expire, and are no reason to wait."""
    first = make()
    await first.add(row(1))
    monkeypatch.setattr(redisearch_schema, "FORMAT", "2")
    second = make()
    await second.add(row(2))
    assert await keys(second) == [key_of(2)]
    assert await keys(first) == [key_of(1)]


async def test_everything_of_the_schema_is_in_the_name(make):
    plans = [
        {},
        {"algorithm": "flat"},
        {"links": 32},
        {"effort": 100},
        {"search_effort": 10},
        {"dim": 5},
        {"name": "n"},
    ]
    names = [make(**plan).names.index for plan in plans]
    assert len({*names}) == len(names)
    assert make().names.index == names[0]


# Liars and damage


async def test_a_row_whose_parts_do_not_belong_together_is_left_out(redis, make):
    index = make()
    for number in range(4):
        await index.add(row(number, text="words"))
    names = [index.names.row(index.names.index, key_of(number)) for number in range(4)]
    redis.cli("HSET", names[0], "k", key_of(3))
    redis.cli("HSET", names[1], "k", "short")
    redis.cli("HDEL", names[2], "k")
    assert await keys(index, text="words") == [key_of(3)]
    redis.cli("HSET", names[3], "v", "not a vector")
    assert await keys(index, text="words") == []


async def test_a_key_of_another_kind_costs_its_row_only(redis, make):
    index = make()
    await index.add(row(1))
    redis.cli("SET", index.names.row(index.names.index, key_of(2)), "not a hash", "EX", 100)
    with pytest.raises(Trouble):
        await index.add(row(2))
    assert await keys(index) == [key_of(1)]
    assert await index.remove([key_of(2)]) == 1
    await index.add(row(2))
    assert await keys(index) == [key_of(1), key_of(2)]


def document(number: int, **fields) -> dict:
    """A row as a server answers it."""
    whole = {
        "id": f"cacheproxy:{{0}}:v:0:{entry_id(key_of(number))}",
        "p": P.hex(),
        "k": key_of(number),
        "x": str(NOW + 9),
    }
    return {
        name: value
        for name, value in {**whole, "d": "0.25", "t": b"text \xc3\xa9", **fields}.items()
        if value is not ...
    }


LIES = {
    "another partition": {"p": bytes(32).hex()}, "no partition": {"p": ...}, "expired": {"x": str(NOW - 1)},
    "no time": {"x": ...}, "time that is none": {"x": "soon"}, "endless": {"x": "nan"}, "another's name": {"id": "x:" + "0" * 32},
    "no name": {"id": ...}, "another's key": {"k": key_of(2)}, "no key": {"k": ...}, "key as text": {"k": "k" * 32},
    "distance that is none": {"d": "far"}, "no number": {"d": "nan"}, "too far": {"d": "2.5"}, "too near": {"d": "-0.5"},
    "endlessly far": {"d": "inf"}, "neither distance nor vector": {"d": ...}, "short vector": {"d": ..., "v": b"1234"},
    "vector as text": {"d": ..., "v": "text" * 4}, "vector of nothing": {"d": ..., "v": bytes(16)},
    "no question": {"t": ...}, "broken question": {"t": b"\xff"}, "question decoded": {"t": "text"},
    "vector of NaN": {"d": ..., "v": line(math.nan).tobytes()},
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_server_that_lies_is_not_believed(lie):
    hits = Hits(P.hex(), line(1), NOW)
    found = hits.take([document(1, **LIES[lie]), document(3)])
    assert found == [key_of(3)]
    assert hits.similarities == {key_of(3): 0.75}
    assert hits.texts == {key_of(3): "text \u00e9"}


def test_a_vector_tells_the_similarity_where_the_server_gives_no_distance():
    hits = Hits(P.hex(), line(1), NOW)
    assert hits.take([document(1, d=..., v=(line(3, 4) * np.float32(7)).tobytes())]) == [key_of(1)]
    assert hits.similarities[key_of(1)] == pytest.approx(0.6)
    assert hits.take([document(1, d="0.5")]) == [key_of(1)]
    assert hits.similarities[key_of(1)] == pytest.approx(0.6), "what was known first stays"
    (near,) = fused([key_of(1)], [], hits.similarities, 5)
    assert near.similarity == pytest.approx(0.6)


# Trouble


async def test_trouble_says_its_kind_and_nothing_of_the_question(lost, make):
    index = make(server=lost)
    await index.add(row(1))
    lost.kill()
    calls = [
        index.search(P, line(1), SECRET, 5, NOW),
        index.add(row(2, text=SECRET)),
        index.remove([key_of(1)]),
        index.sweep(NOW),
    ]
    for call in calls:
        with pytest.raises(Trouble) as caught:
            await call
        assert caught.value.kind in ("refused", "reset")
        shown = f"{caught.value} {caught.value!r} {caught.value.__cause__}"
        assert caught.value.__suppress_context__
        assert caught.value.__cause__ is None, "a library's own words may repeat the command"
        assert all(word not in shown for word in SECRET.split() if len(word) > 3)


async def test_a_query_that_a_server_refuses_tells_nothing_of_the_question(redis, make, monkeypatch):
    index = make()
    await index.add(row(1))
    monkeypatch.setattr(redisearch_schema, "some_of", lambda words, _: "@nowhere:[broken " + " ".join(words))
    with pytest.raises(Trouble) as caught:
        await index.search(P, line(1), SECRET, 5, NOW)
    assert "aurora" not in f"{caught.value} {caught.value.__cause__}"


async def test_a_server_without_search_is_trouble(redis_start, make):
    index = make(server=redis_start(search=False))
    for call in keys(index), index.add(row(1)), index.sweep(NOW):
        with pytest.raises(Trouble):
            await call


async def test_garbage_is_trouble(relay, make, redis):
    index = make(client_options={"port": relay.port, "timeout": 0.5})
    await index.add(row(1))
    relay.garble()
    with pytest.raises(Trouble):
        await keys(index)
        await keys(index)


WORDINGS = [
    "x: no such index", "Unknown index name", "Unknown Index name", "Unknown index name (or name is an alias itself)",
    "SEARCH_INDEX_NOT_FOUND Index not found: x", "Index not found", "No such index x",
]  # fmt: skip


@pytest.mark.parametrize("wording", WORDINGS)
def test_however_a_server_says_that_the_index_is_missing(wording):
    """Versions word it in their own ways."""
    from redis.exceptions import ResponseError

    with pytest.raises(Missing), told(trouble):
        raise ResponseError(wording)


async def test_words_of_a_question_cannot_say_that_the_index_is_missing(redis, make, monkeypatch):
    journal = Notes()
    index = make(journal=journal)
    await index.add(row(1))
    real = redisearch_schema.some_of
    monkeypatch.setattr(redisearch_schema, "some_of", lambda words, wanted: real(words, wanted) + " @nowhere:[broken")
    with pytest.raises(Trouble) as caught:
        await index.search(P, line(1), "no such index unknown index name index not found", 5, NOW)
    assert not isinstance(caught.value, Missing)
    assert journal.counted == []


async def test_no_answer_is_anothers_when_calls_are_cancelled(relay, make):
    """Half of the calls end at some moment of their own, on two slow connections."""
    index = make(client_options={"port": relay.port, "connections": 2})
    partitions = [bytes([number]) * 32 for number in range(20)]
    for number, partition in enumerate(partitions):
        await index.add(row(number, line(1, number), f"word{number}", partition))
    relay.delay(0.001, 0.002)
    dice = random.Random(1)
    ended = 0
    for _ in range(20):
        calls = [asyncio.create_task(index.search(p, line(1), f"word{n}", 5, NOW)) for n, p in enumerate(partitions)]
        leaving = dice.sample(calls, 10)
        for call in leaving:
            asyncio.get_running_loop().call_later(dice.random() * 0.02, call.cancel)
        await asyncio.wait(calls)
        for number, call in enumerate(calls):
            if call.cancelled():
                ended += 1
                continue
            assert [(near.key, near.by_words) for near in call.result()] == [(key_of(number), 1)]
    assert ended > 20


# Sweeping


async def test_a_dead_index_is_dropped_when_its_last_row_has_been_gone_for_two_sweeps(redis, make):
    old, new = make(), make(revision="2")
    await old.add(row(1))
    await new.add(row(2))
    for _ in range(3):
        await new.sweep(NOW)
    assert len(redis.cli("FT._LIST")) == 2
    await old.remove([key_of(1)])
    await new.sweep(NOW)
    assert len(redis.cli("FT._LIST")) == 2
    await new.sweep(NOW)
    assert redis.cli("FT._LIST") == [new.names.index.encode()]
    await old.add(row(3))
    await eventually(old, {key_of(3)})


async def test_an_index_that_is_searched_is_not_dead_though_it_has_no_row(redis, make):
    """It is the old one's, until the new one is whole."""
    old, new = make(), make(algorithm="flat")
    await old.add(row(1))
    await new.add(row(2))
    await old.remove([key_of(1)])
    for _ in range(4):
        await new.sweep(NOW)
    assert len(redis.cli("FT._LIST")) == 2


async def test_an_index_of_others_is_left_alone(redis, make):
    redis.cli("FT.CREATE", "theirs", "PREFIX", 1, "d:", "SCHEMA", "t", "TEXT")
    redis.cli("FT.CREATE", "cacheproxy:{0}:i:theirs", "PREFIX", 1, "d:", "SCHEMA", "t", "TEXT")
    other = make(under="other")
    await other.add(row(1))
    await other.remove([key_of(1)])
    index = make()
    await index.add(row(1))
    for _ in range(4):
        await index.sweep(NOW)
    assert {*redis.cli("FT._LIST")} == {
        b"theirs", b"cacheproxy:{0}:i:theirs", other.names.index.encode(), index.names.index.encode(),
    }  # fmt: skip


async def test_rows_that_a_server_keeps_too_long_are_swept(redis, make):
    index = make()
    for number in range(1200):
        await index.add(row(number, expires_at=NOW + 500 + number % 2 * 100))
    assert await index.sweep(NOW + 550) == 600
    assert len(names_of(redis)) == 600


def test_the_pause_is_short():
    """A search that misses must not be without an index for long."""
    assert redisearch_life.PAUSE <= 2
