"""How long a client may take to send a head, to send a body, and to take its answer.

One timer looks at all connections; what a request costs is a few assignments. Decide, then do: a `Watch` only says
what is overdue, the connection ends itself.

- Head: from the accept, or from the first byte of a further request on a kept connection, to its end. (Bytes of a
  further request that come before the answer to the one before it count from the first byte after that answer.) A
  kept connection between two requests has no deadline here.
- Body: no byte for `body` seconds, or longer than `body` seconds and its bytes at `SLOWEST` a second. The clock
  stands while we do not read, because whoever gets the body is not ready for more of it.
- Write: of what waits to be written the client takes nothing for `write` seconds. A stream that is quiet has nothing
  waiting. Progress is what the client's system acknowledges: the own buffer moves in leaps of megabytes.
- A connection that another protocol has taken over (a tunnel) has no deadline.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from aiohttp import StreamReader
from aiohttp.abc import AbstractStreamWriter

from cacheproxy.http import wire

SLOWEST = 1024
"""Bytes a second that a body must come with, beyond its first `body` seconds."""
HALF_CLOSED = 0.5
"""Seconds after the end of its sending in which a client that keeps connections must take something."""
LONGEST_INTERVAL = 0.5
SHORTEST_INTERVAL = 0.02
AT_ONCE = 64
"""Connections looked at in one turn of the loop, so that a thousand that end together hold nobody up."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds for a head, for progress of a body, and for progress of what is written."""

    header: float
    body: float
    write: float

    @property
    def interval(self) -> float:
        """Seconds between two looks; a deadline is met at most so much late."""
        smallest = min(self.header, self.body, self.write)
        return max(SHORTEST_INTERVAL, min(LONGEST_INTERVAL, smallest / 4))


class Overdue(Enum):
    """Why a connection has to end."""

    SILENT = "it never sent anything"
    HEAD = "the head of a request did not come to its end"
    BODY = "the body of a request made too little progress"
    WRITE = "the client took nothing of its answer"
    GONE = "the client that had closed its half is gone"


