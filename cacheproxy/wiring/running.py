"""A started proxy: listeners, signals, drain."""

import asyncio
import gc
import logging
import signal
from typing import Any

from aiohttp import web

from cacheproxy.http import admin, listen
from cacheproxy.http.deadlines import Deadlines
from cacheproxy.schema import Settings
from cacheproxy.wiring.deferral import admin_url
from cacheproxy.wiring.desk import desk
from cacheproxy.wiring.house import House

log = logging.getLogger("cacheproxy")

SWEEP_SECONDS = 30.0


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
        limits = settings.limits
        deadlines = Deadlines(limits.header_timeout, limits.body_timeout, limits.write_timeout)
        self._server = listen.server(house.proxy, limits.keepalive_timeout, deadlines, house.telemetry)
        self._admin = web.AppRunner(
            admin.application(desk(house, redacted(settings), self._stop.set)), access_log=None,
            max_line_size=listen.MAX_LINE,
        )  # fmt: skip
        await self._admin.setup()
        front = await listen.bind(self._server, settings.listen.host, settings.listen.port, "proxy")
        self._listeners.append(front)
        back = await listen.bind(
            admin.connections(self._admin.server), settings.admin.host, settings.admin.port, "admin page"
        )
        self._listeners.append(back)
        house.deferral.front.admin = admin_url(settings, _url(back))
        await house.meet()
        await listen.serve(front, "proxy")
        await listen.serve(back, "admin page")
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
            await self._house.sweep()

    async def serve(self) -> None:
        """Run until told to stop, then drain: not ready at once, new work for the grace, running answers to their
        end within the time-out. A second signal ends it now."""
        await self._stop.wait()
        house, drain = self._house, self._settings.drain
        house.proxy.draining = True
        await house.jobs.drain()
        await house.deferral.drain()
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
        await self._house.jobs.drain()
        await self._house.deferral.drain()
        for listener in self._listeners:
            listener.close()
        await self._server.shutdown(0.1)
        await self._admin.cleanup()
        await self._house.engine.flights.close(1.0)
        await self._house.engine.fill.close(1.0)
        await self._house.backends.close()
        await self._house.close()


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
