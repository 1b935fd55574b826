"""What would be served of labelled pairs: their similarity by the embedder that serves, and what the guards and the
verifier that serve say of them. Nothing is stored."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from cacheproxy.core import likeness
from cacheproxy.core.calibration import Scored
from cacheproxy.core.labelled import Pair
from cacheproxy.core.likeness import Guard
from cacheproxy.core.model import Unfit
from cacheproxy.ports import Embedder, Verifier

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32] | Unfit

AT_ONCE = 64
"""Texts that are embedded at once."""
LOWEST = 0.5
"""Pairs that are less alike are served at no threshold: a verifier that takes long is not asked about them."""


class Judge:
    """Whether the answer to one question is one to another, apart from their similarity: no guard objects, and the
    verifier, if there is one, gives at least the probability `least`."""

    def __init__(self, guards: frozenset[Guard], verifier: Verifier | None = None, least: float = 0.5) -> None:
        self._guards = guards
        self._verifier = verifier
        self._least = least

    async def agrees(self, asked: str, stored: str, similarity: float) -> bool:
        """Raises `Trouble`, if the verifier does."""
        if likeness.judge(asked, stored, self._guards) is not None:
            return False
        return self._verifier is None or await self._verifier.agreement(asked, stored, similarity) >= self._least


async def vectors(
    embedder: Embedder, texts: Iterable[str], done: Callable[[int], object] = lambda _: None, at_once: int = AT_ONCE
) -> dict[str, "Vector"]:
    """The vector of each text, or why it has none; `at_once` of them together. `done` is told how many more there are.
    Raises `Trouble`."""
    found: dict[str, Vector] = {}
    different = list(dict.fromkeys(texts))
    for at in range(0, len(different), at_once):
        part = different[at : at + at_once]
        found |= zip(part, await asyncio.gather(*(embedder.embed(text, b"") for text in part)), strict=True)
        done(len(part))
    return found


async def scored(
    embedder: Embedder, judge: Judge, pairs: Sequence[Pair], done: Callable[[int], object] = lambda _: None
) -> list[Scored]:
    """Each pair with its similarity and what is said of it. Raises `Trouble`."""
    known = await vectors(embedder, (text for pair in pairs for text in (pair.a, pair.b)), done)
    return [await _scored(judge, pair, known[pair.a], known[pair.b]) for pair in pairs]


async def _scored(judge: Judge, pair: Pair, a: "Vector", b: "Vector") -> Scored:
    if isinstance(a, Unfit) or isinstance(b, Unfit):
        return Scored(pair.same, None, passes=False)
    similarity = min(1.0, max(-1.0, float(a @ b)))
    passes = similarity >= LOWEST and await judge.agrees(pair.a, pair.b, similarity)
    return Scored(pair.same, similarity, passes)
