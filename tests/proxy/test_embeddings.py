"""Embeddings by item: what is known is not asked again, and what comes back is what the backend would have said."""

import asyncio
import json
import time

import pytest

from cacheproxy.engine import batch, keeper
from cacheproxy.engine.aside import aside
from tests.rig import Client, until

PATH = "/v1/embeddings"


def vector(text: str) -> list[float]:
    return [len(text) + 0.5, float(sum(text.encode()) % 97), -1e-07]


async def embed(exchange) -> None:
    """An embedding backend that counts a token for each letter."""
    asked = exchange.seen.json
    given = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
    base64 = asked.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": i, "embedding": "AACAPwAAgD8=" if base64 else vector(text)}
        for i, text in enumerate(given)
    ]
    tokens = sum(map(len, given))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    await exchange.json({"object": "list", "data": data, "model": asked["model"], "usage": usage})


@pytest.fixture
def embedder(backend):
    backend.script = embed
    return backend


def asked(backend) -> int:
    """How many times the backend was asked to embed."""
    return sum(seen.target == PATH.encode() for seen in backend.seen)


async def ask(client: Client, given, **more):
    return await client.send({"model": "e", "input": given, **more}, path=PATH)


def told(answer) -> tuple[list, int]:
    assert [item["index"] for item in answer.json["data"]] == [*range(len(answer.json["data"]))]
    return [item["embedding"] for item in answer.json["data"]], answer.json["usage"]["total_tokens"]


async def test_only_what_is_missing_is_asked(client, embedder):
    """B13: known inputs come from the cache, in the order asked, with the usage of all."""
    await ask(client, "aa")
    answer = await ask(client, ["b", "aa", "ccc"])
    assert (answer.cache, answer.get("x-cache-reason")) == ("MISS", "partly_stored")
    assert "fwd=partial; stored" in answer.get("cache-status")
    assert embedder.seen[-1].json["input"] == ["b", "ccc"]
    assert told(answer) == ([vector("b"), vector("aa"), vector("ccc")], 6)
    again = await ask(client, ["ccc", "b", "aa", "b"])
    assert (again.cache, told(again)) == ("HIT", ([vector(t) for t in ("ccc", "b", "aa", "b")], 7))
    assert asked(embedder) == 2


async def test_a_batch_is_known_item_by_item(client, embedder):
    """What came in one batch is found alone, and the reverse; a list of one is the one."""
    await ask(client, ["one", "three"])
    for given, tokens in (("three", 5), (["one"], 3), (["three", "one"], 8)):
        answer = await ask(client, given)
        texts = [given] if isinstance(given, str) else given
        assert (answer.cache, told(answer)) == ("HIT", ([vector(t) for t in texts], tokens))
    assert asked(embedder) == 1


async def test_each_encoding_is_answered_in_its_own(client, embedder):
    """B13: absent is float; base64 is never made of floats, nor the reverse."""
    await ask(client, "x")
    assert (await ask(client, ["x"], encoding_format="float")).cache == "HIT"
    for given in ("x", ["x"]):
        answer = await ask(client, given, encoding_format="base64")
        assert answer.json["data"][0]["embedding"] == "AACAPwAAgD8="
    assert (answer.cache, asked(embedder)) == ("HIT", 2)


@pytest.mark.parametrize("change", [{"dimensions": 2}, {"model": "f"}, {"input": "X"}, {"x_future": 1}])
async def test_what_changes_a_vector_is_another_question(client, embedder, change):
    await ask(client, "x")
    assert (await client.send({"model": "e", "input": "x", **change}, path=PATH)).cache == "MISS"
    assert asked(embedder) == 2


async def test_an_error_for_the_rest_passes_as_it_is(client, embedder):
    """The backend's own word on what was missing, and nothing of it is kept."""
    await ask(client, "a")

    async def refuse(exchange) -> None:
        await exchange.json({"error": {"message": "too long", "code": "x"}}, status="400 Bad Request")

    embedder.script = refuse
    answer = await ask(client, ["a", "b"])
    assert (answer.status, answer.json["error"]["message"]) == (400, "too long")
    embedder.script = embed
    assert (await ask(client, ["a", "b"])).cache == "MISS"


