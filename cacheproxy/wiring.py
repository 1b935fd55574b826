"""Settings -> running objects. The only module that knows every room."""

import asyncio
import gc
import logging
import os
import secrets
import signal
import time
from pathlib import Path
from typing import Any

from aiohttp import web

from cacheproxy.core import key
from cacheproxy.engine.authority import Authority
from cacheproxy.engine.exchange import Exchange, Keeping
from cacheproxy.engine.fill import Fill
from cacheproxy.engine.guard import GuardedStore
from cacheproxy.engine.pipeline import Pipeline, Rules
from cacheproxy.engine.record import Budget
from cacheproxy.engine.served import Voice
from cacheproxy.errors import Trouble
from cacheproxy.http import admin, listen
from cacheproxy.http.backend import Backends, Patience
from cacheproxy.http.handlers import Proxy
from cacheproxy.http.tunnel import Tunnel
from cacheproxy.http.upstream import Upstream
from cacheproxy.ports import Clock, Store
from cacheproxy.schema import Settings
from cacheproxy.stores.memory import Memory
from cacheproxy.stores.sqlite import Sqlite
from cacheproxy.stores.tiered import Tiered
from cacheproxy.telemetry import Telemetry

log = logging.getLogger("cacheproxy")

CACHE_FILE = "cache.sqlite3"
SECRET_FILE = "secret"  # noqa: S105 - a file name
SWEEP_SECONDS = 30.0


class SystemClock:
    """The machine's clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class House:
    """All parts of one running proxy."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.telemetry = Telemetry()
        self.clock: Clock = SystemClock()
        self.store, secret = _store(settings, self.clock, self.telemetry)
        upstreams = [Upstream(u.url, u.weight) for u in settings.upstreams]
        limits = settings.limits
        self.backends = Backends(
            upstreams, Patience(limits.connect_timeout, limits.first_byte_timeout, limits.idle_timeout)
        )
        self.budget = Budget(limits.recording_bytes)
        self.fill = Fill(self.telemetry)
        voice = Voice(self.telemetry, hide_hits=settings.access.hide_hits)
        authority = Authority(self.backends.probe, self.clock, settings.access.grant_ttl, settings.access.grace)
        exact = settings.exact
        exchange = Exchange(
            backend=self.backends,
            store=self.store,
            authority=authority,
            fill=self.fill,
            voice=voice,
            journal=self.telemetry,
            clock=self.clock,
            keeping=Keeping(exact.ttl, exact.max_ttl, exact.keep_stale, limits.answer_bytes, settings.stream.ask_usage),
            budget=self.budget,
        )
        realm = settings.store.realm
        if realm == "auto":
            realm = " ".join(sorted({u.url for u in upstreams}))
        pipeline = Pipeline(
            store=self.store,
            authority=authority,
            exchange=exchange,
            voice=voice,
            clock=self.clock,
            secret=secret,
            rules=Rules(exact.mode == "on", realm.encode(), settings.compat.litellm_body),
        )
        self.proxy = Proxy(pipeline, Tunnel(self.backends, voice), self.telemetry, limits.body_bytes)
        self._gauges()

    def _gauges(self) -> None:
        gauge, store = self.telemetry.gauge, self.store
        gauge("store_entries", "Answers stored.", lambda: store.census().entries)
        gauge("store_bytes", "Bytes of answers stored.", lambda: store.census().bytes)
        gauge("requests_running", "Requests being answered now.", lambda: self.proxy.running)
        gauge("recording_bytes", "Bytes held by answers being recorded.", lambda: self.budget.held)
        gauge("draining", "1 while shutting down.", lambda: int(self.proxy.draining))


def _store(settings: Settings, clock: Clock, telemetry: Telemetry) -> tuple[Store, bytes]:
    """The embedded store, and the secret that its keys are made with."""
    memory = Memory(settings.store.memory_bytes)
    if settings.store.data_dir == "none":
        return memory, secrets.token_bytes(key.SECRET_BYTES)
    directory = Path(settings.store.data_dir)
    try:
        disk = Sqlite(directory / CACHE_FILE, settings.store.disk_bytes)
        secret = _secret(directory / SECRET_FILE)
    except (Trouble, OSError) as error:
        log.warning("answers are kept in memory only: %s", error)
        return memory, secrets.token_bytes(key.SECRET_BYTES)
    return Tiered(memory, GuardedStore(disk, "cache file", settings.store.deadline, clock, telemetry)), secret


