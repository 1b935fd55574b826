"""Streams as a caller meets them: every event at once, every byte as it was, and the same again from the cache."""

import asyncio
import json
import statistics
import zlib

import pytest

from tests import rig
from tests.fakes.backend import chunk, event, plain, streams, text_chunk, text_completion, usage_chunk
from tests.proxy import wire
from tests.rig import BODY

ASKS_USAGE = {"stream_options": {"include_usage": True}}
COMPLETIONS = "/v1/completions"


def same_but_for_id_and_time(documents: list[dict]) -> list[dict]:
    return [{**d, "id": None, "created": None} for d in documents]


PACED = {
    "usage asked by us": (rig.CHAT, chunk, {}, b""),
    "usage asked by the caller": (rig.CHAT, chunk, ASKS_USAGE, b""),
    "completions": (COMPLETIONS, lambda delta: text_chunk(delta["content"]), {}, b""),
    "compressed": (rig.CHAT, chunk, {}, b"Content-Encoding: gzip\r\n"),
    "not looked up": (rig.CHAT, chunk, {"cache": {"no-store": True}}, b""),
    "other path": ("/v1/other", chunk, {}, b""),
}


@pytest.mark.parametrize("case", PACED)
async def test_each_event_is_received_before_the_next_is_sent(proxy, backend, case):
    """B18, B28: no event waits for another; half of them are through within 20 ms."""
    path, make, fields, coding = PACED[case]
    loop = asyncio.get_running_loop()
    received: asyncio.Queue[float] = asyncio.Queue()
    delays: list[float] = []
    squeeze = zlib.compressobj(wbits=31)

    async def paced(exchange) -> None:
        await exchange.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n" + coding + b"\r\n"
        )
        for number in range(30):
            piece = make({"content": f"<{number}>"})
            sent = loop.time()
            await exchange.chunk(squeeze.compress(piece) + squeeze.flush(zlib.Z_SYNC_FLUSH) if coding else piece)
            delays.append(await asyncio.wait_for(received.get(), 10) - sent)
        await exchange.chunk(squeeze.flush() if coding else b": the end\n\n")
        await exchange.end()

    backend.script = paced
    async with wire.dial(proxy.port) as caller:
        await caller.write(wire.request({**BODY, **fields, "stream": True}, b"Accept-Encoding: br", path=path))
        head = await caller.head()
        assert head.get(b"content-encoding") is None
        for number in range(30):
            got = b""
            while b"\n\n" not in got:
                got += await caller.chunk()
            received.put_nowait(loop.time())
            assert b"<%d>" % number in got
        while await caller.chunk():
            continue
    assert len(delays) == 30
    assert statistics.median(delays) < 0.020


async def test_stream_is_never_compressed_or_buffered(client, backend):
    """B28: also from the cache, also for a caller that takes any coding, and balancers are told not to buffer."""
    for expected in ("MISS", "HIT"):
        answer = await client.chat(stream=True, Accept_Encoding="gzip, br, zstd")
        assert answer.cache == expected
        assert answer.get("content-encoding") is None
        assert answer.all("x-accel-buffering") == ["no"]
        assert answer.text == "Hello."


RICH = [
    {"role": "assistant", "content": "", "refusal": None},
    {"reasoning_content": "Let me "},
    {"reasoning_content": "think."},
    {"content": "Hi", "x_y": {"a": [1]}},
    {"annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.example"}}]},
    {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]},
    {"refusal": "I would rather not."},
]
LOGPROBS = {"content": [{"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": []}]}
USAGE = {
    "prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14,
    "completion_tokens_details": {"reasoning_tokens": 7},
}  # fmt: skip


def rich_stream() -> list[bytes]:
    pieces = [json.loads(chunk(delta)[6:]) for delta in RICH]
    pieces[3]["choices"][0]["logprobs"] = LOGPROBS
    pieces[0]["x_top"] = "kept"
    return [*(event(p) for p in pieces), chunk(finish="tool_calls"), usage_chunk(usage=USAGE)]


async def test_replay_has_every_field(client, backend):
    """B17: the events of a HIT are those of the MISS, known fields or not, to the last detail of the usage."""
    backend.script = streams(*rich_stream())
    one = await client.chat(stream=True, **ASKS_USAGE)
    two = await client.chat(stream=True, **ASKS_USAGE)
    assert (one.cache, two.cache) == ("MISS", "HIT")
    assert event(one.documents[3]) == rich_stream()[3]
    assert same_but_for_id_and_time(two.documents) == same_but_for_id_and_time(one.documents)
    assert two.documents[-1]["usage"] == USAGE


