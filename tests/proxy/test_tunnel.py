"""WebSocket upgrades pass, both ways, to their end; what is no accepted upgrade opens no tunnel."""

import asyncio
import base64
import hashlib
import os

import aiohttp
from aiohttp import WSMsgType, web

from tests import rig

HANDSHAKE = (
    b"GET /v1/realtime?model=m HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %b\r\n\r\n"
)


async def websocket_backend():
    """A real WebSocket server that echoes, and closes on "bye"."""

    async def echo(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT and message.data == "bye":
                await socket.close(code=4001, message=b"so long")
            elif message.type is WSMsgType.TEXT:
                await socket.send_str(f"{request.path_qs} {message.data}")
            else:
                await socket.send_bytes(message.data)
        return socket

    app = web.Application()
    app.router.add_get("/{path:.*}", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


async def test_websocket_passes_both_ways(start, session):
    runner, url = await websocket_backend()
    proxy = await start(upstream=url)
    async with (
        aiohttp.ClientSession() as plain,
        plain.ws_connect(proxy.base + "/v1/realtime?model=m", max_msg_size=0) as socket,
    ):
        await socket.send_str("hello")
        assert await socket.receive_str() == "/v1/realtime?model=m hello"
        big = os.urandom(5 * 2**20)
        await socket.send_bytes(big)
        assert await socket.receive_bytes() == big
        await socket.send_str("bye")
        closed = await socket.receive()
        assert (closed.type, closed.data, closed.extra) == (WSMsgType.CLOSE, 4001, "so long")
    await rig.until(lambda: proxy.house.proxy.running == 0)
    await runner.cleanup()


async def test_client_that_vanishes_ends_the_backends_side(proxy, backend):
    async def accept(exchange) -> None:
        key = exchange.seen.get(b"sec-websocket-key") or b""
        token = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        await exchange.send(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + token + b"\r\n\r\nfirst bytes"
        )
        await exchange.gone()

    backend.script = accept
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(HANDSHAKE % base64.b64encode(b"0" * 16) + b"early")
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ") and b"Sec-WebSocket-Accept" in head
    assert await reader.readexactly(11) == b"first bytes"
    seen = backend.seen[0]
    assert seen.target == b"/v1/realtime?model=m"
    assert [seen.get(b"upgrade"), seen.get(b"connection")] == [b"websocket", b"Upgrade"]
    writer.transport.abort()
    await rig.until(lambda: backend.open == 0 and proxy.house.proxy.running == 0)
    assert len(proxy.running._server.connections) == 0


async def test_backend_that_vanishes_ends_the_clients_side(proxy, backend):
    async def accept_and_drop(exchange) -> None:
        await exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        exchange.cut()

    backend.script = accept_and_drop
    reply = await rig.raw(proxy.port, HANDSHAKE % b"x")
    assert reply.startswith(b"HTTP/1.1 101 ")
    await rig.until(lambda: proxy.house.proxy.running == 0)


async def test_declined_upgrade_ends_the_connection_with_the_backends_answer(proxy, backend):
    """No second request can hide behind a handshake that was declined."""

    async def decline(exchange) -> None:
        await exchange.json({"error": "no"}, "403 Forbidden")

    backend.script = decline
    hidden = b"GET /v1/hidden HTTP/1.1\r\nHost: x\r\n\r\n"
    reply = await rig.raw(proxy.port, HANDSHAKE % b"x" + hidden)
    assert reply.startswith(b"HTTP/1.1 403 Forbidden\r\n") and reply.count(b"HTTP/1.1") == 1
    assert [s.target for s in backend.seen] == [b"/v1/realtime?model=m"]


async def test_offer_of_another_protocol_is_ignored(proxy, backend):
    """Clients that offer h2c with every request (Java's, curl --http2) are answered over HTTP/1.1."""
    body = b'{"model":"m","messages":[{"role":"user","content":"x"}]}'
    reply = await rig.raw(
        proxy.port,
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n"
        b"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body),
    )
    assert reply.startswith(b"HTTP/1.1 200 OK\r\n")
    assert backend.seen[0].get(b"http2-settings") is None and backend.seen[0].get(b"upgrade") is None
