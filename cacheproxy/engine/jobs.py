"""Long work that somebody orders and looks after later: queued, running, then done or failed, and known for a while
after its end. What the work is, nobody here knows.

An id cannot be guessed: who has it may be told what came of the job. Jobs end with the process.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any

import orjson

from cacheproxy.errors import Trouble, place_of
from cacheproxy.ports import Clock

log = logging.getLogger("cacheproxy.jobs")

ID_BYTES = 18
STOP_SECONDS = 5.0
"""So long it is waited for the end of what was cancelled."""


class State(StrEnum):
    """How far a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Fault(Enum):
    """Why a job failed: (code, message)."""

    CANCELLED = ("cancelled", "It was cancelled.")
    DRAINING = ("draining", "The proxy shut down.")
    INTERNAL = ("internal_error", "The proxy failed.")


class Refusal(Enum):
    """Why a job is not taken."""

    FULL = "full"
    TOO_LARGE = "too_large"  # it alone holds more than all may
    DRAINING = "draining"


@dataclass(slots=True, eq=False)
class Job:
    """`counts`: how far it is, by name; `result`: plain data, of one that failed as far as it came, None for none;
    `error`: code and message; `size`: bytes that it holds; times by the wall clock, None for not yet."""

    id: str
    kind: str
    size: int
    created_at: float
    state: State = State.QUEUED
    counts: dict[str, int] = field(default_factory=dict)
    result: Any = None
    error: tuple[str, str] | None = None
    started_at: float | None = None
    ended_at: float | None = None


Work = Callable[[Job], Awaitable[None]]
"""Does a job: writes its counts and its result. May be cancelled at any await; raises `Trouble`."""


class Jobs:
    """`lanes`: how many jobs of each kind run at once; `ttl`: seconds for which a job that has ended is known; `most`
    jobs, and `most_bytes` that they hold together: where more come, those that ended first are forgotten earlier."""

    def __init__(self, *, lanes: Mapping[str, int], ttl: float, most: int, most_bytes: int, clock: Clock) -> None:
        self._lanes = {kind: asyncio.Semaphore(number) for kind, number in lanes.items()}
        self._ttl = ttl
        self._most = most
        self._most_bytes = most_bytes
        self._clock = clock
        self._jobs: dict[str, Job] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._draining = False

    def __repr__(self) -> str:
        return f"<Jobs {len(self._tasks)} of {len(self._jobs)} go on>"

    @property
    def running(self) -> int:
        """Jobs that have not ended, those that wait among them."""
        return len(self._tasks)

    def begin(self, kind: str, work: Work, size: int) -> Job | Refusal:
        """Take a job that holds `size` bytes, and have it done in the background when its turn comes."""
        if self._draining:
            return Refusal.DRAINING
        if size > self._most_bytes:
            return Refusal.TOO_LARGE
        if not self._make_room(1, size):
            return Refusal.FULL
        job = Job(secrets.token_urlsafe(ID_BYTES), kind, size, self._clock.now())
        self._jobs[job.id] = job
        task = self._tasks[job.id] = asyncio.get_running_loop().create_task(self._do(job, work))
        task.add_done_callback(lambda task: self._end(job, task))
        return job

    def find(self, name: str) -> Job | None:
        """The job of this id, if it is known."""
        self._forget()
        return self._jobs.get(name)

    def all(self) -> list[Job]:
        """Every job that is known, the newest first."""
        self._forget()
        return list(reversed(self._jobs.values()))

    async def cancel(self, name: str) -> Job | None:
        """End the job of this id now, or forget it if it has ended; None if none is known."""
        job = self.find(name)
        if job is None:
            return None
        if (task := self._tasks.get(name)) is None:
            del self._jobs[name]
            return job
        await self._stop(Fault.CANCELLED, {name: task})
        return job

    async def drain(self) -> None:
        """Take none any more, and end what goes on."""
        self._draining = True
        await self._stop(Fault.DRAINING, dict(self._tasks))

    async def _stop(self, fault: Fault, tasks: Mapping[str, "asyncio.Task[None]"]) -> None:
        for name, task in tasks.items():
            self._jobs[name].error = self._jobs[name].error or fault.value
            task.cancel()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=STOP_SECONDS)

    async def _do(self, job: Job, work: Work) -> None:
        async with self._lanes[job.kind]:
            job.state, job.started_at = State.RUNNING, self._clock.now()
            await work(job)

    def _end(self, job: Job, task: "asyncio.Task[None]") -> None:
        """Also of a job that was cancelled before it began."""
        del self._tasks[job.id]
        job.ended_at = self._clock.now()
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Trouble):
            job.error = ("trouble", str(error))
        elif error is not None:
            log.error("a job (%s) failed inside the proxy: %s", job.kind, place_of(error))
            job.error = Fault.INTERNAL.value
        elif not task.cancelled():
            job.error = None
        job.state = State.DONE if job.error is None else State.FAILED
        job.size = len(orjson.dumps(job.result))
        self._make_room(0, 0)

    def _forget(self) -> None:
        """Those whose time is over."""
        now = self._clock.now()
        for job in self._ended():
            if now >= (job.ended_at or 0.0) + self._ttl:
                del self._jobs[job.id]

    def _ended(self) -> list[Job]:
        """In the order of their ends."""
        ended = [job for job in self._jobs.values() if job.ended_at is not None]
        return sorted(ended, key=lambda job: job.ended_at or 0.0)

    def _make_room(self, number: int, size: int) -> bool:
        """Whether `number` more that hold `size` bytes find room; those that ended first make it."""
        self._forget()
        held = sum(job.size for job in self._jobs.values()) + size
        for job in self._ended():
            if len(self._jobs) + number <= self._most and held <= self._most_bytes:
                break
            del self._jobs[job.id]
            held -= job.size
        return len(self._jobs) + number <= self._most and held <= self._most_bytes
