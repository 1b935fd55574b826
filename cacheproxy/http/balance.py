"""Which upstream takes a request: by policy, by what each has in flight, and by how it fares.

Counts are kept by leases: a request that is given to an upstream holds one until its exchange is over, however that
ends. State changes only where nothing awaits.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from random import random
from typing import Any

from cacheproxy.core.adaptive import Limit
from cacheproxy.core.affinity import Policy, Route
from cacheproxy.core.health import Health, State, Terms
from cacheproxy.errors import CircuitOpen, UpstreamUnreachable
from cacheproxy.http.choice import Choice
from cacheproxy.http.lease import Lease
from cacheproxy.http.loads import Reading
from cacheproxy.http.station import Station
from cacheproxy.http.upstream import Upstream

log = logging.getLogger("cacheproxy.backend")

DRAINED_SECONDS = 5
"""When a caller may come again whose model only backends serve that are being drained."""


def _unread(upstream: Upstream) -> Reading | None:  # noqa: ARG001 - nothing is known of any
    return None


def _now() -> float:
    return asyncio.get_running_loop().time()


def _call_at(when: float, call: Callable[[], None]) -> asyncio.TimerHandle:
    return asyncio.get_running_loop().call_at(when, call)


class Balance:
    """Chooses among upstreams (the `Places` of engine/admission.py). `bound`: how many times its share of the load one
    may carry for the sake of what it has cached (affinity only); `reading`: what an upstream says of itself, if
    anything; `limits`: how many requests each is given at once, by default 16; `now`, `call_at`: the clock, in seconds,
    and its timers, by default the loop's."""

    def __init__(  # noqa: PLR0913 - each a choice of its own
        self, upstreams: Sequence[Upstream], *, policy: Policy = Policy.AFFINITY, bound: float = 1.25,
        reading: Callable[[Upstream], Reading | None] = _unread, limits: Sequence[Limit] | None = None,
        terms: Terms = Terms(), now: Callable[[], float] = _now,  # noqa: B008 - frozen
        call_at: Callable[[float, Callable[[], None]], Any] = _call_at,
    ) -> None:  # fmt: skip
        self.reading = reading
        self.policy = policy
        self.on_room: Callable[[], None] | None = None
        told = limits if limits is not None else [None] * len(upstreams)
        self.stations = [Station(u, Health(terms), limit) for u, limit in zip(upstreams, told, strict=True)]
        self._at = {upstream: i for i, upstream in enumerate(upstreams)}
        self._all = (1 << len(upstreams)) - 1
        self._now, self._call_at = now, call_at
        self._choice = Choice(self.stations, policy, bound, self._read)
        self._wakes: dict[int, tuple[float, Any]] = {}
        self._prove: Callable[[Station], None] | None = None
        self._telling = self._told_again = self._closed = False

    def __repr__(self) -> str:
        return f"<Balance {self.policy} {[station.inflight for station in self.stations]}>"

    # --- places -------------------------------------------------------------------------------------------------------

    @property
    def slots(self) -> int:
        """How many requests that take a slot may be under way together now."""
        return sum(station.limit.value for station in self.stations if not station.draining)

    @property
    def used(self) -> int:
        """How many are."""
        return sum(station.used for station in self.stations)

    def group(self, model: str) -> int:
        """Which upstreams serve `model`, a bit for each: those that are known to, and those of which nothing is known.
        All, if none is known to: what they say of the model is for the caller."""
        if len(self.stations) == 1 or not model:
            return self._all
        known = [station.serves(model) for station in self.stations]
        if True not in known:
            return self._all
        return sum(1 << i for i, serves in enumerate(known) if serves is not False)

    def take(self, group: int, route: Route | None, avoid: Collection[Any] = ()) -> Lease | None:
        """A slot with an upstream of `group` that has room; None if none has that could be given it. Raises
        `CircuitOpen` if they are not to be asked now, `UpstreamUnreachable` if all are in `avoid`."""
        able = [i for i in self._able(group, avoid) if self.stations[i].has_room]
        if not able:
            return None
        return self._lease(self._choice.of(route, able, self._now()), slot=True, light=False)

    def seat(
        self, route: Route | None, avoid: Collection[Any] = (), *, group: int | None = None, light: bool = False
    ) -> Lease:
        """A place with an upstream for what takes no slot. `light`: it has nothing generated. Raises as `take` does."""
        able = self._able(self._all if group is None else group, avoid)
        return self._lease(self._choice.of(route, able, self._now()), slot=False, light=light)

    def has_other(self, group: int, avoid: Collection[Any]) -> bool:
        """Whether there is an upstream in `group` that takes requests and is not in `avoid`."""
        those = (station for i, station in enumerate(self.stations) if group >> i & 1)
        return any(not station.draining and station.upstream not in avoid for station in those)

    # --- what becomes of requests -------------------------------------------------------------------------------------

    def ended(self, station: Station, *, slot: bool) -> None:
        """A request is over."""
        station.inflight -= 1
        if slot:
            station.used -= 1
        self.tell()

    def connected(self, upstream: Upstream) -> None:
        """It took a connection."""
        station = self.stations[self._at[upstream]]
        health, now = station.health, self._now()
        rested = health.cause is None and health.is_resting(now)
        self.note(station, health.connected(now))
        if rested and not health.is_resting(now):
            log.warning("backend %s is reachable again", upstream.url)
            self.tell()

    def failed(self, upstream: Upstream, error: BaseException) -> None:
        """It could not be connected to. What it had cached may be gone with it."""
        self.refused(self.stations[self._at[upstream]], error)

    def refused(self, station: Station, error: BaseException, era: int | None = None) -> None:
        """The same; `era`: in which the attempt began."""
        health, now = station.health, self._now()
        if health.cause is None and not health.is_resting(now):
            log.warning("backend %s cannot be reached: %s", station.upstream.url, error or type(error).__name__)
        cheap = not isinstance(error, TimeoutError)
        changed = health.refused(now, health.era if era is None else era, random(), cheap=cheap)  # noqa: S311 - jitter
        self._choice.forget(self._at[station.upstream])
        self.note(station, changed)
        if not changed:
            self.tell()

    def answered(self, station: Station, era: int, status: int) -> None:
        """The head of an answer has come."""
        spare = self._may_eject(station)
        self.note(station, station.health.answered(self._now(), era, status, random(), spare=spare))  # noqa: S311

    def silent(self, station: Station, era: int) -> None:
        """It took a request and gave no answer."""
        spare = len(self.stations) > 1
        self.note(station, station.health.silent(self._now(), era, random(), spare=spare))  # noqa: S311

    def broke(self, station: Station, era: int) -> None:
        """An answer broke off, or did not go on."""
        spare = self._may_eject(station)
        self.note(station, station.health.failed(self._now(), era, random(), spare=spare))  # noqa: S311

    def whole(self, station: Station, era: int) -> None:
        """An answer came whole that is no error of the backend's."""
        self.note(station, station.health.ended(self._now(), era))

    def rest(self, station: Station, seconds: float) -> None:
        """It asked not to be asked for so long."""
        station.health.rest(self._now(), seconds)
        self._wake(station)
        self.tell()

    def probed(self, upstream: Upstream, *, well: bool, reached: bool, lasting: float) -> None:
        """It was asked how it is; an answer that it is not well holds so many seconds."""
        station, now = self.stations[self._at[upstream]], self._now()
        self.note(station, station.health.probed(now, well=well, reached=reached, until=now + lasting))

    def prove_by(self, prove: Callable[[Station], None]) -> None:
        """Have `prove` called when one that was passed over is to be asked for something before it is tried; what came
        of it is told by `proved`."""
        self._prove = prove
        for station in self.stations:
            station.health.asked = True

    def proved(self, station: Station, era: int, *, answers: bool) -> None:
        """It was asked."""
        station.health.proved(self._now(), era, random(), answers=answers)  # noqa: S311
        self._wake(station)
        self.tell()

    def note(self, station: Station, changed: bool) -> None:
        """Tell of a change of state, and wake who waits when there is one to expect."""
        cause, url = station.health.cause, station.upstream.url
        if changed and cause is None:
            log.warning("backend %s is well again", url)
        elif changed and cause is not None:
            passed = "is passed over" if station.health.state(self._now()) is State.EJECTED else "is given nothing"
            log.warning("backend %s %s for now: it %s", url, passed, cause.value)
        self._wake(station)
        if changed:  # also where one is lost: those that were passed over for its sake may be given something now
            self.tell()

    def tell(self) -> None:
        """There may be room. Never within itself: who is told may end what he was given."""
        if self._telling:
            self._told_again = True
            return
        self._telling = True
        try:
            while self.on_room is not None:
                self._told_again = False
                self.on_room()
                if not self._told_again:
                    return
        finally:
            self._telling = False

    # --- for operators ------------------------------------------------------------------------------------------------

    def drain(self, url: str, *, on: bool, force: bool = False) -> bool | None:
        """Give the upstream at `url` nothing new, or again what comes. False if it is the last that takes anything,
        unless it is forced; None if there is none there."""
        found = next((station for station in self.stations if station.upstream.url == url), None)
        if found is None:
            return None
        others = any(not station.draining for station in self.stations if station is not found)
        if on and not others and not force:
            return False
        if found.draining != on:
            found.draining = on
            log.warning("backend %s %s", url, "is being drained" if on else "takes requests again")
            self.tell()
        return True

    def rows(self) -> list[dict[str, Any]]:
        """The state of every upstream, for people. `running`, `waiting` and `kv_usage` are None where it is silent."""
        return [self._row(station) for station in self.stations]

    def close(self) -> None:
        """Wake nobody any more."""
        self._closed = True
        for _, timer in self._wakes.values():
            timer.cancel()
        self._wakes.clear()

    def _row(self, station: Station) -> dict[str, Any]:
        upstream, health, now = station.upstream, station.health, self._now()
        reading, state = self.reading(upstream), health.state(now)
        return {
            "url": upstream.url, "weight": upstream.weight, "inflight": station.inflight,
            "resting": health.is_resting(now) or state in (State.OPEN, State.EJECTED),
            "running": reading.running if reading else None,
            "waiting": reading.waiting if reading else None,
            "kv_usage": reading.kv_usage if reading else None,
            "state": state.value, "max_inflight": station.limit.value, "slots_used": station.used,
            "draining": station.draining, "ejections": health.ejections,
        }  # fmt: skip

    # --- choosing -----------------------------------------------------------------------------------------------------

    def _able(self, group: int, avoid: Collection[Any]) -> list[int]:
        """Those that a request of `group` may be given to, room or not: who is well; if nobody is, who at least can be
        connected to. Raises `CircuitOpen`, `UpstreamUnreachable`."""
        stations, now = self.stations, self._now()
        those = [i for i, station in enumerate(stations) if group >> i & 1 and station.upstream not in avoid]
        if not those:
            raise UpstreamUnreachable("No backend could be reached.")
        taking = [i for i in those if not stations[i].draining]
        if not taking:
            raise CircuitOpen("The backends that serve this are being drained.", DRAINED_SECONDS)
        able = [i for i in taking if stations[i].health.is_able(now)]
        able = able or [i for i in taking if not stations[i].health.is_shut(now)]
        if not able:
            seconds = min(stations[i].health.again(now) for i in taking)
            raise CircuitOpen("No backend has been reachable lately.", max(1, math.ceil(seconds)))
        return able

    def _lease(self, at: int, *, slot: bool, light: bool) -> Lease:
        station = self.stations[at]
        station.inflight += 1
        station.used += slot
        trial = station.health.begin(self._now(), light=light)
        return Lease(self, station, slot=slot, light=light, trial=trial)

    def _may_eject(self, station: Station) -> bool:
        """Whether others would be left, at least as many as are ejected then."""
        now = self._now()
        others = (other.health.state(now) for other in self._others(station))
        out = 1 + sum(state is State.EJECTED for state in others)
        return 2 * out <= len(self.stations)

    def _others(self, station: Station) -> Iterable[Station]:
        return (other for other in self.stations if other is not station)

    def _wake(self, station: Station) -> None:
        """Tell who waits when this one may be given requests again."""
        at, now = self._at[station.upstream], self._now()
        seconds = station.health.again(now)
        when = now + seconds
        if at in self._wakes:
            known, timer = self._wakes[at]
            if known == when and seconds > 0:
                return
            timer.cancel()
            del self._wakes[at]
        if seconds > 0 and not self._closed:
            self._wakes[at] = (when, self._call_at(when, lambda: self._woken(at)))

    def _woken(self, at: int) -> None:
        station = self.stations[at]
        self._wakes.pop(at, None)
        self._wake(station)  # a timer may be a moment early
        if self._prove is not None and station.health.wants_proof(self._now()):
            self._prove(station)
        self.tell()

    def _read(self, upstream: Upstream) -> Reading | None:
        return self.reading(upstream)
