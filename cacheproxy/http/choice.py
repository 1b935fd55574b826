"""Which of several upstreams that could take a request is the best, by policy, load and weight."""

from collections.abc import Callable, Sequence

from cacheproxy.core.affinity import Affinity, Policy, Route, Turns, least
from cacheproxy.http.loads import Reading
from cacheproxy.http.station import Station
from cacheproxy.http.upstream import Upstream


class Choice:
    """`bound`: how many times its share of the load one may carry for the sake of what it has cached (affinity only);
    `reading`: what an upstream says of itself, if anything."""

    def __init__(
        self, stations: Sequence[Station], policy: Policy, bound: float,
        reading: Callable[[Upstream], Reading | None],
    ) -> None:  # fmt: skip
        self._stations = stations
        self._policy = policy
        self._reading = reading
        self._weights = [station.upstream.weight for station in stations]
        self._turns = Turns(self._weights)
        self._affinity = Affinity([station.upstream.url for station in stations], self._weights, bound=bound)

    def __repr__(self) -> str:
        return f"<Choice {self._policy} of {len(self._stations)}>"

    def of(self, route: Route | None, able: list[int], now: float) -> int:
        """One of `able`, which is not empty; full ones only if there is no other."""
        if len(self._stations) == 1:
            return 0
        for i, station in enumerate(self._stations):
            self._weights[i] = station.upstream.weight * station.health.share(now)
        if self._policy is Policy.ROUND_ROBIN:
            return self._turns.next(able)
        readings = [self._reading(station.upstream) for station in self._stations]
        able = [i for i in able if not ((reading := readings[i]) and reading.full)] or able
        loads = [_load(station.inflight, read) for station, read in zip(self._stations, readings, strict=True)]
        if route is None or self._policy is Policy.LEAST_INFLIGHT:
            return self._turns.next(least(loads, self._weights, able))
        at = self._affinity.choose(route, loads, able)
        self._affinity.remember(route, at)
        return at

    def forget(self, at: int) -> None:
        """What this one had cached may be gone."""
        self._affinity.forget(at)


def _load(inflight: int, reading: Reading | None) -> int:
    """Requests that an upstream carries: ours, or more if it says so; what waits counts twice."""
    if reading is None:
        return inflight
    return max(inflight, reading.running + reading.waiting) + reading.waiting
