"""Asks a running proxy the requests of a file, so that it has their answers (how late and how little:
engine/warming.py)."""

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic

import aiohttp
from yarl import URL

from cacheproxy.commands.progress import Progress
from cacheproxy.core.model import Fields
from cacheproxy.core.outcome import Source
from cacheproxy.engine.traffic import Line
from cacheproxy.engine.warming import BROKEN_OFF, Budget, Result, Said, Warming, fields_of, pause_of, tokens_of
from cacheproxy.errors import ConfigurationError

PATIENCE = 900.0
"""Seconds that an answer may take."""


class Caller:
    """Asks the proxy at `base`. `usual`: header lines of every request that has none of the name itself."""

    def __init__(self, base: str, usual: Fields, budget: Budget, progress: Progress) -> None:
        self._base = base
        self._usual = usual
        self._budget = budget
        self._progress = progress
        self.result = Result()

    async def run(self, wanted: Sequence[Line], concurrency: int, done: Callable[[int], object]) -> None:
        """Ask all that the budget allows; `done` is told how many more are over. Raises `ConfigurationError`."""
        timeout = aiohttp.ClientTimeout(total=PATIENCE, sock_connect=10)
        connector = aiohttp.TCPConnector(limit=0)

        def over(line: Line, whole: bool) -> None:
            if whole:
                self._progress.add(line)
            done(1)

        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            warming = Warming(lambda line: self._ask(session, line), self._budget, monotonic, over)
            self.result = warming.result
            try:
                await warming.run(wanted, concurrency)
            except aiohttp.ClientConnectorError:
                raise ConfigurationError(f"cannot reach {self._base}; what was done so far is kept") from None

    async def _ask(self, session: aiohttp.ClientSession, one: Line) -> Said:
        url = URL(self._base + one.path, encoded=True)
        lines = [(name.decode(), value.decode()) for name, value in fields_of(one, self._usual)]
        try:
            async with session.post(url, data=one.body, headers=lines) as answer:
                return _said(answer, await answer.read())
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError):
            return Said(BROKEN_OFF)


def _said(answer: aiohttp.ClientResponse, body: bytes) -> Said:
    """What the head of an answer says of it."""
    if answer.status != 200:
        return Said(answer.status, pause=pause_of(answer.headers.get("Retry-After", "")))
    if answer.headers.get("X-Cache") in (Source.HIT, Source.STALE) or "X-Cache-Coalesced" in answer.headers:
        return Said(200, present=True)
    stages = [part.strip() for part in answer.headers.get("Cache-Status", "").split(";")]
    reason = "" if "stored" in stages else answer.headers.get("X-Cache-Reason")
    return Said(200, reason=reason, tokens=tokens_of(body))
