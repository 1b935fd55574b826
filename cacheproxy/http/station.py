"""One backend as those see it who choose among several: how it fares, what it serves, what it has and may be given."""

from cacheproxy.core.adaptive import Limit
from cacheproxy.core.health import Health
from cacheproxy.http.upstream import Upstream

USUAL_SLOTS = 16


class Station:
    """`used`: the slots that are given away; `inflight`: all requests that are under way, those without a slot too;
    `listed`: the models that it has said it serves, None if it has not."""

    __slots__ = ("draining", "health", "inflight", "limit", "listed", "upstream", "used")

    def __init__(self, upstream: Upstream, health: Health, limit: Limit | None = None) -> None:
        self.upstream = upstream
        self.health = health
        self.limit = Limit(USUAL_SLOTS, USUAL_SLOTS) if limit is None else limit
        self.used = 0
        self.inflight = 0
        self.draining = False
        self.listed: frozenset[str] | None = None

    def __repr__(self) -> str:
        return f"<Station {self.upstream.url} {self.used} of {self.limit.value} slots, {self.health!r}>"

    @property
    def has_room(self) -> bool:
        return self.used < self.limit.value

    def serves(self, model: str) -> bool | None:
        """Whether it serves this model; None if that is not known."""
        if self.upstream.models:
            return any(pattern.match(model) for pattern in self.upstream.models)
        if self.listed is None:
            return None
        return model in self.listed or f"{model}:latest" in self.listed
