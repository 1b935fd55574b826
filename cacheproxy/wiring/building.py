"""The shared index of a new embedder or schema, built in the background."""

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from cacheproxy.core.model import Unfit
from cacheproxy.errors import Trouble
from cacheproxy.ports import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cacheproxy.meaning.redisearch import Redisearch

log = logging.getLogger("cacheproxy")

BUILDING = b"building"
"""For whom questions are embedded again: nobody."""


class Builder:
    """Builds it from the questions that the old one has, until it is whole."""

    def __init__(self, index: "Redisearch", embedder: Embedder) -> None:
        self.index = index
        self._embedder = embedder
        self._task: asyncio.Task[None] | None = None
        self.done = False

    def go_on(self) -> None:
        """Begin, or begin again what another replica was at, or what failed."""
        if not self.done and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._build())

    async def _build(self) -> None:
        from cacheproxy.meaning.rebuild import rebuild

        try:
            self.done = await rebuild(self.index, self._embed)
        except Trouble as trouble:
            log.info("the vector index is not built yet: %s", trouble)

    async def _embed(self, texts: list[str]) -> "NDArray[np.floating[Any]]":
        import numpy as np

        found = await asyncio.gather(*(self._embedder.embed(text, BUILDING) for text in texts))
        left_out = np.full(self._embedder.identity.dim, np.nan, np.float32)
        return np.stack([left_out if isinstance(one, Unfit) else one for one in found])

    async def close(self) -> None:
        """Stop where it is: the next one goes on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