def _secret(path: Path) -> bytes:
    """The secret of a data directory, made on first use, for the owner's eyes only."""
    if path.exists():
        known = path.read_bytes()
        if len(known) == key.SECRET_BYTES:
            return known
        log.warning("%s is damaged; a new secret is made, what is stored under the old one will not be found", path)
        path.unlink()
    part = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(key.SECRET_BYTES))
    try:
        path.hardlink_to(part)  # never over the secret of another process that was first
    except FileExistsError:
        log.debug("another process made the secret of %s", path.parent)
    finally:
        part.unlink()
    return path.read_bytes()


def redacted(settings: Settings) -> dict[str, Any]:
    """The configuration as plain data, secrets masked."""
    plain: dict[str, Any] = settings.model_dump(mode="json")
    return plain


class Running:
    """A started proxy: listeners bound, signals handled, background work going on."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._settings = house.settings
        self._stop = asyncio.Event()
        self._now = asyncio.Event()
        self._grace = house.settings.drain.grace
        self._listeners: list[asyncio.Server] = []
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self) -> tuple[str, str]:
        """Bind both listeners; their URLs."""
        house, settings = self._house, self._settings
        self._server = listen.server(house.proxy, settings.limits.keepalive_timeout)
        desk = admin.Desk(
            book=house.telemetry,
            config=redacted(settings),
            ready=lambda: not house.proxy.draining,
            drain=self._stop.set,
            token=settings.admin.token.get_secret_value() if settings.admin.token else None,
        )
        self._admin = web.AppRunner(admin.application(desk), access_log=None)
        await self._admin.setup()
        front = await listen.bind(self._server, settings.listen.host, settings.listen.port, "proxy")
        self._listeners.append(front)
        back = await listen.bind(self._admin.server, settings.admin.host, settings.admin.port, "admin page")
        self._listeners.append(back)
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep())
        return _url(front), _url(back)

    def heed_signals(self) -> None:
        """Drain at SIGTERM; at SIGINT too, without the grace, since no balancer waits there; end at the second."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._signalled)
        loop.add_signal_handler(signal.SIGINT, self._signalled, 0.0)

    def _signalled(self, grace: float | None = None) -> None:
        self._grace = self._grace if grace is None else grace
        if self._stop.is_set():
            self._now.set()
        self._stop.set()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            await self._house.store.sweep(self._house.clock.now())

    async def serve(self) -> None:
        """Run until told to stop, then drain: not ready at once, new work for the grace, running answers to their
        end within the time-out. A second signal ends it now."""
        await self._stop.wait()
        house, drain = self._house, self._settings.drain
        house.proxy.draining = True
        log.info("draining: new requests for %g s more, running ones for %g s after", self._grace, drain.timeout)
        await self._pause(self._grace)
        house.proxy.refusing = True
        self._listeners[0].close()
        self._server.pre_shutdown()
        until = house.clock.monotonic() + drain.timeout
        while house.proxy.running and house.clock.monotonic() < until and not self._now.is_set():
            await self._pause(0.05)
        if house.proxy.running:
            log.warning("%d answers were cut at the end of the drain", house.proxy.running)
        await self.stop()

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._now.wait(), seconds)
        except TimeoutError:
            return

    async def stop(self) -> None:
        """End now: cut what runs, write out what is kept, let go of everything."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for listener in self._listeners:
            listener.close()
        await self._server.shutdown(0.1)
        await self._admin.cleanup()
        await self._house.fill.close(1.0)
        await self._house.backends.close()
        await self._house.store.close()


def _url(listener: asyncio.Server) -> str:
    host, port = listener.sockets[0].getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(settings: Settings) -> None:
    """Build and run a proxy until it is told to stop. Raises `ConfigurationError`."""
    logging.basicConfig(
        level=settings.telemetry.log_level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s"
    )
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_run(settings))


async def _run(settings: Settings) -> None:
    running = Running(House(settings))
    front, back = await running.start()
    running.heed_signals()
    gc.collect()
    gc.freeze()
    upstreams = ", ".join(u.url for u in settings.upstreams)
    log.info("ready: %s answers for %s; admin page %s", front, upstreams, back)
    await running.serve()


def _loop_factory() -> Any:
    """uvloop's where it is installed (the extra ``fast``)."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
