"""The semantic layer, put together: an embedder, and an index in this process or in the shared Redis.

It is loaded in the background. A start waits for it for a while; what comes before it is loaded goes on without.
"""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cacheproxy.core import likeness
from cacheproxy.core.redis_url import Topology
from cacheproxy.engine.guard import GuardedEmbedder, GuardedIndex
from cacheproxy.engine.semantic import Meaning
from cacheproxy.errors import Trouble, place_of
from cacheproxy.meaning.worker import Worker
from cacheproxy.ports import Embedder, Questions
from cacheproxy.schema import Settings
from cacheproxy.telemetry import Telemetry
from cacheproxy.wiring import embedding
from cacheproxy.wiring.building import Builder

if TYPE_CHECKING:
    from cacheproxy.stores.redis_survey import Survey
    from cacheproxy.wiring.shared import Shared

log = logging.getLogger("cacheproxy")

QUESTIONS_FILE = "meaning.sqlite3"
START_SECONDS = 15.0
"""So long a start waits for the embedding model. A download may take longer."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
"""Seconds between the attempts to load what could not be loaded."""
ALONE = "each proxy finds by meaning what it has learnt itself; answers are shared all the same"


class Layer:
    """The layer. `meaning` is what the engine sees of it; `builder`: of a shared index."""

    def __init__(
        self, settings: Settings, given: Embedder | None, shared: "Shared | None", telemetry: Telemetry
    ) -> None:  # fmt: skip
        """`given`: an embedder in place of the one that the settings name."""
        told = settings.semantic
        self._settings = settings
        self._given = given
        self._calibration = embedding.calibration(settings)
        self._shared = shared
        self._telemetry = telemetry
        self._opening: asyncio.Task[None] | None = None
        self._searches, self._hybrid = True, False
        self.builder: Builder | None = None
        embedder = GuardedEmbedder(None, told.embed_timeout, telemetry)
        index = GuardedIndex(None, told.search_timeout, telemetry)
        self.meaning = Meaning(embedder, index)
        for breaker in (embedder.breaker, index.reads, index.writes):
            telemetry.left_alone(breaker.name, lambda breaker=breaker: not breaker.closed)  # type: ignore[misc]
        telemetry.gauge("semantic_ready", "1 once the embedding model is loaded.", lambda: int(self.meaning.ready))

    def learn(self, survey: "Survey") -> None:
        """What the shared Redis can do is known."""
        self._searches, self._hybrid = survey.search is not None, survey.hybrid

    async def start(self) -> None:
        """Load the embedding model. What cannot be loaded in time, or at all, is waited for in the background."""
        tried = asyncio.Event()
        self._opening = asyncio.get_running_loop().create_task(self._open(tried))
        with suppress(TimeoutError):
            await asyncio.wait_for(tried.wait(), START_SECONDS)
        if not tried.is_set():
            log.warning("the embedding model is still being loaded: nothing is answered by meaning until it is")

    async def _open(self, tried: asyncio.Event) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                await self._opened()
            except Exception as error:  # noqa: BLE001 - a fault of ours in it keeps nobody from being served
                log.log(
                    logging.WARNING if pause == FIRST_PAUSE else logging.DEBUG,
                    "nothing is answered by meaning: %s", error if isinstance(error, Trouble) else place_of(error),
                )  # fmt: skip
            else:
                return
            finally:
                tried.set()
            await asyncio.sleep(pause)
            pause = min(pause * 4, LONGEST_PAUSE)

    async def _opened(self) -> None:
        """Raises `Trouble`."""
        embedder = self._given
        if embedder is None:
            worker = Worker("opening")
            try:
                embedder = await worker.do(partial(embedding.embedder, self._settings))
            finally:
                worker.close()
        worker = Worker("reading")
        try:
            await worker.do(likeness.load)
            await embedder.warm()
            index = self._index(embedder)
        except BaseException:
            await embedder.close()
            raise
        finally:
            worker.close()
        self.meaning.threshold = embedding.threshold(self._settings, self._calibration, embedder.identity)
        self.meaning.embedder.exchange(embedder)
        self.meaning.index.exchange(index)
        self.meaning.ready = True
        if self.builder is not None:
            self.builder.go_on()

    def _index(self, embedder: Embedder) -> Questions:
        shared = self._shared
        alone = shared is not None
        if shared is not None and not self._searches:
            log.warning("the shared Redis cannot search: %s", ALONE)
        elif shared is not None and shared.target.topology is Topology.CLUSTER:
            log.warning("no search by meaning over the whole of a cluster: %s", ALONE)
        else:
            alone = False
        if shared is None or alone:
            return self._own(embedder)
        from cacheproxy.meaning.redisearch import Redisearch
        from cacheproxy.meaning.redisearch_schema import Plan
        from cacheproxy.stores.redis_trouble import trouble

        redis: Any = shared.link.redis
        plan = Plan(embedder.identity)
        index = Redisearch(redis, plan, self._settings.redis.prefix, self._telemetry, trouble, hybrid=self._hybrid)
        self.builder = Builder(index, embedder)
        return index

    def _own(self, embedder: Embedder) -> Questions:
        """The index in this process; with a directory for data it is kept over a restart."""
        dim, most = embedder.identity.dim, self._settings.semantic.index_rows
        if self._settings.store.data_dir == "none":
            from cacheproxy.meaning.local import Local

            return Local(dim, most)
        from cacheproxy.meaning.kept import KeptIndex, name_of
        from cacheproxy.stores.sqlite_vectors import VectorFile

        path = Path(self._settings.store.data_dir) / QUESTIONS_FILE
        file = VectorFile(path, name_of(embedder.identity), most)
        index = KeptIndex(dim, most, file)
        gauge = self._telemetry.gauge
        gauge("semantic_loaded", "Questions loaded from before the start.", lambda: index.loaded)
        gauge("semantic_kept", "Questions in the file that is loaded at a start.", lambda: file.count)
        gauge("semantic_dropped", "Questions learnt that were not written to the file.", lambda: file.dropped)
        index.start()
        return index

    async def sweep(self, now: float) -> None:
        """Free what expired, and go on building."""
        await self.meaning.index.sweep(now)
        if self.builder is not None:
            self.builder.go_on()

    async def close(self) -> None:
        """Let go."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if self.builder is not None:
            await self.builder.close()
        await self.meaning.index.close()
        await self.meaning.embedder.close()
