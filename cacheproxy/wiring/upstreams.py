"""The backends, by the settings."""

from cacheproxy.core.adaptive import Limit
from cacheproxy.core.health import Terms
from cacheproxy.core.rules import globs
from cacheproxy.http.backend import Backends, Patience, Watching
from cacheproxy.http.balance import Balance
from cacheproxy.http.upstream import Upstream
from cacheproxy.ports import Journal
from cacheproxy.schema import Settings, UpstreamSettings
from cacheproxy.schema.upstreams import PRESETS


def backends(settings: Settings, journal: Journal) -> Backends:
    """All upstreams, before which no gate is kept yet (`Backends.admission`)."""
    upstreams = [Upstream(u.url, u.weight, globs(u.models)) for u in settings.upstreams]
    limits, told, health = settings.limits, settings.prefix, settings.health
    balance = Balance(
        upstreams, policy=told.routing, bound=told.load_bound, limits=[limit(u) for u in settings.upstreams],
        terms=Terms(health.failures, health.open, health.ejection, health.slow_start),
    )  # fmt: skip
    watching = Watching(
        models=health.models_interval, probe="" if health.probe == "off" else health.probe,
        interval=health.interval, retries=health.retry_budget,
    )  # fmt: skip
    patience = Patience(limits.connect_timeout, limits.first_byte_timeout, limits.idle_timeout)
    crowding = settings.admission
    pages = zip(upstreams, crowding.overload.gpu_metrics, strict=False)
    return Backends(
        upstreams, patience, balance, interval=told.load_interval, journal=journal, watching=watching,
        exporters={upstream: Upstream(page.removesuffix("/metrics")) for upstream, page in pages if page},
        crowded=crowding.mode == "on" and crowding.overload.mode == "on",
    )  # fmt: skip


def limit(told: UpstreamSettings) -> Limit:
    """How many requests an upstream is given at once."""
    slots = told.max_inflight
    return Limit(slots, slots) if isinstance(slots, int) else Limit(*PRESETS[slots])
