"""Asks the backend, beside the caller's way, what it would have said where a stored answer was served by meaning.

A share of them, one at a time, only while little else is running, and within a budget by the hour. Where the two differ
it is asked once more: a question that has another answer each time tells nothing.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from cacheproxy.core.agreement import Agreement
from cacheproxy.core.model import Answer
from cacheproxy.core.spending import Spending
from cacheproxy.core.words_only import is_words_only
from cacheproxy.engine.asker import Asker
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.evidence import Candidate, Evidence
from cacheproxy.engine.fill import Fill
from cacheproxy.engine.promotion import Promotion
from cacheproxy.ports import Clock, Journal

WAITING = 16
"""Samples that wait at most; one more is let go."""
PATIENCE = 60.0
"""Seconds that one waits for a quiet moment."""
PAUSE = 0.05
"""Seconds between two looks for one, and before the first: until then the caller is being answered."""
QUIET = 4
"""Requests running up to which the moment is quiet."""
LETTERS = 4
"""Bytes that are taken for a token where the backend does not count."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """What the configuration says: the share of hits, and how many calls and tokens an hour they may cost."""

    share: float
    calls: int
    tokens: int


@dataclass(frozen=True, slots=True)
class _Sample:
    bound: Bound
    candidate: Candidate
    since: float
    era: int


class Sampler:
    """`running`: how many requests are being answered now."""

    def __init__(  # noqa: PLR0913 - the parts of the house, by name
        self, *, asker: Asker, evidence: Evidence, fill: Fill, journal: Journal, clock: Clock, sampling: Sampling,
        running: Callable[[], int], promotion: Promotion | None = None, draw: Callable[[], float] = random.random,
    ) -> None:  # fmt: skip
        self._asker = asker
        self._evidence = evidence
        self._promotion = promotion
        self._fill = fill
        self._journal = journal
        self._clock = clock
        self._share = sampling.share
        self._running = running
        self._draw = draw
        self._spending = Spending(sampling.calls, sampling.tokens)
        self._waiting: deque[_Sample] = deque()
        self._worker: object | None = None

    def __repr__(self) -> str:
        return f"<Sampler {len(self._waiting)} waiting{', at work' if self._worker else ''} {self._spending!r}>"

    def offer(self, bound: Bound, candidate: Candidate) -> None:
        """`candidate` is being served to `bound`. A share of those is looked at; of those that were asked in the same
        words, only where it may make a witness. `bound.asked`: what an answer is learnt with."""
        if bound.controls.only_if_cached or self._draw() >= self._share:
            return
        if not candidate.counts and not self._may_witness(bound, candidate):
            return
        if len(self._waiting) >= WAITING:
            self._skip()
            return
        self._waiting.append(_Sample(bound, candidate, self._clock.monotonic(), self._evidence.era))
        if self._worker is None:
            self._worker = worker = object()
            if not self._fill.offer(self._work(), lambda: self._rest(worker)):
                self._worker = None

    def _may_witness(self, bound: Bound, candidate: Candidate) -> bool:
        entry = candidate.entry
        wanted = self._promotion is not None and self._promotion.wants(bound.ask, entry)
        return wanted and is_words_only(entry.answer, entry.endpoint)

    def _rest(self, worker: object) -> None:
        if self._worker is worker:  # it was cancelled, or failed
            self._worker = None

    def _skip(self) -> None:
        self._journal.count("semantic_samples", "skipped")

    async def _work(self) -> None:
        """One after the other, until none waits."""
        while self._waiting:
            sample = self._waiting[0]
            busy, waited = self._running() > QUIET, self._clock.monotonic() - sample.since
            if waited < PAUSE or (busy and waited < PATIENCE):
                await asyncio.sleep(PAUSE)
                continue
            self._waiting.popleft()
            if not sample.candidate.counts and await self._stands(sample):
                continue
            outdated = sample.candidate.counts and sample.era != self._evidence.era
            if busy or outdated or not self._spending.begin(self._clock.now()):
                self._skip()
            else:
                await self._look(sample.bound, sample.candidate)
        self._worker = None

    async def _stands(self, sample: _Sample) -> bool:
        """Whether there are witnesses enough by now."""
        promotion = self._promotion
        return promotion is not None and await promotion.stands(sample.bound.ask, sample.candidate.entry)

    async def _look(self, bound: Bound, candidate: Candidate) -> None:
        # What is kept under the key of a witnessed answer takes its place, and begins with no witness.
        answer = await self._asked(bound, keep=candidate.counts)
        verdict = Agreement.UNKNOWN if answer is None else await self._compared(bound, candidate, answer)
        await self._evidence.conclude(bound.asked, candidate, answer, bound.ask.credential, verdict)

    async def _compared(self, bound: Bound, candidate: Candidate, answer: Answer) -> Agreement:
        entry = candidate.entry
        verdict = await self._evidence.compare(entry, answer)
        if verdict is not Agreement.DIFFER or not self._spending.begin(self._clock.now()):
            return verdict
        again = await self._asked(bound, keep=False)
        if again is None or await self._evidence.same(entry, answer, again) is not Agreement.DIFFER:
            return verdict
        return Agreement.UNKNOWN

    async def _asked(self, bound: Bound, *, keep: bool) -> Answer | None:
        answer = await self._asker.ask(bound, keep=keep)
        body = len(bound.outgoing.plain) + (len(answer.body) if answer is not None else 0)
        self._spending.settle((sum(answer.tokens) if answer is not None else 0) or body // LETTERS)
        return answer
