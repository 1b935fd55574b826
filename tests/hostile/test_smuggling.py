"""B49: forms in which two hops could see different requests. Refused with 400 and the end of the connection, or one
well-framed request reaches the backend; never two, never one that hides in another, nothing stored."""

import asyncio
import re

import pytest

from tests import rig
from tests.fakes.backend import Backend

BODY = b'{"model":"m","messages":[{"role":"user","content":"x"}]}'
HIDDEN = b"GET /v1/hidden HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def chunked(body: bytes = BODY) -> bytes:
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


REFUSED = {
    "length and chunks": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked() + HIDDEN,
    "chunks and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + chunked() + HIDDEN,
    "two lengths": POST + b"Content-Length: 5\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY,
    "list of lengths": POST + b"Content-Length: 5, 5\r\n\r\nhello",
    "signed length": POST + b"Content-Length: +5\r\n\r\nhello",
    "negative length": POST + b"Content-Length: -5\r\n\r\nhello",
    "hex length": POST + b"Content-Length: 0x5\r\n\r\nhello",
    "length with an underscore": POST + b"Content-Length: 1_0\r\n\r\nhellohello",
    "empty length": POST + b"Content-Length: \r\n\r\nhello",
    "unknown coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n" + chunked(),
    "chunked twice": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + chunked(),
    "chunked not last": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n" + chunked(),
    "space before the colon": POST + b"Transfer-Encoding : chunked\r\n\r\n" + chunked(),
    "tab before the colon": POST + b"Content-Length\t: 5\r\n\r\nhello",
    "folded line": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + chunked(),
    "underscored framing": POST + b"Transfer_Encoding: chunked\r\n\r\n" + chunked(),
    "underscored length": POST + b"Content_Length: 5\r\n\r\nhello",
    "vertical tab in the coding": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n" + chunked(),
    "nul in a value": POST + b"X-A: a\x00b\r\nContent-Length: 5\r\n\r\nhello",
    "bare CR in a value": POST + b"X-A: a\rTransfer-Encoding: chunked\r\n\r\n" + chunked(),
    "LF in a chunk extension": POST + b"Transfer-Encoding: chunked\r\n\r\n2;\nxx\r\n{}\r\n0\r\n\r\n" + HIDDEN,
    "hex prefix in a chunk size": POST + b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "signed chunk size": POST + b"Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n",
    "huge chunk size": POST + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "no CRLF after a chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n",
    "chunks with HTTP/1.0": POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n" + chunked() + HIDDEN,
    "no version": b"GET /v1/models\r\n\r\n",
    "future version": b"GET /v1/models HTTP/3.0\r\nHost: x\r\n\r\n",
    "lower-case version": b"GET /v1/models http/1.1\r\nHost: x\r\n\r\n",
    "absolute form": b"GET http://other.example/v1/models HTTP/1.1\r\nHost: x\r\n\r\n",
    "authority form": b"CONNECT other.example:443 HTTP/1.1\r\nHost: x\r\n\r\n" + HIDDEN,
    "target without a slash": b"GET v1/models HTTP/1.1\r\nHost: x\r\n\r\n",
    "space in the target": b"GET /v1/models x HTTP/1.1\r\nHost: x\r\n\r\n",
    "two hosts": b"GET /v1/models HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "no name": b"GET /v1/models HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n",
    "no colon": b"GET /v1/models HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n",
    "leading white space": b"GET /v1/models HTTP/1.1\r\n Host: x\r\n\r\n",
    "bad method": b"G(T /v1/models HTTP/1.1\r\nHost: x\r\n\r\n",
    "preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a line too long": b"GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 200_000 + b"\r\n\r\n",
}

ONE_REQUEST = {
    "chunk extension": POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n%x;a=b\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
    "trailer": POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\nX-T: 1\r\n\r\n" % (len(BODY), BODY),
    "coding in capitals": POST + b"Connection: close\r\nTransfer-Encoding: Chunked\r\n\r\n" + chunked(),
    "leading zeros": POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n000%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
}  # fmt: skip


def check(reply: bytes, backend: Backend) -> None:
    assert reply.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 ")), reply[:200]
    assert len(re.findall(rb"HTTP/1\.\d \d", reply)) == 1
    assert b'"code":"invalid_header"' in reply
    assert b"hidden" not in reply
    assert backend.seen == []


@pytest.mark.parametrize("name", REFUSED)
async def test_refused(proxy, backend, name):
    check(await rig.raw(proxy.port, REFUSED[name]), backend)
    assert proxy.house.store.census().entries == 0


@pytest.mark.parametrize("name", ONE_REQUEST)
async def test_one_well_framed_request_reaches_the_backend(proxy, backend, name):
    reply = await rig.raw(proxy.port, ONE_REQUEST[name])
    assert reply.startswith(b"HTTP/1.1 200 ")
    assert [s.body for s in backend.seen] == [BODY]
    assert backend.seen[0].get(b"content-length") == b"%d" % len(BODY)
    assert backend.seen[0].get(b"transfer-encoding") is None
    assert backend.seen[0].get(b"x-t") is None


async def test_pipelined_requests_are_answered_in_order(proxy, backend):
    """Two honest requests in one packet are two requests, each with its own answer."""
    one = b"GET /v1/one HTTP/1.1\r\nHost: x\r\n\r\n"
    two = b"GET /v1/two HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

    async def echo(exchange) -> None:
        await exchange.json({"target": exchange.seen.target.decode()})

    backend.script = echo
    reply = await rig.raw(proxy.port, one + two)
    assert reply.index(b"/v1/one") < reply.index(b"/v1/two")
    assert [s.target for s in backend.seen] == [b"/v1/one", b"/v1/two"]


async def test_the_parser_without_extensions_refuses_the_same(spawn, backend):
    """aiohttp's parser in plain Python must not let through what the compiled one refuses."""
    process = await spawn("--data-dir", "none", AIOHTTP_NO_EXTENSIONS="1")
    waiting = []
    for name, form in REFUSED.items():
        reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
        writer.write(form)
        reply = asyncio.create_task(reader.read())
        if await asyncio.wait([reply], timeout=2) == (set(), {reply}):
            waiting.append(name)
            reply.cancel()
        else:
            assert (await reply).startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 ")), name
        writer.close()
    assert waiting in ([], ["huge chunk size"])  # this one it waits for; nothing has been forwarded
    assert backend.seen == []
