"""The backends: on which connection a request goes to the one that takes it, and what is tried again.

Tried again, once, and only while no byte of an answer has come: on a new connection when a kept one turned out to be
closed, on another backend when this one could not be connected to. Never after a status, never a body that was
streamed, never twice.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from cacheproxy.core import fields as http_fields
from cacheproxy.core.affinity import Policy
from cacheproxy.core.model import Fields
from cacheproxy.errors import AnswerError, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from cacheproxy.http.balance import Balance, Lease
from cacheproxy.http.connection import Connection, Dropped
from cacheproxy.http.loads import MOST_BYTES, Loads
from cacheproxy.http.upstream import Upstream
from cacheproxy.ports import Outbound

log = logging.getLogger("cacheproxy.backend")

PROBE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: to connect, to the first byte of an answer, between two reads of one."""

    connect: float
    first_byte: float
    idle: float


class Backends:
    """All upstreams as one backend; replicas of the same service. `balance` chooses among them (by default by
    affinity); `interval`: seconds between two looks at their metrics, 0 for none."""

    def __init__(
        self, upstreams: list[Upstream], patience: Patience, balance: Balance | None = None, *, interval: float = 2.0
    ) -> None:
        self._upstreams = upstreams
        self._patience = patience
        self._balance = balance or Balance(upstreams)
        looked = interval if self._balance.policy is not Policy.ROUND_ROBIN else 0.0
        self._loads = Loads(upstreams, self._metrics, looked, self._balance.failed)
        self._balance.reading = self._loads.of

    def __repr__(self) -> str:
        return f"<Backends {self._upstreams!r}>"

    async def send(self, request: Outbound) -> "Answering":
        """Send and wait for the head. Raises `UpstreamUnreachable`, `UpstreamTimeout`."""
        self._loads.begin()
        lease = self._balance.take(request.route)
        try:
            return await self._send(request, lease)
        except BaseException:
            lease.end()
            raise

    async def _send(self, request: Outbound, lease: Lease) -> "Answering":
        unreachable: set[Upstream] = set()
        kept_allowed = request.body is None or isinstance(request.body, bytes)
        while True:
            try:
                connection, kept = await self._connect(lease.upstream, kept_allowed)
            except (OSError, TimeoutError) as error:
                self._balance.failed(lease.upstream, error)
                unreachable.add(lease.upstream)
                if len(unreachable) == len(self._upstreams):
                    raise UpstreamUnreachable("No backend could be reached.") from error
                lease.move(unreachable)
                continue
            try:
                return await self._exchange(lease.upstream, connection, request, lease)
            except Dropped as error:
                if not kept:
                    raise UpstreamUnreachable("The backend closed the connection without an answer.") from error
                kept_allowed = False
            except UpstreamCut as error:
                raise UpstreamUnreachable("The backend's answer could not be read.") from error

    async def probe(self, fields: Fields) -> int | None:
        """The status that ``GET /v1/models`` has with the credential of `fields`; None if it could not be asked."""
        credential = tuple(line for line in fields if line[0].lower() in http_fields.CREDENTIALS)
        request = Outbound("GET", b"/v1/models", ((b"Accept", b"application/json"), *credential), None)
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                reply = await self.send(request)
        except (AnswerError, TimeoutError):
            return None
        reply.close()
        return reply.status

    def rows(self) -> list[dict[str, Any]]:
        """The state of every upstream: url, weight, inflight, resting, and what it says itself or None: running,
        waiting, kv_usage (0 to 1)."""
        return self._balance.rows()

    async def close(self) -> None:
        """Close the idle connections, and look at no metrics any more."""
        await self._loads.close()
        for upstream in self._upstreams:
            upstream.close()

    async def _metrics(self, upstream: Upstream) -> bytes | None:
        """The page of metrics beside `upstream`'s API; None if it has none, or one too long."""
        connection, _ = await self._connect(upstream, kept_allowed=True)
        request = Outbound("GET", b"/metrics", ((b"Accept", b"text/plain"),), None)
        reply = await self._exchange(upstream, connection, request, None)
        page = bytearray()
        try:
            while reply.status == 200 and len(page) <= MOST_BYTES and (data := await reply.read()):
                page += data
        finally:
            reply.close()
        return bytes(page) if reply.status == 200 and len(page) <= MOST_BYTES else None

    async def _connect(self, upstream: Upstream, kept_allowed: bool) -> tuple[Connection, bool]:
        connection = upstream.take() if kept_allowed else None
        if connection is not None:
            return connection, True
        async with asyncio.timeout(self._patience.connect):
            return await upstream.connect(), False

    async def _exchange(
        self, upstream: Upstream, connection: Connection, request: Outbound, lease: Lease | None
    ) -> "Answering":
        head, chunked = _request_head(upstream, request)
        pump: asyncio.Task[None] | None = None
        body = request.body
        connection.start(head + body if isinstance(body, bytes) else head, head_only=request.method == "HEAD")
        if body is not None and not isinstance(body, bytes):
            pump = asyncio.get_running_loop().create_task(_pump(body, connection, chunked))
        try:
            await connection.head(self._patience.first_byte)
            if connection.status == 101 and http_fields.first(request.fields, b"upgrade") is None:
                raise UpstreamUnreachable("The backend switched to a protocol that it was not asked for.")
        except BaseException:
            if pump is not None:
                pump.cancel()
            connection.abort()
            raise
        return Answering(upstream, connection, pump, self._patience.idle, lease)


class Answering:
    """A reply whose head has come (the `Reply` of ports.py)."""

    def __init__(
        self, upstream: Upstream, connection: Connection, pump: asyncio.Task[None] | None, idle: float,
        lease: Lease | None,
    ) -> None:  # fmt: skip
        self.status = connection.status
        self.phrase = connection.phrase
        self.fields = connection.fields
        self.interim = connection.interim
        self.connection = connection
        self._upstream = upstream
        self._pump = pump
        self._idle = idle
        self._lease = lease
        self._open = True

    def __repr__(self) -> str:
        return f"<Answering {self.status} {'open' if self._open else 'closed'} {self.connection!r}>"

    @property
    def ended(self) -> bool:
        return not self._open or self.connection.ended

    async def read(self) -> bytes:
        if not self._open:
            return b""
        try:
            return await self.connection.read(self._idle)
        except Dropped as error:
            raise UpstreamCut("the connection ended inside the answer") from error
        except UpstreamTimeout:
            self.connection.abort()
            raise

    async def settle(self, seconds: float) -> bool:
        return not self._open or await self.connection.settle(seconds)

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        if self._lease is not None:
            self._lease.end()
        sent = self._pump is None or self._pump.done()
        if self._pump is not None:
            self._pump.cancel()
        if sent and self.connection.reusable:
            self._upstream.give(self.connection)
        else:
            self.connection.abort()


def _request_head(upstream: Upstream, request: Outbound) -> tuple[bytes, bool]:
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


async def _pump(body: AsyncIterator[bytes], connection: Connection, chunked: bool) -> None:
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
