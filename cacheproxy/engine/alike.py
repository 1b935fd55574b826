"""Finds, among logged questions, an earlier one whose answer would have served: by the embedder, the threshold and the
guards that serve."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cacheproxy.core import likeness
from cacheproxy.core.likeness import Features
from cacheproxy.core.model import Unfit
from cacheproxy.core.question import Question
from cacheproxy.core.rules import Mode, Reach
from cacheproxy.engine.binder import Binder
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.semantic import Matching

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MODES = frozenset({Mode.ON, Mode.OPT_IN, Mode.READ_ONLY})
FIRST_ROWS = 16


@dataclass(slots=True)
class _Rows:
    """What was asked within one partition: a row each of vectors, keys and features."""

    vectors: "NDArray[np.float32]"
    keys: list[bytes] = field(default_factory=list)
    features: list[Features] = field(default_factory=list)

    def add(self, key: bytes, vector: "NDArray[np.float32]", features: Features) -> None:
        if len(self.keys) == len(self.vectors):
            self.vectors = np.concatenate([self.vectors, np.empty_like(self.vectors)])
        self.vectors[len(self.keys)] = vector
        self.keys.append(key)
        self.features.append(features)


class Alike:
    """`vectors`: of the text of every question that is to be found."""

    def __init__(
        self, binder: Binder, matching: Matching, vectors: "Mapping[str, NDArray[np.float32] | Unfit]"
    ) -> None:
        self._binder = binder
        self._matching = matching
        self._vectors = vectors
        self._rows: dict[bytes, _Rows] = {}
        self._seen: defaultdict[bytes, set[bytes]] = defaultdict(set)

    def finds(self, bound: Bound, is_there: Callable[[bytes], bool]) -> bool:
        """Whether an answer to a like question may be served for `bound`."""
        if self._matching.reach is Reach.SHADOW and not bound.settled.semantic:
            return False
        found = self._vector(bound)
        rows = self._rows.get(self._binder.partition(bound, found[0])) if found is not None else None
        if found is None or rows is None:
            return False
        near = rows.vectors[: len(rows.keys)] @ found[1]
        features = likeness.prepare(found[0].text)
        for at in _highest(near, self._matching.candidates):
            if near[at] < threshold(self._matching, bound):
                return False
            objection = likeness.judge(features, rows.features[at], self._matching.guards)
            if objection is None and is_there(rows.keys[at]):
                return True
        return False

    def learn(self, bound: Bound) -> None:
        """The answer to `bound` is stored: from now on it is found."""
        found = self._vector(bound)
        if found is None:
            return
        question, vector = found
        partition = self._binder.partition(bound, question)
        if bound.ask.key not in self._seen[partition]:
            self._seen[partition].add(bound.ask.key)
            rows = self._rows.setdefault(partition, _Rows(np.empty((FIRST_ROWS, len(vector)), np.float32)))
            rows.add(bound.ask.key, vector, likeness.prepare(question.text))

    def _vector(self, bound: Bound) -> "tuple[Question, NDArray[np.float32]] | None":
        question = question_of(self._binder, self._matching, bound)
        vector = self._vectors.get(question.text) if question is not None else None
        return None if question is None or vector is None or isinstance(vector, Unfit) else (question, vector)


def _highest(near: "NDArray[np.float32]", most: int) -> "NDArray[np.intp]":
    """Where the highest stand, the highest first; `most` of them."""
    if len(near) <= most:
        return np.argsort(-near)
    best = np.argpartition(-near, most)[:most]
    return best[np.argsort(-near[best])]


def question_of(binder: Binder, matching: Matching, bound: Bound) -> Question | None:
    """The question of `bound`, if it may be answered by meaning."""
    told, wished, reach = bound.settled.semantic, bound.controls.semantic, matching.reach
    if told is False or bound.mode not in _MODES or bound.variants > 1 or bound.items:
        return None
    if reach is Reach.OFF and not told:
        return None
    if (wished is not None and wished > 1) or (reach is Reach.OPT_IN and wished is None and not told):
        return None
    question = binder.question(bound)
    return question if isinstance(question, Question) else None


def threshold(matching: Matching, bound: Bound) -> float:
    """The similarity that `bound` wants."""
    told = bound.settled.threshold
    return max(matching.threshold if told is None else told, bound.controls.semantic or 0.0)