async def test_replay_as_json_has_every_field(client, backend):
    """B17, B21: asked without a stream, the same answer is one document with all of it."""
    backend.script = streams(*rich_stream())
    await client.chat(stream=True)
    answer = await client.chat()
    assert answer.cache == "HIT"
    choice = answer.json["choices"][0]
    assert choice == {
        "index": 0,
        "message": {
            "role": "assistant", "content": "Hi", "refusal": "I would rather not.", "x_y": {"a": [1]},
            "reasoning_content": "Let me think.",
            "annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.example"}}],
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
        },
        "logprobs": LOGPROBS,
        "finish_reason": "tool_calls",
    }  # fmt: skip
    assert (answer.json["usage"], answer.json["x_top"], answer.json["object"]) == (USAGE, "kept", "chat.completion")


async def test_replay_is_a_stream(proxy, client, backend):
    """B18: 40 pieces come back as 40 events with the same text, the terminal event last and once."""
    backend.script = streams(*[chunk({"content": f"{i} "}) for i in range(40)], chunk(finish="stop"), usage_chunk())
    one = await client.chat(stream=True)
    async with wire.dial(proxy.port) as caller:
        await caller.write(wire.request({**BODY, "stream": True}))
        two = await caller.whole()
    assert (one.cache, two.get(b"x-cache"), backend.calls) == ("MISS", b"HIT", 1)
    assert (two.get(b"content-type") or b"").startswith(b"text/event-stream")
    assert two.get(b"content-length") is None
    read = rig.Answer(200, "OK", [("content-type", "text/event-stream")], two.body)
    assert read.text == one.text == "".join(f"{i} " for i in range(40))
    assert len(read.documents) == len(one.documents) == 41
    assert read.events[-1] == b"[DONE]" and two.body.count(b"[DONE]") == 1
    assert two.body.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("options", [{}, ASKS_USAGE])
async def test_events_without_choices_pass_and_are_kept(client, backend, options):
    """B20: filter results first, a control chunk between, usage last: nothing chokes on a missing choice."""
    filters = {"id": "chatcmpl-abc123", "created": 1700000000, "choices": [], "prompt_filter_results": [{"index": 0}]}
    control = {"id": "chatcmpl-abc123", "created": 1700000000, "object": "chat.completion.chunk", "note": "working"}
    nothing = {**control, "choices": None}
    pieces = [event(filters), chunk({"content": "Hi"}), event(control), event(nothing), chunk(finish="stop")]
    backend.script = streams(*pieces, *([usage_chunk()] if options else []))
    one = await client.chat(stream=True, **options)
    two = await client.chat(stream=True, **options)
    assert (one.cache, two.cache, backend.calls) == ("MISS", "HIT", 1)
    assert one.body.startswith(b"".join(pieces))
    assert same_but_for_id_and_time(two.documents) == same_but_for_id_and_time(one.documents)


MODES = [True, False, None, "absent"]


@pytest.mark.parametrize("path", [rig.CHAT, COMPLETIONS])
@pytest.mark.parametrize("second", MODES)
@pytest.mark.parametrize("first", MODES)
async def test_form_follows_the_request(client, backend, first, second, path):
    """B21: whichever way it was recorded, the second caller gets the form it asked for, well-formed and alone."""

    async def either(exchange) -> None:
        if path == rig.CHAT:
            await plain(exchange)
        elif exchange.seen.json.get("stream"):
            await exchange.events(text_chunk("Hel"), text_chunk("lo."), text_chunk(finish="stop"), usage_chunk())
        else:
            await exchange.json(text_completion("Hello."))

    backend.script = either
    body = {**BODY, "prompt": "Say hello."}
    fields = [{} if mode == "absent" else {"stream": mode} for mode in (first, second)]
    await client.send({**body, **fields[0]}, path=path)
    answer = await client.send({**body, **fields[1]}, path=path)
    assert (answer.cache, answer.text, backend.calls) == ("HIT", "Hello.", 1)
    kind = (answer.get("content-type") or "").partition(";")[0]
    if second is True:
        assert kind == "text/event-stream"
        objects = {d["object"] for d in answer.documents}
        assert objects == {"chat.completion.chunk" if path == rig.CHAT else "text_completion"}
        assert all(("delta" in c) == (path == rig.CHAT) for d in answer.documents for c in d["choices"])
    else:
        assert kind == "application/json"
        assert answer.json["object"] == ("chat.completion" if path == rig.CHAT else "text_completion")
        assert ("message" in answer.json["choices"][0]) == (path == rig.CHAT)


