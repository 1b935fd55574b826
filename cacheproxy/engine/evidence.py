"""What the backend's own answers tell of stored ones that were served by meaning, or would have been.

Tells the estimate, the witnesses and the log of near misses; each of the latter two only where there is one.
"""

import logging
from dataclasses import dataclass

from cacheproxy.core import agreement, key
from cacheproxy.core.agreement import Agreement
from cacheproxy.core.model import Answer, Entry
from cacheproxy.engine.asked import Asked
from cacheproxy.engine.comparison import Comparison
from cacheproxy.engine.nearly import NearMisses
from cacheproxy.engine.promotion import Promotion
from cacheproxy.engine.truth import Truth

log = logging.getLogger("cacheproxy.semantic")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry, and the question that it was stored for. `similarity`: of that to the asked one, None if they are the
    same; `counts`: it is a hit by meaning, or one in all but the serving, so that it counts for the estimate."""

    entry: Entry
    similarity: float | None = None
    stored: str = ""
    counts: bool = False


class Evidence:
    """Compares, and tells whom it concerns."""

    def __init__(
        self, comparison: Comparison, truth: Truth, promotion: Promotion | None = None,
        near_misses: NearMisses | None = None,
    ) -> None:  # fmt: skip
        self._comparison = comparison
        self._truth = truth
        self._promotion = promotion
        self._near_misses = near_misses

    def __repr__(self) -> str:
        return f"<Evidence {self._truth!r} {self._promotion!r}>"

    @property
    def era(self) -> int:
        """While it stands, hits count for one and the same estimate."""
        return self._truth.era

    async def weigh(self, asked: Asked | None, candidate: Candidate, own: Entry) -> None:
        """The backend's answer to what was asked is `own`: was the candidate's the same?"""
        verdict = await self.compare(candidate.entry, own.answer)
        await self.conclude(asked, candidate, own.answer, own.credential, verdict)

    async def compare(self, entry: Entry, answer: Answer) -> Agreement:
        """What `answer` is to that of `entry`."""
        return await self.same(entry, entry.answer, answer)

    async def same(self, entry: Entry, one: Answer, other: Answer) -> Agreement:
        """What two answers are to each other, to what `entry` is one to as well."""
        return await self._comparison.compare(one, other, entry.endpoint, entry.owner)

    async def conclude(
        self, asked: Asked | None, candidate: Candidate, own: Answer | None, credential: bytes, verdict: Agreement
    ) -> None:  # fmt: skip
        """Tell what came of the comparison with `own`, which the backend told `credential`; None: with nothing."""
        if candidate.counts and candidate.similarity is not None:
            self._truth.note(verdict)
            if self._near_misses is not None and asked is not None:
                self._near_misses.sampled(asked, candidate.stored, candidate.similarity, verdict)
            if verdict is Agreement.DIFFER:
                log.info(
                    "an answer by meaning differs from the backend's own: entry %s, similarity %.4f",
                    key.entry_id(candidate.entry.key), candidate.similarity,
                )  # fmt: skip
        if verdict is Agreement.AGREE and self._promotion is not None and own is not None:
            if not _lures(candidate.entry, own):
                await self._promotion.confirm(candidate.entry, credential)


def _lures(entry: Entry, own: Answer) -> bool:
    """Whether the answer of `entry` sends its reader somewhere that `own` does not: what is alike in all else may have
    been made for that."""
    theirs = agreement.lures(agreement.said(entry.answer, entry.endpoint))
    return bool(theirs) and not theirs <= agreement.lures(agreement.said(own, entry.endpoint))
