"""The backends: on which connection a request goes to the one that takes it, and what is tried again.

Tried again, once, and only while no byte of an answer has come: on a new connection when a kept one turned out to be
closed, on another backend when this one could not be connected to. Never after a status, never a body that was
streamed, never twice.
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from cacheproxy.core import fields as http_fields
from cacheproxy.core.affinity import Policy, Route
from cacheproxy.core.model import Fields
from cacheproxy.core.rests import Rests, retry_after
from cacheproxy.core.retries import RetryBudget
from cacheproxy.core.standing import Standing
from cacheproxy.errors import AnswerError, CircuitOpen, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from cacheproxy.http.answering import Answering
from cacheproxy.http.balance import Balance
from cacheproxy.http.connection import Connection, Dropped
from cacheproxy.http.lease import Lease
from cacheproxy.http.loads import MOST_BYTES, Loads
from cacheproxy.http.models import Models
from cacheproxy.http.outgoing import pump, request_head
from cacheproxy.http.probes import Probes
from cacheproxy.http.proofs import Proofs
from cacheproxy.http.rounds import Rounds
from cacheproxy.http.upstream import Upstream
from cacheproxy.ports import Journal, Outbound

PROBE_SECONDS = 5.0
_LIGHT = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods of requests that have nothing generated."""
_CLOSED = "The backend closed the connection without an answer."
_UNREADABLE = "The backend's answer could not be read."


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: to connect, to the first byte of an answer, between two reads of one."""

    connect: float
    first_byte: float
    idle: float


@dataclass(frozen=True, slots=True)
class Watching:
    """How the backends are looked after. `models`: seconds between two looks at what each serves, 0 for none; `probe`:
    a path that each is asked for every `interval` seconds, empty for none; `retries`: the share of requests that may be
    tried on another backend."""

    models: float = 0.0
    probe: str = ""
    interval: float = 5.0
    retries: float = 0.2


class Gate(Protocol):
    """Lets requests to the backends (engine/admission.py)."""

    async def enter(self, standing: Standing, route: Route | None, avoid: Collection[Any] = ()) -> Any:
        """A `Lease` of the `Balance`. Raises `AnswerError`."""


class _Open:
    """Lets everything in, at once."""

    def __init__(self, balance: Balance) -> None:
        self.balance = balance

    async def enter(self, standing: Standing, route: Route | None, avoid: Collection[Any] = ()) -> Lease:
        group = self.balance.group(standing.model)
        lease = self.balance.take(group, route, avoid)
        return lease if lease is not None else self.balance.seat(route, avoid, group=group)


class _NoConnection(Exception):
    """To this backend; the cause says why. Nothing was sent."""


class Backends:
    """All upstreams as one backend. `balance` chooses among them (by default by affinity), `admission` says when a
    request that takes a slot may go (by default at once); `interval`: seconds between two looks at their metrics, 0 for
    none; `exporters`: where `/metrics` of their GPUs are; `crowded`: somebody may come to need `utilisation`."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, upstreams: list[Upstream], patience: Patience, balance: Balance | None = None, *, interval: float = 2.0,
        admission: Gate | None = None, journal: Journal | None = None, watching: Watching = Watching(),
        exporters: Mapping[Upstream, Upstream] | None = None, crowded: bool = False,
    ) -> None:  # fmt: skip
        self._upstreams = upstreams
        self._exporters = exporters or {}
        self._patience = patience
        self.balance = balance or Balance(upstreams)
        self.admission: Gate = admission or _Open(self.balance)
        self._journal = journal
        self._retries = RetryBudget(watching.retries)
        self._rests = Rests()
        looked = interval if crowded or self.balance.policy is not Policy.ROUND_ROBIN else 0.0
        self._loads = Loads(
            upstreams, self._metrics, looked, self.balance.failed,
            exporters=dict.fromkeys(self._exporters, self._gpus),
        )  # fmt: skip
        self.balance.reading = self._loads.of
        stations = self.balance.stations
        probes = Probes(self.balance, self._fetch, watching.probe, watching.interval)
        asked = watching.models if any(not upstream.models for upstream in upstreams) and len(upstreams) > 1 else 0.0
        self._proofs = Proofs(self.balance, self._fetch)
        self._rounds = (
            Rounds(stations, Models(self._fetch).look, asked),
            Rounds(stations, probes.look, watching.interval if watching.probe else 0.0),
        )

    def __repr__(self) -> str:
        return f"<Backends {self._upstreams!r}>"

    @property
    def upstreams(self) -> list[Upstream]:
        return self._upstreams

    async def send(self, request: Outbound) -> Answering:
        """Send and wait for the head. Raises `UpstreamUnreachable`, `UpstreamTimeout`, and what the gate refuses
        with."""
        self.begin()
        self._retries.note(self._now())
        group = self.balance.group(request.standing.model if request.standing is not None else "")
        unreachable: set[Upstream] = set()
        while True:
            lease = await self._enter(request, group, unreachable)
            try:
                return await self._attempt(request, lease)
            except _NoConnection as error:
                cause = cast("BaseException", error.__cause__)
                lease.unreachable(cause)
                lease.end()
            except BaseException:
                lease.end()
                raise
            unreachable.add(lease.upstream)
            if not self.balance.has_other(group, unreachable):
                raise UpstreamUnreachable("No backend could be reached.") from cause
            if not self._may_retry():
                raise UpstreamUnreachable("The backend could not be reached.") from cause

    def utilisation(self) -> float | None:
        """The part of the backends that is in use by their own account, 0 to 1; None if none says so."""
        return self._loads.utilisation()

    def listen(self) -> None:
        """Somebody needs `utilisation` from now on."""
        self._loads.need()

    def begin(self) -> None:
        """Look after the backends from now on."""
        self._loads.begin()
        for rounds in self._rounds:
            rounds.begin()

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

    def drain(self, url: str, *, on: bool, force: bool = False) -> bool | None:
        """Give the upstream at `url` nothing new, or again what comes. False if it is the last that takes anything,
        unless it is forced; None if there is none there."""
        return self.balance.drain(url, on=on, force=force)

    def rows(self) -> list[dict[str, Any]]:
        """The state of every upstream: url, weight, inflight, resting, what it says itself or None: running, waiting,
        kv_usage (0 to 1); state, max_inflight, slots_used, draining, ejections."""
        return self.balance.rows()

    async def close(self) -> None:
        """Close the idle connections, and look after the backends no more."""
        await self._loads.close()
        for rounds in self._rounds:
            await rounds.close()
        await self._proofs.close()
        self.balance.close()
        for upstream in (*self._upstreams, *self._exporters.values()):
            upstream.close()

    async def _enter(self, request: Outbound, group: int, unreachable: Collection[Upstream]) -> Lease:
        """A place with an upstream that is none of these."""
        standing = request.standing
        if standing is None:
            return self.balance.seat(request.route, unreachable, light=request.method in _LIGHT)
        now = self._now()
        resting = {u for u in self._upstreams if self._rests.has((u.url, standing.tenant), now)} if self._rests else ()
        avoid = {*unreachable, *resting}
        if resting and self.balance.has_other(group, avoid):
            try:
                return cast("Lease", await self.admission.enter(standing, request.route, avoid))
            except (CircuitOpen, UpstreamUnreachable):
                pass  # the others are not to be had
        return cast("Lease", await self.admission.enter(standing, request.route, unreachable))

    async def _attempt(self, request: Outbound, lease: Lease) -> Answering:
        """Send to the upstream of the lease. Raises `_NoConnection`."""
        upstream, whole = lease.upstream, request.body is None or isinstance(request.body, bytes)
        kept_allowed = whole
        while True:
            try:
                connection, kept = await self._connect(upstream, kept_allowed)
            except OSError as error:
                raise _NoConnection from error
            if not kept:
                lease.connected()
            lease.sent(self._now())
            try:
                reply = await self._exchange(upstream, connection, request, lease)
            except (Dropped, UpstreamCut, UpstreamTimeout) as error:
                if isinstance(error, Dropped) and kept:
                    kept_allowed = False
                    continue
                late = isinstance(error, UpstreamTimeout)
                if whole:  # else it may be the doing of who sends the body
                    lease.silent(late=late)
                if late:
                    raise
                raise UpstreamUnreachable(_CLOSED if isinstance(error, Dropped) else _UNREADABLE) from error
            self._learn(request, lease, reply)
            return reply

    def _learn(self, request: Outbound, lease: Lease, reply: Answering) -> None:
        """What the head of an answer says of the upstream."""
        now, seconds = self._now(), None
        kind = http_fields.first(reply.fields, b"content-type") or b""
        lease.answered(now, reply.status, streamed=kind.lower().startswith(b"text/event-stream"))
        if reply.status in (429, 503):
            seconds = retry_after(reply.fields)
        if not seconds:
            return
        if reply.status == 503:
            lease.rest(seconds)
        elif request.standing is not None:
            self._rests.put((lease.upstream.url, request.standing.tenant), now + seconds)

    def _may_retry(self) -> bool:
        allowed = self._retries.allow(self._now())
        if self._journal is not None:
            self._journal.count("upstream_retries", "retried" if allowed else "denied")
        return allowed

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _metrics(self, upstream: Upstream) -> bytes | None:
        """The page of metrics beside `upstream`'s API; None if it has none, or one too long."""
        status, page = await self._fetch(upstream, b"/metrics", b"text/plain")
        return page if status == 200 and len(page) <= MOST_BYTES else None

    async def _gpus(self, upstream: Upstream) -> bytes | None:
        """The page of the exporter of `upstream`'s GPUs."""
        return await self._metrics(self._exporters[upstream])

    async def _fetch(self, upstream: Upstream, path: bytes, kind: bytes = b"*/*") -> tuple[int, bytes]:
        """What `upstream` has at `path` for who has no credential; of too much of it more than `MOST_BYTES`. Raises
        `OSError`, `AnswerError`, `UpstreamCut`, `Dropped`."""
        request = Outbound("GET", path, ((b"Accept", kind),), None)
        connection, kept = await self._connect(upstream, kept_allowed=True)
        try:
            reply = await self._exchange(upstream, connection, request, None)
        except Dropped:
            if not kept:
                raise
            connection, _ = await self._connect(upstream, kept_allowed=False)
            reply = await self._exchange(upstream, connection, request, None)
        page = bytearray()
        try:
            while len(page) <= MOST_BYTES and (data := await reply.read()):
                page += data
        finally:
            reply.close()
        return reply.status, bytes(page)

    async def _connect(self, upstream: Upstream, kept_allowed: bool) -> tuple[Connection, bool]:
        connection = upstream.take() if kept_allowed else None
        if connection is not None:
            return connection, True
        async with asyncio.timeout(self._patience.connect):
            connection = await upstream.connect()
        if upstream in self._upstreams:
            self.balance.connected(upstream)
        return connection, False

    async def _exchange(
        self, upstream: Upstream, connection: Connection, request: Outbound, lease: Lease | None
    ) -> Answering:
        head, chunked = request_head(upstream, request)
        pumping: asyncio.Task[None] | None = None
        body = request.body
        connection.start(head + body if isinstance(body, bytes) else head, head_only=request.method == "HEAD")
        if body is not None and not isinstance(body, bytes):
            pumping = asyncio.get_running_loop().create_task(pump(body, connection, chunked))
        try:
            await connection.head(self._patience.first_byte)
            if connection.status == 101 and http_fields.first(request.fields, b"upgrade") is None:
                raise UpstreamUnreachable("The backend switched to a protocol that it was not asked for.")
        except BaseException:
            if pumping is not None:
                pumping.cancel()
            connection.abort()
            raise
        return Answering(upstream, connection, pumping, self._patience.idle, lease)
