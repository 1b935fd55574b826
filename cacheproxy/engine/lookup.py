"""What would become of a request now, and why: the same looks as for a real one, but nobody is asked, nothing is
served, counted, learnt or removed.

Who asks is not proven: what is told to be served is served once the backend has accepted the credential.
"""

from dataclasses import dataclass
from typing import Any

from cacheproxy.core import controls, freshness, key, policy, replay
from cacheproxy.core.freshness import Allowance, Freshness
from cacheproxy.core.model import Entry, Fields
from cacheproxy.core.outcome import Reason
from cacheproxy.core.rules import Mode
from cacheproxy.engine.binder import Binder, wishes_of
from cacheproxy.engine.bound import Bound, Head, Unbound
from cacheproxy.engine.neighbours import Found, Neighbours
from cacheproxy.engine.shelf import Shelf
from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock

_MAY_BE_LIKE = frozenset({Reason.ABSENT, Reason.EXPIRED, Reason.USAGE_MISSING, Reason.ONE_FORM})
_STATES = {Freshness.EXPIRED: Reason.EXPIRED, Freshness.TOO_OLD: Reason.TOO_OLD}


@dataclass(frozen=True, slots=True)
class Question:
    """A request that somebody might send. `target`: path and query."""

    target: bytes
    fields: Fields
    body: bytes


class Lookup:
    """Tells. `neighbours`: None where nothing is answered by meaning; `allowance`: past a lifetime."""

    def __init__(
        self, *, binder: Binder, shelf: Shelf, neighbours: Neighbours | None, clock: Clock, allowance: Allowance
    ) -> None:
        self._binder = binder
        self._shelf = shelf
        self._neighbours = neighbours
        self._clock = clock
        self._allowance = allowance

    def __repr__(self) -> str:
        return f"<Lookup {self._shelf!r}>"

    async def look(self, asked: Question, *, texts: bool) -> dict[str, Any]:
        """As plain data. `texts`: with words of what was asked before. Raises `AnswerError` for a request that would be
        refused."""
        head = Head("POST", asked.target, asked.fields, self._binder.credential(asked.fields))
        endpoint = policy.endpoint_of(head.method, head.target)
        if endpoint is None:
            return _unlooked(None, Reason.UNCACHEABLE_PATH)
        wishes = wishes_of(asked.fields, None)
        refusal = policy.may_look_head(asked.fields, wishes, off=self._binder.off)
        if refusal is not None:
            return _unlooked(endpoint.value, refusal)
        bound = self._binder.bind(head, endpoint, asked.body)
        if isinstance(bound, Unbound):
            return _unlooked(endpoint.value, bound.reason)
        return await self._bound(bound, texts=texts)

    async def _bound(self, bound: Bound, *, texts: bool) -> dict[str, Any]:
        rows = [await self._exact(bound, name) for name in _names(bound)]
        reason = next((reason for reason, _ in rows if reason is not None), None)
        if bound.variants > 1 and not all(reason for reason, _ in rows):
            reason = None  # one of several answers is enough
        near = await self._near(bound, texts=texts)
        would = "exact" if reason is None else "backend"
        if reason in _MAY_BE_LIKE:
            if near.entry_id is not None:
                would, reason = "semantic", None
            elif reason is Reason.ABSENT and near.reason is not None:
                reason = near.reason
        return {
            "endpoint": bound.ask.endpoint.value,
            "model": bound.ask.model,
            "namespace": bound.controls.namespace.replace("\0\0", "\0"),
            "kb": list(controls.decoded(bound.controls.knowledge)),
            "would": would,
            "entry_id": near.entry_id if would == "semantic" else key.entry_id(_names(bound)[0]),
            "reason": _word(reason),
            "why": _why(reason),
            "exact": [row for _, row in rows],
            "semantic": near.told,
        }

    async def _near(self, bound: Bound, *, texts: bool) -> Found:
        if self._neighbours is None or bound.items:
            return Found({"serves": False, "reason": None, "why": "Nothing is answered by meaning here."})
        return await self._neighbours.look(bound, texts=texts)

    async def _exact(self, bound: Bound, name: bytes) -> tuple[Reason | None, dict[str, Any]]:
        """Why the answer under this key is not served, None if it is; and what is to be told of it."""
        entry = await self._shelf.get(name)
        reason = self._refusal(bound, entry)
        told: dict[str, Any] = {"entry_id": key.entry_id(name), "serves": reason is None, "reason": _word(reason)}
        if isinstance(entry, Entry) and entry.owner == bound.ask.scope.owner:
            now = self._clock.now()
            told |= {"age": max(0, int(now - entry.stored_at)), "ttl": int(entry.fresh_until - now)}
        return reason, told

    def _refusal(self, bound: Bound, entry: Entry | Trouble | None) -> Reason | None:
        if bound.mode is Mode.WRITE_ONLY or bound.controls.no_cache:
            return Reason.WRITE_ONLY if bound.mode is Mode.WRITE_ONLY else Reason.NO_CACHE
        if isinstance(entry, Trouble):
            return Reason.STORE_TROUBLE
        if entry is None or entry.owner != bound.ask.scope.owner:
            return Reason.ABSENT
        ask = bound.ask
        unfit = replay.why_not(entry.answer, entry.endpoint, stream=ask.stream, wants_usage=ask.wants_usage)
        if unfit is not None:
            return unfit
        state = freshness.judge(entry, bound.controls, self._clock.now(), self._allowance)
        return _STATES.get(state) or (Reason.SHADOW if bound.mode is Mode.SHADOW else None)


def _names(bound: Bound) -> list[bytes]:
    if len(bound.items) > 1:
        return [item.key for item in bound.items]
    return [key.variant(bound.base, number) for number in range(bound.variants)]


def _unlooked(endpoint: str | None, reason: Reason) -> dict[str, Any]:
    return {
        "endpoint": endpoint, "would": "backend", "entry_id": None, "reason": reason.word, "why": reason.explanation,
        "exact": [], "semantic": None,
    }  # fmt: skip


def _word(reason: Reason | None) -> str | None:
    return reason.word if reason is not None else None


def _why(reason: Reason | None) -> str | None:
    return reason.explanation if reason is not None else None
