"""The semantic layer, put together: an embedder, and an index in this process or in the shared Redis."""

import logging
from typing import TYPE_CHECKING, Any

from cacheproxy.core.model import Identity
from cacheproxy.core.redis_url import Topology
from cacheproxy.core.rules import Reach
from cacheproxy.engine.guard import GuardedEmbedder, GuardedIndex
from cacheproxy.errors import ConfigurationError
from cacheproxy.ports import Embedder, VectorIndex
from cacheproxy.schema import Settings
from cacheproxy.telemetry import Telemetry
from cacheproxy.wiring.engine import Meaning

if TYPE_CHECKING:
    from cacheproxy.wiring.shared import Shared

log = logging.getLogger("cacheproxy")

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


def put_together(settings: Settings, embedder: Embedder, shared: "Shared | None", telemetry: Telemetry) -> Meaning:
    """The layer over `embedder`."""
    told = settings.semantic
    guarded = GuardedEmbedder(embedder, told.embed_timeout, telemetry)
    index = GuardedIndex(_index(settings, embedder, shared, telemetry), told.search_timeout, telemetry)
    for breaker in (guarded.breaker, index.reads, index.writes):
        telemetry.left_alone(breaker.name, lambda breaker=breaker: not breaker.closed)  # type: ignore[misc]
    return Meaning(guarded, index)


def _index(settings: Settings, embedder: Embedder, shared: "Shared | None", telemetry: Telemetry) -> VectorIndex:
    if shared is None:
        return _local(settings, embedder)
    if shared.target.topology is Topology.CLUSTER:
        log.warning("no search by meaning over the whole of a cluster: %s", ALONE)
        return _local(settings, embedder)
    from cacheproxy.meaning.redisearch import Redisearch
    from cacheproxy.meaning.redisearch_schema import Plan
    from cacheproxy.stores.redis_trouble import trouble

    redis: Any = shared.link.redis
    return Redisearch(redis, Plan(embedder.identity), settings.redis.prefix, telemetry, trouble)


def _local(settings: Settings, embedder: Embedder) -> VectorIndex:
    from cacheproxy.meaning.local import Local

    return Local(embedder.identity.dim, settings.semantic.index_rows)


def do_without_search(settings: Settings, embedder: Embedder, layer: Meaning) -> None:
    """The shared Redis turned out not to search."""
    log.warning("the shared Redis cannot search: %s", ALONE)
    layer.index.exchange(_local(settings, embedder))
