"""The semantic layer, put together: an embedder, and an index in this process or in the shared Redis."""

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cacheproxy.core.model import Identity, Unfit
from cacheproxy.core.redis_url import Topology
from cacheproxy.core.rules import Reach
from cacheproxy.engine.guard import GuardedEmbedder, GuardedIndex
from cacheproxy.errors import ConfigurationError, Trouble
from cacheproxy.ports import Embedder, VectorIndex
from cacheproxy.schema import Settings
from cacheproxy.telemetry import Telemetry
from cacheproxy.wiring.engine import Meaning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cacheproxy.meaning.redisearch import Redisearch
    from cacheproxy.stores.redis_survey import Survey
    from cacheproxy.wiring.shared import Shared

log = logging.getLogger("cacheproxy")

BUILDING = b"building"
"""For whom questions are embedded again: nobody."""
ALONE = "each proxy finds by meaning what it has learnt itself; answers are shared all the same"


def is_wanted(settings: Settings) -> bool:
    """Whether any request could be answered by meaning."""
    return settings.semantic.mode is not Reach.OFF or any(rule.set.semantic for rule in settings.rules)


def embedder(settings: Settings) -> Embedder:
    """The embedder that the settings name. Raises `ConfigurationError`."""
    told = settings.semantic
    if told.url is None:
        raise ConfigurationError("`semantic.mode` needs `semantic.url`, where questions are embedded")
    try:
        from cacheproxy.meaning.remote import Remote
    except ImportError:
        raise ConfigurationError("`semantic.mode` needs the extra: pip install 'cacheproxy[semantic]'") from None

    return Remote(
        told.url, Identity(told.model, "", told.dimensions, prefix=told.prefix),
        api_key=told.api_key.get_secret_value() if told.api_key else None, most_chars=told.most_characters,
    )  # fmt: skip


@dataclass(slots=True)
class Layer:
    """The layer, and what it is made of. `builder`: of a shared index."""

    meaning: Meaning
    embedder: Embedder
    builder: "Builder | None"

    def learn(self, survey: "Survey", settings: Settings) -> None:
        """What the shared Redis can do is known."""
        if survey.search is None:
            self.do_without_search(settings)
        elif self.builder is not None:
            self.builder.index.hybrid = survey.hybrid

    def do_without_search(self, settings: Settings) -> None:
        """The shared Redis turned out not to search."""
        log.warning("the shared Redis cannot search: %s", ALONE)
        self.meaning.index.exchange(_local(settings, self.embedder))
        self.builder = None

    async def sweep(self, now: float) -> None:
        """Free what expired, and go on building."""
        await self.meaning.index.sweep(now)
        if self.builder is not None:
            self.builder.go_on()

    async def close(self) -> None:
        """Let go."""
        if self.builder is not None:
            await self.builder.close()
        await self.meaning.index.close()
        await self.meaning.embedder.close()


def put_together(settings: Settings, embedder: Embedder, shared: "Shared | None", telemetry: Telemetry) -> Layer:
    """The layer over `embedder`."""
    told = settings.semantic
    guarded = GuardedEmbedder(embedder, told.embed_timeout, telemetry)
    inner, builder = _index(settings, embedder, shared, telemetry)
    index = GuardedIndex(inner, told.search_timeout, telemetry)
    for breaker in (guarded.breaker, index.reads, index.writes):
        telemetry.left_alone(breaker.name, lambda breaker=breaker: not breaker.closed)  # type: ignore[misc]
    return Layer(Meaning(guarded, index), embedder, builder)


def _index(
    settings: Settings, embedder: Embedder, shared: "Shared | None", telemetry: Telemetry
) -> "tuple[VectorIndex, Builder | None]":
    if shared is None:
        return _local(settings, embedder), None
    if shared.target.topology is Topology.CLUSTER:
        log.warning("no search by meaning over the whole of a cluster: %s", ALONE)
        return _local(settings, embedder), None
    from cacheproxy.meaning.redisearch import Redisearch
    from cacheproxy.meaning.redisearch_schema import Plan
    from cacheproxy.stores.redis_trouble import trouble

    redis: Any = shared.link.redis
    index = Redisearch(redis, Plan(embedder.identity), settings.redis.prefix, telemetry, trouble)
    return index, Builder(index, embedder)


def _local(settings: Settings, embedder: Embedder) -> VectorIndex:
    from cacheproxy.meaning.local import Local

    return Local(embedder.identity.dim, settings.semantic.index_rows)


class Builder:
    """Builds the shared index of a new embedder or schema in the background, from the questions that the old one has,
    until it is whole."""

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
