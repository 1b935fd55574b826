"""Token usage of streams: asked for on behalf of the cache, given only to who asked, and never at the price of an
answer."""

import gzip
import json
import zlib

import pytest

from tests import rig
from tests.fakes.backend import chunk, completion, event, plain, streams, usage_chunk
from tests.proxy import wire
from tests.rig import BODY

WANTS = {"stream_options": {"include_usage": True}}
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
DONE = b"data: [DONE]\n\n"
SPOKEN = [chunk({"role": "assistant", "content": "Hel"}), chunk({"content": "lo."}), chunk(finish="stop")]


def refusing(status: str, seen: list[bytes]):
    """A backend that does not know `stream_options`."""

    async def script(exchange) -> None:
        seen.append(exchange.seen.body)
        if "stream_options" in exchange.seen.json:
            await exchange.json({"error": {"message": "Unrecognized request argument: stream_options"}}, status)
        else:
            await exchange.events(*SPOKEN)

    return script


@pytest.mark.parametrize("status", ["400 Bad Request", "422 Unprocessable Content"])
async def test_refused_field_costs_one_call_and_is_remembered(client, backend, status):
    """The first stream is asked again without the field, byte for byte; later ones never carry it."""
    seen: list[bytes] = []
    backend.script = refusing(status, seen)
    bodies = [json.dumps({**BODY, "seed": n, "stream": True}, indent=1).encode() for n in range(3)]
    answers = [await client.send(body) for body in bodies]
    assert [(a.status, a.text) for a in answers] == [(200, "Hello.")] * 3
    assert seen[1:] == bodies
    assert json.loads(seen[0])["stream_options"] == {"include_usage": True}
    assert (await client.send(bodies[0])).cache == "HIT"


async def test_stream_kept_without_usage_does_not_answer_who_needs_it(client, backend):
    """Who asks for usage, or for JSON, gets a new answer; who does not is served."""
    seen: list[bytes] = []
    backend.script = refusing("400 Bad Request", seen)
    await client.chat(stream=True)
    asked = await client.chat(stream=True, **WANTS)
    assert (asked.status, asked.cache, asked.get("x-cache-reason")) == (400, "MISS", "status")
    assert (await client.chat(stream=True)).cache == "HIT"
    backend.script = plain
    answer = await client.chat()
    assert (answer.cache, answer.json["usage"]) == ("MISS", USAGE)
    assert answer.get("x-cache-reason") == "usage_missing"
    assert (await client.chat(stream=True, **WANTS)).cache == "HIT"


async def test_bad_request_of_the_callers_own_is_not_blamed_on_the_field(client, backend):
    """A 400 with and without the field says nothing of the field: the next stream asks for usage again."""

    async def refuse(exchange) -> None:
        await exchange.json({"error": {"message": "no such model"}}, "400 Bad Request")

    backend.script = refuse
    answer = await client.chat(stream=True)
    assert (answer.status, answer.json["error"]["message"], backend.calls) == (400, "no such model", 2)
    backend.script = plain
    await client.chat(stream=True)
    assert backend.seen[-1].json["stream_options"] == {"include_usage": True}
    backend.script = refuse
    before = backend.calls
    assert (await client.chat(stream=True, seed=2)).status == 400
    assert backend.calls == before + 2  # a backend may change: no caller is refused for what it did not say


async def test_model_that_refuses_the_field_beside_one_that_takes_it(client, backend):
    """Behind a gateway one model may know the field and another not: no stream fails because of what we added."""

    async def mixed(exchange) -> None:
        if exchange.seen.json["model"] == "old" and "stream_options" in exchange.seen.json:
            await exchange.json({"error": {"message": "Unknown field: stream_options"}}, "400 Bad Request")
        else:
            await exchange.events(*SPOKEN)

    backend.script = mixed
    for model in ("new", "old", "new", "old"):
        answer = await client.chat(stream=True, model=model, seed=backend.calls)
        assert answer.status == 200, model
        assert answer.text == "Hello."


async def test_other_errors_are_not_asked_again(client, backend):
    """B77: a 401, a 429 or a 500 is the answer, once."""
    for number, status in enumerate(["401 Unauthorized", "404 Not Found", "429 Too Many Requests", "500 Oops"]):

        async def refuse(exchange, status=status) -> None:
            await exchange.json({"error": {"message": "no"}}, status)

        backend.script = refuse
        answer = await client.chat(stream=True)
        assert (answer.status, backend.calls) == (int(status[:3]), number + 1)


