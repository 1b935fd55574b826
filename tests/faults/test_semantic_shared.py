"""Answers by meaning through one Redis: what one proxy learnt the others find, and never across scopes or embedders."""

import dataclasses
import json

import pytest

from cacheproxy.core.model import Identity
from tests.fakes.embedder import DIM, Chosen
from tests.faults.load import is_alive, purge, within
from tests.rig import Client, until

pytestmark = pytest.mark.redis

ASKED = "How do I get a new password for my account?"
LIKE = "How can I get a new password for my account?"
SECOND = "How do I get a new password for this account?"
MODEL, NAMESPACE, KNOWLEDGE = "org/gemma:latest", "v1.2 {x}", "v1.2%20%7Bx%7D"
ODD = {"X_Cache_Namespace": "v1.2%20%7Bx%7D", "X_Cache_KB": KNOWLEDGE}


def placed(**identity) -> Chosen:
    embedder = Chosen()
    if identity:
        embedder.identity = dataclasses.replace(embedder.identity, **identity)
    embedder.near(ASKED, 1.0)
    embedder.near(LIKE, 0.97)
    return embedder


@pytest.fixture
def sharing_meaning(start, session, redis):
    """Starts proxies with embedders on the shared Redis."""

    async def begin(*embedders: Chosen, url: str | None = None, **values):
        options = {"redis__timeout": "2s", "redis__url": url or redis.url, "semantic__search_timeout": "2s", **values}
        proxies = [await start(embedder=embedder, **options) for embedder in embedders]
        return proxies, [Client(proxy.base, session) for proxy in proxies]

    return begin


def ask(client, text, **more):
    return client.chat(messages=[{"role": "user", "content": text}], **more)


def learnt(proxy):
    return until(lambda: not proxy.house.engine.fill._tasks, what="the end of background work")


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("stream", [False, True])
async def test_what_one_learnt_the_other_finds(sharing_meaning, backend, recorded, stream):
    proxies, [one, other] = await sharing_meaning(placed(), placed())
    miss = await ask(one, ASKED, stream=recorded)
    await learnt(proxies[0])
    hit = await ask(other, LIKE, stream=stream)
    assert (miss.cache, hit.cache, hit.get("x-cache-tier")) == ("MISS", "HIT", "semantic")
    assert hit.text == miss.text
    assert hit.get("x-cache-similarity") == "0.9700"
    assert len(backend.seen) == 1


async def test_odd_names_are_found_in_their_own_scope_and_never_across(sharing_meaning, backend):
    groups = '[{"name": "a|b", "keys": ["A"]}, {"name": "a", "keys": ["B"]}]'
    proxies, [one, other] = await sharing_meaning(
        placed(), placed(), access__scope="tenant", access__key_groups=json.loads(groups)
    )
    await ask(one, ASKED, model=MODEL, key="A", **ODD)
    await learnt(proxies[0])
    hit = await ask(other, LIKE, model=MODEL, key="A", **ODD)
    assert (hit.cache, hit.get("x-cache-tier")) == ("HIT", "semantic")
    elsewhere = [
        {"model": MODEL, "key": "B", **ODD},
        {"model": "org/gemma", "key": "A", **ODD},
        {"model": MODEL, "key": "A", "X_Cache_KB": KNOWLEDGE},
        {"model": MODEL, "key": "A", "X_Cache_Namespace": "v1.2%20%7Bx%7D"},
        {"model": MODEL, "key": "A", **ODD, "X_Cache_Namespace": "v1.2"},
        {"model": MODEL, "key": "A", **ODD, "X_Cache_KB": "v1.2"},
    ]
    for scope in elsewhere:
        answer = await ask(other, LIKE, **{**scope, "X_Cache_TTL": "0"})
        assert (answer.cache, answer.get("x-cache-tier")) == ("MISS", None), scope


@pytest.mark.parametrize("change", [{"name": "other"}, {"revision": "2"}, {"pooling": "cls"}, {"prefix": "query: "}])
async def test_another_embedder_never_meets_the_vectors_of_this_one(sharing_meaning, change):
    """B72: the same dimension, and a cosine of 0.97 with what is stored."""
    fresh = placed(**change)
    fresh.near(ASKED, 0.0)  # by its own measure the two are far apart, if it comes to embed what is there
    proxies, [one, other] = await sharing_meaning(placed(), fresh)
    await ask(one, ASKED)
    await learnt(proxies[0])
    answer = await ask(other, LIKE)
    assert (answer.status, answer.cache, answer.get("x-cache-reason")) == (200, "MISS", "nothing_near")


