"""Listeners: aiohttp's low-level server, without router and middlewares on the proxy's way.

The server has no deadlines of its own and takes a client's end of sending for its leaving; both are mended here.
"""

import asyncio
import logging
import os
from collections.abc import Coroutine
from email.utils import formatdate
from typing import Any, cast

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from cacheproxy.errors import ConfigurationError, InvalidRequest, RequestTimeout, place_of
from cacheproxy.http import limits, wire
from cacheproxy.http.deadlines import HALF_CLOSED, Deadlines, Overdue, Sweep, Watch
from cacheproxy.http.handlers import Proxy
from cacheproxy.ports import Journal

log = logging.getLogger("cacheproxy.http")

MAX_LINE = 65_536
MAX_HEADERS = 256


class _Connection(RequestHandler):
    """aiohttp's connection, watched, and with errors in our form; they repeat nothing of what was sent."""

    __slots__ = ("_journal", "_sweep", "_watch")

    def __init__(self, manager: web.Server, sweep: Sweep, journal: Journal, **options: Any) -> None:
        super().__init__(manager, **options)
        self._sweep = sweep
        self._journal = journal

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._watch = Watch(cast("asyncio.Transport", transport), self, self._loop.time)
        self._sweep.add(self._watch, self._end)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._sweep.drop(self._watch)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._watch.hear(data)
        super().data_received(data)
        if self._messages and isinstance(self._messages[-1][0], _ErrInfo):
            self._break_body()

    def _break_body(self) -> None:
        """What came is no HTTP. The compiled parser does not tell the body that it was in, which would wait on."""
        bodies = [body for _, body in self._messages]
        if self._current_request is not None:
            bodies.append(self._current_request.content)
        for body in bodies:
            if not body.is_eof() and body.exception() is None:
                body.set_exception(web.RequestPayloadError("the framing is broken"))

    def eof_received(self) -> bool:  # type: ignore[override] # the transport heeds it, aiohttp never gives one
        """The client sends no more. Judged a turn later: a request that came with it has its handler by then."""
        self._loop.call_soon(self._judge_eof)
        return True

    def _judge_eof(self) -> None:
        if self._watch.close_half():
            self._loop.call_later(HALF_CLOSED, self._judge_silence)
        else:
            self._watch.transport.close()

    def _judge_silence(self) -> None:
        if self._watch.is_left:
            self._watch.transport.close()

    def begin(self, message: RawRequestMessage, payload: StreamReader, writer: AbstractStreamWriter) -> None:
        """A request's handler starts."""
        self._watch.begin(payload, writer, last=message.should_close, upgrade=message.upgrade)

    def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> Coroutine[Any, Any, tuple[web.StreamResponse, bool]]:
        self._watch.end()
        if self._watch.half_closed and not self._messages:
            self.close()
        return super().finish_response(request, resp, start_time)

    def _end(self, overdue: Overdue) -> None:
        """End the connection; that cancels the handler, and with it the backend's call. A request that has no answer
        yet is told why. An answer that has begun is cut by a reset, which no client can take for its end."""
        log.debug("a client's connection was ended: %s", overdue.value)
        watch = self._watch
        if overdue in (Overdue.WRITE, Overdue.GONE) or watch.answering:
            wire.reset(watch.transport)
            return
        if overdue is not Overdue.SILENT:
            self._journal.count("error", RequestTimeout.code)
            watch.transport.write(_timeout_answer())
        self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        del message  # nothing of what was sent is told
        if request.writer.output_size > 0:
            log.error("an answer failed inside the proxy: %s", place_of(exc) if exc is not None else "?")
            raise ConnectionError("an answer has begun; another cannot follow in it")
        error = InvalidRequest("The HTTP message could not be parsed.")
        response = web.Response(status=status, body=limits.error_body(error), content_type="application/json")
        response.headers["Cache-Control"] = "private, no-store"
        response.force_close()
        return response


def _timeout_answer() -> bytes:
    error = RequestTimeout("The request did not arrive in time.")
    body = limits.error_body(error)
    date = f"Date: {formatdate(usegmt=True)}\r\n".encode("ascii")
    framing = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    return b"HTTP/1.1 408 Request Timeout\r\n" + limits.error_lines(error) + date + framing + body


class _Server(web.Server):
    def __init__(self, proxy: Proxy, deadlines: Deadlines, journal: Journal, **options: Any) -> None:
        super().__init__(proxy, request_factory=self._request, handler_cancellation=True, **options)
        self._sweep = Sweep(deadlines, self._loop)
        self._journal = journal

    def __call__(self) -> RequestHandler:
        return _Connection(self, self._sweep, self._journal, loop=self._loop, **self._kwargs)

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: AbstractStreamWriter,
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        cast("_Connection", protocol).begin(message, payload, writer)
        return web.BaseRequest(message, payload, protocol, writer, task, self._loop)


def server(proxy: Proxy, keepalive: float, deadlines: Deadlines, journal: Journal) -> web.Server:
    """The proxy's server: callers that leave cancel their handler, bodies are not unpacked, nothing is logged."""
    options: dict[str, Any] = {
        "keepalive_timeout": keepalive,
        "access_log": None,
        "auto_decompress": False,
        "max_line_size": MAX_LINE,
        "max_field_size": MAX_LINE,
        "max_headers": MAX_HEADERS,
    }
    return _Server(proxy, deadlines, journal, **options)


async def bind(factory: Any, host: str, port: int, what: str) -> asyncio.Server:
    """Take the address; nobody is heard before `serve`. Raises `ConfigurationError` with one sentence that says what to
    do."""
    try:
        return await asyncio.get_running_loop().create_server(factory, host, port, backlog=1024, start_serving=False)
    except OSError as error:
        raise _taken(error, host, port, what) from error


async def serve(server: asyncio.Server, what: str) -> None:
    """Listen. Raises `ConfigurationError` as `bind`."""
    host, port = server.sockets[0].getsockname()[:2]
    try:
        await server.start_serving()
    except OSError as error:
        raise _taken(error, host, port, what) from error


def _taken(error: OSError, host: str, port: int, what: str) -> ConfigurationError:
    why = os.strerror(error.errno) if error.errno else str(error)
    return ConfigurationError(
        f"the {what} cannot listen on {host}:{port} ({why}); stop what uses the port or choose another"
    )
