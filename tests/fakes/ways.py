"""One connection through a relay: two directions that give on bytes by their modes, and whose turn it is to be answered."""

import asyncio
import contextlib
import socket
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.fakes import resp
from tests.fakes.backend import reset

if TYPE_CHECKING:
    from tests.fakes.relay import Relay

UP, DOWN = "up", "down"
_ROOM = 2**16


@dataclass(eq=False)
class Mode:
    """How bytes go: `size` at a time (0: all that is there), each piece `before` seconds late, give or take `jitter`,
    and `after` seconds before the next one; a `share` of the bytes replaced by others; the connection closed (or
    reset) when `last` bytes have gone since the mode began."""

    size: int = 0
    before: float = 0
    jitter: float = 0
    after: float = 0
    share: float = 0
    last: int | None = None
    resets: bool = False
    frozen: bool = False


class Connection:
    """One client, its own connection to the server, and whose turn it is to be answered."""

    def __init__(self, relay: "Relay", taken: socket.socket) -> None:
        self.relay = relay
        self._taken = taken
        self._writers: list[asyncio.StreamWriter] = []
        self._ways: tuple[Way, ...] = ()
        self._over: asyncio.Event = asyncio.Event()
        self._requests, self._replies = Frames(), Frames()
        self._owed: deque[bytes | None] = deque()  # replies to come, in order; None: the server's
        self._spoken = DOWN
        self._resets = False

    def end(self, *, resets: bool = False) -> None:
        """Close both sides now; what was given on still arrives, unless it `resets`."""
        self._resets = resets
        for writer in self._writers:
            self._abort(writer) if resets else writer.close()
        self._over.set()

    def wake(self) -> None:
        """The modes are others now."""
        for way in self._ways:
            way.wake()

    async def run(self) -> None:
        try:
            await self._pass()
            for writer in self._writers:
                self._abort(writer) if self._resets else writer.close()
            await self._closed()
        finally:
            for writer in self._writers:
                writer.transport.abort()
            await self._closed()
            self._taken.close()

    async def _pass(self) -> None:
        """Give on what both sides say until both have ended, or until the end is told."""
        from_client, to_client = await self._streams(sock=self._taken)
        try:
            from_server, to_server = await self._reach()
        except OSError:
            self.end(resets=True)
            return
        up, down = self._ways = Way(self, UP, to_server), Way(self, DOWN, to_client)
        works = [
            self._read(from_client, up, self._asked, down), self._read(from_server, down, self._replied, up),
            up.run(), down.run(),
        ]  # fmt: skip
        passing = asyncio.gather(*works)
        told = asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait([passing, told], return_when=asyncio.FIRST_COMPLETED)
            if passing.done():
                passing.result()
        finally:
            told.cancel()
            passing.cancel()
            await asyncio.gather(passing, told, return_exceptions=True)

    async def _closed(self) -> None:
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)

    def _abort(self, writer: asyncio.StreamWriter) -> None:
        if self._resets and not writer.transport.is_closing():
            with contextlib.suppress(OSError):  # it may be gone, and not say so yet
                reset(writer)
        writer.transport.abort()

    async def _streams(self, **where) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        opened = await (asyncio.open_unix_connection if "path" in where else asyncio.open_connection)(**where)
        self._writers.append(opened[1])
        return opened

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        target = self.relay.target
        if isinstance(target, tuple):
            return await self._streams(host=target[0], port=target[1])
        return await self._streams(path=str(target))

    async def _read(self, reader: asyncio.StreamReader, way: "Way", sort, back: "Way") -> None:
        """Read one side until it ends; a side that is reset resets the other."""
        try:
            while data := await reader.read(_ROOM):
                sort(data, way, back)
                await way.room()
        except ConnectionError:
            self.end(resets=True)
        way.finish()

    def _asked(self, data: bytes, way: "Way", back: "Way") -> None:
        if self._spoken == DOWN:
            self._spoken = UP
            self.relay.round_trips += 1
        for piece, whole in self._requests.feed(data, hold=bool(self.relay.answers)):
            # Where a request's beginning is at the server already, the answer is the server's too.
            ours = None if whole is None else self.relay.answered(whole, ours=len(piece) == len(whole))
            if ours is None:
                way.send(piece)
            if whole is not None and (ours is None or self._owed):
                self._owed.append(ours)
            elif ours is not None:
                self._spoken = DOWN
                back.send(ours)

    def _replied(self, data: bytes, way: "Way", _: "Way") -> None:
        self._spoken = DOWN
        for piece, whole in self._replies.feed(data, hold=False):
            way.send(piece)
            if whole is not None and not whole.startswith(b">"):
                if self._owed:
                    self._owed.popleft()
                while self._owed and self._owed[0] is not None:
                    way.send(self._owed.popleft())


