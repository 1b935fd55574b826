"""A request of aiohttp's server as the engine's `Call`."""

from collections.abc import AsyncIterator

from aiohttp import StreamReader
from aiohttp.web import BaseRequest, RequestPayloadError

from cacheproxy.core import fields as http_fields
from cacheproxy.engine.profile import Stages
from cacheproxy.errors import InvalidRequest, RequestTooLarge

SMALL = 64 * 1024
"""A body of a stated length up to this is read before it is forwarded, so that it can be sent again if the kept
connection to the backend turns out to be closed."""


class Incoming:
    """One request; its body is read at most once. `body`: all of it, once it has been read as a whole."""

    def __init__(self, request: BaseRequest, target: bytes, body_limit: int) -> None:
        self.method = request.method
        self.target = target
        self.fields = request.raw_headers
        self.stages = Stages()
        self._request = request
        self._limit = body_limit
        self.body: bytes | None = None

    async def whole(self) -> bytes:
        if self.body is None:
            self.body = await self._whole()
        return self.body

    async def _whole(self) -> bytes:
        stated = self._request.content_length
        if stated is not None and stated > self._limit:
            raise self._too_large()
        content = self._request.content
        if content.is_eof():
            data = content.read_nowait()
            if len(data) > self._limit:
                raise self._too_large()
            return data
        self._continue()
        parts: list[bytes] = []
        size = 0
        while data := await _read(content):
            size += len(data)
            if size > self._limit:
                raise self._too_large()
            parts.append(data)
        return b"".join(parts)

    async def pieces(self, most: int = 0) -> bytes | AsyncIterator[bytes] | None:
        request = self._request
        if not request.body_exists:
            return None
        stated = request.content_length
        if stated is not None and stated <= max(SMALL, most):
            return await self.whole()
        self._continue()
        return _Pieces(request.content)

    def _continue(self) -> None:
        """Tell a client that waits for it to send its body (RFC 9110 section 10.1.1)."""
        if b"100-continue" in http_fields.tokens(self.fields, b"expect") and self._request.version >= (1, 1):
            transport = self._request.transport
            if transport is not None and not self._request.content.total_raw_bytes:
                transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _too_large(self) -> RequestTooLarge:
        return RequestTooLarge(f"The request body is larger than {self._limit} bytes.")


class _Pieces:
    """The pieces of a body as they come."""

    def __init__(self, content: StreamReader) -> None:
        self._content = content

    def __aiter__(self) -> "_Pieces":
        return self

    async def __anext__(self) -> bytes:
        if data := await _read(self._content):
            return data
        raise StopAsyncIteration


async def _read(content: StreamReader) -> bytes:
    """The next bytes of a body, empty at its end. Raises `InvalidRequest` where its framing breaks."""
    try:
        return await content.readany()
    except RequestPayloadError as error:
        raise InvalidRequest("The request body is not framed as its head says.") from error
