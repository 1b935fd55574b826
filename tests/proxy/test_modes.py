"""What the configuration says about the exact layer: its modes, the table of rules, scopes, the key's deny-list."""

import json

import pytest

from tests.fakes.backend import Numbered, completion, gives
from tests.proxy.test_responses import respond
from tests.rig import BODY, Client


@pytest.fixture
def numbered(backend):
    backend.script = Numbered()
    return backend


async def twice(proxy, session, **fields):
    client = Client(proxy.base, session)
    return [await client.chat(**fields) for _ in range(2)]


@pytest.mark.parametrize(
    ("mode", "seen"),
    [
        ("on", [("MISS", "absent"), ("HIT", None)]), ("off", [("BYPASS", "cache_off")] * 2),
        ("opt-in", [("BYPASS", "not_opted_in")] * 2), ("read-only", [("MISS", "read_only")] * 2),
        ("write-only", [("MISS", "write_only")] * 2), ("shadow", [("MISS", "absent"), ("SHADOW", "shadow")]),
    ],
)  # fmt: skip
async def test_modes(start, session, numbered, mode, seen):
    proxy = await start(exact__mode=mode)
    answers = await twice(proxy, session)
    assert [(a.cache, a.get("x-cache-reason")) for a in answers] == seen
    kept = 0 if mode in ("off", "opt-in", "read-only") else 1
    assert proxy.house.store.census().entries == kept


@pytest.mark.parametrize("wish", [{"X_Cache_TTL": "60"}, {"X_Cache_Namespace": "n"}, {"cache": {"use-cache": True}}])
async def test_opt_in_serves_who_asks(start, session, numbered, wish):
    answers = await twice(await start(exact__mode="opt-in"), session, **wish)
    assert [a.cache for a in answers] == ["MISS", "HIT"]


async def test_shadow_compares(start, session, backend):
    """Never served; same and different are counted."""
    proxy = await start(exact__mode="shadow")
    for text in ("A", "A", "B"):
        backend.script = gives(completion(text))
        answer = await Client(proxy.base, session).chat()
        assert answer.text == text
    assert proxy.house.telemetry.summary()["shadow"] == {"same": 1, "different": 1}


RULES = [
    {"match": {"path": "/v1/completions"}, "set": {"exact": "off"}},
    {"match": {"model": "live-*"}, "set": {"exact": False}},
    {"match": {"header": {"X-App": "bot*"}}, "set": {"ttl": "5s", "tags": ["bots"]}},
    {"match": {"tag": ["faq"]}, "set": {"ttl": "7s", "kb": "handbook@3"}},
    {"match": {"key_group": "team"}, "set": {"scope": "tenant"}},
]


@pytest.fixture
async def ruled(start, numbered):
    return await start(rules=RULES, access__key_groups=[{"name": "team", "keys": ["T1", "T2"]}])


async def test_rules_switch_off(ruled, session, numbered):
    client = Client(ruled.base, session)
    for change, state in (({"model": "live-1"}, "BYPASS"), ({"model": "alive-1"}, "MISS")):
        assert (await client.chat(**change)).cache == state
    assert (await client.send({"model": "m", "prompt": "x"}, path="/v1/completions")).cache == "BYPASS"


async def test_rules_settle_lifetime_and_labels(ruled, session, numbered):
    client = Client(ruled.base, session)
    for headers, ttl, tags in (({"X_App": "bot7"}, 5, {"bots"}), ({"X_Cache_Tags": "faq, b%2Cc"}, 7, {"faq", "b,c"})):
        await client.chat(**headers)
        hit = await client.chat(**headers)
        assert hit.cache == "HIT"
        assert int(hit.get("cache-status").split("ttl=")[1].split(";")[0]) <= ttl * 1.1
        assert tags in [set(e.tags) for e in ruled.house.store._entries.values()]


async def test_a_key_group_shares_and_others_do_not(ruled, session, numbered):
    """B30: only who is in the group on our side; each member's credential is proven by the backend."""
    client = Client(ruled.base, session)
    assert (await client.chat(key="T1")).cache == "MISS"
    assert (await client.chat(key="T2")).cache == "HIT"
    assert [(await client.chat(key=key)).cache for key in ("T3", "T4")] == ["MISS", "MISS"]
    assert (await client.chat(key="T2", OpenAI_Organization="o")).cache == "MISS"


async def test_shared_scope_needs_an_accepted_credential(start, session, backend):
    """CONTRACT 6.5 in the widest scope: who is refused by the backend gets nothing of what others asked."""
    proxy = await start(access__scope="shared")
    client = Client(proxy.base, session)
    backend.script = Numbered()
    assert (await client.chat(key="A")).cache == "MISS"
    assert (await client.chat(key="B")).cache == "HIT"
    backend.script = gives({"error": {"message": "no"}}, status="401 Unauthorized")
    refused = await client.chat(key="C")
    assert (refused.status, refused.get("x-cache-reason")) == (401, "status")


