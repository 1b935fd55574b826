"""What is served in a stream of questions: each, in a random order, looks among the earlier ones as `engine/semantic.py`
looks: the candidates of the index (by cosine and by words, fused), best first, the first that is near enough and passes.
What is answered from the cache is not learnt, as in the engine."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cacheproxy.meaning.partition import Partition
from cacheproxy.meaning.tuning import Judge
from tests.quality import serving, shares
from tests.quality.sets import Stream

SEEDS = 3
HIT, WRONG, LOOKS = range(3)
_LEAST, _STEP = 0.88, 0.005
_ROUNDING = 1e-4
_BLOCK = 512


@dataclass
class Replay:
    """A stream that can be asked at any threshold. Verdicts on two texts are remembered."""

    stream: Stream
    vectors: NDArray[np.float32]
    judge: Judge

    def __post_init__(self) -> None:
        self._said: dict[tuple[int, int], bool] = {}
        self._refused = ~self.vectors.any(axis=1)
        self._nearest = _nearest(self.vectors)

    async def run(self, threshold: float, seed: int, most: int | None = None) -> NDArray[np.float64]:
        """Of each text: was it a hit, was it a wrong one, and 1; of the first `most` in this order."""
        texts, intents = self.stream.texts, self.stream.intents
        order = np.random.default_rng(seed).permutation(len(texts))[:most]
        columns = np.zeros((len(texts), 3))
        columns[order, LOOKS] = 1
        index = Partition(self.vectors.shape[1])
        for asked in map(int, order):
            if self._refused[asked]:
                continue
            stored = await self._served(index, asked, threshold)
            if stored is None:
                index.add(asked.to_bytes(32, "big"), self.vectors[asked], texts[asked], math.inf)
            else:
                columns[asked, :2] = 1, intents[asked] != intents[stored]
        return columns

    async def _served(self, index: Partition, asked: int, threshold: float) -> int | None:
        if not len(index) or self._nearest[asked] < threshold - _ROUNDING:
            return None  # nothing in the whole stream is near enough
        found = index.search(self.vectors[asked], self.stream.texts[asked], serving.DEFAULTS.candidates, 0.0)
        for near in found:
            if near.similarity is not None and near.similarity >= threshold:
                stored = int.from_bytes(near.key, "big")
                if await self._agrees(asked, stored, near.similarity):
                    return stored
        return None

    async def _agrees(self, asked: int, stored: int, similarity: float) -> bool:
        if (asked, stored) not in self._said:
            texts = self.stream.texts
            self._said[asked, stored] = await self.judge.agrees(texts[asked], texts[stored], similarity)
        return self._said[asked, stored]

    async def measured(self, threshold: float) -> dict:
        """Hits among all looks and errors among hits, over several orders; and the error at a tenth of hits."""
        runs = [await self.run(threshold, seed) for seed in range(SEEDS)]
        columns = np.sum(runs, axis=0)
        return {
            "hits": shares.ratio(columns, HIT, LOOKS),
            "errors": shares.ratio(columns, WRONG, HIT),
            "at_ten": await self.at_ten(),
        }

    async def at_ten(self) -> dict | None:
        """The threshold by which a tenth of looks hits, in the first order, and the error there."""
        low, high = 0, round((1 - _LEAST) / _STEP)
        found = None
        while low <= high:
            middle = (low + high) // 2
            threshold = round(_LEAST + middle * _STEP, 4)
            total = (await self.run(threshold, 0)).sum(0)
            if total[HIT] >= total[LOOKS] / 10:
                found = {"threshold": threshold, "error": round(float(total[WRONG] / total[HIT]), 4)}
                low = middle + 1
            else:
                high = middle - 1
        return found


def _nearest(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """How near the nearest other row is to each."""
    found = np.empty(len(vectors), np.float32)
    for at in range(0, len(vectors), _BLOCK):
        near = vectors[at : at + _BLOCK] @ vectors.T
        near[np.arange(len(near)), np.arange(at, at + len(near))] = -1
        found[at : at + _BLOCK] = near.max(axis=1)
    return found