async def test_another_dimension_is_no_crash(sharing_meaning):
    """B72."""
    small = placed()
    small.identity = Identity("chosen", "1", DIM // 2)
    small.placed = {text: vector[: DIM // 2] for text, vector in small.placed.items()}
    proxies, [one, other] = await sharing_meaning(placed(), small)
    await ask(one, ASKED)
    await learnt(proxies[0])
    answer = await ask(other, LIKE)
    assert (answer.status, answer.cache) == (200, "MISS")
    await is_alive(one.session, proxies[1])


async def test_an_index_that_is_lost_comes_back_by_itself(sharing_meaning, redis, session):
    """Created by whoever comes first, made again when it is lost, and counted."""
    proxies, [one, other] = await sharing_meaning(placed(), placed())
    await ask(one, ASKED)
    await learnt(proxies[0])
    assert (await ask(other, LIKE)).cache == "HIT"
    redis.cli("FLUSHALL")

    async def back() -> bool:
        await ask(one, ASKED)
        await learnt(proxies[0])
        return (await ask(other, LIKE, X_Cache_TTL="0")).get("x-cache-tier") == "semantic"

    await within(back, "a hit by meaning")
    texts = []
    for proxy in proxies:
        async with session.get(proxy.admin + "/metrics") as answer:
            texts.append(await answer.text())
    assert any("cacheproxy_index_recreated_total 1.0" in text for text in texts)


async def test_a_row_whose_payload_is_gone_is_passed_over(sharing_meaning, redis, backend):
    """B39, B67: a row without an answer is no hit and no error, and it is swept."""
    proxies, [one, other] = await sharing_meaning(placed(), placed())
    await ask(one, ASKED)
    await learnt(proxies[0])
    [payload] = [key for key in redis.cli("KEYS", "*") if b":e:" in key]
    redis.cli("DEL", payload)
    answer = await ask(other, LIKE, X_Cache_TTL="0")
    assert (answer.status, answer.cache, len(backend.seen)) == (200, "MISS", 2)
    await until(lambda: not [key for key in redis.cli("KEYS", "*") if b":v:" in key], what="the sweep of the row")


async def test_behind_a_row_whose_payload_is_gone_the_next_neighbour_answers(sharing_meaning, redis, backend):
    """B39: a ghost masks nothing."""
    embedders = placed(), placed()
    for embedder in embedders:
        embedder.near(SECOND, 0.99)
    proxies, [one, other] = await sharing_meaning(*embedders)
    await ask(one, ASKED)
    await learnt(proxies[0])
    [payload] = [key for key in redis.cli("KEYS", "*") if b":e:" in key]
    await ask(one, SECOND, X_Cache_Semantic="0.999")
    await learnt(proxies[0])
    assert (await ask(other, LIKE)).get("x-cache-similarity") == "0.9700", "the nearest, while it is there"
    redis.cli("DEL", payload)
    answer = await ask(other, LIKE)
    assert (answer.cache, answer.get("x-cache-similarity"), len(backend.seen)) == ("HIT", "0.9603", 2)
    await until(lambda: len([key for key in redis.cli("KEYS", "*") if b":v:" in key]) == 1, what="the sweep of the row")


async def test_a_purge_takes_both_sides(sharing_meaning, redis, session):
    proxies, [one, other] = await sharing_meaning(placed(), placed())
    await ask(one, ASKED, X_Cache_Tags="faq")
    await learnt(proxies[0])
    assert (await ask(other, LIKE)).cache == "HIT"
    assert (await purge(session, proxies[1], tags=["faq"]))[0] == 200
    assert [key for key in redis.cli("KEYS", "*") if b":v:" in key or b":e:" in key] == []
    assert (await ask(one, LIKE)).cache == "MISS"


async def test_where_the_server_cannot_search_each_finds_what_it_has_learnt(start, session, own_redis, caplog):
    """Degraded, not broken: the start says so; answers are shared, exact ones by all, near ones by who learnt them."""
    server = own_redis()
    options = {"redis__url": server.url, "redis__timeout": "2s"}
    proxies = [await start(embedder=placed(), **options) for _ in range(2)]
    one, other = [Client(proxy.base, session) for proxy in proxies]
    assert [r.getMessage() for r in caplog.records].count(
        "the shared Redis cannot search: each proxy finds by meaning what it has learnt itself; answers are shared all "
        "the same"
    ) == 2
    assert (await ask(one, ASKED)).cache == "MISS"
    await learnt(proxies[0])
    assert (await ask(other, ASKED)).cache == "HIT"
    assert (await ask(other, LIKE, X_Cache_TTL="0")).cache == "MISS"
    assert (await ask(one, LIKE)).get("x-cache-tier") == "semantic"
    assert (await purge(session, proxies[1], model="m"))[0] == 200
    assert (await ask(one, LIKE)).cache == "MISS"


async def test_a_new_embedders_index_is_built_from_the_old_ones_questions(sharing_meaning, backend):
    """In the background, and searched only when it is whole: vectors of two embedders never meet."""
    proxies, [one] = await sharing_meaning(placed())
    await ask(one, ASKED)
    await learnt(proxies[0])
    fresh = placed(revision="2")
    fresh.near(ASKED, 0.99)  # another embedder has other vectors
    fresh.near(LIKE, 0.98)
    [proxy], [other] = await sharing_meaning(fresh)
    await until(lambda: proxy.house.layer.builder.done, what="the building of the index")
    assert (ASKED, b"building") in fresh.asked
    hit = await ask(other, LIKE)
    assert (hit.cache, hit.get("x-cache-tier")) == ("HIT", "semantic")
    assert float(hit.get("x-cache-similarity")) == pytest.approx(0.99 * 0.98, abs=1e-3)
    assert len(backend.seen) == 1
    assert (await ask(one, LIKE)).get("x-cache-similarity") == "0.9700", "the old one goes on with its own"
