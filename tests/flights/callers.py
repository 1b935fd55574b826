"""Callers by the thousand: bare sockets that keep every byte, and know whether an answer came to its proper end."""

import asyncio
import json
import socket
import struct
from typing import Any

from tests.rig import BODY, CHAT


class Caller(asyncio.Protocol):
    """One request on a connection of its own."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._got = bytearray()
        self._changed = asyncio.Event()
        self.over = False
        """The other side has closed."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._got += data
        self._changed.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.over = True
        self._changed.set()

    @property
    def head(self) -> bytes:
        return bytes(self._got).partition(b"\r\n\r\n")[0]

    @property
    def status(self) -> int:
        return int(self.head.split(b" ")[1])

    def field(self, name: str) -> str | None:
        for line in self.head.split(b"\r\n")[1:]:
            field, _, value = line.partition(b": ")
            if field.lower() == name.encode():
                return value.decode()
        return None

    @property
    def body(self) -> bytes:
        """What has come of the body, framing undone."""
        return self._read()[0]

    @property
    def whole(self) -> bool:
        """The framing has said that this is all."""
        return self._read()[1]

    def _read(self) -> tuple[bytes, bool]:
        head, _, rest = bytes(self._got).partition(b"\r\n\r\n")
        lower = head.lower()
        if b"\r\ncontent-length:" in lower:
            length = int(lower.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
            return rest, len(rest) == length
        body, at = bytearray(), 0
        while (end := rest.find(b"\r\n", at)) >= 0:
            size = int(rest[at:end], 16)
            if size == 0:
                return bytes(body), rest[end:] == b"\r\n\r\n"
            body += rest[end + 2 : end + 2 + size]
            at = end + 2 + size + 2
        return bytes(body), False

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    async def until(self, met, seconds: float = 20.0) -> None:
        """Wait until `met()`, which is asked when something has come."""
        async with asyncio.timeout(seconds):
            while not met():
                self._changed.clear()
                await self._changed.wait()

    async def end(self, seconds: float = 30.0) -> "Caller":
        """Wait until the answer is whole or the connection is closed."""
        await self.until(lambda: self.over or (self._got.endswith((b"0\r\n\r\n", b"}")) and self.whole), seconds)
        return self

    async def events(self, count: int) -> list[bytes]:
        """Wait for so many events; all that are there, comments left out."""
        await self.until(lambda: len(split(self.body)) >= count or self.over)
        return split(self.body)

    def close(self) -> None:
        """Close the connection, as a program that has read what came and wants no more."""
        self.transport.close()

    def leave(self) -> None:
        """Reset the connection."""
        if not self.over and (connection := self.transport.get_extra_info("socket")) is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


def split(body: bytes) -> list[bytes]:
    """The events of a body with LF line ends, comments left out."""
    return [block + b"\n\n" for block in body.split(b"\n\n")[:-1] if not block.startswith(b":")]


def request(body: dict[str, Any], *, key: str = "A", path: str = CHAT, **headers: str) -> bytes:
    """The bytes of a request; header names with `_` for `-`."""
    data = json.dumps(body).encode()
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()]
    return (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n{''.join(lines)}\r\n".encode()
        + data
    )


class Street:
    """Where the callers of one proxy come from; all are gone at its end."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.callers: list[Caller] = []

    async def call(
        self,
        *,
        key: str = "A",
        path: str = CHAT,
        headers: dict[str, str] | None = None,
        body: Any = None,
        **fields: Any,
    ) -> Caller:
        """Ask `body`, or `rig.BODY`, with `fields` changed."""
        asked = request({**(body or BODY), **fields}, key=key, path=path, **(headers or {}))
        loop = asyncio.get_running_loop()
        _, caller = await loop.create_connection(lambda: Caller(asked), "127.0.0.1", self._port)
        self.callers.append(caller)
        return caller

    async def stream(self, **fields: Any) -> Caller:
        """Ask for it as a stream."""
        return await self.call(stream=True, **fields)

    async def crowd(self, count: int, **fields: Any) -> list[Caller]:
        """`count` who ask the same, in steps that the queue of a listener can take."""
        found: list[Caller] = []
        while len(found) < count:
            some = min(100, count - len(found))
            found += await asyncio.gather(*(self.call(**fields) for _ in range(some)))
        return found

    def close(self) -> None:
        for caller in self.callers:
            caller.leave()
