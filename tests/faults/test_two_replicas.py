"""Two proxies on one Redis are one cache: what one learnt the other serves, and what is purged on one is gone on both."""

import asyncio

import pytest

from tests.fakes.backend import Exchange
from tests.faults.load import ask, purge, version_of, within
from tests.proxy.test_embeddings import asked, embed, told
from tests.rig import Client

pytestmark = pytest.mark.redis

BOTH_WAYS = pytest.mark.parametrize("first", [0, 1])


def same(document):
    """What a hit shares with a miss: all but its id and the time of its making."""
    return {name: value for name, value in document.items() if name not in ("id", "created")}


@BOTH_WAYS
@pytest.mark.parametrize("recorded", ["json", "stream"])
@pytest.mark.parametrize("asked_for", ["json", "stream"])
async def test_what_one_recorded_the_other_serves(clients, telling, first, recorded, asked_for):
    one, other = clients[first], clients[1 - first]
    miss = await ask(one, "hello", stream=recorded == "stream")
    hit = await ask(other, "hello", stream=asked_for == "stream")
    own = await ask(one, "hello", stream=asked_for == "stream")
    assert [miss.cache, hit.cache, own.cache] == ["MISS", "HIT", "HIT"]
    assert telling.calls == 1
    if asked_for == "json":
        assert same(hit.json) == same(own.json)
        assert recorded == "stream" or same(hit.json) == same(miss.json)
        assert hit.json["id"] != own.json["id"]
    else:
        assert [same(document) for document in hit.documents] == [same(document) for document in own.documents]
        if recorded == "stream":
            assert [same(document) for document in hit.documents] == [same(document) for document in miss.documents]


@BOTH_WAYS
async def test_a_purge_on_one_is_obeyed_by_the_other_at_once(proxies, clients, session, telling, first):
    """B37: no lookup after the acknowledgement is a hit, and every other namespace stays warm."""
    for round_ in range(4):
        for client in clients:
            assert (await ask(client, "old", X_Cache_Namespace="meant")).cache in ("MISS", "HIT")
            assert (await ask(client, "old", X_Cache_Namespace="other")).cache in ("MISS", "HIT")
        telling.version += 1
        status, _ = await purge(session, proxies[first], namespace="meant")
        assert status == 200
        answer = await ask(clients[1 - first], "old", X_Cache_Namespace="meant")
        assert (answer.cache, version_of(answer, "old")) == ("MISS", round_ + 2)
        other = await ask(clients[1 - first], "old", X_Cache_Namespace="other")
        assert (other.cache, version_of(other, "old")) == ("HIT", 1)


async def test_everything_can_be_purged_from_either(proxies, clients, session):
    for prompt in "abc":
        await ask(clients[0], prompt)
    status, told_ = await purge(session, proxies[1])
    assert (status, told_["matched"], told_["purged"]) == (200, 3, 3)
    for prompt in "abc":
        assert (await ask(clients[0], prompt)).cache == "MISS"
        assert (await ask(clients[1], prompt)).cache == "HIT"


class Held:
    """A script that answers only when it may; `path`: only requests to there are held."""

    def __init__(self, script, path: bytes = b"/chat/completions") -> None:
        self.script, self.path = script, path
        self.arrived, self.may = asyncio.Event(), asyncio.Event()

    async def __call__(self, exchange: Exchange) -> None:
        if self.path in exchange.seen.target:
            self.arrived.set()
            await self.may.wait()
        await self.script(exchange)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_a_purge_elsewhere_outran_is_not_stored(
    proxies, clients, session, backend, telling, stream
):
    """CONTRACT 6.6: the request was running on the other replica when the purge was acknowledged."""
    backend.script = Held(telling)
    running = asyncio.create_task(ask(clients[1], "asked before", stream=stream))
    await backend.script.arrived.wait()
    assert (await purge(session, proxies[0], model="m"))[0] == 200
    backend.script.may.set()
    answer = await running
    assert answer.cache == "MISS"
    assert stream or answer.get("x-cache-reason") == "purged"
    telling.version = 2
    again = [await ask(client, "asked before") for client in clients]
    assert [(a.cache, version_of(a, "asked before")) for a in again] == [("MISS", 2), ("HIT", 2)]


async def test_an_answer_that_a_purge_elsewhere_does_not_mean_is_stored(proxies, clients, session, backend, telling):
    backend.script = Held(telling)
    running = asyncio.create_task(ask(clients[1], "spared"))
    await backend.script.arrived.wait()
    assert (await purge(session, proxies[0], namespace="another"))[0] == 200
    backend.script.may.set()
    assert (await running).cache == "MISS"
    assert [(await ask(client, "spared")).cache for client in clients] == ["HIT", "HIT"]


async def test_what_waits_for_its_proof_while_a_purge_elsewhere_is_acknowledged_is_not_served(
    sharing, redis, session, backend, telling
):
    """CONTRACT 6.6: the old answer had been looked up already, and waited for the backend to accept the credential."""
    proxies, clients = await sharing(redis.url, access__grant_ttl="1ms")
    await ask(clients[0], "secret")
    await asyncio.sleep(0.01)  # the grant's lifetime
    backend.script = Held(telling, b"/v1/models")
    waiting = asyncio.create_task(ask(clients[1], "secret"))
    await backend.script.arrived.wait()
    telling.version = 2
    assert (await purge(session, proxies[0], model="m"))[0] == 200
    backend.script.may.set()
    answer = await waiting
    assert (answer.cache, answer.get("x-cache-reason"), version_of(answer, "secret")) == ("MISS", "purged", 2)


