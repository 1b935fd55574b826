"""Streams that are not whole, or not well: what came is passed on, the caller sees the end as it was, nothing is kept."""

import asyncio

import pytest

from tests import rig
from tests.fakes.backend import chunk, event, plain, reset, sends, streams, text_chunk, usage_chunk
from tests.proxy import wire
from tests.rig import BODY

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
UNFRAMED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
DONE = b"data: [DONE]\n\n"
THREE = [chunk({"content": "a"}), chunk({"content": "b"}), chunk({"content": "c"})]
FINISHED = [*THREE, chunk(finish="stop")]


def chunks(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces)


def resets(data: bytes):
    """Sends, waits until the caller has it, and resets the connection."""

    async def script(exchange) -> None:
        await exchange.send(data)
        await asyncio.wait_for(script.heard.wait(), 10)
        reset(exchange.writer)
        exchange.close = True

    script.heard = asyncio.Event()
    return script


async def ask_twice(proxy, body: dict, path: str = rig.CHAT) -> list[wire.Wire]:
    return [await wire.ask(proxy.port, wire.request({**body, "stream": True}, path=path)) for _ in range(2)]


def assert_nothing_kept(proxy, backend, calls: int = 2) -> None:
    assert backend.calls == calls
    assert proxy.house.store.census().entries == 0
    assert proxy.house.engine.budget.held == 0


CUT = {
    "closed": (HEAD + chunks(*THREE), True),
    "closed after the finish": (HEAD + chunks(*FINISHED, usage_chunk()), True),
    "closed after the terminal event": (HEAD + chunks(*FINISHED, DONE), True),
    "closed inside an event": (HEAD + chunks(*THREE, chunk({"content": "d"})[:30]), True),
    "closed inside a chunk": (HEAD + chunks(*THREE) + b"ff\r\ndata: ", True),
    "closed inside the last chunk": (HEAD + chunks(*FINISHED, DONE) + b"0\r\n", True),
    "no chunk after the head": (HEAD, True),
    "no HTTP": (HEAD + chunks(*THREE) + b"zz\r\n", False),
}


@pytest.mark.parametrize("case", CUT)
async def test_cut_stream_looks_cut(proxy, backend, case):
    """B15 (a), (d): no last chunk and no [DONE] of ours; the caller has every byte that came, and asks again."""
    data, closes = CUT[case]
    backend.script = sends(data, close=closes)
    for answer in await ask_twice(proxy, BODY):
        assert answer.status == 200
        assert not answer.whole, "a cut stream looks whole"
        assert answer.body.startswith(b"".join(THREE) if data != HEAD else b"")
        assert answer.body.count(b"[DONE]") == data.count(b"[DONE]")
    assert_nothing_kept(proxy, backend)


@pytest.mark.parametrize("usage", [{}, {"stream_options": {"include_usage": True}}])
@pytest.mark.parametrize("head", [HEAD, UNFRAMED])
async def test_reset_after_some_events(proxy, backend, head, usage):
    """B15, B27: five events, then a reset: one call, the five events, a visible failure, no second beginning."""
    pieces = [chunk({"content": f"<{i}>"}) for i in range(5)]
    backend.script = resets(head + (chunks(*pieces) if head == HEAD else b"".join(pieces)))
    async with wire.dial(proxy.port) as caller:
        await caller.write(wire.request({**BODY, **usage, "stream": True}))
        await caller.head()
        got = b""
        while len(got) < len(b"".join(pieces)):
            got += await caller.chunk()
        backend.script.heard.set()
        with pytest.raises(asyncio.IncompleteReadError):
            while data := await caller.chunk():
                got += data
    assert got == b"".join(pieces)
    await rig.until(lambda: proxy.house.proxy.running == 0)
    assert_nothing_kept(proxy, backend, calls=1)


async def test_caller_of_http_1_0_sees_the_cut(proxy, backend):
    """B15: where only the close marks the end, the close is a reset."""
    backend.script = resets(HEAD + chunks(*THREE))
    async with wire.dial(proxy.port) as caller:
        await caller.write(wire.request({**BODY, "stream": True}).replace(b"HTTP/1.1", b"HTTP/1.0"))
        await caller.reader.readuntil(THREE[2])
        backend.script.heard.set()
        with pytest.raises(ConnectionResetError):
            await caller.reader.read()
    assert_nothing_kept(proxy, backend, calls=1)


UNPROVEN = {
    "done without a finish": ({}, [*THREE, DONE]),
    "one of two choices finished": (
        {"n": 2},
        [*THREE, chunk({"content": "x"}, index=1), chunk(finish="stop", index=0), DONE],
    ),
    "one of two choices": ({"n": 2}, [*FINISHED, DONE]),
    "more choices than asked": ({}, [*FINISHED, chunk({"content": "x"}, index=1), chunk(finish="stop", index=1), DONE]),
    "finish without done": ({}, FINISHED),
    "nothing": ({}, []),
    "done alone": ({}, [DONE]),
    "no text": ({}, [chunk({"role": "assistant", "content": ""}), chunk(finish="stop"), DONE]),
    "events after done": ({}, [*FINISHED, DONE, chunk({"content": "more"})]),
    "half an event after done": ({}, [*FINISHED, DONE, b"data: {"]),
    "no JSON": ({}, [*THREE, b"data: <html>\n\n", chunk(finish="stop"), DONE]),
    "array": ({}, [*THREE, b"data: []\n\n", chunk(finish="stop"), DONE]),
    # B29: only what the model ended by itself is kept
    "cut by its limit": ({"max_tokens": 20}, [*THREE, chunk(finish="length"), DONE]),
    "filtered": ({}, [*THREE, chunk(finish="content_filter"), DONE]),
    "filtered and empty": ({}, [chunk({"content": ""}), chunk(finish="content_filter"), DONE]),
    "unknown finish": ({}, [*THREE, chunk(finish="abort"), DONE]),
    "function call of old": ({}, [chunk({"function_call": {"name": "f"}}), chunk(finish="function_call"), DONE]),
    # errors inside
    "error event": ({}, [*THREE, event({"error": {"message": "overloaded"}}), DONE]),
    "error beside a finish": ({}, [*THREE, chunk(finish="stop", error={"message": "late"}), DONE]),
    "error by name": ({}, [*THREE, b'event: error\ndata: {"message":"overloaded"}\n\n', chunk(finish="stop"), DONE]),
    "error as a text": ({}, [event({"error": "overloaded"}), chunk({"content": "a"}), chunk(finish="stop"), DONE]),
}


