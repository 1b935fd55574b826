"""How much the backends have to do, by their own account: their `/metrics`, read from time to time.

Nothing here is needed to answer a request: a backend that does not say is asked again later, one that says nothing for
a while counts as one that never did, and no failure leaves this file.
"""

import asyncio
import contextlib
import logging
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from cacheproxy.errors import AnswerError
from cacheproxy.http.connection import Dropped
from cacheproxy.http.upstream import Upstream

log = logging.getLogger("cacheproxy.backend")

MOST_BYTES = 2**20
"""Of a page of metrics; a longer one is not read."""
ANSWER_SECONDS = 1.0
"""How long a page may take."""
AGAIN_SECONDS = 300.0
"""When a backend is asked again whose answer was no page of metrics that is known here."""
LASTING = 3
"""Intervals after which a reading no longer counts."""
FULL = 0.95


@dataclass(frozen=True, slots=True)
class Reading:
    """What a backend said: requests that it works on, requests that wait for that, and the part of its KV cache that
    these occupy, where it says so. `full`: what comes now has to wait, or to displace."""

    running: int
    waiting: int
    kv_usage: float | None
    full: bool


@dataclass(frozen=True, slots=True)
class _Names:
    """What an engine calls it. `occupied`: its usage counts only what is being worked on, not what it keeps for later
    as well."""

    running: bytes
    waiting: bytes
    usage: tuple[bytes, ...]
    occupied: bool


ENGINES = (
    _Names(b"vllm:num_requests_running", b"vllm:num_requests_waiting",
           (b"vllm:kv_cache_usage_perc", b"vllm:gpu_cache_usage_perc"), occupied=True),
    _Names(b"sglang:num_running_reqs", b"sglang:num_queue_reqs", (b"sglang:token_usage",), occupied=True),
    _Names(b"llamacpp:requests_processing", b"llamacpp:requests_deferred",
           (b"llamacpp:kv_cache_usage_ratio",), occupied=False),
)  # fmt: skip
_SAMPLE = re.compile(rb'(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?[ \t]+(\S+)')
_LABEL = re.compile(rb'([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_SHARDS = frozenset({b"tp_rank", b"pp_rank", b"moe_ep_rank"})
"""Labels of processes that work together on the same requests, each of which may count them."""


def read(page: bytes) -> Reading | None:
    """What a page in the Prometheus text format says; None if it is of no engine that is known here."""
    page = b"\n" + page
    for engine in ENGINES:
        running, waiting = (_values(page, name) for name in (engine.running, engine.waiting))
        if not running and not waiting:
            continue
        usages = next((found for name in engine.usage if (found := _values(page, name))), [])
        usage = sum(usages) / len(usages) if usages else None
        queued = _count(waiting)
        full = queued > 0 or (engine.occupied and usage is not None and usage >= FULL)
        return Reading(_count(running), queued, usage, full)
    return None


def _count(values: list[float]) -> int:
    return round(min(sum(values), 1e6))


def _values(page: bytes, name: bytes) -> list[float]:
    """The values of a gauge, one for each part of the backend that counts requests of its own: shards of one model
    count the same ones; where the parts are told apart, what has no part is their sum; and so is what has no
    priority the sum of those that have one."""
    found: dict[tuple[tuple[bytes, bytes], ...], float] = {}
    for labels, value in _samples(page, name):
        if labels.get(b"priority"):
            continue
        part = tuple(sorted((n, v) for n, v in labels.items() if n not in _SHARDS))
        found[part] = max(found.get(part, 0.0), value)
    if any(dict(part).get(b"dp_rank") for part in found):
        found = {part: value for part, value in found.items() if dict(part).get(b"dp_rank")}
    return list(found.values())


def _samples(page: bytes, name: bytes) -> Iterator[tuple[dict[bytes, bytes], float]]:
    at = page.find(b"\n" + name)
    while at >= 0:
        start = at + 1 + len(name)
        end = page.find(b"\n", start)
        line = page[start : end if end >= 0 else len(page)]
        if sample := _SAMPLE.match(line):
            with contextlib.suppress(ValueError):
                value = float(sample[2])
                if math.isfinite(value):
                    yield dict(_LABEL.findall(sample[1] or b"")), value
        at = page.find(b"\n" + name, start)


Fetch = Callable[[Upstream], Awaitable[bytes | None]]
"""The page of a backend's metrics, None if its answer is none. Raises `OSError`, `AnswerError`."""


class Loads:
    """Reads what every backend says, each `interval` seconds from the first request on, until it is closed.
    `unreachable` is told of those that cannot be connected to."""

    def __init__(
        self, upstreams: Sequence[Upstream], fetch: Fetch, interval: float,
        unreachable: Callable[[Upstream, OSError], None],
    ) -> None:  # fmt: skip
        self._upstreams = upstreams
        self._fetch = fetch
        self._interval = interval
        self._unreachable = unreachable
        self._found: dict[Upstream, tuple[float, Reading]] = {}
        self._not_before: dict[Upstream, float] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<Loads {len(self._found)} of {len(self._upstreams)} read>"

    def begin(self) -> None:
        """Read from now on, if there is anything to choose by it."""
        if self._task is None and not self._closed and self._interval > 0 and len(self._upstreams) > 1:
            self._task = asyncio.get_running_loop().create_task(self._read_on())

    def of(self, upstream: Upstream) -> Reading | None:
        """What this backend said last, unless that was too long ago."""
        when, reading = self._found.get(upstream, (-math.inf, None))
        return reading if asyncio.get_running_loop().time() - when <= LASTING * self._interval else None

    async def close(self) -> None:
        """Read no more."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _read_on(self) -> None:
        await asyncio.gather(*(self._watch(upstream) for upstream in self._upstreams))

    async def _watch(self, upstream: Upstream) -> None:
        while True:
            await self._read(upstream)
            await asyncio.sleep(self._interval)

    async def _read(self, upstream: Upstream) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._not_before.get(upstream, now):
            return
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                page = await self._fetch(upstream)
        except (AnswerError, Dropped, TimeoutError) as error:
            log.debug("no metrics of %s: %s", upstream.url, type(error).__name__)
            return  # busy, or gone for a moment: the next time
        except OSError as error:
            self._unreachable(upstream, error)
            return
        reading = read(page) if page is not None else None
        if reading is None:
            log.debug("%s has no metrics that are known here", upstream.url)
            self._not_before[upstream] = now + AGAIN_SECONDS
            return
        self._found[upstream] = (asyncio.get_running_loop().time(), reading)