async def test_what_waits_for_its_proof_is_served_if_nothing_was_purged(sharing, redis, backend, telling):
    _, clients = await sharing(redis.url, access__grant_ttl="1ms")
    await ask(clients[0], "secret")
    await asyncio.sleep(0.01)  # the grant's lifetime
    backend.script = Held(telling, b"/v1/models")
    waiting = asyncio.create_task(ask(clients[1], "secret"))
    await backend.script.arrived.wait()
    await asyncio.sleep(0.15)  # longer than what was looked up may be served unasked
    backend.script.may.set()
    assert (await waiting).cache == "HIT"


async def test_no_cache_on_one_refreshes_for_both(clients, telling):
    await ask(clients[0], "news")
    telling.version = 2
    fresh = await ask(clients[1], "news", Cache_Control="no-cache")
    assert (fresh.cache, version_of(fresh, "news")) == ("MISS", 2)
    again = [await ask(client, "news") for client in clients]
    assert [(a.cache, version_of(a, "news")) for a in again] == [("HIT", 2), ("HIT", 2)]


async def test_no_cache_after_a_purge_on_the_other_is_stored(proxies, clients, session, telling):
    """The replica that is asked has not heard of the purge yet: nothing else was looked up since."""
    await ask(clients[1], "news")
    assert (await purge(session, proxies[0], model="m"))[0] == 200
    fresh = await ask(clients[1], "news", Cache_Control="no-cache")
    assert (fresh.cache, fresh.get("x-cache-reason")) == ("MISS", "no_cache")
    assert (await ask(clients[0], "news")).cache == "HIT"


async def test_inputs_of_batches_are_shared(clients, backend):
    """B13: each input is stored for itself, so batches of any make-up share what either replica knows."""
    backend.script = embed

    async def embedded(client: Client, *given: str):
        return await client.send({"model": "e", "input": list(given)}, path="/v1/embeddings")

    first = await embedded(clients[0], "aa", "b")
    partly = await embedded(clients[1], "b", "ccc")
    whole = await embedded(clients[0], "ccc", "aa", "b")
    assert [first.cache, partly.cache, whole.cache] == ["MISS", "MISS", "HIT"]
    assert partly.get("x-cache-reason") == "partly_stored"
    assert [seen.json["input"] for seen in backend.seen if b"embeddings" in seen.target] == [["aa", "b"], ["ccc"]]
    assert asked(backend) == 2
    vectors, tokens = told(whole)
    assert vectors == [*told(partly)[0][1:], *told(first)[0]]
    assert tokens == 6


async def test_two_that_start_at_once_agree_on_one_secret(sharing, redis):
    (_, [one]), (_, [other]) = await asyncio.gather(sharing(redis.url, 1), sharing(redis.url, 1))
    assert (await ask(one, "x")).cache == "MISS"
    assert (await ask(other, "x")).cache == "HIT"


async def test_two_that_started_before_redis_share_once_it_comes(sharing, relay):
    """No restart: both work without it, and agree on a secret when they meet it."""
    relay.refuse()
    _, clients = await sharing(relay.url, redis__timeout="250ms")
    for client in clients:
        assert [(await ask(client, "early")).cache for _ in range(3)] == ["MISS"] * 3
    relay.accept()

    async def shared() -> bool:
        first, second = [await ask(client, "early") for client in clients]
        return first.cache == second.cache == "HIT"

    await within(shared, "sharing")
    assert (await ask(clients[0], "late")).cache == "MISS"
    assert (await ask(clients[1], "late")).cache == "HIT"


async def test_a_secret_of_the_configuration_is_kept(sharing, redis, tmp_path):
    """Where all replicas are given one, none is left in Redis."""
    (tmp_path / "secret").write_text("s" * 32)
    _, clients = await sharing(redis.url, store__secret_file=str(tmp_path / "secret"))
    assert [(await ask(client, "x")).cache for client in clients] == ["MISS", "HIT"]
    assert [key for key in redis.cli("KEYS", "*") if key.endswith(b"secret")] == []


async def test_prefixes_keep_caches_apart(sharing, redis, session):
    proxies, clients = await sharing(redis.url, 1, redis__prefix="here")
    others, strangers = await sharing(redis.url, 1, redis__prefix="there")
    assert [(await ask(client, "x")).cache for client in (*clients, *strangers)] == ["MISS", "MISS"]
    assert [(await ask(client, "x")).cache for client in (*clients, *strangers)] == ["HIT", "HIT"]
    assert (await purge(session, proxies[0]))[1]["purged"] == 1
    assert [(await ask(client, "x")).cache for client in (*clients, *strangers)] == ["MISS", "HIT"]
    assert {key.partition(b":")[0] for key in redis.cli("KEYS", "*")} == {b"here", b"there"}
    assert (await purge(session, others[0]))[1]["purged"] == 1
    assert (await ask(clients[0], "x")).cache == "HIT"
