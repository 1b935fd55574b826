"""What the backend says it had of its prompts in its own cache is counted: once an answer, whichever way it takes."""

import asyncio
import json
from typing import Any

import pytest

from cacheproxy.core import coding
from cacheproxy.core.model import Endpoint
from cacheproxy.engine.exchange import _pass_on
from cacheproxy.engine.ledger import Ledger
from cacheproxy.engine.passage import Passage
from cacheproxy.engine.prefixed import Prefix
from tests import rig
from tests.fakes.backend import Exchange, chunk, completion, event, gives, plain, reset, usage_chunk
from tests.proxy.test_counts import counted, is_quiet

SYSTEM = "You are a helpful assistant of the sort that answers in few words."
RESPONSES = "/v1/responses"


def asked(number: int = 0, system: str = SYSTEM) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": f"Question {number}?"}]
    return {"model": "m", "messages": messages}


def usage(prompt: int = 100, cached: int | None = 60) -> dict[str, Any]:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": 2, "total_tokens": prompt + 2, **details}}


class Telling:
    """A script: a healthy backend that says so much of every prompt was cached, streams only if asked for usage."""

    def __init__(self, prompt: int = 100, cached: int | None = 60) -> None:
        self.said = usage(prompt, cached)

    async def __call__(self, exchange: Exchange) -> None:
        if b"completions" not in exchange.seen.target:
            await plain(exchange)
            return
        wants = exchange.seen.json
        if not wants.get("stream"):
            await exchange.json(completion(**self.said))
            return
        told = (wants.get("stream_options") or {}).get("include_usage")
        pieces = [chunk({"role": "assistant", "content": "Hi."}), chunk(finish="stop")]
        await exchange.events(*pieces, *([usage_chunk(**self.said)] if told else []))


def sums(proxy: rig.InProcess) -> tuple[float, float]:
    """Tokens of prompts, and of those the cached ones; the counters and the summary agree."""
    prompt, cached = (sum(counted(proxy, f"upstream_{kind}_tokens").values()) for kind in ("prompt", "cached"))
    told = proxy.house.telemetry.summary()["prefix"]
    assert (told["prompt_tokens"], told["cached_tokens"]) == (prompt, cached)
    assert told["hit_share"] == (cached / prompt if prompt else None)
    return prompt, cached


def starts(proxy: rig.InProcess) -> int:
    """How many times to first token were noted."""
    [metric] = [m for m in proxy.house.telemetry.registry.collect() if m.name == "cacheproxy_upstream_ttft_seconds"]
    return int(sum(s.value for s in metric.samples if s.name.endswith("_count")))


async def test_every_way_to_the_backend_is_counted_once(client, proxy, backend):
    """Kept, passed by, streamed with and without anyone's asking for the usage; a hit is nothing to the backend."""
    backend.script = Telling()
    assert sums(proxy) == (0, 0)
    count = 0
    ways = (
        {}, {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}},
        {"Cache_Control": "no-store"}, {"Cache_Control": "no-cache"}, {"n": 2, "temperature": 0.5},
        {"stream": True, "stream_options": {"include_usage": True}, "Cache_Control": "no-store"},
    )  # fmt: skip
    for number, way in enumerate(ways):
        answer = await client.chat(asked(number), **way)
        assert answer.status == 200
        count += 1
        assert sums(proxy) == (100 * count, 60 * count), way
    assert (await client.chat(asked(0))).cache == "HIT"
    assert (await client.chat(asked(1), stream=True)).cache == "HIT"
    assert sums(proxy) == (100 * count, 60 * count)
    assert starts(proxy) == 3


async def test_a_stream_passed_by_without_usage_counts_nothing(client, proxy, backend):
    backend.script = Telling()
    assert (await client.chat(asked(), stream=True, Cache_Control="no-store")).status == 200
    assert sums(proxy) == (0, 0)
    assert starts(proxy) == 1


