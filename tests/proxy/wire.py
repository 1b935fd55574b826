"""Answers and requests byte for byte: what a client library would tidy up is seen as it is."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.rig import CHAT, raw


@dataclass
class Wire:
    """An answer as it stood on the wire, its chunks joined.

    `whole`: its own framing was seen to its end; `trailers`: the lines after the last chunk; `rest`: what came after.
    """

    line: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    whole: bool = False
    trailers: bytes = b""
    rest: bytes = b""

    @property
    def status(self) -> int:
        return int(self.line.split(b" ")[1])

    def get(self, name: bytes) -> bytes | None:
        return next((v for n, v in self.headers if n.lower() == name.lower()), None)

    def all(self, name: bytes) -> list[bytes]:
        return [v for n, v in self.headers if n.lower() == name.lower()]


def wire_head(data: bytes) -> Wire:
    """The status line and the header lines, byte for byte."""
    line, *lines = data.removesuffix(b"\r\n\r\n").split(b"\r\n")
    return Wire(line, [(n, v.removeprefix(b" ")) for n, _, v in (item.partition(b":") for item in lines)])


def wire(data: bytes, *, bodyless: bool = False) -> Wire:
    """Read the first answer in `data`, which ends where the connection did."""
    head, mark, rest = data.partition(b"\r\n\r\n")
    if not mark:
        raise AssertionError(f"no head: {data[:200]!r}")
    answer = wire_head(head)
    if bodyless:
        answer.whole, answer.rest = True, rest
    elif answer.get(b"transfer-encoding") == b"chunked":
        _unchunk(answer, rest)
    elif (length := answer.get(b"content-length")) is not None:
        answer.body, answer.rest = rest[: int(length)], rest[int(length) :]
        answer.whole = len(answer.body) == int(length)
    else:
        answer.body, answer.whole = rest, True
    return answer


def _unchunk(answer: Wire, data: bytes) -> None:
    while mark := re.match(rb"([0-9a-fA-F]+)\r\n", data):
        size, data = int(mark.group(1), 16), data[mark.end() :]
        if size == 0:
            end = b"\r\n" if data[:2] == b"\r\n" else b"\r\n\r\n"
            answer.trailers, ended, answer.rest = data.partition(end)
            answer.whole = bool(ended)
            return
        answer.body += data[:size]
        data = data[size + 2 :]


def request(
    body: Any = None, *lines: bytes, method: str = "POST", path: str = CHAT, key: str | None = "A", close: bool = True
) -> bytes:
    """The bytes of a request to the proxy; `lines` are more header lines, without their ends."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    head = [f"{method} {path} HTTP/1.1".encode(), b"Host: proxy.example"]
    head += [b"Authorization: Bearer " + key.encode()] if key is not None else []
    head += [b"Content-Type: application/json", b"Content-Length: %d" % len(data)] if body is not None else []
    head += [*lines, *([b"Connection: close"] if close else [])]
    return b"\r\n".join(head) + b"\r\n\r\n" + data


class Caller:
    """A connection to the proxy, written and read by hand: what has come is seen at once."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> Wire:
        """The next head."""
        return wire_head(await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 30))

    async def chunk(self) -> bytes:
        """The next chunk of a chunked body, empty at its end; `IncompleteReadError` where it is cut."""
        size = int(await asyncio.wait_for(self.reader.readuntil(b"\r\n"), 30), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def whole(self) -> Wire:
        """The next answer, its body framed by length or chunks."""
        answer = await self.head()
        if answer.get(b"transfer-encoding") == b"chunked":
            while data := await self.chunk():
                answer.body += data
        else:
            answer.body = await asyncio.wait_for(self.reader.readexactly(int(answer.get(b"content-length") or 0)), 30)
        answer.whole = True
        return answer


@asynccontextmanager
async def dial(port: int) -> AsyncIterator[Caller]:
    """A new connection to the proxy."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    try:
        yield Caller(reader, writer)
    finally:
        writer.close()


async def ask(port: int, data: bytes, *, bodyless: bool = False) -> Wire:
    """The answer to a request of which the answer ends the connection."""
    return wire(await raw(port, data), bodyless=bodyless)