async def test_usage_is_given_to_who_asked_and_to_nobody_else(client, backend):
    """On MISS and HIT alike, in one event without choices before the last."""
    for options, expected in (({}, []), (WANTS, [USAGE]), ({}, []), (WANTS, [USAGE])):
        answer = await client.chat(stream=True, **options)
        assert [d["usage"] for d in answer.documents if "usage" in d] == expected
        assert answer.events[-1] == b"[DONE]"
        if expected:
            assert answer.documents[-1]["choices"] == []
    assert backend.calls == 1


NULLS = [
    b'data: {"id":"c","created":1,"choices":[{"index":0,"delta":{"content":"Hi"}}],"usage":null}\n\n',
    b'data: {"id":"c", "usage" : null , "created":1,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
]
WITHOUT = [
    b'data: {"id":"c","created":1,"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n',
    b'data: {"id":"c", "created":1,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
]


@pytest.mark.parametrize("wants", [False, True])
async def test_usage_null_on_every_chunk(client, backend, wants):
    """`usage: null`, which comes with asking, is seen by who asked; the other bytes are the backend's."""
    last = b'data: {"id":"c","created":1,"choices":[],"usage":{"total_tokens":7}}\n\n'
    backend.script = streams(*NULLS, last)
    fields = WANTS if wants else {}
    expected = b"".join([*NULLS, last, DONE] if wants else [*WITHOUT, DONE])
    one = await client.chat(stream=True, **fields)
    two = await client.chat(stream=True, **fields)
    assert (one.cache, two.cache, backend.calls) == ("MISS", "HIT", 1)
    assert one.body == expected
    assert [[*d] for d in two.documents] == [[*d] for d in one.documents]


TIMED = usage_chunk(timings={"prompt_ms": 12.5, "predicted_per_second": 40.25}, system_fingerprint="b1")


@pytest.mark.parametrize("wants", [False, True])
async def test_timings_beside_the_usage_reach_every_caller(client, backend, wants):
    """llama.cpp puts timings into its usage chunk: who did not ask for usage gets them on a chunk with a choice."""
    backend.script = streams(*SPOKEN, TIMED)
    for expected in ("MISS", "HIT"):
        answer = await client.chat(stream=True, **(WANTS if wants else {}))
        assert (answer.cache, answer.text) == (expected, "Hello.")
        last = answer.documents[-1]
        assert last["timings"] == {"prompt_ms": 12.5, "predicted_per_second": 40.25}
        assert last.get("usage") == (USAGE if wants else None)
        assert last["choices"] == ([] if wants else [{"index": 0, "delta": {}, "finish_reason": None}])
    document = await client.chat()
    assert (document.json["timings"], document.json["usage"]) == (last["timings"], USAGE)


async def test_usage_on_a_chunk_with_a_choice_passes(client, backend):
    """A backend that gives usage unasked on its last choice would have done so without us."""
    last = chunk(finish="stop", usage=USAGE)
    backend.script = streams(SPOKEN[0], last)
    one = await client.chat(stream=True)
    assert one.body == SPOKEN[0] + last + DONE
    assert (await client.chat(stream=True)).documents[-1]["usage"] == USAGE
    assert (await client.chat()).json["usage"] == USAGE


def squeezed(*pieces: bytes) -> list[bytes]:
    """One gzip stream, flushed after each piece."""
    squeeze = zlib.compressobj(wbits=31)
    parts = [squeeze.compress(p) + squeeze.flush(zlib.Z_SYNC_FLUSH) for p in pieces]
    return [*parts, squeeze.flush()]


def gzipped(*pieces: bytes):
    return streams(*squeezed(*pieces, DONE), done=False, extra=b"Content-Encoding: gzip\r\n")


@pytest.mark.parametrize("accepts", ["gzip", "identity", ""])
async def test_usage_is_taken_out_of_a_compressed_stream(client, backend, accepts):
    """B41: to look inside, the coding is taken off, and the header with it."""
    backend.script = gzipped(*SPOKEN, usage_chunk())
    lines = {"Accept_Encoding": accepts} if accepts else {}
    one = await client.chat(stream=True, **lines)
    assert one.get("content-encoding") is None
    assert one.body == b"".join([*SPOKEN, DONE])
    two = await client.chat(stream=True, **lines, **WANTS)
    assert (two.cache, two.get("content-encoding"), two.text) == ("HIT", None, "Hello.")
    assert two.documents[-1]["usage"] == USAGE


