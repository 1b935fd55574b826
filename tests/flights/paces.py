"""Readers of one long stream, each at its own pace, that keep only what they need to tell whether it was whole."""

import asyncio
import hashlib
import json
import socket
import time
from dataclasses import dataclass, field

import aiohttp

from tests import rig
from tests.fakes.backend import Exchange, chunk

RECEIVE = 32 * 1024
"""Bytes that the kernel keeps for a reader: what it has not read is the proxy's to hold."""


@dataclass(eq=False)
class Pace:
    """How a reader went. `rate`: bytes a second, None as fast as they come, 0 for one that takes nothing; `seconds`:
    from its request to its end, which was at `ended`; `pause`: the longest between two of its pieces."""

    rate: int | None = None
    size: int = 0
    seconds: float = 0.0
    ended: float = 0.0
    pause: float = 0.0
    whole: bool = False
    broken: bool = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    _hash: "hashlib._Hash" = field(default_factory=hashlib.blake2b)

    @property
    def digest(self) -> bytes:
        """Of the body, framing undone."""
        return self._hash.digest()

    async def read(self, base: str, **fields: object) -> "Pace":
        """Ask `rig.BODY` with `fields` changed, as a stream, and read it to its end or until it is cut off."""
        began = last = time.perf_counter()
        connector = aiohttp.TCPConnector(socket_factory=_small)
        timeout = aiohttp.ClientTimeout(total=None)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=timeout, read_bufsize=RECEIVE) as session,
                session.post(base + rig.CHAT, json={**rig.BODY, "stream": True, **fields}) as answer,
            ):
                self.begun.set()
                if self.rate == 0:
                    await _gone(answer)
                while data := await answer.content.read(RECEIVE):
                    now = time.perf_counter()
                    self.pause, last = max(self.pause, now - last), now
                    self.size += len(data)
                    self._hash.update(data)
                    await self.rest(began)
                self.whole = True
        except aiohttp.ClientError:
            self.broken = True
        self.ended = time.perf_counter()
        self.seconds = self.ended - began
        return self

    async def rest(self, began: float) -> None:
        """Wait before the next piece is read."""
        if self.rate:
            await asyncio.sleep(max(0.0, began + self.size / self.rate - time.perf_counter()))


def _small(address: tuple) -> socket.socket:
    family, kind, protocol, _, _ = address
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE)
    opened.setblocking(False)
    return opened


async def _gone(answer: aiohttp.ClientResponse) -> None:
    """Take nothing until the other side has ended the connection; a reset is noticed without reading."""
    protocol = answer.connection.protocol if answer.connection is not None else None
    assert protocol is not None
    protocol.pause_reading()
    sock = answer.connection.transport.get_extra_info("socket")
    while sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[:1] != bytes([7]):  # TCP_CLOSE
        await asyncio.sleep(0.02)
    raise aiohttp.ClientConnectionResetError("the connection was reset")


class Long:
    """A script: a stream of at least `size` bytes in events of `each`, `rate` bytes a second, 0 for no bound, once it is
    let `go`. `ended`: when the last answer's last byte went out."""

    def __init__(self, size: int, each: int = 1024, rate: int = 0) -> None:
        word = "w" * (each - len(chunk({"content": ""})))
        opening = chunk({"role": "assistant", "content": ""})
        count = size // each
        self.events = [opening, *[chunk({"content": f"{n:07}"[:7] + word[7:]}) for n in range(count)]]
        self.events += [chunk(finish="stop"), b"data: [DONE]\n\n"]
        self.go = asyncio.Event()
        self.go.set()
        self.calls = 0
        self.ended = 0.0
        self._rate = rate

    @property
    def size(self) -> int:
        return sum(map(len, self.events))

    @property
    def digest(self) -> bytes:
        """Of the whole body, as a caller gets it."""
        return hashlib.blake2b(b"".join(self.events)).digest()

    async def __call__(self, exchange: Exchange) -> None:
        assert json.loads(exchange.seen.body)["stream"]
        self.calls += 1
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        await self.go.wait()
        began, size = time.perf_counter(), 0
        for said in self.events:
            await exchange.chunk(said)
            size += len(said)
            if self._rate and (ahead := began + size / self._rate - time.perf_counter()) > 0:
                await asyncio.sleep(ahead)
        await exchange.end()
        self.ended = time.perf_counter()
