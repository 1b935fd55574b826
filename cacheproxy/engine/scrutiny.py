"""Which of the questions that are near is the same one: each has to pass every check, the best candidate first.

Near alone is never enough. A candidate is near enough; no guard objects; nobody called it different; its answer is
there, fresh, and of the same scope; where credentials share answers, several of them were told the same. What fails on
the way costs its deadline and is a miss.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cacheproxy.core import freshness, key, likeness, replay
from cacheproxy.core.freshness import Freshness
from cacheproxy.core.likeness import Guard
from cacheproxy.core.model import Entry, Near
from cacheproxy.core.outcome import Reason
from cacheproxy.core.quarantine import Side
from cacheproxy.engine.asked import Asked
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.evidence import Candidate
from cacheproxy.engine.feedback import Feedback
from cacheproxy.engine.nearly import BELOW_THRESHOLD, PADDED, PENDING, UNLIKE, VERIFIER, NearMisses
from cacheproxy.engine.promotion import Promotion, is_smuggled
from cacheproxy.engine.shelf import Mark, Shelf
from cacheproxy.engine.verdict import Finding, Hearing, Verdicts
from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock, Journal


@dataclass(frozen=True, slots=True)
class Like:
    """An entry that answers the question, since when that is known, and how like the questions are. `stored`: the one
    that it was stored for."""

    entry: Entry
    mark: Mark
    similarity: float
    threshold: float
    stored: str


@dataclass(slots=True)
class Findings:
    """What came of a scrutiny. `witness`: an answer that may not be served yet, and would gain if the backend said the
    same; `gone`: the keys of rows whose answer is gone."""

    reason: Reason = Reason.NOTHING_NEAR
    like: Like | None = None
    witness: Candidate | None = None
    gone: list[bytes] = field(default_factory=list)


class Scrutiny:
    """Looks at candidates."""

    def __init__(  # noqa: PLR0913 - the parts of the house, by name
        self, *, shelf: Shelf, journal: Journal, clock: Clock, guards: frozenset[Guard], feedback: Feedback | None,
        promotion: Promotion | None, near_misses: NearMisses | None, verdicts: Verdicts | None, verifies: bool,
    ) -> None:  # fmt: skip
        self._shelf = shelf
        self._journal = journal
        self._clock = clock
        self._guards = guards
        self._feedback = feedback
        self._promotion = promotion
        self._near_misses = near_misses
        self._verdicts = verdicts
        self._verifies = verifies

    async def look(self, bound: Bound, asked: Asked, near: Sequence[Near], threshold: float) -> Findings:
        """The first of `near` that passes, if there is one."""
        findings = Findings()
        passing = self._passing(asked, near, threshold, findings)
        barred = await self._barred(bound, asked, passing)
        if isinstance(barred, Trouble):
            findings.reason = Reason.SEMANTIC_TROUBLE
            return findings
        hearing = self._hearing(bound, asked)
        for candidate in passing:
            if key.entry_id(candidate.key) in barred:
                self._missed(asked, candidate, threshold, "barred")
                findings.reason = Reason.UNLIKE
                continue
            mark = self._shelf.mark()
            entry = await self._shelf.get(candidate.key)
            if entry is None:
                findings.gone.append(candidate.key)
            elif isinstance(entry, Entry) and self._serves(bound, entry):
                if hearing is not None and not await self._is_verified(hearing, asked, candidate, threshold, findings):
                    continue
                if await self._may_share(bound, asked, candidate, entry, threshold, findings):
                    similarity = candidate.similarity or 0.0
                    findings.like = Like(entry, mark, similarity, threshold, candidate.text)
                    return findings
        return findings

    async def twin(self, bound: Bound, asked: Asked, near: Sequence[Near], threshold: float) -> bytes | None:
        """The key of the first of `near`, questions whose answers are still to come, that is the same question."""
        findings = Findings()
        passing = self._passing(asked, near, threshold, findings)
        barred = await self._barred(bound, asked, passing)
        if isinstance(barred, Trouble):
            return None
        hearing = self._hearing(bound, asked)
        for candidate in passing:
            if key.entry_id(candidate.key) in barred:
                continue
            if hearing is None or await self._is_verified(hearing, asked, candidate, threshold, findings):
                return candidate.key
        return None

    def _hearing(self, bound: Bound, asked: Asked) -> Hearing | None:
        told = bound.settled.verifier
        if self._verdicts is None or not (self._verifies if told is None else told):
            return None
        return self._verdicts.hearing(bound, asked.text)

    async def _is_verified(
        self, hearing: Hearing, asked: Asked, candidate: Near, threshold: float, findings: Findings
    ) -> bool:  # fmt: skip
        """Whether a second opinion holds it for the same question. May take long: whoever serves it looks again whether
        it still stands."""
        finding = await hearing.agrees(candidate.text, candidate.similarity or 0.0)
        if finding is Finding.AGREED:
            return True
        self._missed(asked, candidate, threshold, VERIFIER)
        findings.reason = Reason.SEMANTIC_TROUBLE if finding is Finding.TROUBLE else Reason.UNVERIFIED
        return False

    def _passing(self, asked: Asked, near: Sequence[Near], threshold: float, findings: Findings) -> list[Near]:
        """Those that are near enough and to which no guard objects."""
        features = None
        passing = []
        for candidate in near:
            if candidate.similarity is None:
                continue
            if candidate.similarity < threshold:
                self._missed(asked, candidate, threshold, BELOW_THRESHOLD)
                continue
            features = features or likeness.prepare(asked.text)
            objection = likeness.judge(features, likeness.prepare(candidate.text), self._guards)
            if objection is None:
                passing.append(candidate)
                continue
            self._journal.count("unlike", objection.guard.value)
            self._missed(asked, candidate, threshold, f"{UNLIKE}:{objection.guard.value}")
            findings.reason = Reason.UNLIKE
        return passing

    async def _barred(self, bound: Bound, asked: Asked, passing: Sequence[Near]) -> frozenset[str] | Trouble:
        """The ids of those that were called different."""
        if self._feedback is None or not passing:
            return frozenset()
        own = Side(key.entry_id(bound.ask.key), asked.text)
        return await self._feedback.barred(
            asked.partition, own, [Side(key.entry_id(candidate.key), candidate.text) for candidate in passing]
        )

    async def _may_share(  # noqa: PLR0913 - one candidate, every fact about it
        self, bound: Bound, asked: Asked, candidate: Near, entry: Entry, threshold: float, findings: Findings
    ) -> bool:
        """Whether it may be served across credentials, where `entry` is another's."""
        if self._promotion is None:
            return True
        if is_smuggled(bound.ask, entry, asked.text, candidate.text):
            self._missed(asked, candidate, threshold, PADDED)
            findings.reason = Reason.UNLIKE
            return False
        if await self._promotion.stands(bound.ask, entry):
            return True
        self._missed(asked, candidate, threshold, PENDING)
        findings.reason = Reason.NOT_CONFIRMED
        findings.witness = findings.witness or Candidate(entry, candidate.similarity, candidate.text)
        return False

    def _missed(self, asked: Asked, candidate: Near, threshold: float, reason: str) -> None:
        if self._near_misses is not None:
            self._near_misses.note(asked, candidate.text, candidate.similarity, threshold, reason)

    def _serves(self, bound: Bound, entry: Entry) -> bool:
        """Whether `entry`, found by meaning, is what this caller may get now. What is past its lifetime is not."""
        ask = bound.ask
        if entry.owner != ask.scope.owner or entry.endpoint is not ask.endpoint:
            return False
        if not replay.can_give(entry.answer, entry.endpoint, stream=ask.stream, wants_usage=ask.wants_usage):
            return False
        return freshness.judge(entry, bound.controls, self._clock.now()) is Freshness.FRESH
