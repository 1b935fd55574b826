"""Ranked lists made into one. Ranks alone count, never scores: those of two searches have no common measure.

What two lists rank alike is ordered by its best rank, then by itself, so that the same lists always give the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from cacheproxy.core.model import Near

K = 60
"""The constant of reciprocal rank fusion: the greater, the less the first ranks stand out. As first published."""


def ranks(ranking: Iterable[bytes]) -> dict[bytes, int]:
    """The rank of each element, from 1; of one that is named twice the first."""
    return {element: rank for rank, element in enumerate(dict.fromkeys(ranking), 1)}


def reciprocal(rankings: Sequence[Mapping[bytes, int]], k: float = K) -> list[bytes]:
    """Reciprocal rank fusion: each ranking gives what it ranks at r a part of 1 / (`k` + r)."""
    return weighted(rankings, [1.0] * len(rankings), k)


def weighted(rankings: Sequence[Mapping[bytes, int]], weights: Sequence[float], k: float = K) -> list[bytes]:
    """The same, the part that each ranking gives multiplied by its weight (0 or more)."""
    scores: dict[bytes, float] = {}
    best: dict[bytes, int] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for element, rank in ranking.items():
            scores[element] = scores.get(element, 0.0) + weight / (k + rank)
            best[element] = min(best.get(element, rank), rank)
    return sorted(scores, key=lambda element: (-scores[element], best[element], element))


def fused(
    by_meaning: Iterable[bytes],
    by_words: Iterable[bytes],
    similarities: Mapping[bytes, float],
    limit: int,
    text_of: Callable[[bytes], str] = lambda _: "",
) -> list[Near]:
    """The first `limit` of two ranked lists of keys by reciprocal rank fusion, with what is known of each."""
    meaning, words = ranks(by_meaning), ranks(by_words)
    order = reciprocal([meaning, words])[:limit]
    return [Near(key, similarities.get(key), meaning.get(key), words.get(key), text_of(key)) for key in order]


def reweighed(found: Sequence[Near], meaning: float, words: float) -> list[Near]:
    """What was found, in the order that these weights of the two searches give it."""
    rankings = [
        {near.key: near.by_meaning for near in found if near.by_meaning is not None},
        {near.key: near.by_words for near in found if near.by_words is not None},
    ]
    by_key = {near.key: near for near in found}
    return [by_key[key] for key in weighted(rankings, [meaning, words])]
