"""The second opinion on a candidate that the guards pass: a verifier and, in doubt, a judge. Each has a deadline and a
breaker. Trouble with either is a no: what cannot be verified is not served.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from cacheproxy.engine.bound import Bound
from cacheproxy.engine.breaker import Breaker
from cacheproxy.engine.judge import Judge
from cacheproxy.errors import Trouble
from cacheproxy.ports import Journal, Verifier

MOST_JUDGED = 2
"""Candidates of one look that the judge is asked about: each may cost its whole deadline."""


class Finding(StrEnum):
    """What came of a second opinion, as it is counted."""

    AGREED = "agreed"
    DISAGREED = "disagreed"
    TROUBLE = "trouble"


@dataclass(frozen=True, slots=True)
class Bounds:
    """From which probability on (`least`) two questions are one. Where there is a judge: it is asked about those that
    the verifier gives `doubtful` at least, but not `sure`, or whose similarity is below `certain`."""

    least: float
    doubtful: float = 0.1
    sure: float = 0.9
    certain: float = 0.97


class GuardedVerifier:
    """A verifier that never raises and never takes longer than `deadline` seconds; trouble as long as it has none."""

    def __init__(self, verifier: Verifier | None, deadline: float, journal: Journal) -> None:
        self._verifier = verifier
        self.breaker = Breaker("verifier", deadline, journal)

    def __repr__(self) -> str:
        return f"<GuardedVerifier {self._verifier!r} {self.breaker!r}>"

    def exchange(self, verifier: Verifier) -> None:
        """Use `verifier` from now on."""
        self._verifier = verifier

    async def agreement(self, asked: str, stored: str, similarity: float) -> float | Trouble:
        if (verifier := self._verifier) is None:
            return Trouble("the verifier is not loaded", "loading")

        async def work() -> float:
            found = await verifier.agreement(asked, stored, similarity)
            if not 0.0 <= found <= 1.0:
                raise Trouble("the verifier gave what is no probability", "damaged")
            return found

        return cast("float | Trouble", await self.breaker.call(work))

    async def close(self) -> None:
        await self.breaker.close()
        if self._verifier is not None:
            await self._verifier.close()


class GuardedJudge:
    """A judge that never raises and never takes longer than `deadline` seconds."""

    def __init__(self, judge: Judge, deadline: float, journal: Journal) -> None:
        self._judge = judge
        # It is asked with a caller's credential: for that caller, in that moment, or not at all.
        self.breaker = Breaker("judge", deadline, journal, proof=lambda _: True)

    def __repr__(self) -> str:
        return f"<GuardedJudge {self.breaker!r}>"

    async def agrees(self, bound: Bound, asked: str, stored: str) -> bool | Trouble:
        return cast("bool | Trouble", await self.breaker.call(lambda: self._judge.agrees(bound, asked, stored)))

    async def close(self) -> None:
        await self.breaker.close()


class Verdicts:
    """Gives second opinions."""

    def __init__(
        self, verifier: GuardedVerifier, judge: GuardedJudge | None, bounds: Bounds, journal: Journal
    ) -> None:  # fmt: skip
        self._verifier = verifier
        self._judge = judge
        self._bounds = bounds
        self._journal = journal

    def __repr__(self) -> str:
        return f"<Verdicts {self._verifier!r} {self._judge!r}>"

    def hearing(self, bound: Bound, asked: str) -> "Hearing":
        """The candidates for `asked` will be heard, one after the other."""
        return Hearing(self, bound, asked)

    async def agrees(
        self, bound: Bound, asked: str, stored: str, similarity: float, judged: int = 0
    ) -> tuple[Finding, int]:  # fmt: skip
        """Whether the answer to `stored` is one to `asked`; and how often the judge has been asked, who had been
        `judged` times."""
        found = await self._verifier.agreement(asked, stored, similarity)
        if isinstance(found, Trouble):
            return Finding.TROUBLE, judged
        bounds = self._bounds
        if self._judge is None:
            return (Finding.AGREED if found >= bounds.least else Finding.DISAGREED), judged
        if found < bounds.doubtful:
            return Finding.DISAGREED, judged
        if found >= bounds.sure and similarity >= bounds.certain:
            return Finding.AGREED, judged
        if judged >= MOST_JUDGED:
            return Finding.DISAGREED, judged
        said = await self._judge.agrees(bound, asked, stored)
        if isinstance(said, Trouble):
            return Finding.TROUBLE, judged + 1
        return (Finding.AGREED if said else Finding.DISAGREED), judged + 1

    def count(self, finding: Finding) -> None:
        self._journal.count("verified", finding.value)

    async def close(self) -> None:
        """Let go."""
        if self._judge is not None:
            await self._judge.close()
        await self._verifier.close()


class Hearing:
    """Of the candidates for one question."""

    def __init__(self, verdicts: Verdicts, bound: Bound, asked: str) -> None:
        self._verdicts = verdicts
        self._bound = bound
        self._asked = asked
        self._judged = 0

    async def agrees(self, stored: str, similarity: float) -> Finding:
        """Whether the answer to `stored` is one to the question. Counted."""
        finding, self._judged = await self._verdicts.agrees(self._bound, self._asked, stored, similarity, self._judged)
        self._verdicts.count(finding)
        return finding
