"""Clients that are slow, silent, or do not read, and how a test tells that a deadline has passed."""

import asyncio
import socket

from tests import rig
from tests.proxy.wire import Wire, wire

SHORT = {"limits__header_timeout": "500ms", "limits__body_timeout": "500ms", "limits__write_timeout": "500ms"}
"""All deadlines of a client, in a test."""
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer A\r\nContent-Type: application/json\r\n"
UPLOAD = b"PUT /files HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
GET = b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n"
BOUND = 10.0
"""Seconds within which what has to end must have ended, on a busy machine."""


async def rest(reader: asyncio.StreamReader) -> tuple[bytes, bool]:
    """All that comes until the connection ends, and whether it ended by a reset."""
    got = b""
    async with asyncio.timeout(BOUND):
        while True:
            try:
                data = await reader.read(65536)
            except ConnectionError:
                return got, True
            if not data:
                return got, False
            got += data


async def trickle(writer: asyncio.StreamWriter, data: bytes, pause: float = 0.02) -> None:
    """Send byte by byte, over and over, until the other side is gone."""
    while True:
        for byte in data:
            writer.write(bytes([byte]))
            try:
                await writer.drain()
            except ConnectionError:
                return
            await asyncio.sleep(pause)


async def trickled(port: int, start: bytes, slowly: bytes) -> bytes:
    """What a client is told that sends `start` at once and `slowly` byte by byte, without end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(start)
    sending = asyncio.create_task(trickle(writer, slowly))
    try:
        return (await rest(reader))[0]
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        writer.close()


async def outlive(port: int, times: int = 2) -> None:
    """Return when a deadline has passed so often since now: each time a silent connection has met its end by it."""
    for _ in range(times):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await rest(reader) == (b"", False)
        writer.close()


async def narrow(port: int, data: bytes) -> socket.socket:
    """A connection whose client has little room for what it does not read, and has sent `data`."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    await asyncio.get_running_loop().sock_sendall(sock, data)
    return sock


def refused(got: bytes) -> Wire:
    """The one answer in `got`, checked to be the error of a request that came too slowly."""
    answer = wire(got)
    assert got.count(b"HTTP/1.1 ") == 1 and answer.whole and not answer.rest
    assert answer.line == b"HTTP/1.1 408 Request Timeout"
    assert (answer.get(b"connection"), answer.get(b"content-type")) == (b"close", b"application/json")
    assert answer.get(b"cache-control") == b"private, no-store" and answer.get(b"date")
    assert b'"code":"request_timeout"' in answer.body
    return answer


async def flood(exchange) -> None:
    """A script: an answer without end."""
    await exchange.head(Content_Type="application/octet-stream", Transfer_Encoding="chunked")
    while True:
        await exchange.chunk(b"z" * 65536)


def errors(proxy: rig.InProcess) -> int:
    """How many requests were refused because they came too slowly."""
    value = proxy.house.telemetry.registry.get_sample_value("cacheproxy_errors_total", {"code": "request_timeout"})
    return int(value or 0)


def connections(proxy: rig.InProcess) -> list:
    """The connections of clients."""
    return proxy.running._server.connections
