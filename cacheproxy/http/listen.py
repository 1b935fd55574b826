"""Listeners: aiohttp's low-level server, without router and middlewares on the proxy's way."""

import asyncio
import os
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from cacheproxy.errors import ConfigurationError, InvalidRequest
from cacheproxy.http import limits
from cacheproxy.http.handlers import Proxy

MAX_LINE = 65_536
MAX_HEADERS = 256


class _Connection(RequestHandler):
    """aiohttp's connection, with errors in our form; they repeat nothing of what was sent."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        del request, exc, message  # nothing of them is told
        error = InvalidRequest("The HTTP message could not be parsed.")
        response = web.Response(status=status, body=limits.error_body(error), content_type="application/json")
        response.headers["Cache-Control"] = "private, no-store"
        response.force_close()
        return response


class _Server(web.Server):
    def __call__(self) -> RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


def server(proxy: Proxy, keepalive: float) -> web.Server:
    """The proxy's server: callers that leave cancel their handler, bodies are not unpacked, nothing is logged."""
    options: dict[str, Any] = {
        "keepalive_timeout": keepalive,
        "access_log": None,
        "auto_decompress": False,
        "max_line_size": MAX_LINE,
        "max_field_size": MAX_LINE,
        "max_headers": MAX_HEADERS,
    }
    return _Server(proxy, handler_cancellation=True, **options)


async def bind(factory: Any, host: str, port: int, what: str) -> asyncio.Server:
    """Listen. Raises `ConfigurationError` with one sentence that says what to do."""
    try:
        return await asyncio.get_running_loop().create_server(factory, host, port, backlog=1024)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise ConfigurationError(
            f"the {what} cannot listen on {host}:{port} ({why}); stop what uses the port or choose another"
        ) from error
