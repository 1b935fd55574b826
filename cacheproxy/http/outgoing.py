"""A request on its way to a backend: its head, and a body that is sent as it arrives."""

import logging
from collections.abc import AsyncIterator

from cacheproxy.core import fields as http_fields
from cacheproxy.errors import AnswerError
from cacheproxy.http.connection import Connection
from cacheproxy.http.upstream import Upstream
from cacheproxy.ports import Outbound

log = logging.getLogger("cacheproxy.backend")


def request_head(upstream: Upstream, request: Outbound) -> tuple[bytes, bool]:
    """The request line and fields for `upstream`, and whether the body goes in chunks. Every field that is not the
    host or the framing goes as it came, where it came."""
    body = request.body
    length = b"%d" % len(body) if isinstance(body, bytes) else None
    ours = {b"host": upstream.host_field, b"content-length": length}
    lines: list[tuple[bytes, bytes]] = []
    written: set[bytes] = set()
    for name, value in request.fields:
        low = name.lower()
        if low in ours:
            if low not in written:
                lines.append((name, ours[low] or value))
            written.add(low)
        else:
            lines.append((name, value))
    if b"host" not in written:
        lines.insert(0, (b"Host", upstream.host_field))
    stated = b"content-length" in written
    chunked = False
    if not stated and length is not None:
        lines.append((b"Content-Length", length))
    elif not stated and body is not None:
        chunked = True
        lines.append((b"Transfer-Encoding", b"chunked"))
    target = upstream.path + request.target if request.target.startswith(b"/") else request.target
    line = b"%b %b HTTP/1.1\r\n" % (request.method.encode("ascii"), target)
    return line + http_fields.render(tuple(lines)) + b"\r\n", chunked


async def pump(body: AsyncIterator[bytes], connection: Connection, chunked: bool) -> None:
    """Send a body as it arrives. If it breaks off, so does the request: the backend must not take it for whole."""
    try:
        async for data in body:
            if not data:
                continue  # an empty chunk would end the body
            connection.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
            await connection.drain()
        if chunked:
            connection.write(b"0\r\n\r\n")
    except Exception as error:  # noqa: BLE001 - whatever the client's side raises
        log.debug("request body broke off: %s", type(error).__name__)
        connection.abort(error if isinstance(error, AnswerError) else None)