async def test_characters_cut_apart_come_whole(proxy, client, backend):
    """B23: a character, a field name and the terminal event that come byte by byte are none the worse for it."""
    text = "漢🙂é"
    said = event({"id": "x", "created": 1, "choices": [{"index": 0, "delta": {"content": text}}]})
    said += event({"id": "x", "created": 1, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    done = b"data: [DONE]\n\n"
    apart = said + event({"id": "x", "created": 1, "choices": [], "usage": USAGE}) + done

    async def drip(exchange) -> None:
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        for position in range(len(apart)):
            await exchange.chunk(apart[position : position + 1])
            if position + 1 < len(apart):
                await rig.until(lambda held=position: proxy.house.engine.budget.held > held)
        await exchange.end()

    backend.script = drip
    one = await client.chat(stream=True)
    two = await client.chat(stream=True)
    assert (one.cache, two.cache) == ("MISS", "HIT")
    assert one.body == said + done
    assert two.text == text
    assert two.body.decode().count("\ufffd") == 0
    assert same_but_for_id_and_time(two.documents) == same_but_for_id_and_time(one.documents)
    assert (await client.chat()).text == text


def dispatched(body: bytes) -> list[str]:
    """What a decoder makes of it that dispatches on any blank line once an id was seen, as common clients do."""
    found, data, last_id = [], [], None
    for line in body.decode().splitlines():
        if not line:
            if data or last_id is not None:
                found.append("\n".join(data))
            data = []
        elif line.startswith("id:"):
            last_id = line[3:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].strip())
    return found


async def test_comments_stay_comments(proxy, client, backend):
    """B25: a backend's keep-alive lines come at once and as they are, never as data, and are not in the replay."""
    heard = asyncio.Event()
    identified = [b"id: 7\n" + chunk({"content": "Hi"}), b"id: 8\n" + chunk(finish="stop")]

    async def waiting(exchange) -> None:
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        await exchange.chunk(b": WORKING\n\n")
        await asyncio.wait_for(heard.wait(), 10)
        for piece in [identified[0], b": STILL WORKING\n" + identified[1], b"data: [DONE]\n\n"]:
            await exchange.chunk(piece)
        await exchange.end()

    backend.script = waiting
    async with wire.dial(proxy.port) as caller:
        await caller.write(wire.request({**BODY, "stream": True}))
        await caller.head()
        assert await caller.chunk() == b": WORKING\n\n"
        heard.set()
        rest = b""
        while data := await caller.chunk():
            rest += data
    assert rest == identified[0] + b": STILL WORKING\n" + identified[1] + b"data: [DONE]\n\n"
    two = await client.chat(stream=True)
    assert (two.cache, two.text) == ("HIT", "Hi")
    assert b"WORKING" not in two.body
    assert [json.loads(d)["choices"][0]["finish_reason"] for d in dispatched(two.body)[:-1]] == [None, "stop"]
    assert dispatched(two.body)[-1] == "[DONE]"
    assert (await client.chat()).text == "Hi"


async def test_a_stream_that_does_not_tell_its_document_is_asked_anew_as_json(client, backend):
    """B21: two calls under one index are one garbled call in a document; the backend knows better."""
    called = [
        {"tool_calls": [{"index": 0, "id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
        for i in ("call_a", "call_b")
    ]
    backend.script = streams(*map(chunk, called), chunk(finish="tool_calls"), usage_chunk())
    one, two = [await client.chat(stream=True) for _ in range(2)]
    assert (one.cache, two.cache) == ("MISS", "HIT")
    assert same_but_for_id_and_time(one.documents) == same_but_for_id_and_time(two.documents)
    backend.script = plain
    answers = [await client.chat(stream=stream) for stream in (False, False, True)]
    assert [a.cache for a in answers] == ["MISS", "HIT", "HIT"]
    assert len({a.text for a in answers}) == 1
    assert backend.calls == 2
