"""What would have become of logged requests, had the proxy been there: the very binder that serves binds them, into an
imagined store. Nobody is asked and nothing is kept.

What only running shows is left out: early refreshes, purges, the verifier's opinion, and who may be served what others
were told where credentials share answers by meaning.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Protocol, TypeVar

from cacheproxy.core import freshness, policy
from cacheproxy.core.freshness import Allowance, Freshness
from cacheproxy.core.model import Answer, Endpoint, Entry, Form
from cacheproxy.core.outcome import Reason
from cacheproxy.core.rules import Mode
from cacheproxy.engine.binder import Binder, wishes_of
from cacheproxy.engine.bound import Bound, Head, Unbound
from cacheproxy.engine.keeper import Keeping, lifetime
from cacheproxy.engine.traffic import Line
from cacheproxy.errors import AnswerError

EXACT, SEMANTIC, MISS, BYPASS = "exact", "semantic", "miss", "bypass"
_SERVED = frozenset({Freshness.FRESH, Freshness.STALE, Freshness.REVALIDATE})
_KEPT = frozenset({200, *policy.NEGATIVE})
_ANSWER = Answer(Form.JSON, "application/json", b"", has_usage=True)
SLICE, REST = 0.0005, 0.005
"""Seconds for which a replay beside other work goes on, and then leaves the processor to it."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a request: `layer` is one of the four above; `reason`: why it was not served, as a word of
    docs/reasons.md, empty if it was."""

    line: Line
    layer: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Posed:
    """A request on its way through: bound, or why it is not looked up."""

    line: Line
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

    def __init__(self, binder: Binder, keeping: Keeping, allowance: Allowance) -> None:
        self.binder = binder
        self._keeping = keeping
        self._allowance = allowance
        self._stored: dict[bytes, Entry] = {}
        self._turns: Counter[bytes] = Counter()

    def pose(self, line: Line) -> Posed:
        """`line`, bound."""
        fields = line.fields
        head = Head("POST", line.path.encode(), fields, self.binder.credential(fields))
        endpoint = policy.endpoint_of(head.method, head.target)
        if endpoint is None or endpoint is Endpoint.MODELS:
            return Posed(line, None, Reason.UNCACHEABLE_PATH.word)
        try:
            refusal = policy.may_look_head(fields, wishes_of(fields, None), off=self.binder.off)
            bound = self.binder.bind(head, endpoint, line.body) if refusal is None else refusal
        except AnswerError as error:
            return Posed(line, None, error.code)
        if isinstance(bound, Bound):
            return Posed(line, bound)
        return Posed(line, None, bound.reason.word if isinstance(bound, Unbound) else bound.word)

    def meet(self, posed: Posed) -> Fate:
        """What becomes of it now: time is its own."""
        bound = posed.bound
        if bound is None:
            return Fate(posed.line, BYPASS, posed.reason)
        if bound.variants > 1:
            self._turns[bound.base] += 1
            bound = bound.in_slot((self._turns[bound.base] - 1) % bound.variants)
        now = posed.line.time or 0.0
        reason = self._why_not(bound, now)
        if reason is None:
            return Fate(posed.line, EXACT)
        if reason in (Reason.ABSENT, Reason.EXPIRED) and self.likeness is not None:
            if self.likeness.finds(bound, lambda name: self._is_there(bound, name, now)):
                return Fate(posed.line, SEMANTIC)
        self._keep(posed.line, bound, now)
        return Fate(posed.line, MISS, reason.word)

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

    def _keep(self, line: Line, bound: Bound, now: float) -> None:
        ttl = lifetime(self._keeping, bound, line.status)
        if ttl <= 0 or line.status not in _KEPT or bound.mode is Mode.READ_ONLY or bound.controls.only_if_cached:
            return
        at = now + (line.latency or 0.0) if line.time is not None else now
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
        tokens, seconds = sum(fate.line.tokens or ()), fate.line.latency or 0.0
        self.known_tokens += tokens
        self.known_seconds += seconds
        self.tokens += tokens if spared else 0
        self.seconds += seconds if spared else 0.0


def plain(tally: Tally, bad: int, *, by_meaning: bool, timed: bool) -> dict[str, Any]:
    """What came of a replay, as plain data. `bad`: lines that were no requests; `timed`: the log has times."""
    total = len(tally.course)

    def layer(name: str) -> dict[str, Any]:
        return {"hits": tally.layers[name], "rate": round(tally.layers[name] / total, 4) if total else 0.0}

    hits = tally.layers[EXACT] + tally.layers[SEMANTIC]
    return {
        "requests": total, "bad_lines": bad, "timed": timed, "hit_rate": round(hits / total, 4) if total else 0.0,
        "exact": layer(EXACT), "semantic": layer(SEMANTIC) if by_meaning else None,
        "misses": dict(tally.misses.most_common()), "bypasses": dict(tally.bypasses.most_common()),
        "tokens": {"saved": tally.tokens, "of": tally.known_tokens},
        "seconds": {"saved": round(tally.seconds, 3), "of": round(tally.known_seconds, 3)},
    }  # fmt: skip


Likens = Callable[[Binder, AsyncIterator[Bound]], Awaitable[Likeness]]
"""Makes what finds answers by meaning among these requests. Raises `Trouble`."""
Starts = Callable[[str, int], Callable[[int], object]]
"""Is told what begins, and of how many parts it is; gives what is told how many more of them are over."""
EMBEDDING, REPLAYING = "embedding", "replaying"


def unseen(_what: str, _number: int) -> Callable[[int], object]:
    """The `Starts` that nobody looks at."""
    return lambda _more: None


async def replay(
    imagined: Replaying, lines: Sequence[Line], likens: Likens | None = None, *, starts: Starts = unseen,
    gently: bool = False,
) -> Tally:  # fmt: skip
    """What came of `lines` in the order of their times. `likens`: None where nothing is answered by meaning; `gently`:
    other work goes on in this process. Raises `Trouble`."""
    ordered = _in_order(lines)
    if likens is not None:
        imagined.likeness = await likens(imagined.binder, _bounds(imagined, ordered, gently=gently))
    tally, done = Tally(), starts(REPLAYING, len(ordered))
    async for line in paced(ordered, gently=gently):
        tally.add(imagined.meet(imagined.pose(line)))  # bound anew, since all bound at once would take much room
        done(1)
    return tally


async def _bounds(imagined: Replaying, lines: Iterable[Line], *, gently: bool) -> AsyncIterator[Bound]:
    async for line in paced(lines, gently=gently):
        if (bound := imagined.pose(line).bound) is not None:
            yield bound


async def paced(items: Iterable[T], *, gently: bool) -> AsyncIterator[T]:
    """`items`, for work that takes long on them; if `gently`, others get the processor most of the time."""
    began = perf_counter()
    for item in items:
        yield item
        if gently and perf_counter() - began >= SLICE:
            await asyncio.sleep(REST)
            began = perf_counter()


def _in_order(lines: Iterable[Line]) -> list[Line]:
    """By their times; one that has none came with the one before it."""
    timed, last = [], None
    for one in lines:
        last = one.time if one.time is not None else last
        timed.append(replace(one, time=last))
    return sorted(timed, key=lambda one: one.time or 0.0)
