"""Limits on how many tokens a key may have the backend spend: what an answer costs is counted when it has ended, however
it ends."""

import asyncio
import json
import time

import pytest

from tests.fakes.backend import chunk, gives, plain, streams, usage_chunk
from tests.proxy.limited import ask, clock, left, told
from tests.redis_fixtures import redis, redis_server
from tests.rig import BODY, CHAT, until

__all__ = ["ask", "clock", "redis", "redis_server"]

SPOKEN = [chunk({"role": "assistant", "content": "Hel"}), chunk({"content": "lo."}), chunk(finish="stop")]


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("headers", [{}, {"Cache_Control": "no-store"}], ids=["kept", "passed"])
@pytest.mark.parametrize("wants", [False, True], ids=["silent", "usage"])
async def test_tokens_are_counted_as_the_backend_states_them_whoever_asked_for_that(ask, headers, stream, wants):
    """The scripted backend says 5 and 2; a stream's usage only if it is asked."""
    client = await ask(rates__tokens_per_minute=1000)
    fields = {"stream": True, **({"stream_options": {"include_usage": True}} if wants else {})} if stream else {}
    answer = await client.chat(**fields, **headers)
    assert told(answer) == {"limit-tokens": "1000", "remaining-tokens": "1000", "reset-tokens": "0s"}
    assert answer.text == "Hello."
    if stream:
        assert any(document.get("usage") for document in answer.documents) is wants
        assert answer.events[-1] == b"[DONE]"
    assert await left(client) == 993


async def test_a_stream_that_passes_is_the_backends_byte_for_byte_where_tokens_are_not_limited(ask, backend):
    client = await ask(rates__requests_per_minute=10)
    answer = await client.chat(stream=True, Cache_Control="no-store")
    assert "stream_options" not in backend.seen[-1].json
    assert answer.get("content-type") == "text/event-stream; charset=utf-8"


async def test_a_request_is_let_through_while_any_tokens_are_left(ask, backend, clock):
    client = await ask(rates__tokens_per_minute=10)
    assert told(await client.chat(seed=1))["remaining-tokens"] == "10"
    assert told(await client.chat(seed=2))["remaining-tokens"] == "3"
    refused = await client.chat(seed=3)
    assert (refused.status, refused.json["error"]["type"]) == (429, "tokens")
    assert told(refused) == {"limit-tokens": "10", "remaining-tokens": "0", "reset-tokens": "1m0s"}
    assert (await client.chat(seed=1)).cache == "HIT"
    clock.moved += int(refused.get("retry-after"))
    assert (await client.chat(seed=3)).status == 200


async def test_an_embedding_costs_what_the_backend_says_also_where_a_part_of_it_was_stored(ask, backend):
    async def embed(exchange) -> None:
        if b"embeddings" not in exchange.seen.target:
            await plain(exchange)
            return
        given = exchange.seen.json["input"]
        given = [given] if isinstance(given, str) else given
        data = [{"object": "embedding", "index": i, "embedding": [0.5]} for i in range(len(given))]
        usage = {"prompt_tokens": 10 * len(given), "total_tokens": 10 * len(given)}
        await exchange.json({"object": "list", "data": data, "model": "m", "usage": usage})

    backend.script = embed
    client = await ask(rates__tokens_per_minute=1000, rates__requests_per_minute=50)
    ask_for = {"model": "m", "encoding_format": "float"}
    assert (await client.send({**ask_for, "input": "a"}, path="/v1/embeddings")).status == 200
    part = await client.send({**ask_for, "input": ["a", "b", "c"]}, path="/v1/embeddings")
    assert (part.status, backend.seen[-1].json["input"]) == (200, ["b", "c"])
    assert told(part)["remaining-tokens"] == "990"
    assert told(part)["remaining-requests"] == "48"
    assert await left(client) == 970


async def test_what_a_stream_had_cost_when_its_caller_left_is_counted(ask, backend):
    """Some backends state the usage with every event."""
    client = await ask(rates__tokens_per_minute=1000)
    usage = {"prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42}

    async def endless(exchange) -> None:
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        await exchange.chunk(chunk({"role": "assistant", "content": "Hel"}, usage=usage))
        await exchange.gone()

    backend.script = endless
    for headers in ({}, {"Cache-Control": "no-store"}):
        backend.left.clear()
        async with client.session.post(
            client.base + CHAT, data=json.dumps({**BODY, "stream": True}),
            headers={"Authorization": "Bearer A", "Content-Type": "application/json", **headers},
        ) as answer:  # fmt: skip
            await answer.content.readany()
        await asyncio.wait_for(backend.left.wait(), 10)
    backend.script = plain
    assert await left(client) == 1000 - 2 * 42


async def test_what_a_stream_had_cost_when_it_was_cut_is_counted(ask, backend):
    client = await ask(rates__tokens_per_minute=1000)

    async def cut(exchange) -> None:
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        await exchange.chunk(SPOKEN[0])
        await exchange.chunk(usage_chunk())
        exchange.cut()

    backend.script = cut
    with pytest.raises(Exception):  # noqa: B017 - as the client says it
        await client.chat(stream=True)
    backend.script = plain
    assert await left(client) == 993


async def test_what_is_no_usage_costs_nothing(ask, backend):
    client = await ask(rates__tokens_per_minute=1000)
    backend.script = streams(*SPOKEN)
    assert (await client.chat(stream=True)).status == 200
    backend.script = gives({"error": {"message": "no"}, "usage": {"prompt_tokens": 9}}, "400 Bad Request")
    assert (await client.chat(seed=2)).status == 400
    backend.script = plain
    assert await left(client) == 1000


@pytest.mark.redis
async def test_what_one_replica_spends_the_others_know(ask, redis):
    clients = [await ask(redis__url=redis.url, redis__timeout="5s", rates__tokens_per_minute=7) for _ in range(2)]
    await until(lambda: clients[0].house.secret == clients[1].house.secret)
    assert (await clients[0].chat(seed=1)).status == 200

    async def refused() -> bool:
        return (await clients[1].chat(seed=time.monotonic_ns())).status == 429

    await until(lambda: not clients[0].house.rates._uses and clients[0].house.rates._telling is None)
    assert await refused()
