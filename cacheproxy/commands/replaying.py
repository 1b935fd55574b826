"""What would have become of logged requests, had the proxy been there: the very binder that serves binds them, into an
imagined store. Nobody is asked and nothing is kept.

What only running shows is left out: early refreshes, purges, the verifier's opinion, and who may be served what others
were told where credentials share answers by meaning.
"""

import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from cacheproxy.commands.traffic import Asked
from cacheproxy.core import freshness, key, policy
from cacheproxy.core.freshness import Freshness
from cacheproxy.core.model import Answer, Endpoint, Entry, Fields, Form
from cacheproxy.core.outcome import Reason
from cacheproxy.core.rules import Mode
from cacheproxy.engine.binder import Binder, wishes_of
from cacheproxy.engine.bound import Bound, Head, Unbound
from cacheproxy.engine.keeper import lifetime
from cacheproxy.errors import AnswerError
from cacheproxy.schema import Settings
from cacheproxy.wiring import terms

EXACT, SEMANTIC, MISS, BYPASS = "exact", "semantic", "miss", "bypass"
_SERVED = frozenset({Freshness.FRESH, Freshness.STALE, Freshness.REVALIDATE})
_KEPT = frozenset({200, *policy.NEGATIVE})
_ANSWER = Answer(Form.JSON, "application/json", b"", has_usage=True)


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a request: `layer` is one of the four above; `reason`: why it was not served, as a word of
    docs/reasons.md, empty if it was."""

    asked: Asked
    layer: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Posed:
    """A request on its way through: bound, or why it is not looked up."""

    asked: Asked
    bound: Bound | None
    reason: str = ""


class Likeness(Protocol):
    """Finds answers by meaning."""

    def finds(self, bound: Bound, is_there: Callable[[bytes], bool]) -> bool:
        """Whether there is one for `bound`. `is_there`: whether the answer of a key may be served to it."""

    def learn(self, bound: Bound) -> None:
        """The answer to `bound` is stored."""


class Replaying:
    """The imagined proxy. `likeness`: what finds answers by meaning; None for nothing."""

    likeness: Likeness | None = None

    def __init__(self, settings: Settings) -> None:
        self.binder = Binder(secrets.token_bytes(key.SECRET_BYTES), terms.terms(settings, b""))
        self._keeping = terms.keeping(settings)
        self._allowance = terms.lasting(settings).allowance
        self._stored: dict[bytes, Entry] = {}
        self._turns: Counter[bytes] = Counter()

    def pose(self, asked: Asked) -> Posed:
        """`asked`, bound."""
        fields: Fields = tuple((n.encode("latin-1", "replace"), v.encode()) for n, v in asked.headers)
        head = Head("POST", asked.path.encode(), fields, self.binder.credential(fields))
        endpoint = policy.endpoint_of(head.method, head.target)
        if endpoint is None or endpoint is Endpoint.MODELS:
            return Posed(asked, None, Reason.UNCACHEABLE_PATH.word)
        try:
            refusal = policy.may_look_head(fields, wishes_of(fields, None), off=self.binder.off)
            bound = self.binder.bind(head, endpoint, asked.body) if refusal is None else refusal
        except AnswerError as error:
            return Posed(asked, None, error.code)
        if isinstance(bound, Bound):
            return Posed(asked, bound)
        return Posed(asked, None, bound.reason.word if isinstance(bound, Unbound) else bound.word)

    def meet(self, posed: Posed) -> Fate:
        """What becomes of it now: time is its own."""
        bound = posed.bound
        if bound is None:
            return Fate(posed.asked, BYPASS, posed.reason)
        if bound.variants > 1:
            self._turns[bound.base] += 1
            bound = bound.in_slot((self._turns[bound.base] - 1) % bound.variants)
        now = posed.asked.time or 0.0
        reason = self._why_not(bound, now)
        if reason is None:
            return Fate(posed.asked, EXACT)
        if reason in (Reason.ABSENT, Reason.EXPIRED) and self.likeness is not None:
            if self.likeness.finds(bound, lambda name: self._is_there(bound, name, now)):
                return Fate(posed.asked, SEMANTIC)
        self._keep(posed.asked, bound, now)
        return Fate(posed.asked, MISS, reason.word)

    def _why_not(self, bound: Bound, now: float) -> Reason | None:
        """Why the exact layer does not serve it; None if it does."""
        if bound.mode is Mode.WRITE_ONLY:
            return Reason.WRITE_ONLY
        if bound.controls.no_cache:
            return Reason.NO_CACHE
        names = [item.key for item in bound.items] or [bound.ask.key]
        found = [self._stored.get(name) for name in names]
        if not all(entry is not None and entry.stored_at <= now for entry in found):
            return Reason.ABSENT
        states = {freshness.judge(entry, bound.controls, now, self._allowance) for entry in found if entry is not None}
        if not states <= _SERVED:
            return Reason.EXPIRED if Freshness.EXPIRED in states else Reason.TOO_OLD
        return Reason.SHADOW if bound.mode is Mode.SHADOW else None

    def _is_there(self, bound: Bound, name: bytes, now: float) -> bool:
        """Whether the answer under `name`, found by meaning, may be served."""
        entry = self._stored.get(name)
        if entry is None or entry.stored_at > now or entry.owner != bound.ask.scope.owner:
            return False
        return entry.endpoint is bound.ask.endpoint and freshness.judge(entry, bound.controls, now) is Freshness.FRESH

    def _keep(self, asked: Asked, bound: Bound, now: float) -> None:
        ttl = lifetime(self._keeping, bound, asked.status)
        if ttl <= 0 or asked.status not in _KEPT or bound.mode is Mode.READ_ONLY or bound.controls.only_if_cached:
            return
        at = now + (asked.latency or 0.0) if asked.time is not None else now
        entry = Entry(
            key=bound.ask.key, owner=bound.ask.scope.owner, credential=bound.ask.credential,
            namespace=bound.ask.scope.namespace, endpoint=bound.ask.endpoint, model=bound.ask.model, answer=_ANSWER,
            stored_at=at, fresh_until=at + ttl, expires_at=at + ttl + self._keeping.keep_stale, took=0.0,
        )  # fmt: skip
        for name in [item.key for item in bound.items] or [bound.ask.key]:
            before = self._stored.get(name)
            if before is None or before.stored_at <= now:  # else another answer is on its way already
                self._stored[name] = replace(entry, key=name)
        if self.likeness is not None:
            self.likeness.learn(bound)


@dataclass(slots=True)
class Tally:
    """What came of all: requests by layer and by reason, tokens and seconds, those that would have been spared and all
    that the log tells of, and the layers in the order of the requests."""

    layers: Counter[str] = field(default_factory=Counter)
    misses: Counter[str] = field(default_factory=Counter)
    bypasses: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    seconds: float = 0.0
    known_tokens: int = 0
    known_seconds: float = 0.0
    course: list[str] = field(default_factory=list)

    def add(self, fate: Fate) -> None:
        """Count one more."""
        self.course.append(fate.layer)
        self.layers[fate.layer] += 1
        if fate.reason:
            (self.misses if fate.layer == MISS else self.bypasses)[fate.reason] += 1
        spared = fate.layer in (EXACT, SEMANTIC)
        tokens, seconds = sum(fate.asked.tokens or ()), fate.asked.latency or 0.0
        self.known_tokens += tokens
        self.known_seconds += seconds
        self.tokens += tokens if spared else 0
        self.seconds += seconds if spared else 0.0
