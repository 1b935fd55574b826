"""Asks every backend how it is, if that is wanted: a GET that has nothing generated, and takes no slot."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from cacheproxy.errors import AnswerError, UpstreamCut
from cacheproxy.http.balance import Balance
from cacheproxy.http.connection import Dropped
from cacheproxy.http.station import Station
from cacheproxy.http.upstream import Upstream

log = logging.getLogger("cacheproxy.backend")

ANSWER_SECONDS = 5.0
"""How long an answer may take, as a whole."""
FAILURES = 2
"""In a row, before it is believed that a backend is not well."""
LASTING = 2.5
"""Intervals for which that holds if it is not asked again."""

Fetch = Callable[[Upstream, bytes], Awaitable[tuple[int, bytes]]]
"""The status and the body of what a backend has at a path. Raises `OSError`, `TimeoutError`, `AnswerError`,
`UpstreamCut`, `Dropped`."""


class Probes:
    """Asks for `path`; any status below 500 is well."""

    def __init__(self, balance: Balance, fetch: Fetch, path: str, interval: float) -> None:
        self._balance = balance
        self._fetch = fetch
        self._path = path.encode("ascii")
        self._interval = interval
        self._failures: dict[Upstream, int] = {}

    def __repr__(self) -> str:
        return f"<Probes {self._path.decode()}>"

    async def look(self, station: Station) -> None:
        """Ask one."""
        upstream, reached, status = station.upstream, True, 599
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                status, _ = await self._fetch(upstream, self._path)
        except (AnswerError, UpstreamCut, Dropped, TimeoutError) as error:
            log.debug("no answer of %s to a probe: %s", upstream.url, type(error).__name__)
        except OSError as error:
            reached = False
            self._balance.failed(upstream, error)
        failures = 0 if status < 500 else self._failures.get(upstream, 0) + 1
        self._failures[upstream] = failures
        if failures == 0 or failures >= FAILURES:
            self._balance.probed(upstream, well=failures == 0, reached=reached, lasting=LASTING * self._interval)
