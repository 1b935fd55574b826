"""The rows of one partition, in memory: by exact cosine, and by BM25. Of very many rows those are compared that a
sketch of their vectors leaves (signs.py): what it passes over is far from what is asked.

Every row has a place, an index into all that is kept of it; a place that is left is taken by the next row. Vectors
stand in blocks of a fixed number of places, so that growing copies no more than one block.
"""

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from cacheproxy.core.fusion import fused
from cacheproxy.core.model import Near
from cacheproxy.core.words import asked, words
from cacheproxy.meaning.postings import Postings
from cacheproxy.meaning.signs import LEAST_DIM, Signs
from cacheproxy.meaning.vectors import Floats

BLOCK = 4_096
"""Places of a full block."""

EXACT = 4_096
"""Places up to which every row is compared. With more it takes too long."""

COMPARED = 1_024
"""Rows that are compared then."""

_LEAST = 4
_SPARSE = 4
"""A partition is packed when fewer than one in so many places are taken."""


class Partition:
    """Rows by place."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._blocks: list[Floats] = []
        self._signs: Signs | None = None
        self._keys: list[bytes | None] = []
        self._texts: list[str] = []
        self._expiries: NDArray[np.float64] = np.zeros(0)
        self._free: list[int] = []
        self._postings = Postings()

    def __len__(self) -> int:
        return len(self._keys) - len(self._free)

    @property
    def room(self) -> int:
        """Places for which there is memory."""
        return sum(len(block) for block in self._blocks)

    def add(self, key: bytes, vector: Floats, text: str, expires_at: float) -> int:
        """Keep a row; its place. `vector` has the length 1."""
        if self._free:
            place = self._free.pop()
        else:
            place = len(self._keys)
            self._keys.append(None)
            self._texts.append("")
            if place >= self.room:
                self._grow()
        self._keys[place], self._texts[place], self._expiries[place] = key, text, expires_at
        self._put(place, vector)
        self._postings.add(place, words(text))
        return place

    def remove(self, place: int) -> dict[bytes, int]:
        """The row at `place` is gone; the new places of all others if those have changed, else nothing."""
        self._postings.remove(place, words(self._texts[place]))
        self._keys[place], self._texts[place], self._expiries[place] = None, "", -math.inf
        self._free.append(place)
        if len(self) * _SPARSE < self.room and self.room > _LEAST * _SPARSE:
            return self._pack()
        return {}

    def row(self, place: int) -> tuple[Floats, str, float]:
        """Vector, text and expiry of the row at `place`."""
        vector = self._blocks[place // BLOCK][place % BLOCK].copy()
        return vector, self._texts[place], float(self._expiries[place])

    def search(self, vector: Floats, text: str, limit: int, now: float) -> list[Near]:
        """The best `limit` rows that have not expired; `vector` has the length 1."""
        gone = self._expiries[: len(self._keys)] <= now
        compared, near = self._compared(vector, gone)
        by_meaning = self._keyed(compared[i] for i in _top(near, None, limit))
        places, scores = self._postings.scores(asked(text))
        scores[gone[places]] = -np.inf
        by_words = self._keyed(places[i] for i in _top(scores, near[places] if len(near) == len(gone) else None, limit))
        found = by_meaning | by_words
        cosines = self._cosines(vector, np.array([*found.values()], np.int64))
        return fused(by_meaning, by_words, dict(zip(found, cosines.tolist(), strict=True)), limit, self._text_of(found))

    def _text_of(self, places: dict[bytes, int]) -> Callable[[bytes], str]:
        return lambda key: self._texts[places[key]]

    def _compared(self, vector: Floats, gone: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Floats]:
        """The places that are compared, and the cosine at each, minus infinity where no row is."""
        if self._signs is not None:
            places = self._signs.closest(vector, gone, COMPARED)
            return places, self._cosines(vector, places)
        near = np.empty(len(gone), np.float32)
        for at, block in self._filled():
            np.dot(block, vector, out=near[at : at + len(block)])
        near[gone] = -np.inf
        return np.arange(len(gone)), near

    def _cosines(self, vector: Floats, places: NDArray[np.int64]) -> Floats:
        """The cosine at each of some places."""
        cosines = np.zeros(len(places), np.float32)
        for number in np.unique(places // BLOCK):
            here = places // BLOCK == number
            cosines[here] = self._blocks[number][places[here] % BLOCK] @ vector
        return np.clip(cosines, -1.0, 1.0)

    def _put(self, place: int, vector: Floats) -> None:
        self._blocks[place // BLOCK][place % BLOCK] = vector
        if self._signs is not None:
            self._signs.put(place, vector[np.newaxis])

    def _filled(self) -> Iterator[tuple[int, Floats]]:
        """The parts of the blocks that have been used, each with its first place."""
        for number, block in enumerate(self._blocks):
            at = number * BLOCK
            yield at, block[: len(self._keys) - at]

    def _keyed(self, places: Iterable[int]) -> dict[bytes, int]:
        return {key: place for place in places if (key := self._keys[place]) is not None}

    def _grow(self) -> None:
        last = len(self._blocks[-1]) if self._blocks else 0
        if 0 < last < BLOCK:
            grown = np.zeros((min(2 * last, BLOCK), self._dim), np.float32)
            grown[:last] = self._blocks[-1]
            self._blocks[-1] = grown
        else:
            self._blocks.append(np.zeros((BLOCK if self._blocks else _LEAST, self._dim), np.float32))
        longer = np.full(self.room, -math.inf)
        longer[: len(self._expiries)] = self._expiries
        self._expiries = longer
        if self._signs is not None:
            self._signs.grow(self.room)
        elif self.room > EXACT and self._dim >= LEAST_DIM:
            self._signs = Signs(self._dim, self.room)
            for number, block in enumerate(self._blocks):
                self._signs.put(number * BLOCK, block)

    def _pack(self) -> dict[bytes, int]:
        """Give back the memory of places that are not taken; where each row is now."""
        old = [place for place, key in enumerate(self._keys) if key is not None]
        to = np.full(len(self._keys), -1, np.int64)
        to[old] = np.arange(len(old))
        self._postings.move(to)
        blocks, expiries = self._blocks, self._expiries
        self._keys, self._texts = [self._keys[place] for place in old], [self._texts[place] for place in old]
        self._blocks, self._free, self._expiries, self._signs = [], [], np.zeros(0), None
        while self.room < len(old):
            self._grow()
        for place, before in enumerate(old):
            self._put(place, blocks[before // BLOCK][before % BLOCK])
        self._expiries[: len(old)] = expiries[old]
        return {key: place for place, key in enumerate(self._keys) if key is not None}


def _top(scores: NDArray[np.floating], second: NDArray[np.floating] | None, limit: int) -> list[int]:
    """Where the best `limit` scores are, best first; minus infinity is none. Of equals the one with the greater
    `second`, then the first."""
    least = np.partition(scores, len(scores) - limit)[len(scores) - limit] if len(scores) > limit else -np.inf
    best = np.flatnonzero((scores >= least) & (scores != -np.inf))
    order = np.lexsort((best, *(() if second is None else (-second[best],)), -scores[best]))
    return [int(at) for at in best[order[:limit]]]
