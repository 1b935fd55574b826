"""Layer 2: a question that was asked before in other words has the answer of that one, if it is the same question.

Embeds, searches, has the candidates looked at, and learns what new answers answer. What fails on the way costs its
deadline and is a miss. Rows whose answer is gone are skipped, and swept.
"""

from dataclasses import dataclass

from cacheproxy.core.fusion import reweighed
from cacheproxy.core.likeness import Guard
from cacheproxy.core.model import Entry, Row, Unfit
from cacheproxy.core.outcome import Reason
from cacheproxy.core.rules import Mode, Reach
from cacheproxy.core.words_only import is_words_only
from cacheproxy.engine.asked import Asked
from cacheproxy.engine.binder import Binder
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.evidence import Candidate, Evidence
from cacheproxy.engine.fill import Fill
from cacheproxy.engine.guard import Forgiven, GuardedEmbedder, GuardedIndex
from cacheproxy.engine.profile import Stages
from cacheproxy.engine.scrutiny import Like, Scrutiny
from cacheproxy.engine.truth import Truth
from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock, Journal

_UNFIT = {
    Unfit.EMPTY: Reason.EMPTY_QUESTION,
    Unfit.TOO_LONG: Reason.TOO_LONG_QUESTION,
    Unfit.UNKNOWN_TOKENS: Reason.UNKNOWN_WORDS,
    Unfit.BUSY: Reason.EMBEDDER_BUSY,
}
_MODES = frozenset({Mode.ON, Mode.OPT_IN, Mode.READ_ONLY})
"""Of the exact layer, those in which stored answers are served."""


@dataclass(frozen=True, slots=True)
class Matching:
    """What the configuration says: for whom, from which similarity on, with which guards, among how many candidates.

    `keywords`: how much words count in their order, where a vector counts 1.
    """

    reach: Reach
    threshold: float
    guards: frozenset[Guard]
    candidates: int
    keywords: float = 1.0


@dataclass(slots=True)
class Meaning:
    """What the layer is made of. `ready`: the embedding model is loaded; `threshold`: the one chosen for it."""

    embedder: GuardedEmbedder
    index: GuardedIndex
    ready: bool = False
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of a look: what answers, or why nothing does; and what is to be learnt with an answer that comes.
    `witness`: a stored answer that gains or loses by what the backend says now."""

    reason: Reason
    like: Like | None = None
    asked: Asked | None = None
    witness: Candidate | None = None


class Semantic:
    """Looks for like questions, and learns new ones."""

    def __init__(  # noqa: PLR0913 - the parts of the house, by name
        self, *, binder: Binder, meaning: Meaning, scrutiny: Scrutiny, truth: Truth, evidence: Evidence, fill: Fill,
        journal: Journal, clock: Clock, matching: Matching,
    ) -> None:  # fmt: skip
        self._binder = binder
        self._meaning = meaning
        self._scrutiny = scrutiny
        self._truth = truth
        self._evidence = evidence
        self._fill = fill
        self._journal = journal
        self._clock = clock
        self._matching = matching
        self._forgiven = Forgiven("answers by meaning", journal)

    def __repr__(self) -> str:
        return f"<Semantic {self._matching.reach.value} {self._meaning.index!r}>"

    def may_look(self, bound: Bound) -> bool:
        """Whether `bound` may be answered by meaning at all."""
        told, wished, reach = bound.settled.semantic, bound.controls.semantic, self._matching.reach
        if told is False or bound.mode not in _MODES or bound.variants > 1 or bound.items:
            return False
        if wished is not None and wished > 1:
            return False
        if reach is Reach.OPT_IN:
            return wished is not None or told is True
        return reach is not Reach.OFF or told is True

    def threshold(self, bound: Bound) -> float:
        """The similarity that `bound` wants. What samples tell, and a caller, can only raise it."""
        chosen = self._meaning.threshold
        usual = self._matching.threshold if chosen is None else chosen
        told = bound.settled.threshold
        base = self._truth.threshold(usual if told is None else told)
        return max(base, bound.controls.semantic or 0.0)

    async def look(self, bound: Bound, stages: Stages) -> Heard:
        """The answer to a like question, if one may be served. Never raises."""
        found = await self._forgiven.call(self._look(bound, stages))
        heard = Heard(Reason.SEMANTIC_TROUBLE) if isinstance(found, Trouble) else found
        self._journal.count("semantic_looks", "found" if heard.like is not None else heard.reason.word)
        return heard

    async def _look(self, bound: Bound, stages: Stages) -> Heard:
        question = self._binder.question(bound)
        if isinstance(question, Reason):
            return Heard(question)
        meaning = self._meaning
        if not meaning.ready:
            return Heard(Reason.SEMANTIC_LOADING)
        vector = await meaning.embedder.embed(question.text, bound.ask.scope.owner)
        stages.lap("embed")
        if isinstance(vector, Unfit):
            return Heard(_UNFIT[vector])
        if isinstance(vector, Trouble):
            return Heard(Reason.SEMANTIC_TROUBLE)
        asked = Asked(question.text, self._binder.partition(bound, question), vector)
        near = await meaning.index.search(
            asked.partition, asked.vector, asked.text, self._matching.candidates, self._clock.now()
        )
        stages.lap("search")
        if isinstance(near, Trouble):
            return Heard(Reason.SEMANTIC_TROUBLE, asked=asked)
        told = bound.settled.keywords
        keywords = self._matching.keywords if told is None else told
        if keywords != 1:
            near = reweighed(near, 1.0, keywords)
        found = await self._scrutiny.look(bound, asked, near, self.threshold(bound))
        stages.lap("verify")
        if found.gone:
            self._fill.offer(meaning.index.remove(found.gone))
        like = found.like
        if like is not None and self._matching.reach is Reach.SHADOW and not bound.settled.semantic:
            self._journal.count("semantic_shadow")
            return Heard(Reason.SEMANTIC_SHADOW, asked=asked, witness=candidate_of(like))
        return Heard(found.reason, like, asked, found.witness)

    def learn(self, asked: Asked, entry: Entry, witness: Candidate | None = None) -> None:
        """`entry` has been kept as the answer to `asked`: from soon on it is found by meaning. `witness`: what it is
        compared with."""
        if not is_words_only(entry.answer, entry.endpoint):
            return
        row = Row(entry.key, asked.partition, asked.vector, asked.text, entry.fresh_until)
        self._fill.offer(self._meaning.index.add(row))
        if witness is not None:
            self._fill.offer(self._evidence.weigh(asked, witness, entry))


def candidate_of(like: Like) -> Candidate:
    """A hit by meaning, as one that counts for the estimate."""
    return Candidate(like.entry, like.similarity, like.stored, counts=True)
