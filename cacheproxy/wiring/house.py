"""All parts of one proxy, put together."""

import time

from cacheproxy.engine.abroad import Abroad
from cacheproxy.engine.gate import Gate
from cacheproxy.engine.knowledge import Knowledge
from cacheproxy.engine.purge import Purge
from cacheproxy.engine.shelf import Shelf
from cacheproxy.http.handlers import Proxy
from cacheproxy.http.tunnel import Tunnel
from cacheproxy.http.upstream import Upstream
from cacheproxy.ports import Clock, Embedder
from cacheproxy.schema import Settings
from cacheproxy.telemetry import Telemetry
from cacheproxy.wiring import engine
from cacheproxy.wiring.admission import gate
from cacheproxy.wiring.deferral import deferral
from cacheproxy.wiring.embedding import is_wanted
from cacheproxy.wiring.jobs import jobs
from cacheproxy.wiring.meaning import Layer
from cacheproxy.wiring.rates import rates
from cacheproxy.wiring.sources import Sources
from cacheproxy.wiring.storage import open_storage
from cacheproxy.wiring.trust import feedback, trust
from cacheproxy.wiring.upstreams import backends


class SystemClock:
    """The machine's clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class House:
    """All parts of one running proxy."""

    def __init__(self, settings: Settings, embedder: Embedder | None = None) -> None:
        """`embedder`: in place of the one that the settings name."""
        self.settings = settings
        self.telemetry = Telemetry()
        self.clock: Clock = SystemClock()
        limits = settings.limits
        self.storage = open_storage(settings, self.clock, self.telemetry, self._rekey)
        self.secret = self.storage.secret
        self.store, removals, epochs = self.storage.store, self.storage.removals, self.storage.epochs
        self.layer = self._layer(embedder)
        self.meaning = self.layer.meaning if self.layer is not None else None
        self.purge = Purge(
            stock=self.store, removals=removals, epochs=epochs, journal=self.telemetry, clock=self.clock,
            index=self.meaning.index if self.meaning else None,
        )  # fmt: skip
        self.knowledge = Knowledge(
            registry=self.storage.registry, purge=self.purge, journal=self.telemetry, clock=self.clock
        )
        self.gate, shared = Gate(), self.storage.shared
        self.sources = Sources(
            settings, knowledge=self.knowledge, gate=self.gate, notices=shared.notices if shared is not None else None,
            journal=self.telemetry,
        )  # fmt: skip
        self.feedback = feedback(settings, self.storage, self.purge, self.telemetry)
        self.trust = None
        if self.meaning is not None:
            self.trust = trust(
                settings, self.storage, self.meaning.embedder, self.clock, self.telemetry, lambda: self.proxy.running
            )
        self.backends = backends(settings, self.telemetry)
        self.rates = rates(
            settings.rates, [row.set.rates for row in settings.rules], clock=self.clock, telemetry=self.telemetry,
            common=None if shared is None else shared.counters, deadline=settings.redis.timeout,
            hidden=settings.access.hide_hits,
        )  # fmt: skip
        self.door = gate(settings, self.backends, self.clock, self.telemetry, self.rates)
        self.engine = engine.build(
            settings, shelf=Shelf(self.store, removals, epochs, self.clock, self.gate), backend=self.backends,
            probe=self.backends.probe, clock=self.clock, journal=self.telemetry, secret=self.storage.secret,
            realm=realm(settings, self.backends.upstreams), meaning=self.meaning,
            knowledge=self.knowledge, feedback=self.feedback, trust=self.trust, rates=self.rates,
        )  # fmt: skip
        if self.storage.shared is not None:
            window = settings.flight.resume_window
            self.engine.flights.abroad = Abroad(self.storage.shared.recordings, self.telemetry, window)
        tunnel = Tunnel(self.backends, self.engine.voice)
        self.jobs = jobs(settings, self.clock)
        self.deferral = deferral(self)
        self.proxy = Proxy(self.deferral.front, tunnel, self.telemetry, limits.body_bytes)
        self._publish()

    async def meet(self) -> None:
        """Make the first contact with what is shared, and load what takes time to load. Before anything is asked."""
        survey = await self.storage.shared.meet() if self.storage.shared is not None else None
        await self.purge.resume()
        self.sources.start()
        if self.layer is not None:
            if survey is not None:
                self.layer.learn(survey)
            if self.trust is not None:
                self.trust.opinions.start()
            await self.layer.start()
        self.deferral.start()

    async def sweep(self) -> None:
        """Free what expired."""
        await self.store.sweep(self.clock.now())
        await self.purge.resume()
        if self.layer is not None:
            await self.layer.sweep(self.clock.now())

    async def close(self) -> None:
        """Write out what is kept, and let go."""
        await self.deferral.close()
        if self.door is not None:
            self.door.close()
        await self.sources.close()
        if self.layer is not None:
            await self.layer.close()
        if self.trust is not None:
            await self.trust.close()
        await self.feedback.close()
        await self.knowledge.close()
        await self.purge.close()
        await self.store.close()
        if self.rates is not None:
            await self.rates.close()
        if self.storage.shared is not None:
            await self.storage.shared.close()

    def _layer(self, embedder: Embedder | None) -> Layer | None:
        if not is_wanted(self.settings):
            return None
        return Layer(self.settings, embedder, self.storage.shared, self.telemetry)

    def _rekey(self, secret: bytes) -> None:
        self.secret = secret
        self.engine.rekey(secret)
        self.feedback.rekey(secret)
        if self.trust is not None:
            self.trust.rekey(secret)

    def _publish(self) -> None:
        gauge, store, inside = self.telemetry.gauge, self.store, self.engine
        gauge("store_entries", "Answers stored.", lambda: store.census().entries)
        gauge("store_bytes", "Bytes of answers stored.", lambda: store.census().bytes)
        gauge("requests_running", "Requests being answered now.", lambda: self.proxy.running)
        gauge("recording_bytes", "Bytes held by answers being recorded.", lambda: inside.budget.held)
        gauge("flights", "Answers being fetched now.", lambda: inside.flights.running)
        gauge("flight_readers", "Callers who are being given a running answer.", lambda: inside.flights.waiting)
        gauge("refreshes_running", "Answers being fetched anew now.", lambda: inside.refresher.running)
        gauge("jobs_running", "Jobs of the admin API that have not ended.", lambda: self.jobs.running)
        later = self.deferral.deferring
        gauge("deferred_waiting", "Deferred requests that have not ended.", lambda: later.waiting)
        gauge("deferred_running", "Deferred requests that are being asked here.", lambda: later.running)
        gauge("deferred_bytes", "Bytes that deferred requests and their answers hold.", lambda: later.held)
        gauge("draining", "1 while shutting down.", lambda: int(self.proxy.draining))
        self.telemetry.section("savings", inside.savings.summary)
        self.telemetry.section("prefix", inside.families.summary)
        self.telemetry.section("backends", self.backends.rows)


def realm(settings: Settings, upstreams: list[Upstream]) -> bytes:
    """Which backends the answers belong to."""
    told = settings.store.realm
    return (" ".join(sorted({u.url for u in upstreams})) if told == "auto" else told).encode()
