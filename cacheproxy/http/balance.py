"""Which upstream takes a request: by policy, by what each has in flight, and by how it fares.

Counts are kept by leases: a request that is given to an upstream holds one until its exchange is over, however that
ends. State changes only where nothing awaits.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any

from cacheproxy.core.affinity import Affinity, Policy, Route, Turns, least
from cacheproxy.http.loads import Reading
from cacheproxy.http.upstream import Upstream


def _unread(upstream: Upstream) -> Reading | None:  # noqa: ARG001 - nothing is known of any
    return None


class Balance:
    """Chooses among upstreams. `bound`: how many times its share of the load one may carry for the sake of what it has
    cached (affinity only); `reading`: what an upstream says of itself, if anything."""

    def __init__(
        self, upstreams: Sequence[Upstream], *, policy: Policy = Policy.AFFINITY, bound: float = 1.25,
        reading: Callable[[Upstream], Reading | None] = _unread,
    ) -> None:  # fmt: skip
        self.reading = reading
        self.policy = policy
        self._upstreams = upstreams
        self._weights = [upstream.weight for upstream in upstreams]
        self._inflight = [0] * len(upstreams)
        self._turns = Turns(self._weights)
        self._affinity = Affinity([upstream.url for upstream in upstreams], self._weights, bound=bound)

    def __repr__(self) -> str:
        return f"<Balance {self.policy} {self._inflight}>"

    def take(self, route: Route | None) -> "Lease":
        """An upstream for a request."""
        return Lease(self, route)

    def place(self, route: Route | None, unreachable: Collection[Upstream]) -> Upstream:
        """Count a request with one of the upstreams that it has not found unreachable."""
        at = self._choose(route, [i for i, u in enumerate(self._upstreams) if u not in unreachable])
        self._inflight[at] += 1
        return self._upstreams[at]

    def ended(self, upstream: Upstream) -> None:
        """Count one request less with `upstream`."""
        self._inflight[self._upstreams.index(upstream)] -= 1

    def failed(self, upstream: Upstream, error: BaseException) -> None:
        """It could not be connected to. What it had cached may be gone with it."""
        upstream.failed(error)
        self._affinity.forget(self._upstreams.index(upstream))

    def rows(self) -> list[dict[str, Any]]:
        """The state of every upstream, for people. `running`, `waiting` and `kv_usage` are None where it is silent."""
        now = asyncio.get_running_loop().time()
        return [
            {
                "url": upstream.url,
                "weight": upstream.weight,
                "inflight": inflight,
                "resting": upstream.resting_until > now,
                "running": reading.running if reading else None,
                "waiting": reading.waiting if reading else None,
                "kv_usage": reading.kv_usage if reading else None,
            }
            for upstream, inflight, reading in zip(
                self._upstreams, self._inflight, map(self.reading, self._upstreams), strict=True
            )
        ]

    def _choose(self, route: Route | None, able: list[int]) -> int:
        """Resting ones only if there is no other, and so full ones."""
        if len(self._upstreams) == 1:
            return 0
        now = asyncio.get_running_loop().time()
        able = [i for i in able if self._upstreams[i].resting_until <= now] or able
        if self.policy is Policy.ROUND_ROBIN:
            return self._turns.next(able)
        readings = [self.reading(upstream) for upstream in self._upstreams]
        able = [i for i in able if not ((reading := readings[i]) and reading.full)] or able
        loads = [_load(inflight, reading) for inflight, reading in zip(self._inflight, readings, strict=True)]
        if route is None or self.policy is Policy.LEAST_INFLIGHT:
            return self._turns.next(least(loads, self._weights, able))
        at = self._affinity.choose(route, loads, able)
        self._affinity.remember(route, at)
        return at


def _load(inflight: int, reading: Reading | None) -> int:
    """Requests that an upstream carries: ours, or more if it says so; what waits counts twice."""
    if reading is None:
        return inflight
    return max(inflight, reading.running + reading.waiting) + reading.waiting


class Lease:
    """A request's place with an upstream. End it in every case; that is idempotent."""

    __slots__ = ("_balance", "_open", "_route", "upstream")

    def __init__(self, balance: Balance, route: Route | None) -> None:
        self._balance = balance
        self._route = route
        self.upstream = balance.place(route, ())
        self._open = True

    def __repr__(self) -> str:
        return f"<Lease {'open' if self._open else 'ended'} {self.upstream!r}>"

    def move(self, unreachable: Collection[Upstream]) -> None:
        """To another upstream than these. At least one must be left."""
        self.end()
        self.upstream = self._balance.place(self._route, unreachable)
        self._open = True

    def end(self) -> None:
        if self._open:
            self._open = False
            self._balance.ended(self.upstream)