class Watch:
    """What is known of one connection. Told by the connection what happens, asked by the sweep what is overdue."""

    __slots__ = (
        "_acked", "_buffered", "_busy", "_clock", "_half_closed", "_head_since", "_heard", "_last", "_looked",
        "_payload", "_protocol", "_seen", "_silent_since", "_spent", "_stuck_since", "_taken", "_upgrade",
        "_writer", "transport",
    )  # fmt: skip

    def __init__(
        self, transport: asyncio.Transport, protocol: asyncio.BaseProtocol, clock: Callable[[], float]
    ) -> None:
        self.transport = transport
        self._protocol = protocol
        self._clock = clock
        self._head_since: float | None = clock()
        self._heard = False
        self._busy = False
        self._last = self._upgrade = False
        self._half_closed = False
        self._payload: StreamReader | None = None
        self._writer: AbstractStreamWriter | None = None
        self._seen = 0
        self._spent = self._looked = self._silent_since = 0.0
        self._stuck_since: float | None = None
        self._acked = self._buffered = self._taken = 0

    def __repr__(self) -> str:
        state = "answering" if self._busy else "idle" if self._head_since is None else "awaiting a head"
        return f"<Watch {state}{', half closed' if self._half_closed else ''}>"

    @property
    def answering(self) -> bool:
        """Whether an answer to the request has begun."""
        return self._writer is not None and self._writer.output_size > 0

    # --- what happens --------------------------------------------------------------------------------------------

    def hear(self, data: bytes) -> None:
        """Bytes came."""
        self._heard = True
        if self._busy or self._head_since is not None:
            return
        if self._payload is not None:
            if not self._payload.is_eof():
                return  # the rest of a body that was answered early
            self._payload = None
        if data.lstrip(b"\r\n"):  # some clients end a body with an empty line
            self._head_since = self._clock()

    def begin(self, payload: StreamReader, writer: AbstractStreamWriter, *, last: bool, upgrade: bool) -> None:
        """A head was read and its handler starts. `last`: the client has said that it is its last request; `upgrade`:
        it wants another protocol, for which it needs both halves."""
        self._busy, self._last, self._upgrade = True, last, upgrade
        self._head_since = None
        self._writer = writer
        self._payload = None if payload.is_eof() else payload
        if self._payload is not None:
            self._looked = self._silent_since = self._clock()
            self._spent, self._seen = 0.0, payload.total_raw_bytes

    def end(self) -> None:
        """The handler is done; what is left of the body is read and thrown away for a while."""
        self._busy = False
        self._writer = None

    def close_half(self) -> bool:
        """The client will send no more; whether it is to be kept for its answer (else it has left).

        One that has left must end the backend's call; one that has closed only its half, as `nc` does, wants its
        answer. The two look alike until something is written: only who is there takes it. So one that keeps
        connections has `HALF_CLOSED` seconds to take something; one that said that this is its last request has
        all the time, and the kernel is told to ask."""
        whole = self._payload is None or self._payload.is_eof()
        if self._busy and whole and not self._upgrade and not self._half_closed:
            self._half_closed = True
            self._taken = wire.taken(self.transport)
            wire.probe(self.transport)
        return self._half_closed

    @property
    def half_closed(self) -> bool:
        """The client will send no more."""
        return self._half_closed

    @property
    def is_left(self) -> bool:
        """Asked `HALF_CLOSED` seconds after the client closed its half: whether it has to be taken for gone."""
        return self._busy and not self._last and wire.taken(self.transport) == self._taken

    # --- what is overdue -----------------------------------------------------------------------------------------

    def judge(self, now: float, deadlines: Deadlines) -> Overdue | None:
        """What is overdue. Must be asked at regular intervals: it measures what happened since the last time."""
        if self.transport.get_protocol() is not self._protocol:
            self._stuck_since = None
            return None
        if self._stuck(now) >= deadlines.write:
            return Overdue.WRITE
        if self.transport.is_closing():
            return None
        if self._half_closed and wire.is_gone(self.transport):
            return Overdue.GONE
        if self._head_since is not None:
            late = now - self._head_since >= deadlines.header
            return (Overdue.HEAD if self._heard else Overdue.SILENT) if late else None
        return Overdue.BODY if self._busy and self._is_slow(now, deadlines.body) else None

    def _stuck(self, now: float) -> float:
        """For how long the client has taken nothing of what is waiting for it."""
        buffered = self.transport.get_write_buffer_size()
        if not buffered:
            self._stuck_since = None
            return 0.0
        acked = wire.taken(self.transport)
        # A buffer that shrinks into the kernel's is no progress of the client's, but all that some systems show.
        progress = acked > self._acked if acked else buffered < self._buffered
        if self._stuck_since is None or progress:
            self._stuck_since = now
        self._acked, self._buffered = acked, buffered
        return now - self._stuck_since

    def _is_slow(self, now: float, seconds: float) -> bool:
        payload = self._payload
        if payload is None:
            return False
        if payload.is_eof():
            self._payload = None
            return False
        elapsed, self._looked = now - self._looked, now
        if not self.transport.is_reading():
            self._silent_since = now
            return False
        self._spent += elapsed
        if payload.total_raw_bytes != self._seen:
            self._seen = payload.total_raw_bytes
            self._silent_since = now
        return now - self._silent_since >= seconds or self._spent >= seconds + self._seen / SLOWEST


class Sweep:
    """Looks at all connections at intervals, as long as there are any, and has the overdue ones ended."""

    def __init__(self, deadlines: Deadlines, loop: asyncio.AbstractEventLoop) -> None:
        self._deadlines = deadlines
        self._loop = loop
        self._watches: dict[Watch, Callable[[Overdue], None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Sweep of {len(self._watches)} connections every {self._deadlines.interval:g} s>"

    def add(self, watch: Watch, end: Callable[[Overdue], None]) -> None:
        """Watch a connection; `end` ends it."""
        self._watches[watch] = end
        if self._timer is None:
            self._timer = self._loop.call_later(self._deadlines.interval, self._sweep)

    def drop(self, watch: Watch) -> None:
        """The connection is over."""
        self._watches.pop(watch, None)

    def _sweep(self) -> None:
        self._timer = None
        if self._watches:
            self._timer = self._loop.call_later(self._deadlines.interval, self._sweep)
            self._look(iter(list(self._watches)))

    def _look(self, rest: Iterator[Watch]) -> None:
        now, some = self._loop.time(), list(islice(rest, AT_ONCE))
        for watch in some:
            end = self._watches.get(watch)
            overdue = watch.judge(now, self._deadlines) if end is not None else None
            if end is not None and overdue is not None:
                end(overdue)
        if some:
            self._loop.call_soon(self._look, rest)
