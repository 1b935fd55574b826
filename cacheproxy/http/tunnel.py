"""Upgrades (WebSocket and others): the handshake passes like any request; after 101 the bytes flow both ways.

Nothing is pipelined behind a handshake: bytes that follow it belong to the upgraded protocol, and when the backend
declines, the connection ends with its answer, so that no second request can hide in them.
"""

import asyncio
from collections.abc import AsyncGenerator

from aiohttp.web import BaseRequest

from cacheproxy.core import fields as http_fields
from cacheproxy.core.model import Fields
from cacheproxy.core.outcome import Forward, Outcome, Reason, Source
from cacheproxy.engine.passage import Passage, forwarded
from cacheproxy.engine.served import Served, Voice
from cacheproxy.errors import InvalidRequest, UpstreamUnreachable
from cacheproxy.http.answering import Answering
from cacheproxy.http.backend import Backends
from cacheproxy.http.incoming import Incoming
from cacheproxy.ports import Outbound


class _Side(asyncio.Protocol):
    """One end of a tunnel: what it reads goes to the other end's transport; a full one stops the reading here."""

    def __init__(self, other: asyncio.Transport, over: asyncio.Event, ended: "set[_Side]") -> None:
        self._other = other
        self._over = over
        self._ended = ended
        self.lost = False
        self.why: BaseException | None = None

    def data_received(self, data: bytes) -> None:
        self._other.write(data)

    # Written to the own transport by the other side: when it is full, the other side must not be read.
    def pause_writing(self) -> None:
        if not self._other.is_closing():
            self._other.pause_reading()

    def resume_writing(self) -> None:
        if not self._other.is_closing():
            self._other.resume_reading()

    def eof_received(self) -> bool:
        """One direction is over; the other may go on, and when both are the tunnel is."""
        self._ended.add(self)
        if len(self._ended) == 2 or not self._other.can_write_eof():
            self._other.close()
            return False
        self._other.write_eof()
        return True

    def connection_lost(self, exc: BaseException | None) -> None:
        self.lost, self.why = True, exc
        self._other.close()
        self._over.set()


class _Inward:
    """What aiohttp hands a client's bytes to once the connection is upgraded (its payload parser protocol)."""

    def __init__(self, other: asyncio.Transport) -> None:
        self._other = other

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        if self._other.is_closing():
            return True, b""
        self._other.write(data)
        return False, b""

    def feed_eof(self) -> None:
        self._other.close()


class Tunnel:
    """Carries upgraded connections."""

    def __init__(self, backends: Backends, voice: Voice) -> None:
        self._backends = backends
        self._voice = voice

    async def open(self, request: BaseRequest, call: Incoming) -> Served | None:
        """Ask the backend for the upgrade and carry it to its end (None), or give its answer if it declines."""
        if request.body_exists:
            raise InvalidRequest("A request for an upgrade must not have a body.")
        # Of several offers only this one goes on: a tunnel of HTTP/2 would be a way past everything here.
        handshake = ((b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"))
        reply = await self._backends.send(Outbound(call.method, call.target, forwarded(call.fields) + handshake, None))
        if reply.status == 101 and http_fields.tokens(reply.fields, b"upgrade") != [b"websocket"]:
            reply.close()
            raise UpstreamUnreachable("The backend switched to a protocol that it was not asked for.")
        if reply.status != 101:
            passage = Passage(call.fields, reply.fields, transparent=True)
            outcome = Outcome(Source.BYPASS, Reason.UNCACHEABLE_PATH, Forward.BYPASS)
            lines = self._voice.relayed(call.stages, outcome, None, passage.fields)
            body = _rest(reply)
            await anext(body)
            return Served(reply.status, reply.phrase, lines, body, passage.length, dated=passage.dated)
        try:
            await self._carry(request, reply)
        finally:
            reply.close()
        return None

    async def _carry(self, request: BaseRequest, reply: Answering) -> None:
        client, backend = request.transport, reply.connection.transport
        if client is None or backend is None:
            raise ConnectionResetError("one end left")
        over, ended = asyncio.Event(), set[_Side]()
        protocol = request.protocol
        client.write(_switch(reply.fields, reply.phrase) + (reply.connection.upgraded_tail or b""))
        backend.set_protocol(_Side(client, over, ended))
        protocol.set_parser(_Inward(backend))  # type: ignore[arg-type] # hands over what came behind the handshake
        side = _Side(backend, over, ended)
        client.set_protocol(side)
        try:
            await over.wait()
        finally:
            # The server has to see its connection end, whoever ended it.
            if side.lost:
                protocol.connection_lost(side.why)
            else:
                client.set_protocol(protocol)
                client.close()


def is_websocket(method: str, fields: Fields) -> bool:
    """Whether a request asks for a WebSocket. Offers of other protocols (h2c) are ignored, as RFC 9110 7.8 allows."""
    return (
        method == "GET"
        and b"websocket" in http_fields.tokens(fields, b"upgrade")
        and b"upgrade" in http_fields.tokens(fields, b"connection")
    )


def _switch(fields: Fields, phrase: bytes) -> bytes:
    return b"HTTP/1.1 101 " + (phrase or b"Switching Protocols") + b"\r\n" + http_fields.render(fields) + b"\r\n"


async def _rest(reply: Answering) -> AsyncGenerator[bytes, None]:
    try:
        yield b""
        while data := await reply.read():
            yield data
    finally:
        reply.close()
