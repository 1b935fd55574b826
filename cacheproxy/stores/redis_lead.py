"""A recording that this process produces in Redis. One round trip each time that something is said.

What is said is sent by a task of its own, in order: a producer that is cancelled in the middle leaves no connection
half read, and can still say how it ended. After the first failure nothing more is said but that it is over.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from cacheproxy.errors import Trouble
from cacheproxy.stores.lane import Lane
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_keys import Keys
from cacheproxy.stores.redis_recording_scripts import CUT, END, TELL
from cacheproxy.stores.redis_scripts import Script
from cacheproxy.stores.redis_trouble import Kind

T = TypeVar("T")
Words = tuple[Script, Sequence[str], Sequence[str | bytes | int]]
"""A script with its keys and arguments."""
Speech = Lane[Words, Any]
"""What is said while all round trips are under way goes together with the next."""

PAUSE = 0.02
PATIENCE = 0.75
"""The share of a lease for which something is said again and again."""
PASSING = frozenset({
    Kind.TIMEOUT, Kind.RESET, Kind.REFUSED, Kind.POOL, Kind.LOADING, Kind.BUSY, Kind.MASTERDOWN, Kind.CLUSTERDOWN,
})  # fmt: skip
"""What may pass by itself. After a time-out or a break it may have been carried out, and is not done twice."""
FINAL = frozenset({"lost", "too_large", "closed"})
"""Kinds of trouble after which who follows need not be told."""
LARGEST_MESSAGE = 64 * 2**10
"""Bytes of new records above which who follows is told to read them from the stream."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a recording lies. Its name holds the key: with an identity alone nobody finds it."""

    shard: int
    claim: str
    identity: bytes

    @property
    def name(self) -> str:
        return f"{self.claim.rpartition(':')[2]}:{self.identity.hex()}"

    @property
    def stream(self) -> str:
        return f"{self.claim}:{self.identity.hex()}"

    @property
    def live(self) -> str:
        return f"{self.stream}:l"

    @property
    def readers(self) -> str:
        return f"{self.stream}:r"


def place(keys: Keys, key: bytes, identity: bytes) -> Place:
    """Where the recording of `key` with this identity lies."""
    return Place(keys.shard(key), keys.claim(key), identity)


@dataclass(frozen=True, slots=True)
class LeadTerms:
    """`lease`: seconds; `most`: bytes of a recording; `channel`: what the name of a reader's channel begins with."""

    lease: float
    most: int
    channel: str


class Errands:
    """Work that is done to its end, whoever asked for it has gone or not."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def __repr__(self) -> str:
        return f"<Errands {len(self._running)} running>"

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # seen, even if all who asked have gone

    async def close(self, seconds: float) -> None:
        """Let them come to their end for so long, then end them."""
        if self._running:
            await asyncio.wait(list(self._running), timeout=seconds)
        while self._running:
            for task in list(self._running):
                task.cancel()
            await asyncio.wait(list(self._running))


async def outcome(task: "asyncio.Task[T]") -> T:
    """What comes of a task that goes on if the caller leaves. Raises `Trouble`."""
    await asyncio.wait([task])
    if task.cancelled():
        raise Trouble("closed", "closed")
    if isinstance(error := task.exception(), Trouble):
        raise Trouble(*_told(error))  # one each: who raises it adds its traceback
    return task.result()


async def said(speech: Speech, words: Words) -> Any:
    """What came back. Raises `Trouble`."""
    if isinstance(reply := await speech.ask(words), Trouble):
        raise reply
    return reply


def _told(trouble: Trouble) -> tuple[str, str]:
    return str(trouble), trouble.kind


class RedisLead:
    """A `Lead` at `place`, which has been claimed. `speech`: by which it is sent."""

    def __init__(self, calls: Calls, place: Place, terms: LeadTerms, errands: Errands, speech: Speech) -> None:
        self.identity = place.identity
        self._followers = 0
        self._calls = calls
        self._place = place
        self._terms = terms
        self._errands = errands
        self._speech = speech
        self._number = 0
        self._saying: asyncio.Task[None] | None = None
        self._trouble: Trouble | None = None
        self._has_ended = False

    def __repr__(self) -> str:
        state = "ended" if self._has_ended else "in trouble" if self._trouble else "running"
        return f"<RedisLead {state} after {self._number} records, {self.followers} follow>"

    @property
    def followers(self) -> int:
        return 0 if self._has_ended or self._trouble else self._followers

    async def append(self, records: Sequence[bytes]) -> None:
        await self._say(tuple(records))

    async def renew(self) -> None:
        await self._say(())

    async def end(self, records: Sequence[bytes], seconds: float) -> None:
        await self._say(tuple(records), END, seconds)

    async def abandon(self) -> None:
        if self._has_ended:
            return
        try:
            await self._say((), CUT)
        except Trouble:
            return  # its lease runs out

    async def _say(self, records: tuple[bytes, ...], ends: bytes = b"", seconds: float = 0.0) -> None:
        """Have it sent after what was said before; return when it was."""
        if self._has_ended:
            raise Trouble(*_told(self._trouble)) if self._trouble else Trouble("the recording has ended", "closed")
        self._has_ended = bool(ends)
        self._saying = self._errands.start(self._send(self._saying, records, ends, seconds))
        await outcome(self._saying)

    async def _send(
        self, before: "asyncio.Task[None] | None", records: tuple[bytes, ...], ends: bytes, seconds: float
    ) -> None:  # fmt: skip
        if before is not None and not before.done():
            await asyncio.wait([before])
        if self._trouble is not None and ends != CUT:
            raise self._trouble
        try:
            await self._tell(records, ends, seconds)
        except BaseException as error:
            first, self._trouble = self._trouble, error if isinstance(error, Trouble) else Trouble("a fault", "fault")
            if first is None and self._trouble.kind not in FINAL:
                # Whether it was carried out is not known: what comes next would have no number.
                self._has_ended = True
                self._errands.start(self._send(None, (), CUT, 0))
            raise

    async def _tell(self, records: tuple[bytes, ...], ends: bytes, seconds: float) -> None:
        at, terms = self._place, self._terms
        lease = int(terms.lease * 1000)
        stays = max(lease, int(seconds * 1000))
        arguments: list[str | bytes | int] = [
            at.identity.hex(), self._number, lease, terms.most, ends, stays, terms.channel, at.name, LARGEST_MESSAGE,
            *records,
        ]  # fmt: skip
        reply = await self._answer((TELL, [at.claim, at.stream, at.live, at.readers], arguments))
        became, followers = await self._calls.understood(lambda: (bytes(reply[0]), int(reply[1])))
        if became == b"lost":
            raise Trouble("the recording was taken for dead", "lost")
        if became == b"too_large":
            raise Trouble("the recording has more bytes than it may", "too_large")
        self._number += len(records)
        self._followers = followers

    async def _answer(self, words: Words) -> Any:
        """To what is said. As long as nobody can have taken us for dead, what passes by itself ends no recording: a
        loop that was held up, a connection that broke, a server that cannot be reached for a moment."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._terms.lease * PATIENCE
        while True:
            try:
                return await said(self._speech, words)
            except Trouble as trouble:
                if trouble.kind not in PASSING or loop.time() >= until:
                    raise
            await asyncio.sleep(PAUSE)