@pytest.mark.parametrize(
    "values", [{"exact__mode": "off"}, {"exact__mode": "shadow"}, {"stream__ask_usage": False}], ids=str
)
async def test_whatever_is_stored(start, session, backend, values):
    proxy = await start(**values)
    backend.script = Telling()
    client = rig.Client(proxy.base, session)
    for number in range(2):
        await client.chat(asked(number))
        await client.chat(asked(number), stream=True, stream_options={"include_usage": True})
    await is_quiet(proxy)
    assert sums(proxy) == (100 * backend.calls, 60 * backend.calls)
    assert backend.calls >= 2


async def test_what_rules_changed_is_counted_apart(start, session, backend):
    proxy = await start()
    backend.script = Telling()
    client = rig.Client(proxy.base, session)
    await client.chat(asked(1))
    backend.script = Telling(200, 0)
    await client.chat(asked(2, SYSTEM.replace(" ", "\r\n")))
    by_label = {labels[-1]: value for labels, value in counted(proxy, "upstream_prompt_tokens").items()}
    assert by_label == {"no": 100, "yes": 200}
    assert {labels[-1]: value for labels, value in counted(proxy, "upstream_cached_tokens").items()} == {"no": 60}


async def test_the_responses_operation(client, proxy, backend):
    told = {"input_tokens": 80, "input_tokens_details": {"cached_tokens": 64}, "output_tokens": 1, "total_tokens": 81}
    part = {"type": "output_text", "text": "Hi.", "annotations": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    done = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "output": [item],
        "usage": told,
    }
    body = {"model": "m", "instructions": SYSTEM, "input": "Question?", "store": False}
    backend.script = gives(done)
    await client.send(body, path=RESPONSES)
    assert sums(proxy) == (80, 64)

    async def streamed(exchange: Exchange) -> None:
        await exchange.events(event({"type": "response.created", "response": {**done, "usage": None}}),
                              event({"type": "response.completed", "response": done}), done=False)  # fmt: skip

    backend.script = streamed
    await client.send({**body, "input": "Another?", "stream": True}, path=RESPONSES)
    assert sums(proxy) == (160, 128)
    assert starts(proxy) == 1


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/completions", "/other"])
async def test_other_operations_have_no_prefix(client, proxy, backend, path):
    backend.script = gives({"data": [{"index": 0, "embedding": [1.0]}], "choices": [], **usage()})
    await client.send({"model": "m", "input": "x", "prompt": "x"}, path=path)
    assert sums(proxy) == (0, 0)


@pytest.mark.parametrize("status", ["400 No", "500 No", "429 No"])
async def test_a_refusal_is_no_answer(client, proxy, backend, status):
    backend.script = gives({"error": {"message": "no"}, **usage()}, status)
    await client.chat(asked())
    await client.chat(asked(), Cache_Control="no-store")
    assert sums(proxy) == (0, 0)


async def test_a_backend_that_does_not_say_is_not_counted(client, proxy, backend):
    """Prompts alone would make the share too small."""
    backend.script = Telling(cached=None)
    for number in range(3):
        await client.chat(asked(number))
    assert sums(proxy) == (0, 0)


async def test_who_says_it_only_where_it_is_something_said_nothing_by_silence(client, proxy, backend):
    """vLLM and SGLang leave the details out where nothing was cached: from a model whose backend has said it once,
    silence is 0. Of another model nothing is known."""
    backend.script = Telling()
    await client.chat(asked(1))
    backend.script = Telling(cached=None)
    await client.chat(asked(2))
    assert sums(proxy) == (200, 60)
    await client.chat(asked(3), stream=True)
    assert sums(proxy) == (300, 60)
    await client.chat(asked(4), model="another")
    assert sums(proxy) == (300, 60)


class Whole:
    """A reply whose body comes in one piece, its end with it."""

    status, fields, ended = 200, ((b"Content-Type", b"application/json"),), False

    async def read(self) -> bytes:
        assert not self.ended
        self.ended = True
        return json.dumps(completion(**usage())).encode()

    def close(self) -> None:
        self.closed = True