@pytest.mark.parametrize("case", UNPROVEN)
async def test_unproven_stream_passes_and_is_not_kept(proxy, backend, case):
    """B15 (b), (c), B29, B55: the bytes pass as they are, nothing is added, nothing is kept."""
    fields, pieces = UNPROVEN[case]
    backend.script = streams(*pieces, done=False)
    for answer in await ask_twice(proxy, {**BODY, **fields}):
        assert (answer.status, answer.whole, answer.body) == (200, True, b"".join(pieces))
    assert_nothing_kept(proxy, backend)


@pytest.mark.parametrize("finish", ["length", "content_filter", None])
async def test_unproven_completion_stream_is_not_kept(proxy, backend, finish):
    """B29: the older operation has the same rules."""
    pieces = [text_chunk("a"), text_chunk(finish=finish), DONE]
    backend.script = streams(*pieces, done=False)
    for answer in await ask_twice(proxy, {"model": "m", "prompt": "x"}, "/v1/completions"):
        assert (answer.status, answer.whole, answer.body) == (200, True, b"".join(pieces))
    assert_nothing_kept(proxy, backend)


async def test_answer_cut_by_its_limit_never_crosses_to_another_limit(client, backend):
    """B29: 20 tokens, then 2,000: each asks the backend, and the longer one is kept."""

    async def limited(exchange) -> None:
        finish = "length" if exchange.seen.json["max_tokens"] == 20 else "stop"
        await exchange.events(chunk({"content": finish}), chunk(finish=finish), usage_chunk())

    backend.script = limited
    asked = [20, 2000, 20, 2000]
    answers = [await client.chat(stream=True, max_tokens=limit) for limit in asked]
    assert [a.text for a in answers] == ["length", "stop", "length", "stop"]
    assert [a.cache for a in answers] == ["MISS", "MISS", "MISS", "HIT"]


async def test_after_a_broken_stream_a_healthy_one_is_kept(client, proxy, backend):
    """B15: what was broken leaves no trace: the next answer is fetched, kept, and served."""
    backend.script = sends(HEAD + chunks(*THREE), close=True)
    await wire.ask(proxy.port, wire.request({**BODY, "stream": True}))
    backend.script = streams(*FINISHED, usage_chunk())
    assert [(await client.chat(stream=True)).cache for _ in range(2)] == ["MISS", "HIT"]
    assert (await client.chat()).text == "abc"


@pytest.mark.parametrize("together", [True, False])
async def test_caller_that_closes_at_the_terminal_event_leaves_the_answer(proxy, client, backend, together):
    """A client that stops reading at [DONE], as common ones do, leaves a stored answer."""
    left = asyncio.Event()

    async def script(exchange) -> None:
        await exchange.send(HEAD + chunks(*FINISHED, usage_chunk(), DONE) + (b"0\r\n\r\n" if together else b""))
        if not together:
            await asyncio.wait_for(left.wait(), 10)
            await exchange.end()

    backend.script = script
    async with wire.dial(proxy.port) as caller:
        await caller.write(wire.request({**BODY, "stream": True}, close=False))
        await caller.reader.readuntil(b"[DONE]\n\n")
        caller.writer.transport.abort()
    await rig.until(lambda: proxy.house.proxy.running == 0)
    left.set()
    await rig.until(lambda: proxy.house.store.census().entries == 1)
    again = await client.chat(stream=True)
    assert (again.cache, again.text, backend.calls) == ("HIT", "abc", 1)
    assert proxy.house.engine.budget.held == 0


async def test_caller_that_closes_before_the_terminal_event_leaves_nothing(proxy, backend):
    """B15: the finish alone proves nothing; the backend sees its connection closed."""

    async def script(exchange) -> None:
        await exchange.send(HEAD + chunks(*FINISHED))
        await exchange.gone()

    backend.script = script
    async with wire.dial(proxy.port) as caller:
        await caller.write(wire.request({**BODY, "stream": True}, close=False))
        await caller.reader.readuntil(FINISHED[-1])
        caller.writer.transport.abort()
    await rig.until(lambda: backend.open == 0 and proxy.house.proxy.running == 0)
    assert_nothing_kept(proxy, backend, calls=1)


async def test_a_stream_that_is_refused_late_is_refused(client, backend):
    """B26: no 200 is sent ahead of the backend's, so a late 429 arrives as one, with its header; nothing is kept."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def late(exchange) -> None:
        begun.set()
        await go_on.wait()
        body = {"error": {"message": "slow down", "type": "rate_limit_error"}}
        await exchange.json(body, "429 Too Many Requests", b"Retry-After: 7\r\n")

    backend.script = late
    asking = asyncio.create_task(client.chat(stream=True))
    await begun.wait()
    assert not asking.done()
    go_on.set()
    answer = await asking
    assert (answer.status, answer.get("retry-after"), answer.cache) == (429, "7", "MISS")
    backend.script = plain
    assert (await client.chat(stream=True)).cache == "MISS"
