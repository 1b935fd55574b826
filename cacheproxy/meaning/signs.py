"""A sketch of vectors: of each number only its sign. The share of signs in which two vectors differ tells the angle
between them, with an error that many dimensions make small; so the near ones of very many are picked out by counting
bits, to be compared exactly. Places are those of partition.py."""

import numpy as np
from numpy.typing import NDArray

from cacheproxy.meaning.vectors import Floats

LEAST_DIM = 128
"""Fewer signs tell too little."""


class Signs:
    """The signs of the vectors at places 0 to ``room - 1``."""

    def __init__(self, dim: int, room: int) -> None:
        self._words: NDArray[np.uint64] = np.zeros((-(-dim // 64), room), np.uint64)

    def grow(self, room: int) -> None:
        """Have room for so many."""
        words = np.zeros((len(self._words), room), np.uint64)
        words[:, : self._words.shape[1]] = self._words
        self._words = words

    def put(self, place: int, vectors: Floats) -> None:
        """These vectors, one a row, are at `place` and the following places."""
        self._words[:, place : place + len(vectors)] = self._packed(vectors)

    def closest(self, vector: Floats, gone: NDArray[np.bool_], many: int) -> NDArray[np.int64]:
        """The places of the `many` (and of those that are as near as the last) that differ least from `vector`, of the
        first ``len(gone)`` and not of those."""
        asked = self._packed(vector[np.newaxis])
        apart = np.zeros(len(gone), np.uint16)
        for ours, its in zip(self._words, asked, strict=True):
            apart += np.bitwise_count(ours[: len(gone)] ^ its)
        apart[gone] = 64 * len(self._words) + 1
        within = np.searchsorted(np.cumsum(np.bincount(apart)), many)
        return np.flatnonzero(apart <= min(int(within), 64 * len(self._words)))

    def _packed(self, vectors: Floats) -> NDArray[np.uint64]:
        """One column of words for each vector."""
        signs = np.packbits(vectors > 0, axis=1)
        padded = np.zeros((len(vectors), 8 * len(self._words)), np.uint8)
        padded[:, : signs.shape[1]] = signs
        return padded.view(np.uint64).T
