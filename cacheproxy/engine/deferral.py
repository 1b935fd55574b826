"""Requests that were refused now, and are kept to be asked later on their callers' behalf.

What is kept of one lies sealed in a store, under an id that cannot be guessed, with the fingerprint of the credential
that alone may hear of it. Whoever is to ask it holds it by a lease: one at a time, and another one once its lease has
run out. Who asks, and when, is said in engine/deferring.py.

Under cancellation: a caller who leaves while his request is being put may have it asked all the same; it is his own,
and its answer is kept for him.
"""

import asyncio
import logging
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import orjson

from cacheproxy.core import deferral, policy, rules
from cacheproxy.core.deferral import Bounds, Order, Reply, Row, State
from cacheproxy.core.rules import Settled
from cacheproxy.core.urgency import LEAST
from cacheproxy.engine.binder import Binder
from cacheproxy.engine.bound import Bound, Head
from cacheproxy.engine.call import Call
from cacheproxy.errors import AnswerError, CircuitOpen, QueueFull, QueueTimeout, Refused, Shed, Trouble
from cacheproxy.ports import Journal

log = logging.getLogger("cacheproxy.jobs")

ID_BYTES = 18
_ID = re.compile(r"[A-Za-z0-9_-]{24}")
PATIENCE = 2.0
"""Seconds that a refused caller waits at most until his request is kept."""
DEFERRED = (Shed, QueueFull, QueueTimeout, CircuitOpen)
"""Refusals that say: not now. Who has used up what he may is not one to be asked for later."""
_ORDER, _REPLY = b"order", b"reply"


class Deferrals(Protocol):
    """Keeps them. Everything raises `Trouble`. `lease`, `pause`, `ttl` are seconds."""

    durable: bool
    """Whether they outlive the process."""

    async def put(self, name: str, owner: bytes, sealed: bytes, bounds: Bounds) -> bool:
        """Keep a new one; false if there is no room. On the disk, or the server, when it returns."""

    async def find(self, name: str) -> Row | None:
        """What is known of it."""

    async def claim(self, token: str, lease: float) -> Row | None:
        """The one whose turn it is, for who has this token alone, for so long; None if none is due."""

    async def hold(self, name: str, token: str, lease: float) -> bool:
        """Hold it for so long from now on. Like the two that follow it does nothing, and says so, if another one has
        it by now, or nobody any more."""

    async def release(self, name: str, token: str, pause: float, attempts: int) -> bool:
        """Give it back, to be claimed again after the pause, as one that was claimed `attempts` times."""

    async def finish(self, name: str, token: str, sealed: bytes, ttl: float, *, failed: bool) -> bool:
        """It has ended so."""

    async def forget(self, name: str) -> None:
        """Know nothing of it."""

    async def census(self) -> tuple[int, int]:
        """How many have not ended, and the bytes that all hold."""

    async def close(self) -> None:
        """Let go."""


class Sealer(Protocol):
    """Hides content from who reads the store."""

    def seal(self, name: bytes, purpose: bytes, plain: bytes) -> bytes:
        """`plain`, sealed for this name and purpose."""

    def open(self, name: bytes, purpose: bytes, sealed: bytes) -> bytes | None:
        """What was sealed; None if it cannot be opened."""


@dataclass(frozen=True, slots=True)
class Known:
    """A request that is kept, and what came of it. `order` is there until it has ended, and `reply` from then on; each
    is None if it cannot be read."""

    row: Row
    order: Order | None = None
    reply: Reply | None = None