async def test_what_passes_by_is_counted_before_its_last_piece_leaves(proxy):
    """Who has all of the answer may leave at once, and finds it counted."""
    house, reply = proxy.house, Whole()
    account = Ledger(house.engine.families, house.telemetry, house.clock).open(
        Prefix(Endpoint.CHAT, asked(), (), b"s" * 16, "m")
    )
    account.heard(reply)
    body = _pass_on(reply, Passage((), reply.fields), account)
    await anext(body)
    assert sums(proxy) == (0, 0)
    await anext(body)
    assert sums(proxy) == (100, 60)
    await body.aclose()
    assert (reply.closed, sums(proxy)) == (True, (100, 60))


async def test_a_body_that_ends_with_its_connection_is_whole(client, proxy, backend):
    backend.script = Telling()
    await client.chat(asked(1))

    async def closing(exchange: Exchange) -> None:
        await exchange.head(Content_Type="application/json", Connection="close")
        await exchange.send(json.dumps(completion(**usage(cached=None))).encode())
        exchange.close = True

    backend.script = closing
    for number, control in enumerate(({}, {"Cache_Control": "no-store"}), 1):
        assert (await client.chat(asked(2), **control)).status == 200
        await is_quiet(proxy)
        assert sums(proxy) == (100 + 100 * number, 60)


async def test_silence_of_a_stream_that_breaks_off_is_not_zero(client, proxy, backend):
    """Some say the prompt's length with every chunk, and only at the end what was cached."""
    backend.script = Telling()
    await client.chat(asked(1))

    async def broken(exchange: Exchange) -> None:
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        await exchange.chunk(chunk({"content": "a"}, **usage(cached=None)))
        reset(exchange.writer)
        exchange.close = True

    backend.script = broken
    for control in ({}, {"Cache_Control": "no-store"}):
        with pytest.raises(Exception):  # noqa: B017 - the client's own word for a cut body
            await client.chat(asked(2), stream=True, **control)
    await is_quiet(proxy)
    assert sums(proxy) == (100, 60)


@pytest.mark.parametrize("control", [{}, {"Cache_Control": "no-store"}], ids=["kept", "passed-by"])
@pytest.mark.parametrize("told", [False, True], ids=["before", "after"])
async def test_a_caller_that_leaves(client, proxy, backend, control, told):
    """In mid-stream: what had been said is counted, what had not is not; nothing is left open."""
    backend.script = Telling()
    await client.chat(asked(1))

    async def hanging(exchange: Exchange) -> None:
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        said = usage() if told else usage(cached=None)
        await exchange.chunk(chunk({"content": "a"}, **said))
        await exchange.gone()

    backend.script = hanging
    task = asyncio.create_task(client.chat(asked(2), stream=True, **control))
    await rig.until(lambda: starts(proxy) == 1)
    task.cancel()
    await rig.until(lambda: backend.open == 0, 2, "the end of the backend call")
    await is_quiet(proxy)
    assert sums(proxy) == ((200, 120) if told else (100, 60))


async def test_a_caller_that_leaves_at_the_terminal_event(client, proxy, backend):
    """The rest is read in the background; it is counted, and once."""
    going = asyncio.Event()

    async def late(exchange: Exchange) -> None:
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        for piece in (chunk({"content": "a"}), chunk(finish="stop"), usage_chunk(**usage()), b"data: [DONE]\n\n"):
            await exchange.chunk(piece)
        await going.wait()
        await exchange.end()

    backend.script = late
    async with client.session.post(
        client.base + rig.CHAT, json={**asked(), "stream": True}, headers={"Authorization": "Bearer A"}
    ) as answer:
        async for line in answer.content:
            if b"[DONE]" in line:
                break
    flights = proxy.house.engine.flights
    await rig.until(lambda: flights.running == 1 and not flights.waiting, what="the background reading")
    going.set()
    await is_quiet(proxy)
    assert sums(proxy) == (100, 60)
    assert (await client.chat(asked(), stream=True)).cache == "HIT"


