"""B49: answers of a backend in which two hops could see different answers. The caller sees one, well framed, or a 502, or
a visible cut; what is not sound is not stored; the next request gets its own answer, on another connection.
"""

import asyncio
import json

import pytest

from tests import rig
from tests.fakes.backend import completion, sends
from tests.hostile import forms, splits, strict
from tests.hostile.caller import converse

PATHS = [b"/v1/x", b"/v1/chat/completions"]


def request(path: bytes, body: bytes = forms.BODY) -> bytes:
    head = b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


async def assert_honest(proxy, backend, path: bytes) -> None:
    """The next request gets its own answer, and not on the connection of the form."""
    used = backend.connections

    async def honest(exchange) -> None:
        await exchange.json(completion(exchange.seen.body.decode()))

    backend.script = honest
    body = b'{"model":"m","messages":[{"role":"user","content":"honest"}]}'
    message, rest = strict.answer(await converse(proxy.port, request(path, body)))
    assert (message.first[0], rest) == (b"200", b"")
    assert json.loads(message.body)["choices"][0]["message"]["content"] == body.decode()
    assert backend.seen[-1].connection > used
    assert {n.lower() for n, _ in message.fields} & {b"set-cookie", b"x", b"link"} == set()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", [*splits.REFUSED, *splits.CLOSED])
async def test_refused(proxy, backend, name, path):
    backend.script = sends({**splits.REFUSED, **splits.CLOSED}[name], close=name in splits.CLOSED)
    heard = await converse(proxy.port, request(path))
    assert b"evil" not in heard
    try:
        message, rest = strict.answer(heard)
    except strict.Unfinished:
        assert heard.startswith(b"HTTP/1.1 200 OK\r\n"), "cut before the head"
        assert path == b"/v1/x", "an answer that comes at once is not held until it is whole"
    else:
        assert (message.first[0], rest) == (b"502", b"")
        assert json.loads(message.body)["error"]["code"] == "upstream_unreachable"
    assert proxy.house.store.census().entries == 0
    assert len(backend.seen) == 1
    await assert_honest(proxy, backend, path)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", splits.PASSED)
async def test_passed_as_it_is_framed(proxy, backend, name, path):
    """The status line, too, is that of the answer, whatever came behind it."""
    data, status, body = splits.PASSED[name]
    backend.script = sends(data)
    heard = await converse(proxy.port, request(path))
    message, rest = strict.answer(heard)
    assert (int(message.first[0]), message.body, rest) == (status, body, b"")
    if not heard.startswith(b"HTTP/1.1 103 "):
        assert heard.startswith(data.partition(b"\r\n")[0] + b"\r\n")
    assert b"evil" not in heard
    await assert_honest(proxy, backend, path)


async def test_bytes_on_a_connection_that_waits(proxy, backend):
    """What comes when nothing was asked ends the connection; it is the answer to no later request."""
    heard = asyncio.Event()

    async def late(exchange) -> None:
        await exchange.send(splits.answer())
        await asyncio.wait_for(heard.wait(), 10)
        await exchange.send(splits.EVIL)
        await exchange.gone()

    backend.script = late
    message, _ = strict.answer(await converse(proxy.port, request(b"/v1/x")))
    assert message.body == splits.DOCUMENT
    heard.set()
    await rig.until(lambda: backend.open == 0)
    await assert_honest(proxy, backend, b"/v1/x")


async def test_trailers_are_of_no_answer(proxy, backend):
    """Neither of the one that they follow nor of the next on the same connection."""
    backend.script = sends(splits.chunks(splits.CHUNK + b"0\r\nX-A: 1\r\nSet-Cookie: evil=1\r\n\r\n"))
    for _ in range(2):
        message, _ = strict.answer(await converse(proxy.port, request(b"/v1/x")))
        assert message.body == splits.DOCUMENT
        assert {n.lower() for n, _ in message.fields} & {b"x-a", b"set-cookie"} == set()
    assert backend.connections == 1


HANDSHAKE = b"GET /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c, websocket\r\nSec-WebSocket-Key: x\r\n\r\n"


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket, h2c", b"", b"other"])
async def test_switch_to_another_protocol_than_asked_for(proxy, backend, protocol):
    """Only WebSocket is asked for, and only a switch to it opens the tunnel."""
    backend.script = sends(splits.SWITCH + protocol + b"\r\n\r\n" + splits.EVIL)
    heard = await converse(proxy.port, HANDSHAKE + forms.HIDDEN)
    message, rest = strict.answer(heard)
    assert (message.first[0], rest) == (b"502", b"")
    assert [s.all(b"upgrade") for s in backend.seen] == [[b"websocket"]]
    await rig.until(lambda: backend.open == 0 and proxy.house.proxy.running == 0)
