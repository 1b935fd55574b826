"""Credential -> Grant. Without a grant there is no hit.

The backend is the only judge: a credential is good because the backend accepted it. An acceptance holds for
`grant_ttl` seconds, then it is proven again by ``GET /v1/models`` with that credential: ahead of time while it is in
use, else before the hit is served. A 401 or 403 on any call revokes it at once. While the backend cannot be asked or
has no such path, the last verdict holds for `grace` seconds.

An entry of a scope is itself proof that the backend accepted that credential when the entry was made, so that a
restart needs no memory of verdicts.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cachetools import LRUCache

from cacheproxy.core.model import Entry, Fields
from cacheproxy.ports import Clock

AHEAD = 0.8
"""The share of `grant_ttl` after which a credential in use is proven again in the background."""
REMEMBERED = 65_536

Probe = Callable[[Fields], Awaitable[int | None]]
"""Asks the backend with the credential of these fields; the HTTP status, None if it could not be asked."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The right of one credential (its fingerprint) to be served from the cache now."""

    credential: bytes


@dataclass(slots=True)
class _Verdict:
    accepted_at: float = float("-inf")
    refused_at: float = float("-inf")


def accepted_at(entry: Entry, credential: bytes) -> float:
    """When the backend accepted `credential` at the latest, as far as `entry` proves it: when it was asked for.

    A refusal while the answer was generated is later than that. An answer that was fetched with another credential,
    or that is an error, proves nothing.
    """
    return entry.asked_at if entry.credential == credential and entry.answer.status == 200 else float("-inf")


class Authority:
    """Knows which credentials the backend accepts. Times are of the wall clock, comparable with entries'."""

    def __init__(self, probe: Probe, clock: Clock, grant_ttl: float, grace: float) -> None:
        self._probe = probe
        self._clock = clock
        self._grant_ttl = grant_ttl
        self._grace = grace
        self._verdicts: LRUCache[bytes, _Verdict] = LRUCache(maxsize=REMEMBERED)
        self._proofs: dict[bytes, asyncio.Task[bool]] = {}

    def __repr__(self) -> str:
        return f"<Authority {len(self._verdicts)} credentials, {len(self._proofs)} proofs running>"

    def heard(self, credential: bytes, status: int, *, proves: bool) -> None:
        """The backend answered a call of `credential` with `status`. `proves`: the call was one that needs a
        credential where the backend wants any, so a success is an acceptance."""
        if status in (401, 403):
            self._verdict(credential).refused_at = self._clock.now()
        elif proves and 200 <= status < 300:
            self._verdict(credential).accepted_at = self._clock.now()

    async def admit(self, credential: bytes, fields: Fields, made_at: float) -> Grant | None:
        """A grant for `credential` (with its request `fields`), to be served an entry of its own made at `made_at`."""
        verdict = self._verdict(credential)
        verdict.accepted_at = max(verdict.accepted_at, made_at)
        age = self._clock.now() - verdict.accepted_at
        if verdict.refused_at < verdict.accepted_at and age < self._grant_ttl:
            if age > AHEAD * self._grant_ttl:
                self._prove(credential, fields)
            return Grant(credential)
        proven = await asyncio.shield(self._prove(credential, fields))
        if verdict.refused_at >= verdict.accepted_at:
            return None
        return Grant(credential) if proven or self._clock.now() - verdict.accepted_at < self._grace else None

    def _verdict(self, credential: bytes) -> _Verdict:
        verdict: _Verdict | None = self._verdicts.get(credential)
        if verdict is None:
            verdict = self._verdicts[credential] = _Verdict()
        return verdict

    def _prove(self, credential: bytes, fields: Fields) -> asyncio.Task[bool]:
        """One proof at a time for a credential; its own task, so that a leaving caller does not end it for others."""
        task = self._proofs.get(credential)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._ask(credential, fields))
            self._proofs[credential] = task
            task.add_done_callback(lambda _: self._proofs.pop(credential, None))
        return task

    async def _ask(self, credential: bytes, fields: Fields) -> bool:
        """Whether the backend accepted the credential just now."""
        status = await self._probe(fields)
        if status is not None:
            self.heard(credential, status, proves=True)
        return status is not None and 200 <= status < 300
