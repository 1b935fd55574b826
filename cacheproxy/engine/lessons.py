"""The questions of an import, so that its answers are found by meaning: those that are known already are left alone,
vectors of the same embedder are taken as they are, and other questions are embedded anew, as many at once as a batch
has, in small steps with pauses as long, so that no caller's question waits for them.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from cacheproxy.core.model import Entry, Identity, Row, Unfit
from cacheproxy.core.parcel import Asked
from cacheproxy.core.words_only import is_words_only
from cacheproxy.engine.export import identity
from cacheproxy.engine.semantic import Meaning
from cacheproxy.errors import Trouble
from cacheproxy.ports import Embedder

log = logging.getLogger("cacheproxy.semantic")

BATCH = 200
"""Questions that are embedded before they are kept."""
STEP = 8
"""Of these, how many are computed in one step."""
LONGEST_PAUSE = 0.5
"""Seconds."""
IMPORTED = b"imported"
"""For whom they are embedded: nobody."""
Lesson = tuple[Entry, Asked]


@dataclass(slots=True)
class Learnt:
    """How many questions were known already, were taken with their vectors, were embedded anew; and how many could not
    be taken."""

    known: int = 0
    kept: int = 0
    embedded: int = 0
    left_out: int = 0


class Lessons:
    """Those of one import. `stamp`: what their vectors are of."""

    def __init__(self, meaning: Meaning | None, stamp: Identity | None) -> None:
        self._index = meaning.index if meaning is not None else None
        own = identity(meaning)
        self._embedder: Embedder | None = meaning.embedder.bare if meaning is not None and own is not None else None
        self._dim = own.dim if own is not None else 0
        self._same = own is not None and own == stamp
        self._waiting: list[Lesson] = []
        self.learnt = Learnt()

    def __repr__(self) -> str:
        return f"<Lessons {self.learnt}, {len(self._waiting)} waiting>"

    async def take(self, lessons: Sequence[Lesson]) -> None:
        """Their answers are stored. Never raises; what cannot be kept is counted."""
        able = [(entry, asked) for entry, asked in lessons if is_words_only(entry.answer, entry.endpoint)]
        self.learnt.left_out += len(lessons) - len(able)
        try:
            await self._take(able)
        except Trouble as trouble:
            log.warning("imported questions are not kept: %s", trouble)
            self.learnt.left_out += len(able)

    async def _take(self, lessons: Sequence[Lesson]) -> None:
        if self._index is None or self._embedder is None:
            self.learnt.left_out += len(lessons)
            return
        if not lessons:
            return
        there = await self._index.rows([entry.key for entry, _ in lessons])
        rows, waiting, known = list[Row](), list[Lesson](), 0
        for entry, asked in lessons:
            row = there.get(entry.key)
            if row is not None and (row.partition, row.text) == (asked.partition, asked.text):
                known += 1
                if row.expires_at < entry.fresh_until:
                    rows.append(Row(entry.key, row.partition, row.vector, row.text, entry.fresh_until))
            elif self._same and (given := self._given(entry, asked)) is not None:
                rows.append(given)
                self.learnt.kept += 1
            else:
                waiting.append((entry, asked))
        await self._index.enter(rows)
        self.learnt.known += known
        self._waiting += waiting
        while len(self._waiting) >= BATCH:
            await self._embed(BATCH)

    async def finish(self) -> None:
        """Embed what still waits."""
        while self._waiting:
            await self._embed(BATCH)

    def _given(self, entry: Entry, asked: Asked) -> Row | None:
        """The row with the vector of the file; None if that is no vector of this embedder."""
        import numpy as np

        vector = np.frombuffer(asked.vector, "<f4")
        if vector.shape != (self._dim,) or not np.isfinite(vector).all() or not vector.any():
            return None
        return Row(entry.key, asked.partition, vector, asked.text, entry.fresh_until)

    async def _embed(self, most: int) -> None:
        some, self._waiting = self._waiting[:most], self._waiting[most:]
        rows: list[Row] = []
        try:
            for at in range(0, len(some), STEP):
                rows += await self._step(some[at : at + STEP])
            if self._index is not None:
                await self._index.enter(rows)
            self.learnt.embedded += len(rows)
            self.learnt.left_out += len(some) - len(rows)
        except Trouble as trouble:
            log.warning("imported questions are not embedded: %s", trouble)
            self.learnt.left_out += len(some)

    async def _step(self, some: Sequence[Lesson]) -> list[Row]:
        embedder = self._embedder
        if embedder is None:
            return []
        loop = asyncio.get_running_loop()
        began = loop.time()
        found = await asyncio.gather(
            *(embedder.embed(asked.text, IMPORTED) for _, asked in some), return_exceptions=True
        )
        for one in found:
            if isinstance(one, BaseException):
                raise one
        await asyncio.sleep(min(loop.time() - began, LONGEST_PAUSE))
        return [
            Row(entry.key, asked.partition, vector, asked.text, entry.fresh_until)
            for (entry, asked), vector in zip(some, found, strict=True)
            if not isinstance(vector, Unfit | BaseException)
        ]
