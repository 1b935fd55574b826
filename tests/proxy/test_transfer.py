"""Bodies and framing: however a body is framed on one side, it is whole on the other, at once, and framed once."""

import asyncio

import pytest

from tests import rig
from tests.fakes.backend import bare, completion, gives, reset, sends
from tests.proxy import wire
from tests.rig import BODY

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
CHUNKED = PLAIN + b"Transfer-Encoding: chunked\r\n\r\n"


async def get(proxy, *lines: bytes, method: str = "GET", path: str = "/v1/x", bodyless: bool = False) -> wire.Wire:
    return await wire.ask(proxy.port, wire.request(None, *lines, method=method, path=path), bodyless=bodyless)


FRAMED = {
    "length": (PLAIN + b"Content-Length: 5\r\n\r\nhello", b"hello"),
    "length of nothing": (PLAIN + b"Content-Length: 0\r\n\r\n", b""),
    "chunks": (CHUNKED + b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", b"hello"),
    "chunk extensions": (CHUNKED + b"5;a=b;c\r\nhello\r\n0;d\r\n\r\n", b"hello"),
    "no chunks": (CHUNKED + b"0\r\n\r\n", b""),
    "close": (PLAIN + b"\r\nhello", b"hello"),
    "close, HTTP/1.0": (PLAIN.replace(b"1.1", b"1.0") + b"\r\nhello", b"hello"),
    "close, nothing": (PLAIN + b"\r\n", b""),
}


@pytest.mark.parametrize("path", ["/v1/x", "/v1/completions"])
@pytest.mark.parametrize("case", FRAMED)
async def test_answer_is_whole_in_every_framing(proxy, backend, case, path):
    """A length stays a length; what had none goes in chunks, and ends."""
    data, body = FRAMED[case]
    backend.script = sends(data, close=case.startswith("close"))
    answer = await wire.ask(proxy.port, wire.request(BODY, path=path))
    assert (answer.status, answer.body, answer.whole, answer.rest) == (200, body, True, b"")
    framing = (answer.get(b"content-length"), answer.get(b"transfer-encoding"))
    if path == "/v1/x":
        assert framing == ((b"%d" % len(body), None) if b"Content-Length" in data else (None, b"chunked"))
    else:
        assert framing.count(None) == 1


async def test_trailers_of_an_answer_are_dropped(proxy, backend):
    """Neither their announcement nor they themselves cross; the framing is whole."""
    backend.script = sends(
        PLAIN + b"Trailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-T: 1\r\nX-Cache: HIT\r\n\r\n"
    )
    answer = await get(proxy)
    assert (answer.body, answer.whole, answer.trailers, answer.rest) == (b"hi", True, b"", b"")
    assert answer.get(b"trailer") is None and answer.get(b"x-t") is None


@pytest.mark.parametrize(
    ("method", "data", "length"),
    [
        ("HEAD", PLAIN + b"Content-Length: 5\r\n\r\n", b"5"),
        ("HEAD", CHUNKED, None),
        ("HEAD", PLAIN + b"\r\n", None),
        ("GET", b"HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n", None),
        ("GET", b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n', None),
        ("GET", b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 5\r\n\r\n', b"5"),
    ],
)
async def test_answers_without_a_body(proxy, backend, method, data, length):
    """HEAD, 204 and 304: the length is told where the backend told it, no byte follows, and the next request on the
    same connection gets its own answer."""
    backend.script = sends(data)
    async with wire.dial(proxy.port) as caller:
        await caller.write(wire.request(None, method=method, path="/v1/x", close=False))
        head = await caller.head()
        assert head.line == data.partition(b"\r\n")[0]
        assert head.all(b"content-length") == ([length] if length else [])
        assert head.get(b"connection") is None
        backend.script = gives({"next": 1})
        await caller.write(wire.request(None, method="GET", path="/v1/y", close=False))
        assert (await caller.whole()).body == b'{"next": 1}'


async def test_error_of_ours_to_head_has_no_body(start):
    proxy = await start(upstream="http://127.0.0.1:1")
    answer = await get(proxy, method="HEAD", bodyless=True)
    assert (answer.status, answer.rest) == (502, b"")


HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


@pytest.mark.parametrize("path", ["/v1/x", rig.CHAT])
@pytest.mark.parametrize("interim", [b"HTTP/1.1 100 Continue\r\n\r\n", HINTS + b"HTTP/1.1 102 Processing\r\n\r\n"])
async def test_interim_answers_of_the_backend_are_not_the_answer(proxy, backend, interim, path):
    """Whatever comes before the answer, the answer is the last, whole, without the interim header lines."""
    backend.script = sends(interim + PLAIN + b"Content-Length: 2\r\n\r\nhi")
    for _ in range(2):
        data = await rig.raw(proxy.port, wire.request(BODY, path=path))
        answer = wire.wire(data[data.index(b"HTTP/1.1 200 ") :])
        assert (answer.status, answer.body, answer.rest, answer.get(b"link")) == (200, b"hi", b"", None)


async def test_early_hints_pass(proxy, backend):
    """RFC 9110 section 15.2: a proxy forwards interim answers that it did not ask for; never to HTTP/1.0."""
    backend.script = sends(HINTS + PLAIN + b"Content-Length: 2\r\n\r\nhi")
    data = wire.request(None, method="GET", path="/v1/x")
    assert (await rig.raw(proxy.port, data.replace(b"HTTP/1.1", b"HTTP/1.0"))).startswith(b"HTTP/1.0 200 OK")
    assert (await rig.raw(proxy.port, data)).startswith(HINTS + b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("path", ["/v1/x", rig.CHAT])
async def test_expectation_is_met_here(proxy, backend, path):
    """`Expect: 100-continue`: one 100, then the body is taken; the backend does not see the expectation."""
    backend.script = gives(completion())
    for size in (10, 200_000):
        body = b'{"messages":[],"user":"' + b"a" * size + b'"}'
        head = wire.request(body, b"Expect: 100-continue", path=path, close=False)[: -len(body)]
        async with wire.dial(proxy.port) as caller:
            await caller.write(head)
            assert (await caller.head()).line == b"HTTP/1.1 100 Continue"
            await caller.write(body)
            assert (await caller.whole()).status == 200
        assert backend.seen[-1].get(b"expect") is None
        if path == "/v1/x":
            assert backend.seen[-1].body == body


async def test_expectation_of_a_body_too_large_is_not_met(start):
    """The 413 comes before a byte of the body was asked for."""
    proxy = await start(limits__body_bytes=1000)
    async with wire.dial(proxy.port) as caller:
        await caller.write(wire.request(b"a" * 2000, b"Expect: 100-continue", close=False)[:-2000])
        answer = await caller.whole()
    assert answer.status == 413
    assert b'"request_too_large"' in answer.body


@pytest.mark.parametrize("path", ["/v1/x", rig.CHAT])
async def test_chunked_upload_is_whole(proxy, backend, path):
    """Without a length, in chunks of its own: the backend gets every byte, and no trailer."""
    body = b'{"messages":[],"user":"%b"}' % (b"x" * 100_000)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    parts = [body[i : i + 7001] for i in range(0, len(body), 7001)]
    data = head + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in parts) + b"0\r\nX-T: 1\r\n\r\n"
    answer = await wire.ask(proxy.port, data)
    assert (answer.status, [s.body for s in backend.seen]) == (200, [body])
    assert backend.seen[0].chunked == (path == "/v1/x")
    assert backend.seen[0].get(b"x-t") is None


async def test_upload_is_passed_on_as_it_comes(start):
    """A chunk of an upload reaches the backend before the next is sent."""
    arrived: asyncio.Queue[bytes] = asyncio.Queue()

    async def handle(reader, writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(5):
            await reader.readuntil(b"\r\n")
            arrived.put_nowait(await reader.readexactly(7))
        await reader.readuntil(b"0\r\n\r\n")
        writer.write(PLAIN + b"Content-Length: 0\r\n\r\n")
        await writer.drain()

    async with bare(handle) as url:
        proxy = await start(upstream=url)
        async with wire.dial(proxy.port) as caller:
            await caller.write(b"PUT /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            for number in range(5):
                await caller.write(b"5\r\n<%03d>\r\n" % number)
                assert await asyncio.wait_for(arrived.get(), 10) == b"<%03d>\r\n" % number
            await caller.write(b"0\r\n\r\n")
            assert (await caller.whole()).status == 200


@pytest.mark.parametrize("framing", [b"Content-Length: 1000000", b"Transfer-Encoding: chunked"])
async def test_answer_that_comes_during_the_upload(start, framing):
    """A backend that refuses before it has read everything: the caller has the answer while it still sends."""

    async def refuse(reader, writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(10)
        writer.write(b"HTTP/1.1 413 Too Much For Me\r\nContent-Length: 4\r\n\r\nstop")
        await writer.drain()
        await reader.read()

    async with bare(refuse) as url:
        proxy = await start(upstream=url)
        async with wire.dial(proxy.port) as caller:
            await caller.write(b"PUT /x HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n")
            await caller.write(b"a\r\n0123456789\r\n" if b"chunked" in framing else b"0123456789")
            answer = await caller.whole()
        assert (answer.line, answer.body) == (b"HTTP/1.1 413 Too Much For Me", b"stop")
        await rig.until(lambda: proxy.house.proxy.running == 0)


@pytest.mark.parametrize("path", ["/v1/x", rig.CHAT])
async def test_caller_of_http_1_0(proxy, backend, path):
    """No chunks and no 100 for it; the close marks the end; the backend is spoken to in HTTP/1.1."""
    backend.script = sends(CHUNKED + b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")
    data = wire.request(BODY, b"Expect: 100-continue", path=path, close=False).replace(b"HTTP/1.1", b"HTTP/1.0")
    answer = await wire.ask(proxy.port, data)
    assert answer.line.split(b" ", 1)[1] == b"200 OK"
    assert answer.get(b"transfer-encoding") is None
    assert (answer.body, answer.rest) == (b"hello", b"")
    assert backend.seen[0].line.endswith(b" HTTP/1.1")


async def test_caller_of_http_1_0_may_keep_its_connection(proxy, backend):
    backend.script = gives({"x": 1})
    async with wire.dial(proxy.port) as caller:
        for _ in range(3):
            await caller.write(b"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            answer = await caller.whole()
            assert (answer.body, answer.get(b"connection")) == (b'{"x": 1}', b"keep-alive")
    assert len(backend.seen) == 3


@pytest.mark.parametrize("stream", [False, True])
async def test_hit_for_a_caller_of_http_1_0(client, proxy, backend, stream):
    await client.chat()
    data = wire.request({**BODY, "stream": stream}, close=False).replace(b"HTTP/1.1", b"HTTP/1.0")
    answer = await wire.ask(proxy.port, data)
    assert (answer.get(b"x-cache"), answer.get(b"transfer-encoding"), backend.calls) == (b"HIT", None, 1)
    assert answer.whole
    assert answer.body.endswith(b"data: [DONE]\n\n" if stream else b"}")


async def test_slow_document_is_not_held_back(proxy, backend):
    """The first half of a JSON answer reaches the caller before the second is there."""
    heard = asyncio.Event()
    whole = b'{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}'

    async def slowly(exchange) -> None:
        await exchange.head(Content_Type="application/json", Content_Length=str(len(whole)))
        await exchange.send(whole[:20])
        await asyncio.wait_for(heard.wait(), 10)
        await exchange.send(whole[20:])

    backend.script = slowly
    async with wire.dial(proxy.port) as caller:
        await caller.write(wire.request(BODY))
        assert (await caller.head()).get(b"content-length") == b"%d" % len(whole)
        assert await asyncio.wait_for(caller.reader.readexactly(20), 10) == whole[:20]
        heard.set()
        assert await caller.reader.readexactly(len(whole) - 20) == whole[20:]
    answer = await wire.ask(proxy.port, wire.request(BODY))
    assert (answer.get(b"x-cache"), answer.body) == (b"HIT", whole)


@pytest.mark.parametrize("head", [PLAIN + b"Content-Length: 100\r\n\r\n", CHUNKED + b"64\r\n", PLAIN + b"\r\n"])
async def test_answer_that_breaks_off_looks_broken(proxy, backend, head):
    """On every path, in every framing of the backend: what was cut there is no clean end here."""

    async def script(exchange) -> None:
        await exchange.send(head + b"half")
        await asyncio.wait_for(heard.wait(), 10)
        reset(exchange.writer)
        exchange.close = True

    heard = asyncio.Event()
    backend.script = script
    async with wire.dial(proxy.port) as caller:
        await caller.write(wire.request(None, method="GET", path="/v1/x"))
        data = await caller.reader.readuntil(b"half")
        heard.set()
        data += await asyncio.wait_for(caller.reader.read(), 10)
    assert not wire.wire(data).whole
    await rig.until(lambda: proxy.house.proxy.running == 0)
