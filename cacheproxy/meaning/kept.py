"""The vector index in this process, kept over a restart: what it knows is also in a file, and is loaded from there in
the background, youngest first, while searches find what is there already.

What is removed while it is loading is not loaded any more. Vectors are kept in half precision, which moves a similarity
by less than 0.0001.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Protocol

import numpy as np

from cacheproxy.core.model import Identity, Row
from cacheproxy.errors import place_of
from cacheproxy.meaning.local import Local
from cacheproxy.meaning.vectors import checked

KEPT_AS = "float16"

log = logging.getLogger("cacheproxy.semantic")


PlainRow = tuple[bytes, bytes, bytes, str, float]
"""A row of a vector index: key, partition, the vector's bytes, text, absolute expiry."""


class RowFile(Protocol):
    """Keeps the rows of a vector index over a restart. Trouble with it costs rows, and is not raised."""

    def put(self, row: PlainRow) -> None:
        """Keep `row` in place of any other of its key, soon. Never waits: what is too much is dropped and counted."""

    async def remove(self, keys: Iterable[bytes]) -> None:
        """Forget these rows. When it returns they are gone from the disk, if that works."""

    def rows(self) -> AsyncGenerator[list[PlainRow], None]:
        """The rows that were there at the start, youngest first, some at a time."""

    def sweep(self, now: float) -> None:
        """Free what expired before `now`, soon."""

    async def close(self) -> None:
        """Write out what is pending and let go."""


def name_of(identity: Identity) -> str:
    """What tells the rows of one embedder from those of any other."""
    whose = (identity.name, identity.revision, identity.dim, identity.pooling, identity.prefix, identity.precision)
    return "\0".join(map(str, (*whose, KEPT_AS)))


class KeptIndex(Local):
    """A `Local` whose rows are in `file` too. `start` begins to load; `loaded` tells how many rows that were so far."""

    def __init__(self, dim: int, most: int, file: RowFile) -> None:
        super().__init__(dim, most)
        self._file = file
        self._loading: asyncio.Task[None] | None = None
        self._gone: set[bytes] = set()
        self.loaded = 0
        self.whole = False
        """Whether all that was kept has been loaded."""

    def __repr__(self) -> str:
        state = "" if self.whole else f", {self.loaded} loaded so far"
        return f"<KeptIndex {len(self)} rows{state} {self._file!r}>"

    def start(self) -> None:
        """Load what is kept, in the background."""
        self._loading = asyncio.get_running_loop().create_task(self._load())

    async def add(self, row: Row) -> None:
        vector = checked(row, self._dim)
        self._add(row, vector)
        self._file.put((row.key, row.partition, vector.astype(KEPT_AS).tobytes(), row.text, row.expires_at))

    async def remove(self, keys: Iterable[bytes]) -> int:
        leaving = list(keys)
        if not self.whole:
            self._gone.update(leaving)
        gone = await super().remove(leaving)
        await self._file.remove(leaving)
        return gone

    async def known(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        if self._loading is not None:
            await asyncio.wait([self._loading])  # what is not loaded yet is kept all the same
        return await super().known(keys)

    async def sweep(self, now: float) -> int:
        self._file.sweep(now)
        return await super().sweep(now)

    async def close(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
        await super().close()
        await self._file.close()

    async def _load(self) -> None:
        try:
            async with aclosing(self._file.rows()) as kept:
                async for some in kept:
                    rows = (
                        Row(key, partition, np.frombuffer(vector, KEPT_AS), text, expires_at)
                        for key, partition, vector, text, expires_at in some
                        if len(vector) == 2 * self._dim and key not in self._gone
                    )
                    self.loaded += await self.fill(rows)
                    if self.full:
                        break
            log.info("%d questions of before can be answered by meaning", self.loaded)
        except Exception as error:  # noqa: BLE001 - whatever it is, what has been loaded is used
            log.error("not all questions of before could be loaded: %s", place_of(error))
        self.whole = True
        self._gone.clear()
