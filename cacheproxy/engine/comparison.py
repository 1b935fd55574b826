"""Compares two answers to one question, with the embedder's help. Whatever fails makes the outcome unknown."""

from collections.abc import Awaitable, Callable

from cacheproxy.core import agreement
from cacheproxy.core.agreement import Agreement
from cacheproxy.core.model import Answer, Endpoint, Unfit
from cacheproxy.core.words_only import is_words_only
from cacheproxy.engine.guard import GuardedEmbedder
from cacheproxy.errors import Trouble

Opinion = Callable[[str, str, float], Awaitable[float | Trouble]]
"""The probability that two texts say the same, of them and the cosine of their vectors."""

LARGEST = 256 * 1024
"""Bytes of an answer up to which it is compared."""
CERTAIN = 0.9
"""Probability from which on an opinion decides that two say the same; below one minus it, that they do not."""


class Comparison:
    """`least`: the cosine from which on two answers say the same; `opinion`: is asked where that does not decide."""

    def __init__(
        self, embedder: GuardedEmbedder, least: float = agreement.LEAST, opinion: Opinion | None = None
    ) -> None:  # fmt: skip
        self._embedder = embedder
        self._least = least
        self._opinion = opinion

    def __repr__(self) -> str:
        return f"<Comparison {self._least} {self._embedder!r}>"

    async def compare(self, one: Answer, other: Answer, endpoint: Endpoint, owner: bytes) -> Agreement:
        """What two proven answers to one question are to each other. `owner`: whose they are."""
        if max(len(one.body), len(other.body)) > LARGEST:
            return Agreement.UNKNOWN
        if not (is_words_only(one, endpoint) and is_words_only(other, endpoint)):
            return Agreement.UNKNOWN
        ours, theirs = agreement.said(one, endpoint), agreement.said(other, endpoint)
        if agreement.equal(ours, theirs):
            return Agreement.AGREE
        cosine = await self._cosine(ours, theirs, owner)
        found = agreement.judge(ours, theirs, cosine, self._least)
        if found is Agreement.UNKNOWN and cosine is not None and self._opinion is not None:
            return _decided(await self._opinion(ours, theirs, cosine))
        return found

    async def _cosine(self, ours: str, theirs: str, owner: bytes) -> float | None:
        """Of texts that are too long to be embedded as a whole, that of their beginnings."""
        for most in (None, *agreement.BEGINNINGS):
            one, other = ours, theirs
            if most is not None:
                one, other = agreement.beginning(ours, most), agreement.beginning(theirs, most)
            vectors = [await self._embedder.embed(text, owner) for text in (one, other)]
            good = [vector for vector in vectors if not isinstance(vector, Unfit | Trouble)]
            if len(good) == len(vectors):
                return float(good[0] @ good[1])
            if not any(vector is Unfit.TOO_LONG for vector in vectors):
                return None
        return None


def _decided(probability: float | Trouble) -> Agreement:
    if isinstance(probability, Trouble) or 1 - CERTAIN < probability < CERTAIN:
        return Agreement.UNKNOWN
    return Agreement.AGREE if probability >= CERTAIN else Agreement.DIFFER
