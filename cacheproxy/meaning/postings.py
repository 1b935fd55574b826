"""Which rows of a partition have which words, and their rank by BM25. Rows are numbered by the place they have.

A row's words are appended to one list each, as a number that carries the place, the count of the word in the row, and
which row of all that ever had this place was meant. So a row is forgotten without a search through the lists; they are
cleared of what was forgotten when that is the greater part.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

K1, B = 1.2, 0.5
"""The constants of BM25, as the search server has them: how soon a repeated word adds nothing, how much less a long
text counts."""

MOST_VISITED = 8_192
"""Occurrences that a search looks at, those of the rarest words first. A word that more rows have tells too little to
be worth the time."""

_PLACE_BITS, _COUNT_BITS = 28, 8
_MOST_COUNTED = 2**_COUNT_BITS - 1
_GENERATIONS = 2 ** (64 - _PLACE_BITS - _COUNT_BITS)
_SLACK = 16

_NUMBER = 8
"""Bytes of an occurrence. They stand in a `bytearray`, which the interpreter's search for garbage passes over: with
millions of words any other object would make that take seconds."""


class Postings:
    """The words of the rows at places 0 to ``room - 1``."""

    def __init__(self) -> None:
        self._lists: dict[str, bytearray] = {}
        self._live: dict[str, int] = {}  # in how many rows that are still there
        self._generations: NDArray[np.uint64] = np.zeros(4, np.uint64)
        self._lengths: NDArray[np.float32] = np.zeros(4, np.float32)
        self._rows = 0
        self._total = 0

    def __len__(self) -> int:
        """Different words."""
        return len(self._lists)

    def add(self, place: int, words: Sequence[str]) -> None:
        """The row at `place`, where none is, has these words."""
        while place >= len(self._lengths):
            self._generations = np.concatenate([self._generations, np.zeros_like(self._generations)])
            self._lengths = np.concatenate([self._lengths, np.zeros_like(self._lengths)])
        head = place | int(self._generations[place]) << (_PLACE_BITS + _COUNT_BITS)
        for word, count in Counter(words).items():
            occurrence = (head | min(count, _MOST_COUNTED) << _PLACE_BITS).to_bytes(_NUMBER, "little")
            listed = self._lists.get(word)
            if listed is None:
                self._lists[word], self._live[word] = bytearray(occurrence), 1
                continue
            listed += occurrence
            live = self._live[word] = self._live[word] + 1
            if len(listed) > _NUMBER * (2 * live + _SLACK):
                self._lists[word] = bytearray(self._standing(listed).astype("<u8").tobytes())
        self._lengths[place] = len(words)
        self._rows += 1
        self._total += len(words)

    def remove(self, place: int, words: Sequence[str]) -> None:
        """The row at `place`, which had these words, is gone."""
        for word in set(words):
            self._live[word] -= 1
            if not self._live[word]:
                del self._lists[word], self._live[word]
        self._generations[place] = (int(self._generations[place]) + 1) % _GENERATIONS
        self._rows -= 1
        self._total -= len(words)

    def move(self, to: NDArray[np.int64]) -> None:
        """Each row at a place is at ``to[place]`` now; where no row was the number does not matter."""
        live = int(self._rows)
        generations, lengths = np.zeros(max(4, live), np.uint64), np.zeros(max(4, live), np.float32)
        for word, listed in self._lists.items():
            occurrences = self._standing(listed)
            places = to[_places(occurrences)]
            counts = occurrences >> np.uint64(_PLACE_BITS) & np.uint64(_MOST_COUNTED)
            moved = places.astype(np.uint64) | counts << np.uint64(_PLACE_BITS)
            self._lists[word] = bytearray(moved.astype("<u8").tobytes())
        there = to >= 0
        lengths[to[there]] = self._lengths[: len(to)][there]
        self._generations, self._lengths = generations, lengths

    def scores(self, asked: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Places of rows that have some of the words `asked`, and the score of each, above 0."""
        lists = sorted((live, word) for word in asked if (live := self._live.get(word)))
        mean = self._total / self._rows if self._rows else 1.0
        room, places, scores = MOST_VISITED, [], []
        for live, word in lists:
            listed = self._lists[word]
            room -= len(listed) // _NUMBER
            if room < 0:
                break
            occurrences = self._standing(listed)
            at = _places(occurrences)
            counts = (occurrences >> np.uint64(_PLACE_BITS) & np.uint64(_MOST_COUNTED)).astype(np.float32)
            rarity = math.log1p((self._rows - live + 0.5) / (live + 0.5))
            places.append(at)
            scores.append(rarity * (K1 + 1) * counts / (counts + K1 * (1 - B + B * self._lengths[at] / mean)))
        if not places:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        # Adding up over all places costs less than to sort those that are there.
        sums = np.bincount(np.concatenate(places), np.concatenate(scores))
        found = np.flatnonzero(sums)
        return found, sums[found].astype(np.float32)

    def _standing(self, listed: bytearray) -> NDArray[np.uint64]:
        """The occurrences in rows that are still there."""
        occurrences = np.frombuffer(bytes(listed), "<u8").astype(np.uint64)
        stated = occurrences >> np.uint64(_PLACE_BITS + _COUNT_BITS)
        standing: NDArray[np.uint64] = occurrences[stated == self._generations[_places(occurrences)]]
        return standing


def _places(occurrences: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (occurrences & np.uint64(2**_PLACE_BITS - 1)).astype(np.int64)
