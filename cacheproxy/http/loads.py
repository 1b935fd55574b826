"""How much the backends have to do, by their own account: their `/metrics`, and those of their GPUs' exporters, read
from time to time.

Nothing here is needed to answer a request: a backend that does not say is asked again later, one that says nothing for
a while counts as one that never did, and no failure leaves this file.
"""

import asyncio
import dataclasses
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

from cacheproxy.core.gauges import Reading, read, read_gpu
from cacheproxy.errors import AnswerError
from cacheproxy.http.connection import Dropped
from cacheproxy.http.upstream import Upstream

__all__ = ["Fetch", "Loads", "Reading", "read"]

log = logging.getLogger("cacheproxy.backend")

MOST_BYTES = 2**20
"""Of a page of metrics; a longer one is not read."""
ANSWER_SECONDS = 1.0
"""How long a page may take."""
AGAIN_SECONDS = 300.0
"""When a backend is asked again whose answer was no page of metrics that is known here."""
LASTING = 3
"""Intervals after which a reading no longer counts."""

Fetch = Callable[[Upstream], Awaitable[bytes | None]]
"""The page of a backend's metrics, None if its answer is none. Raises `OSError`, `AnswerError`."""
Said = TypeVar("Said")


class _Page(Generic[Said]):
    """A page of metrics, and what it said last. `unreachable` is told if it cannot be connected to."""

    def __init__(
        self, upstream: Upstream, fetch: Fetch, understand: Callable[[bytes], Said | None],
        unreachable: Callable[[Upstream, OSError], None] | None = None,
    ) -> None:  # fmt: skip
        self._upstream = upstream
        self._fetch = fetch
        self._understand = understand
        self._unreachable = unreachable
        self._found: tuple[float, Said] | None = None
        self._not_before = -math.inf

    @property
    def is_read(self) -> bool:
        """It has been, once."""
        return self._found is not None

    def last(self, lasting: float) -> Said | None:
        """What it said last, unless that was longer ago than `lasting` seconds."""
        if self._found is None:
            return None
        when, said = self._found
        return said if asyncio.get_running_loop().time() - when <= lasting else None

    async def watch(self, interval: float) -> None:
        """Read it each `interval` seconds, for ever."""
        while True:
            await self._read()
            await asyncio.sleep(interval)

    async def _read(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._not_before:
            return
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                page = await self._fetch(self._upstream)
        except (AnswerError, Dropped, TimeoutError) as error:
            log.debug("no metrics of %s: %s", self._upstream.url, type(error).__name__)
            return  # busy, or gone for a moment: the next time
        except OSError as error:
            if self._unreachable is not None:
                self._unreachable(self._upstream, error)
            return
        said = self._understand(page) if page is not None else None
        if said is None:
            log.debug("%s has no metrics that are known here", self._upstream.url)
            self._not_before = now + AGAIN_SECONDS
            return
        self._found = (asyncio.get_running_loop().time(), said)


class Loads:
    """Reads what every backend says, each `interval` seconds from the first request on, until it is closed.
    `unreachable` is told of those that cannot be connected to; `exporters`: who fetches the page of a backend's GPUs;
    `alone`: somebody needs to know also of a single backend, among which there is nothing to choose."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, upstreams: Sequence[Upstream], fetch: Fetch, interval: float,
        unreachable: Callable[[Upstream, OSError], None], *,
        exporters: Mapping[Upstream, Fetch] | None = None, alone: bool = False,
    ) -> None:  # fmt: skip
        self._interval = interval
        self._needed = interval > 0 and (alone or len(upstreams) > 1)
        self._pages = {upstream: _Page(upstream, fetch, read, unreachable) for upstream in upstreams}
        self._gpus = {upstream: _Page(upstream, of, read_gpu) for upstream, of in (exporters or {}).items()}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<Loads {sum(page.is_read for page in self._pages.values())} of {len(self._pages)} read>"

    def begin(self) -> None:
        """Read from now on, if there is anybody who needs it."""
        if self._task is None and not self._closed and self._needed:
            self._task = asyncio.get_running_loop().create_task(self._read_on())

    def need(self) -> None:
        """Somebody needs to know from now on, also of a single backend."""
        self._needed = self._interval > 0
        self.begin()

    def of(self, upstream: Upstream) -> Reading | None:
        """What this backend said last, unless that was too long ago."""
        page = self._pages.get(upstream)
        reading = page.last(LASTING * self._interval) if page is not None else None
        gpu = self._gpu(upstream)
        return reading if reading is None or gpu is None else dataclasses.replace(reading, gpu=gpu)

    def utilisation(self) -> float | None:
        """The part of the backends that is in use, 0 to 1, by their own account and their GPUs': the mean of those that
        say it; None if none does."""
        parts = [part for upstream in self._pages if (part := self._part(upstream)) is not None]
        return sum(parts) / len(parts) if parts else None

    async def close(self) -> None:
        """Read no more."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _part(self, upstream: Upstream) -> float | None:
        """Of one backend that is in use. Its GPUs may be heard where it itself is not."""
        reading = self.of(upstream)
        return self._gpu(upstream) if reading is None else reading.utilisation

    def _gpu(self, upstream: Upstream) -> float | None:
        page = self._gpus.get(upstream)
        return page.last(LASTING * self._interval) if page is not None else None

    async def _read_on(self) -> None:
        engines = [page.watch(self._interval) for page in self._pages.values()]
        await asyncio.gather(*engines, *(page.watch(self._interval) for page in self._gpus.values()))