class Frames:
    """Messages in a stream of bytes."""

    def __init__(self) -> None:
        self._begun = bytearray()  # of a message whose end has not come
        self._gone = 0  # how much of it has been given on
        self._opaque = False

    def feed(self, data: bytes, *, hold: bool) -> list[tuple[bytes, bytes | None]]:
        """What to give on, each with the whole message that it ends, or None. `hold`: nothing of a message before all
        of it is there."""
        if self._opaque:
            return [(data, None)]
        self._begun += data
        found: list[tuple[bytes, bytes | None]] = []
        try:
            while self._begun and (end := resp.end(self._begun)) is not None:
                whole = bytes(self._begun[:end])
                found.append((whole[self._gone :], whole))
                del self._begun[:end]
                self._gone = 0
        except resp.NotResp:
            self._opaque, hold = True, False
        if len(self._begun) > self._gone and not hold:
            found.append((bytes(self._begun[self._gone :]), None))
            self._gone = len(self._begun)
        return found


class Way:
    """One direction of one connection: gives on what it is sent, in order, by the relay's mode."""

    def __init__(self, connection: Connection, name: str, writer: asyncio.StreamWriter) -> None:
        self._connection, self._relay = connection, connection.relay
        self._name, self._writer = name, writer
        self._waiting = bytearray()
        self._moved = asyncio.Event()  # something came or went
        self._ended = False
        self._mode: Mode | None = None
        self._gone = 0  # bytes since that mode began

    def send(self, data: bytes) -> None:
        self._waiting += data
        self._moved.set()

    def finish(self) -> None:
        self._ended = True
        self._moved.set()

    def wake(self) -> None:
        self._moved.set()

    async def room(self) -> None:
        """Wait until little is waiting."""
        while len(self._waiting) > _ROOM:
            self._moved.clear()
            await self._moved.wait()

    async def run(self) -> None:
        try:
            while True:
                mode = self._relay.modes[self._name]
                if mode is not self._mode:
                    self._mode, self._gone = mode, 0
                if mode.frozen:
                    await self._relay.pause(None)
                elif mode.last is not None and self._gone >= mode.last:
                    self._connection.end(resets=mode.resets)
                    return
                elif self._waiting:
                    await self._give(mode)
                elif self._ended:
                    break
                else:
                    self._moved.clear()
                    await self._moved.wait()
            if not self._writer.transport.is_closing():
                self._writer.write_eof()
        except OSError:
            self._connection.end(resets=True)

    async def _give(self, mode: Mode) -> None:
        """Give on what the mode lets go at once of what is there now."""
        count = min(len(self._waiting), mode.size or _ROOM, _ROOM if mode.last is None else mode.last - self._gone)
        late = mode.before + mode.jitter * self._relay.drawn.uniform(-1, 1)
        if late > 0:
            await self._relay.pause(late)
            if self._relay.modes[self._name] is not mode:
                return
        piece = bytearray(self._waiting[:count])
        del self._waiting[:count]
        self._gone += count
        self._relay.passed[self._name] += count
        self._moved.set()
        self._writer.write(self._garbled(piece, mode.share))
        await self._writer.drain()
        if mode.size:
            await self._relay.pause(mode.after)

    def _garbled(self, piece: bytearray, share: float) -> bytes:
        drawn = self._relay.drawn
        for i in range(len(piece) if share else 0):
            if drawn.random() < share:
                piece[i] ^= drawn.randrange(1, 256)
        return bytes(piece)
