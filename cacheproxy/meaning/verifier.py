"""The verifier that is always there: the classifier of `core.opinion`. It loads nothing and never fails."""

from cacheproxy.core.opinion import SHIPPED, Opinion, Reading, read

TYPICAL = 0.95
"""The similarity that is put in for one of an embedder with another scale."""


class Classifier:
    """A `Verifier`. Its probability comes at once, in some tenths of a millisecond. `known`: the similarities are of
    the embedder that the weights were learnt with; those of others count for nothing."""

    name = "classifier"

    def __init__(self, opinion: Opinion = SHIPPED, *, known: bool = True) -> None:
        self._opinion = opinion
        self._known = known
        self._last: tuple[str, Reading] = ("", read(""))

    def __repr__(self) -> str:
        return f"<Classifier {len(self._opinion.weights)} weights>"

    async def agreement(self, asked: str, stored: str, similarity: float) -> float:
        if self._last[0] != asked:  # one question is compared with several
            self._last = (asked, read(asked))
        return self._opinion.probability(self._last[1], read(stored), similarity if self._known else TYPICAL)

    async def warm(self) -> None:
        pass

    async def close(self) -> None:
        self._last = ("", read(""))