async def test_half_an_answer_for_the_rest_leads_to_the_whole_question(client, embedder):
    """What came for the missing ones does not fit: the backend is asked for all, as if nothing were known."""
    await ask(client, "a")

    async def short(exchange) -> None:
        embedder.script = embed
        await exchange.json({"object": "list", "data": [], "model": "e", "usage": {"total_tokens": 1}})

    embedder.script = short
    answer = await ask(client, ["a", "b", "c"])
    assert told(answer) == ([vector("a"), vector("b"), vector("c")], 3)
    assert [s.json["input"] for s in embedder.seen] == ["a", ["b", "c"], ["a", "b", "c"]]


async def test_items_are_never_shared_between_credentials(client, embedder):
    """B30."""
    await ask(client, ["a", "b"])
    body = json.dumps({"model": "e", "input": ["a", "b"]}).encode()
    assert (await client.send(body, path=PATH, key="B")).cache == "MISS"


async def test_a_batch_can_be_refused_unless_it_is_known(client, embedder):
    await ask(client, "a")
    refused = await client.send({"model": "e", "input": ["a", "b"]}, path=PATH, Cache_Control="only-if-cached")
    assert (refused.status, refused.json["error"]["code"]) == (504, "cache_miss")
    known = await client.send({"model": "e", "input": ["a", "a"]}, path=PATH, Cache_Control="only-if-cached")
    assert (known.cache, told(known)[1]) == ("HIT", 2)


@pytest.mark.parametrize("known", [[], ["a"]], ids=["none is known", "one is known"])
async def test_a_part_of_a_batch_proves_no_later_acceptance_than_its_whole(clock, proxy, client, embedder, known):
    """CONTRACT 6.5: each part costs its share of the time, but was asked for when the batch was; a refusal while the
    batch was computed is later than that."""
    computing, go_on = asyncio.Event(), asyncio.Event()

    async def slow(exchange) -> None:
        computing.set()
        await go_on.wait()
        await embed(exchange)

    for text in known:
        await ask(client, text)
    old = {*proxy.house.store._entries}
    embedder.script = slow
    asking = asyncio.create_task(ask(client, ["a", "b", "c", "d"]))
    await computing.wait()
    asked_at, began = clock.time, time.monotonic()
    clock.time += 10
    await until(lambda: time.monotonic() > began + 0.05, what="some time of the batch")
    go_on.set()
    assert (await asking).status == 200
    took = time.monotonic() - began
    kept = [entry for name, entry in proxy.house.store._entries.items() if name not in old]
    assert [entry.asked_at for entry in kept] == [asked_at] * (4 - len(known))
    assert all(0.05 / 4 <= entry.took < took for entry in kept)


@pytest.mark.parametrize(("known", "number"), [([], 0), ([], 1), (["a"], 0), (["a"], 1), (["a"], 2)])
async def test_a_caller_that_leaves_while_a_batch_is_worked_on(proxy, client, embedder, monkeypatch, known, number):
    """At each piece of work beside the loop: nothing goes on, nothing is half kept, and the next caller is answered."""
    at, go, count = asyncio.Event(), asyncio.Event(), 0

    async def held(size, work):
        nonlocal count
        count += 1
        if count == number + 1:
            at.set()
            await go.wait()
        return await aside(size, work)

    for text in known:
        await ask(client, text)
    before = proxy.house.store.census().entries
    monkeypatch.setattr(keeper, "aside", held)
    monkeypatch.setattr(batch, "aside", held)
    asking = asyncio.create_task(ask(client, ["a", "b", "c"]))
    await at.wait()
    asking.cancel()
    await until(lambda: proxy.house.proxy.running == 0)
    go.set()
    assert proxy.house.store.census().entries == before
    assert proxy.house.engine.budget.held == 0
    monkeypatch.undo()
    whole = await ask(client, ["a", "b", "c"])
    assert (whole.status, whole.cache) == (200, "MISS")
    assert (await ask(client, ["a", "b", "c"])).cache == "HIT"
