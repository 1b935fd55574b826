"""The nearest questions to one, with what every check says of each: what the semantic layer would do, told and not
done. Nothing is counted, learnt or removed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cacheproxy.core import freshness, key, likeness, replay
from cacheproxy.core.freshness import Freshness
from cacheproxy.core.fusion import reweighed
from cacheproxy.core.likeness import Verdict
from cacheproxy.core.model import Entry, Near, Unfit
from cacheproxy.core.outcome import Reason
from cacheproxy.core.quarantine import Side
from cacheproxy.core.rules import Reach
from cacheproxy.engine.asked import Asked
from cacheproxy.engine.binder import Binder
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.feedback import Feedback
from cacheproxy.engine.promotion import Promotion, is_smuggled
from cacheproxy.engine.semantic import Matching, Meaning, Semantic
from cacheproxy.engine.shelf import Shelf
from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock

_UNFIT = {
    Unfit.EMPTY: Reason.EMPTY_QUESTION,
    Unfit.TOO_LONG: Reason.TOO_LONG_QUESTION,
    Unfit.UNKNOWN_TOKENS: Reason.UNKNOWN_WORDS,
}
_SERVES = "serves"
_REASONS = {"pending": Reason.NOT_CONFIRMED, "trouble": Reason.SEMANTIC_TROUBLE}
"""By the words for what keeps a neighbour from being served; those that are not here say nothing of the request."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is to be told; what would be served, or why nothing would."""

    told: dict[str, Any]
    entry_id: str | None = None
    reason: Reason | None = None


class Neighbours:
    """Finds and judges them as `semantic` does, with the same parts."""

    def __init__(  # noqa: PLR0913 - the parts of the house, by name
        self, *, binder: Binder, semantic: Semantic, meaning: Meaning, matching: Matching, shelf: Shelf,
        feedback: Feedback | None, promotion: Promotion | None, clock: Clock,
    ) -> None:  # fmt: skip
        self._binder = binder
        self._semantic = semantic
        self._meaning = meaning
        self._matching = matching
        self._shelf = shelf
        self._feedback = feedback
        self._promotion = promotion
        self._clock = clock

    async def look(self, bound: Bound, *, texts: bool) -> Found:
        """`texts`: with the words of the neighbours' questions."""
        if not self._semantic.may_look(bound):
            return Found({"serves": False, "reason": None, "why": "Nothing is answered by meaning for this request."})
        asked = await self._asked(bound)
        if isinstance(asked, Reason):
            return _nothing(asked)
        near = await self._meaning.index.search(
            asked.partition, asked.vector, asked.text, self._matching.candidates, self._clock.now()
        )
        if isinstance(near, Trouble):
            return _nothing(Reason.SEMANTIC_TROUBLE)
        told = bound.settled.keywords
        keywords = self._matching.keywords if told is None else told
        near = near if keywords == 1 else reweighed(near, 1.0, keywords)
        return await self._judged(bound, asked, near, texts=texts)

    async def _asked(self, bound: Bound) -> Asked | Reason:
        question = self._binder.question(bound)
        if isinstance(question, Reason):
            return question
        if not self._meaning.ready:
            return Reason.SEMANTIC_LOADING
        vector = await self._meaning.embedder.embed(question.text, bound.ask.scope.owner)
        if isinstance(vector, Unfit):
            return _UNFIT[vector]
        if isinstance(vector, Trouble):
            return Reason.SEMANTIC_TROUBLE
        return Asked(question.text, self._binder.partition(bound, question), vector)

    async def _judged(self, bound: Bound, asked: Asked, near: Sequence[Near], *, texts: bool) -> Found:
        threshold = self._semantic.threshold(bound)
        opinions = await asyncio.to_thread(_opinions, asked.text, near)
        barred = await self._barred(bound, asked, near)
        rows, serves, reason = [], None, Reason.NOTHING_NEAR
        for one, guards in zip(near, opinions, strict=True):
            word = self._objection(one, guards, threshold)
            if word is None:
                word = await self._unserved(bound, asked, one, barred)
            if word == _SERVES and serves is None:
                serves = key.entry_id(one.key)
            if word.startswith("unlike") or word in ("barred", "padded"):
                reason = Reason.UNLIKE
            reason = _REASONS.get(word, reason)
            rows.append(self._row(one, guards, word, texts=texts))
        if serves is not None and self._matching.reach is Reach.SHADOW and not bound.settled.semantic:
            serves, reason = None, Reason.SEMANTIC_SHADOW
        told = {
            "serves": serves is not None, "reason": None if serves else reason.word,
            "why": None if serves else reason.explanation, "threshold": round(threshold, 4), "neighbours": rows,
        }  # fmt: skip
        return Found(told, serves, None if serves else reason)

    def _objection(self, one: Near, guards: Sequence[Verdict], threshold: float) -> str | None:
        if one.similarity is None:
            return "no_similarity"
        if one.similarity < threshold:
            return "below_threshold"
        objecting = (v.guard.value for v in guards if v.objects and v.guard in self._matching.guards)
        guard = next(objecting, None)
        return None if guard is None else f"unlike:{guard}"

    async def _barred(self, bound: Bound, asked: Asked, near: Sequence[Near]) -> frozenset[str] | Trouble:
        if self._feedback is None:
            return frozenset()
        own = Side(key.entry_id(bound.ask.key), asked.text)
        sides = [Side(key.entry_id(one.key), one.text) for one in near]
        return await self._feedback.barred(asked.partition, own, sides)

    async def _unserved(self, bound: Bound, asked: Asked, one: Near, barred: frozenset[str] | Trouble) -> str:
        """What keeps the answer to a like question from being served, in a word; or that nothing does."""
        if isinstance(barred, Trouble):
            return "trouble"
        if key.entry_id(one.key) in barred:
            return "barred"
        entry = await self._shelf.get(one.key)
        if not isinstance(entry, Entry):
            return "gone" if entry is None else "trouble"
        ask = bound.ask
        if entry.owner != ask.scope.owner or entry.endpoint is not ask.endpoint:
            return "other_scope"
        unfit = replay.why_not(entry.answer, entry.endpoint, stream=ask.stream, wants_usage=ask.wants_usage)
        if unfit is not None:
            return unfit.word
        if freshness.judge(entry, bound.controls, self._clock.now()) is not Freshness.FRESH:
            return "not_fresh"
        if self._promotion is None:
            return _SERVES
        if is_smuggled(ask, entry, asked.text, one.text):
            return "padded"
        return _SERVES if await self._promotion.stands(ask, entry) else "pending"

    def _row(self, one: Near, guards: Sequence[Verdict], word: str, *, texts: bool) -> dict[str, Any]:
        """`texts`: with words of the question."""
        said = [
            {
                "guard": v.guard.value, "on": v.guard in self._matching.guards, "objects": v.objects,
                "reason": v.reason if v.objects else None, **({"detail": v.detail} if texts else {}),
            }
            for v in guards
        ]  # fmt: skip
        return {
            "entry_id": key.entry_id(one.key),
            "similarity": None if one.similarity is None else round(one.similarity, 4),
            "rank_by_meaning": one.by_meaning, "rank_by_words": one.by_words, "verdict": word, "guards": said,
            **({"question": one.text} if texts else {}),
        }  # fmt: skip


def _opinions(asked: str, near: Sequence[Near]) -> list[list[Verdict]]:
    features = likeness.prepare(asked)
    return [likeness.explain(features, one.text) for one in near]


def _nothing(reason: Reason) -> Found:
    told = {"serves": False, "reason": reason.word, "why": reason.explanation}
    return Found(told, None, reason)