class Vault:
    """A store whose content is sealed."""

    def __init__(self, store: Deferrals, sealer: Sealer, bounds: Bounds) -> None:
        self.store = store
        self.bounds = bounds
        self._sealer = sealer

    def __repr__(self) -> str:
        return f"<Vault {self.store!r}>"

    async def put(self, owner: bytes, order: Order) -> str | None:
        """Keep `order`; its id, None if there is no room. Raises `Trouble`."""
        name = secrets.token_urlsafe(ID_BYTES)
        sealed = self._sealer.seal(name.encode(), _ORDER, deferral.pack(order))
        return name if await self.store.put(name, owner, sealed, self.bounds) else None

    async def find(self, name: str) -> Known | None:
        """What is known of it. Raises `Trouble`."""
        row = await self.store.find(name) if _ID.fullmatch(name) else None
        if row is None:
            return None
        return Known(row, reply=self._reply(row) if row.state in (State.DONE, State.FAILED) else None)

    async def claim(self, token: str, lease: float) -> Known | None:
        """The one whose turn it is. Raises `Trouble`."""
        row = await self.store.claim(token, lease)
        if row is None:
            return None
        plain = self._sealer.open(row.id.encode(), _ORDER, row.sealed)
        return Known(row, order=None if plain is None else deferral.order_of(plain))

    async def finish(self, name: str, token: str, reply: Reply, *, failed: bool) -> bool:
        """It has ended with `reply`. Raises `Trouble`."""
        _, held = await self.store.census()
        sealed = self._sealer.seal(name.encode(), _REPLY, deferral.pack(reply))
        if held + len(sealed) > self.bounds.most_bytes:
            reply = told(AnswerError("There was no room to keep the answer; ask again."))
            sealed = self._sealer.seal(name.encode(), _REPLY, deferral.pack(reply))
            failed = True
        return await self.store.finish(name, token, sealed, self.bounds.ttl, failed=failed)

    def _reply(self, row: Row) -> Reply:
        if not row.sealed:
            return told(error_of(504, "expired", "The request waited longer than it may."))
        plain = self._sealer.open(row.id.encode(), _REPLY, row.sealed)
        reply = None if plain is None else deferral.reply_of(plain)
        return told(AnswerError("What was kept cannot be read.")) if reply is None else reply


def error_of(status: int, code: str, message: str) -> AnswerError:
    """An error that only who asks after a kept request can meet."""
    error = AnswerError(message)
    error.status, error.code = status, code
    error.kind = error.kind if status >= 500 else "invalid_request_error"
    return error


def told(error: AnswerError) -> Reply:
    """An error of ours as what came of a request."""
    body = {"message": error.message, "type": error.kind, "param": error.param, "code": error.code}
    return Reply(
        error.status,
        (
            (b"Content-Type", b"application/json"),
            (b"Cache-Control", b"private, no-store"),
            (b"Vary", b"Authorization"),
        ),
        orjson.dumps({"error": body}),
    )


class HeldCall(Call, Protocol):
    """A `Call` that may be asked again. `body`: all of it, once it has been read as a whole."""

    body: bytes | None


@dataclass(frozen=True, slots=True)
class Taken:
    """A request that is kept. `asked`: its caller wanted that."""

    id: str
    asked: bool
    retry_after: int


class Taking:
    """Keeps what is refused. `by_rule`: whether a rule wants it for what is settled so; None if no rule does."""

    def __init__(
        self, *, vault: Vault, binder: Binder, journal: Journal, by_rule: Callable[[Settled], bool] | None,
        taken: Callable[[], None],
    ) -> None:  # fmt: skip
        self._vault = vault
        self._binder = binder
        self._journal = journal
        self._by_rule = by_rule
        self._taken = taken
        self.draining = False

    async def take(self, call: HeldCall, refusal: Refused) -> Taken | None:
        """Keep the request of `call`; None if that is not wanted, or not possible."""
        asked = deferral.wants(call.fields)
        if not (asked or self._by_rule) or not isinstance(refusal, DEFERRED) or not self._vault.bounds.most_bytes:
            return None
        if self.draining and not self._vault.store.durable:
            return None
        body, owner = call.body, self._binder.credential(call.fields)
        if call.method != "POST" or body is None or not self._is_wanted(call, body, owner, asked=asked):
            return None
        name = None
        try:
            async with asyncio.timeout(PATIENCE):
                name = await self._vault.put(owner, deferral.order(call.target, call.fields, body))
        except (Trouble, TimeoutError) as error:
            log.warning("a request could not be kept for later: %s", error or "no answer")
        self._journal.count("deferred", "taken" if name is not None else "no_room")
        if name is None:
            return None
        self._taken()
        return Taken(name, asked, refusal.retry_after or 1)

    def _is_wanted(self, call: HeldCall, body: bytes, owner: bytes, *, asked: bool) -> bool:
        """Whether it is work for which nobody waits, and may wait longer by its own or the rules' words."""
        endpoint = policy.endpoint_of(call.method, call.target)
        if endpoint is None:
            return False
        try:
            bound = self._binder.bind(Head(call.method, call.target, call.fields, owner), endpoint, body)
        except AnswerError:
            return False
        settled = bound.settled if isinstance(bound, Bound) else rules.NOTHING
        by_rule = self._by_rule is not None and self._by_rule(settled)
        return bound.priority >= LEAST and (asked or by_rule)
