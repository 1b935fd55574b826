"""Looks at every backend in the background, from time to time, from the first request on until it is closed.

Nothing here is needed to answer a request, and no failure of a look ends it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence

from cacheproxy.errors import place_of
from cacheproxy.http.station import Station

log = logging.getLogger("cacheproxy.backend")


class Rounds:
    """`look` is called for each of `stations`, each `interval` seconds; 0 for never."""

    def __init__(
        self, stations: Sequence[Station], look: Callable[[Station], Awaitable[None]], interval: float
    ) -> None:
        self._stations = stations
        self._look = look
        self._interval = interval
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    def __repr__(self) -> str:
        return f"<Rounds every {self._interval:g} s, {len(self._tasks)} running>"

    def begin(self) -> None:
        """Look from now on."""
        if not (self._tasks or self._closed) and self._interval > 0:
            loop = asyncio.get_running_loop()
            self._tasks = [loop.create_task(self._look_on(station)) for station in self._stations]

    async def close(self) -> None:
        """Look no more."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _look_on(self, station: Station) -> None:
        while True:
            try:
                await self._look(station)
            except Exception as error:  # noqa: BLE001 - a fault of ours costs one look
                log.error("a look at a backend failed inside the proxy: %s", place_of(error))
            await asyncio.sleep(self._interval)