async def test_compressed_stream_passes_as_it_is_to_who_asked_for_usage_and_takes_gzip(client, backend):
    """B41: nothing has to be looked at, so the bytes are the backend's; the kept form is plain for the next caller."""
    parts = squeezed(*SPOKEN, usage_chunk(), DONE)
    backend.script = gzipped(*SPOKEN, usage_chunk())
    one = await client.chat(stream=True, Accept_Encoding="gzip", **WANTS)
    assert (one.get("content-encoding"), one.body) == ("gzip", b"".join(parts))
    assert gzip.decompress(one.body).endswith(DONE)
    two = await client.chat(stream=True, Accept_Encoding="identity", **WANTS)
    assert (two.cache, two.get("content-encoding"), two.text) == ("HIT", None, "Hello.")


async def test_compressed_stream_that_breaks_off_is_not_kept(proxy, backend):
    """B15: whole chunks and a [DONE] inside, but not the end of the gzip: not proven, not kept."""
    parts = squeezed(*SPOKEN, usage_chunk(), DONE)
    backend.script = streams(*parts[:-1], done=False, extra=b"Content-Encoding: gzip\r\n")
    for _ in range(2):
        answer = await wire.ask(proxy.port, wire.request({**BODY, "stream": True}))
        assert answer.body == b"".join([*SPOKEN, DONE])
    assert (backend.calls, proxy.house.store.census().entries) == (2, 0)


async def test_stream_that_is_no_gzip_is_cut(proxy, backend):
    """B41: bytes that are not of their coding cannot be handed on as plain; the caller sees a cut."""
    backend.script = streams(b"this is no gzip at all", done=False, extra=b"Content-Encoding: gzip\r\n")
    answer = await wire.ask(proxy.port, wire.request({**BODY, "stream": True}))
    assert (answer.whole, answer.body, proxy.house.store.census().entries) == (False, b"", 0)


async def test_other_stream_options_are_kept(client, backend):
    """Options that the caller gave stay; only the usage is added."""
    backend.script = streams(*SPOKEN)
    await client.chat(stream=True, stream_options={"include_obfuscation": False, "x": [1]})
    assert backend.seen[0].json["stream_options"] == {"include_obfuscation": False, "x": [1], "include_usage": True}
    await client.chat(stream=True, seed=2, stream_options=None)
    assert backend.seen[1].json["stream_options"] == {"include_usage": True}
    await client.chat(stream=True, seed=3, stream_options="odd")
    assert backend.seen[2].json["stream_options"] == "odd"
    assert len(backend.seen) == 3


async def test_usage_on_every_chunk_is_the_callers_own_affair(client, backend):
    """`continuous_usage_stats` could not be replayed in another form: it passes and is not kept."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    backend.script = streams(chunk({"content": "Hi"}, usage=USAGE), chunk(finish="stop", usage=USAGE), usage_chunk())
    for _ in range(2):
        answer = await client.chat(stream=True, stream_options=options)
        assert (answer.cache, answer.get("x-cache-reason")) == ("BYPASS", "stream_options")
        assert [d["usage"] for d in answer.documents] == [USAGE] * 3
    assert [s.json["stream_options"] for s in backend.seen] == [options] * 2


async def test_nothing_is_asked_when_switched_off(start, session, backend):
    """`stream.ask_usage: false`: the forwarded body is the caller's, the stream is kept without usage."""
    proxy = await start(stream__ask_usage=False)
    client = rig.Client(proxy.base, session)
    body = b' {"stream" : true, "messages":[ ],"model":"m"}'
    assert [(await client.send(body)).cache for _ in range(2)] == ["MISS", "HIT"]
    assert [s.body for s in backend.seen] == [body]
    assert (await client.send(b'{"messages":[],"model":"m"}')).get("x-cache-reason") == "usage_missing"


async def test_json_in_place_of_a_stream_passes(client, backend):
    """A backend that cannot stream answers with a document: it passes as it is and is not kept (the modes differ)."""

    async def script(exchange) -> None:
        await exchange.json(completion())

    backend.script = script
    for _ in range(2):
        answer = await client.chat(stream=True)
        assert (answer.cache, answer.get("x-cache-reason"), answer.json) == ("MISS", "mode_mismatch", completion())
    backend.script = streams(*SPOKEN, event({"x": 1}))
    answer = await client.chat(seed=2)
    assert (answer.get("x-cache-reason"), answer.body) == ("mode_mismatch", b"".join([*SPOKEN, event({"x": 1}), DONE]))
