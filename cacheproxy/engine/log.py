"""A running answer as an append-only log: written by one producer, read by many, each at its own pace.

Law: a reader slows nobody. The producer is held back only while it is far ahead of the fastest reader; who falls
further behind than the log is long is dropped alone. While the log is whole, a reader may come late and reads all of
it. Every state changes where nothing awaits; each reader waits on a future of its own, so that one that is cancelled
touches nobody else's.
"""

import asyncio
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

from cacheproxy.core.model import Fields
from cacheproxy.core.outcome import Reason
from cacheproxy.engine.record import Budget
from cacheproxy.errors import AnswerError, CacheproxyError, UpstreamCut, UpstreamUnreachable

READ_AHEAD = 2**20
"""Bytes that the producer may be ahead of the fastest reader."""
AT_ONCE = 256 * 2**10
"""Bytes that a reader is given in one piece, at least one write of the producer."""
_NO_HEAD = "The backend's answer was given up before it began."


@dataclass(frozen=True, slots=True)
class Head:
    """What came before the body. `sieved`: the stream has usage events, which are taken out for who has not asked for
    them; `unfit`: why the answer will not be kept, as far as its head tells."""

    status: int
    phrase: bytes
    fields: Fields
    interim: bytes = b""
    sieved: bool = False
    unfit: Reason | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How it ended: why the answer was not kept, None if it was; and what broke it off, None if it is whole."""

    reason: Reason | None = None
    error: CacheproxyError | None = None


class Log:
    """At most `most` bytes of an answer, drawn from `budget`. `whole`: everything is kept, for who comes late."""

    def __init__(self, most: int, budget: Budget, *, whole: bool) -> None:
        self.head: Head | None = None
        self.ending: Ending | None = None
        self.whole = whole
        self.length = 0
        """Bytes that have been written."""
        self.on_deserted: Callable[[], None] | None = None
        """Called when the last reader has left."""
        self._most = most
        self._budget = budget
        self._pieces: list[bytes] = []
        self._first = 0
        self._held = 0
        self._readers: set[Reader] = set()
        self._listeners: set[Reader] = set()
        self._furthest = 0
        self._hasty = False
        self._room: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        state = "running" if self.ending is None else "ended"
        return f"<Log {state}, {self.length} bytes, {self._held} held, {len(self._readers)} readers>"

    @property
    def readers(self) -> int:
        return len(self._readers)

    @property
    def held(self) -> int:
        """Bytes in memory."""
        return self._held

    # --- the producer's side -----------------------------------------------------------------------------------------

    def begin(self, head: Head) -> None:
        """The head has come."""
        self.head = head
        self._wake()

    def append(self, data: bytes) -> None:
        """More of the body has come."""
        self._pieces.append(data)
        self.length += len(data)
        self._held += len(data)
        self._budget.held += len(data)
        if self.whole and (self._held > self._most or self._budget.held > self._budget.limit):
            self.whole = False
        if not self.whole:
            self._trim()
        self._wake()

    def end(self, ending: Ending) -> None:
        """Nothing more will come. Only the first call counts."""
        if self.ending is None:
            self.ending = ending
            self._wake()
            self._make_room()

    async def room(self) -> None:
        """Wait until a reader is near the end of what has been written, or there is none."""
        ahead = min(READ_AHEAD, self._most)
        while self._readers and self.length - self._furthest > ahead and self.ending is None:
            if self._hasty and self.whole:
                return
            self._room = asyncio.get_running_loop().create_future()
            try:
                await self._room
            finally:
                self._room = None

    def hasten(self) -> None:
        """Somebody waits for the end: while everything is kept, the producer is not held back by who reads."""
        self._hasty = True
        self._make_room()

    def release(self) -> None:
        """Let go of what is held; for a log that nobody may come to any more."""
        self.whole = False
        self._trim()

    # --- the readers' side -------------------------------------------------------------------------------------------

    def reader(self) -> "Reader":
        """A reader from the beginning. Use its `close` in every case. The log must be `whole`, or new."""
        reader = Reader(self)
        self._readers.add(reader)
        return reader

    def listener(self) -> "Reader":
        """A reader that is no caller: nothing is held for it, and the log is not running for its sake."""
        reader = Reader(self)
        self._listeners.add(reader)
        return reader

    def take(self, reader: "Reader") -> bytes:
        """What `reader` has not seen, as much as may go in one piece; moves it on."""
        at = reader.at - self._first
        if at < 0:
            raise UpstreamCut("the caller fell too far behind a running answer")
        pieces, count, size = self._pieces, 0, 0
        while at + count < len(pieces) and size < AT_ONCE:
            size += len(pieces[at + count])
            count += 1
        data = pieces[at] if count == 1 else b"".join(pieces[at : at + count])
        reader.at += count
        reader.offset += size
        if reader.offset > self._furthest and reader in self._readers:
            self._furthest = reader.offset
            self._make_room()
        if not self.whole:
            self._trim()
        return data

    def leave(self, reader: "Reader") -> None:
        """`reader` will not read again."""
        self._listeners.discard(reader)
        if reader not in self._readers:
            return
        self._readers.discard(reader)
        if not self.whole:
            self._trim()
        if not self._readers:
            self._make_room()
            if self.on_deserted is not None:
                self.on_deserted()

    def behind(self, reader: "Reader") -> bool:
        """Whether something has been written that `reader` has not seen."""
        return reader.at < self._first + len(self._pieces)

    def _trim(self) -> None:
        """Free what nobody will read: what all have seen, and what is more than the log may be long, except for the
        fastest, for whose sake the producer waits."""
        places = [reader.at - self._first for reader in self._readers] or [len(self._pieces)]
        seen, fastest = min(places), max(places)
        scarce = self._budget.held > self._budget.limit
        most = min(READ_AHEAD, self._most) if scarce else self._most
        count = freed = 0
        while count < seen or (count < fastest and self._held - freed > most):
            freed += len(self._pieces[count])
            count += 1
        if count:
            del self._pieces[:count]
            self._first += count
            self._held -= freed
            self._budget.held -= freed

    def _wake(self) -> None:
        for reader in self._readers:
            reader.wake()
        for reader in self._listeners:
            reader.wake()

    def _make_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)


class Reader:
    """One way through a log: each reads all of it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._waiter: asyncio.Future[None] | None = None
        self.at = 0
        """The number of the next piece."""
        self.offset = 0
        """Bytes that have been read."""

    def __repr__(self) -> str:
        return f"<Reader at {self.offset} of {self._log.length} bytes>"

    async def head(self) -> Head:
        """Wait for the head. Raises what the producer met instead of one, always an `AnswerError`."""
        while self._log.head is None:
            if self._log.ending is not None:
                error = self._log.ending.error
                raise _again(error) if isinstance(error, AnswerError) else UpstreamUnreachable(_NO_HEAD)
            await self._changed()
        return self._log.head

    async def end(self) -> Ending:
        """Wait until nothing more will come; for who has read what came."""
        while self._log.ending is None:
            await self._changed()
        return self._log.ending

    async def outlast(self) -> Ending | None:
        """Wait for the end before reading anything, which holds nobody back; None as soon as the answer is longer than
        is held."""
        self._log.hasten()
        while self._log.ending is None and self._log.whole:
            await self._changed()
        return self._log.ending if self._log.whole else None

    @property
    def ended(self) -> bool:
        """All of a whole answer has been read."""
        ending = self._log.ending
        return ending is not None and ending.error is None and not self._log.behind(self)

    async def read(self) -> bytes:
        """The next bytes of the body, empty at its end. Raises what broke the answer off."""
        while not self._log.behind(self):
            ending = self._log.ending
            if ending is not None:
                if ending.error is not None:
                    raise _again(ending.error)
                return b""
            await self._changed()
        return self._log.take(self)

    async def settle(self, seconds: float) -> bool:
        """Wait until there is more to read or the answer has ended, `seconds` at most; False if neither."""
        if not self._log.behind(self) and self._log.ending is None:
            timer = asyncio.get_running_loop().call_later(seconds, self.wake)
            try:
                await self._changed()
            finally:
                timer.cancel()
        return self._log.behind(self) or self._log.ending is not None

    def close(self) -> None:
        """Leave."""
        self._log.leave(self)

    def wake(self) -> None:
        """Something has changed."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _changed(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None


def _again(error: CacheproxyError) -> CacheproxyError:
    """The error for one more reader: an exception that many raise would collect all their tracebacks."""
    return copy(error)
