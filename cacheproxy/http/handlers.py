"""The proxy listener's handler: an aiohttp request in, bytes on the socket out.

Heads are written as they came from the backend, byte for byte, so aiohttp's own response writer is not used. Leaving
callers cancel the handler; everything it holds is let go in `finally`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from email.utils import formatdate
from typing import Any, Protocol

from aiohttp.web import BaseRequest, StreamResponse

from cacheproxy.engine.served import Served
from cacheproxy.errors import AnswerError, Draining, InvalidRequest, UpstreamCut, UpstreamTimeout, place_of
from cacheproxy.http import limits, wire
from cacheproxy.http.incoming import Incoming
from cacheproxy.http.tunnel import Tunnel, is_websocket
from cacheproxy.ports import Journal

log = logging.getLogger("cacheproxy.http")

BODYLESS = (204, 304)
AT_ONCE = 256 * 2**10
"""Bytes of a body that are handed to the system in one piece; more waits until the client takes it."""


class Written(StreamResponse):
    """Tells aiohttp that the response has been written already."""

    def __init__(self, *, keep_alive: bool) -> None:
        super().__init__()
        self._keep_alive = keep_alive

    async def prepare(self, request: Any) -> None:  # noqa: ARG002
        return None

    async def write_eof(self, data: bytes = b"") -> None:  # noqa: ARG002
        return None


KEEP = Written(keep_alive=True)
CLOSE = Written(keep_alive=False)


class Answers(Protocol):
    """Where answers come from."""

    async def answer(self, call: Incoming) -> Served:
        """The answer to `call`. Raises `AnswerError`; the caller of this must close what it gets."""


class Proxy:
    """Answers every request of the proxy listener."""

    def __init__(self, pipeline: Answers, tunnel: Tunnel, journal: Journal, body_limit: int) -> None:
        self._pipeline = pipeline
        self._tunnel = tunnel
        self._journal = journal
        self._limit = body_limit
        self._date = (0, b"")
        self.draining = False
        self.refusing = False
        self.running = 0

    async def __call__(self, request: BaseRequest) -> StreamResponse:
        self.running += 1
        try:
            return await self._answer(request)
        finally:
            self.running -= 1

    async def _answer(self, request: BaseRequest) -> StreamResponse:
        target = request.raw_path.encode("utf-8", "surrogateescape")
        call = Incoming(request, target, self._limit)
        try:
            limits.check(request.method, request.version, target, call.fields)
            if self.refusing:
                raise Draining("The proxy is shutting down.")
            if request.version >= (1, 1) and is_websocket(call.method, call.fields):
                return await self._upgrade(request, call)
            served = await self._pipeline.answer(call)
        except AnswerError as error:
            return await self._error(request, error)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, its caller gets an answer
            log.error("a request failed inside the proxy: %s", place_of(error))
            return await self._error(request, AnswerError("The proxy failed."))
        try:
            return await self._write(request, served)
        finally:
            await served.close()

    async def _upgrade(self, request: BaseRequest, call: Incoming) -> StreamResponse:
        served = await self._tunnel.open(request, call)
        if served is None:
            return CLOSE
        try:
            return await self._write(request, served, close=True)
        finally:
            await served.close()

    async def _error(self, request: BaseRequest, error: AnswerError) -> StreamResponse:
        self._journal.count("error", error.code)
        body = limits.error_body(error)
        phrase = _PHRASES.get(error.status, b"Error")
        served = Served(error.status, phrase, limits.error_lines(error), body, len(body))
        refused = isinstance(error, InvalidRequest)
        written = await self._write(request, served, close=refused or not request.content.is_eof())
        if refused:
            request.protocol.force_close()  # what follows on this connection is not to be read at all
        return written

    async def _write(self, request: BaseRequest, served: Served, *, close: bool = False) -> StreamResponse:
        modern = request.version >= (1, 1)
        bodyless = request.method == "HEAD" or served.status in BODYLESS
        chunked = modern and not bodyless and (served.chunked or served.length is None)
        keep = request.keep_alive and not close and not self.draining and not _must_be_last(request)
        keep = keep and (modern or bodyless or served.length is not None)
        head = self._head(served, modern=modern, chunked=chunked, keep=keep)
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client left")
        request.writer.output_size += len(head)  # from here on no other answer may be written
        body = served.body
        if isinstance(body, bytes) and len(body) > AT_ONCE and not bodyless:
            body = _slices(body)
        if isinstance(body, bytes):
            if bodyless:
                transport.write(head)
            elif chunked:
                chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""  # one of no bytes would be the last
                transport.write(b"%b%b0\r\n\r\n" % (head, chunk))
            else:
                transport.write(head + body)
            await request.writer.drain()
            return KEEP if keep else CLOSE
        transport.write(head)
        try:
            await self._relay(request, body, chunked=chunked)
        except (UpstreamCut, UpstreamTimeout) as error:
            log.info("an answer broke off: %s", error)
            self._cut(request, framed=chunked or served.length is not None)
            return CLOSE
        return KEEP if keep else CLOSE

    async def _relay(self, request: BaseRequest, body: AsyncGenerator[bytes, None], *, chunked: bool) -> None:
        """Write a body as it comes; the client's pace is the backend's."""
        transport, protocol = request.transport, request.protocol
        async for data in body:
            if not data:
                continue
            if transport is None or transport.is_closing():
                raise ConnectionResetError("the client left")
            transport.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
            if protocol.writing_paused:
                await request.writer.drain()
        if chunked and transport is not None:
            transport.write(b"0\r\n\r\n")

    def _cut(self, request: BaseRequest, *, framed: bool) -> None:
        """End the connection so that the client sees an answer that is not whole."""
        transport = request.transport
        if transport is None:
            return
        if framed:
            request.protocol.force_close()  # what was written still goes out; the framing shows the cut
        else:
            # Only a reset tells a client that reads to the end of the connection that this was not it.
            wire.reset(transport)

    def _head(self, served: Served, *, modern: bool, chunked: bool, keep: bool) -> bytes:
        interim = served.interim if modern else b""
        parts = [interim, b"HTTP/1.%d %d %b\r\n" % (1 if modern else 0, served.status, served.phrase), served.lines]
        if not served.dated:
            parts.append(self._date_line())
        if chunked:
            parts.append(b"Transfer-Encoding: chunked\r\n")
        elif served.length is not None and served.status != 204:
            parts.append(b"Content-Length: %d\r\n" % served.length)
        if not keep:
            parts.append(b"Connection: close\r\n")
        elif not modern:
            parts.append(b"Connection: keep-alive\r\n")
        parts.append(b"\r\n")
        return b"".join(parts)

    def _date_line(self) -> bytes:
        now = int(time.time())
        if self._date[0] != now:
            self._date = (now, f"Date: {formatdate(now, usegmt=True)}\r\n".encode("ascii"))
        return self._date[1]


async def _slices(body: bytes) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(body), AT_ONCE):
        yield body[start : start + AT_ONCE]


def _must_be_last(request: BaseRequest) -> bool:
    """Whether no request may be read behind this one. aiohttp's parser gives the last trailer of a chunked body to the
    next request as a header, and loses what came in one packet with an offer to upgrade."""
    return "Transfer-Encoding" in request.headers or "Upgrade" in request.headers


_PHRASES = {
    400: b"Bad Request", 413: b"Content Too Large", 415: b"Unsupported Media Type", 500: b"Internal Server Error",
    502: b"Bad Gateway", 503: b"Service Unavailable", 504: b"Gateway Timeout",
}  # fmt: skip
