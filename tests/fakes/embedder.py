"""An embedder that gives chosen vectors, and can fail in every way."""

import asyncio

import numpy as np

from cacheproxy.core.model import Identity, Unfit
from cacheproxy.errors import Trouble

DIM = 64


class Chosen:
    """`at(text, angle)`: the cosine of that text to the first axis; texts that were not placed are far from all."""

    identity = Identity("chosen", "1", DIM)

    def __init__(self) -> None:
        self.placed: dict[str, np.ndarray] = {}
        self.given: np.ndarray | Unfit | Trouble | None = None
        self.hang = False
        self.asked: list[tuple[str, bytes]] = []
        self._others = 1

    def near(self, text: str, similarity: float) -> None:
        """Give `text` this cosine to the first axis, and none to another text beyond that."""
        vector = np.zeros(DIM, np.float32)
        vector[0] = similarity
        vector[self._other()] = (1 - similarity**2) ** 0.5
        self.placed[text] = vector

    def _other(self) -> int:
        self._others += 1
        return self._others % (DIM - 1) + 1

    async def embed(self, text: str, scope: bytes):
        self.asked.append((text, scope))
        if self.hang:
            await asyncio.Event().wait()
        if isinstance(self.given, Trouble):
            raise self.given
        if self.given is not None:
            return self.given
        if text not in self.placed:
            vector = np.zeros(DIM, np.float32)
            vector[self._other()] = 1
            self.placed[text] = vector
        return self.placed[text]

    async def warm(self) -> None:
        pass

    async def close(self) -> None:
        pass