async def test_an_answer_too_large_to_be_kept_is_counted(start, session, backend):
    proxy = await start(limits__answer_bytes=20_000)
    client = rig.Client(proxy.base, session)
    backend.script = gives(completion("long " * 100_000, **usage()))
    assert (await client.chat(asked())).status == 200
    assert sums(proxy) == (100, 60)


@pytest.mark.parametrize("name", ["gzip", "zstd"])
@pytest.mark.parametrize("control", [{}, {"Cache_Control": "no-store"}], ids=["kept", "passed-by"])
async def test_a_packed_answer_is_counted(client, proxy, backend, name, control):
    packed = coding.pack(json.dumps(completion("Hello. " * 5000, **usage())).encode(), name.encode())
    backend.script = gives(packed, extra=b"Content-Encoding: %b\r\n" % name.encode())
    answer = await client.chat(asked(), Accept_Encoding=name, **control)
    assert answer.body == packed
    assert sums(proxy) == (100, 60)


async def test_a_refresh_is_counted(clock, start, session, backend):
    proxy = await start(exact__stale_while_revalidate=30)
    client = rig.Client(proxy.base, session)
    backend.script = Telling()
    await client.chat(asked(), X_Cache_TTL="60")
    clock.time += 75
    assert (await client.chat(asked(), X_Cache_TTL="60")).cache == "STALE"
    await is_quiet(proxy)
    assert (sums(proxy), backend.calls) == ((200, 120), 2)
    clock.time += 75
    backend.script = Telling(cached=None)
    assert (await client.chat(asked())).cache == "STALE"
    await is_quiet(proxy)
    assert (sums(proxy), backend.calls) == ((300, 120), 3)


async def test_a_failed_answer_in_whose_place_a_stored_one_is_served(clock, start, session, backend):
    proxy = await start(exact__stale_if_error=300)
    client = rig.Client(proxy.base, session)
    backend.script = Telling()
    await client.chat(asked(), X_Cache_TTL="10")
    clock.time += 20
    backend.script = gives({"error": {"message": "no"}, **usage()}, "503 No")
    assert (await client.chat(asked())).cache == "STALE"
    assert sums(proxy) == (100, 60)


async def test_the_time_to_first_token_ends_at_the_first_bytes_of_the_body(client, proxy, backend):
    going, more = asyncio.Event(), asyncio.Event()

    async def slow(exchange: Exchange) -> None:
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        await going.wait()
        await exchange.chunk(chunk({"content": "a"}))
        await more.wait()
        await exchange.chunk(chunk(finish="stop"))
        await exchange.chunk(b"data: [DONE]\n\n")
        await exchange.end()

    backend.script = slow
    task = asyncio.create_task(client.chat(asked(), stream=True))
    await rig.until(lambda: backend.calls == 1)
    await asyncio.sleep(0.05)
    assert starts(proxy) == 0
    going.set()
    await rig.until(lambda: starts(proxy) == 1)
    more.set()
    await task
    assert starts(proxy) == 1
    [metric] = [m for m in proxy.house.telemetry.registry.collect() if m.name == "cacheproxy_upstream_ttft_seconds"]
    assert 0.05 <= sum(s.value for s in metric.samples if s.name.endswith("_sum")) < 30


async def test_labels_of_families_are_bounded(client, proxy, backend):
    """A thousand prompts are at most 20 families and the rest."""
    backend.script = Telling()
    for number in range(30):
        text = "".join(chr(97 + (number * 7 + i * i) % 26) for i in range(400))
        await client.chat(asked(number, f"{number} {text}"))
    labels = {labels[0] for labels in counted(proxy, "upstream_prompt_tokens")}
    assert len(labels) == 21
    assert "other" in labels
    assert not any(SYSTEM[:5] in label for label in labels)
    assert sums(proxy) == (3000, 1800)