async def test_volatile_parts_are_no_part_of_the_key(start, session, numbered):
    proxy = await start(
        exact__volatile_fields=["/x_run/id", "/messages/*/id"], exact__volatile_headers=["X-Run"],
        exact__ignore_fields=["/stream", "/stream_options"],
    )  # fmt: skip
    client = Client(proxy.base, session)

    def body(number: int, **more) -> dict:
        messages = [{**message, "id": f"m{number}"} for message in BODY["messages"]]
        return {"model": "m", "messages": messages, "x_run": {"id": number, "kind": "a"}, **more}

    assert (await client.send(body(1), X_Run="1")).cache == "MISS"
    assert (await client.send(body(2), X_Run="2")).cache == "HIT"
    assert (await client.send({**body(2), "x_run": {"id": 2, "kind": "b"}})).cache == "MISS"
    assert (await client.send(body(2, user="u"))).cache == "MISS", "the list was replaced by one without it"
    assert numbered.seen[0].json == body(1), "the forwarded request keeps them"


async def test_variants_are_served_in_turn(start, session, numbered):
    """Up to so many different answers; then each in its turn. A request that wants no diversity gets none."""
    proxy = await start(exact__variants=3)
    client = Client(proxy.base, session)
    texts = [(await client.chat()).text for _ in range(7)]
    assert texts == ["answer 1", "answer 2", "answer 3"] * 2 + ["answer 1"]
    steady = [(await client.chat(temperature=0)).cache for _ in range(3)]
    assert steady == ["MISS", "HIT", "HIT"]


async def test_variants_end_where_the_backend_repeats_itself(start, session, backend):
    backend.script = gives(completion("Same."))
    proxy = await start(exact__variants=3)
    client = Client(proxy.base, session)
    answers = [await client.chat() for _ in range(5)]
    assert [a.cache for a in answers] == ["MISS", "MISS", "HIT", "HIT", "HIT"]
    assert answers[1].get("x-cache-reason") == "same_answer"


async def test_savings_are_added_up(start, session, backend):
    proxy = await start(savings__prices=[{"model": "m*", "prompt": 1_000_000, "completion": 2_000_000}])
    backend.script = gives(completion())
    client = Client(proxy.base, session)
    for _ in range(3):
        await client.chat()
    usage = completion()["usage"]
    stats = json.loads(await client_get(session, proxy.admin + "/admin/stats"))["savings"]
    prompt, said = 2 * usage["prompt_tokens"], 2 * usage["completion_tokens"]
    assert (stats["hits"], stats["prompt_tokens"], stats["completion_tokens"]) == (2, prompt, said)
    assert (stats["money"], stats["currency"]) == (prompt + 2 * said, "USD")
    assert stats["seconds"] > 0
    assert stats["entries"][0]["entry_id"] == (await client.chat()).get("x-cache-entry-id")


async def client_get(session, url: str) -> bytes:
    async with session.get(url) as answer:
        return await answer.read()


async def test_only_if_cached_takes_any_variant(start, session, numbered):
    """Of several answers, one that is there: the turn of a missing one is no reason to refuse."""
    client = Client((await start(exact__variants=3)).base, session)
    await client.chat()
    answers = [await client.chat(Cache_Control="only-if-cached") for _ in range(4)]
    assert [(a.status, a.text) for a in answers] == [(200, "answer 1")] * 4


@pytest.mark.parametrize("scope", ["shared", "tenant"])
async def test_what_is_the_callers_own_is_shared_in_no_scope(start, session, backend, scope):
    """The models that one may use, and an answer that the backend stores under one's account."""
    proxy = await start(access__scope=scope, access__key_groups=[{"name": "t", "keys": ["A", "B"]}])
    client = Client(proxy.base, session)
    backend.script = gives({"object": "list", "data": []})
    states = [(await client.send(method="GET", path="/v1/models", key=k)).cache for k in ("A", "B", "A", "B")]
    assert states == ["MISS", "MISS", "HIT", "HIT"]
    backend.script = respond
    for store, expected in ((None, ["MISS", "MISS"]), (False, ["MISS", "HIT"])):
        body = {"model": "m", "input": "x", **({} if store is None else {"store": store})}
        assert [(await client.send(body, path="/v1/responses", key=k)).cache for k in ("A", "B")] == expected


async def test_hidden_hits_are_not_told_by_their_coding(start, session, backend):
    """A backend that packs nothing: no answer is packed, hit or miss."""
    backend.script = gives(completion("long " * 1000))
    client = Client((await start(access__hide_hits=True)).base, session)
    answers = [await client.chat(Accept_Encoding="gzip") for _ in range(2)]
    assert [(a.get("content-encoding"), a.all("vary")) for a in answers] == [(None, ["Authorization"])] * 2
    assert backend.calls == 1


@pytest.mark.parametrize("field", [{"stream": True}, {"stream_options": {"a": 1}}])
async def test_where_nothing_is_streamed_the_field_is_part_of_the_key(client, backend, field):
    """What a backend means by it is its own affair."""
    backend.script = gives({"results": [{"index": 0, "relevance_score": 1.0}]})
    body = {"model": "m", "query": "q", "documents": ["a"]}
    assert (await client.send(body, path="/v1/rerank")).cache == "MISS"
    assert (await client.send({**body, **field}, path="/v1/rerank")).cache == "MISS"
