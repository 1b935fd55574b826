"""A scriptable raw backend: counts calls, logs the exact bytes it got, and answers with the exact bytes it is told.

It speaks HTTP by hand, so that it can do what a real server will not do on demand.
"""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Seen:
    """One request as it came: request line, header lines in order, and the body (unchunked)."""

    line: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    raw: bytes
    chunked: bool = False
    connection: int = 0

    @property
    def target(self) -> bytes:
        return self.line.split(b" ")[1]

    @property
    def method(self) -> bytes:
        return self.line.split(b" ")[0]

    def get(self, name: bytes) -> bytes | None:
        return next((v for n, v in self.headers if n.lower() == name.lower()), None)

    def all(self, name: bytes) -> list[bytes]:
        return [v for n, v in self.headers if n.lower() == name.lower()]

    @property
    def json(self):
        return json.loads(self.body)


class Exchange:
    """What a script answers with."""

    def __init__(self, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen = seen
        self.reader = reader
        self.writer = writer
        self.close = False

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        await self.send(b"0\r\n\r\n")

    async def head(self, status: str = "200 OK", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status}"] + [f"{n.replace('_', '-')}: {v}" for n, v in headers.items()]
        await self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def json(self, document, status: str = "200 OK", extra: bytes = b"") -> None:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        await self.send(
            f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n".encode()
            + extra
            + b"\r\n"
            + body
        )

    async def events(self, *pieces: bytes, done: bool = True, extra: bytes = b"") -> None:
        await self.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n"
            + extra
            + b"\r\n"
        )
        for piece in pieces:
            await self.chunk(piece)
        if done:
            await self.chunk(b"data: [DONE]\n\n")
        await self.end()

    def cut(self) -> None:
        """Reset the connection now."""
        self.writer.transport.abort()
        self.close = True

    async def gone(self) -> None:
        """Wait until the other side closes."""
        while True:
            try:
                if not await self.reader.read(65536):
                    break
            except ConnectionError:
                break
        self.close = True


Script = Callable[[Exchange], Awaitable[None]]


def completion(text: str = "Hello.", **fields) -> dict:
    """A plain chat completion."""
    return {
        "id": "chatcmpl-abc123", "object": "chat.completion", "created": 1700000000, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
        **fields,
    }  # fmt: skip


def chunk(delta=None, finish=None, index: int = 0, **fields) -> bytes:
    """One event of a chat stream."""
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish}
    document = {
        "id": "chatcmpl-abc123", "object": "chat.completion.chunk", "created": 1700000000, "model": "m",
        "choices": [choice], **fields,
    }  # fmt: skip
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def usage_chunk(**fields) -> bytes:
    document = {
        "id": "chatcmpl-abc123", "object": "chat.completion.chunk", "created": 1700000000, "model": "m", "choices": [],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}, **fields,
    }  # fmt: skip
    return b"data: " + json.dumps(document).encode() + b"\n\n"


async def plain(exchange: Exchange) -> None:
    """What a healthy backend does: a completion, or a stream with its usage if asked."""
    if exchange.seen.target.split(b"?")[0] == b"/v1/models":
        await exchange.json({"object": "list", "data": [{"id": "m", "object": "model"}]})
        return
    body = exchange.seen.json if exchange.seen.body else {}
    if isinstance(body, dict) and body.get("stream"):
        pieces = [
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": "Hel"}),
            chunk({"content": "lo."}),
            chunk(finish="stop"),
        ]
        if (body.get("stream_options") or {}).get("include_usage"):
            pieces.append(usage_chunk())
        await exchange.events(*pieces)
    else:
        await exchange.json(completion())


@dataclass
class Backend:
    """The backend. `script` answers each request; `seen` is every request, `calls` those to a completions path."""

    script: Script = plain
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    port: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    errors: list[BaseException] = field(default_factory=list)
    _server: asyncio.Server | None = None
    _tasks: set = field(default_factory=set)

    @property
    def calls(self) -> int:
        return sum(1 for s in self.seen if b"completions" in s.target)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> "Backend":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=2**26)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        number = self.connections
        self._tasks.add(task := asyncio.current_task())
        try:
            while (seen := await self._read(reader, number)) is not None:
                self.seen.append(seen)
                self.arrived.set()
                exchange = Exchange(seen, reader, writer)
                await self.script(exchange)
                await writer.drain()
                if exchange.close:
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        except Exception as error:
            self.errors.append(error)
            raise
        finally:
            self.open -= 1
            self.left.set()
            self._tasks.discard(task)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, number: int) -> Seen | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        line, *rest = head[:-4].split(b"\r\n")
        headers = [(n, v.strip(b" \t")) for n, _, v in (item.partition(b":") for item in rest)]
        seen = Seen(line, headers, b"", head, connection=number)
        if (length := seen.get(b"content-length")) is not None:
            seen.body = await reader.readexactly(int(length))
        elif (seen.get(b"transfer-encoding") or b"").lower() == b"chunked":
            seen.chunked = True
            while size := int((await reader.readuntil(b"\n")).split(b";")[0], 16):
                seen.body += await reader.readexactly(size)
                await reader.readexactly(2)
            while (await reader.readline()) not in (b"\r\n", b""):
                continue
        seen.raw = head + seen.body
        return seen


def text_completion(*texts: str, **fields) -> dict:
    """A plain completion of the older operation, one choice a text."""
    return {
        "id": "cmpl-abc123", "object": "text_completion", "created": 1700000000, "model": "m",
        "choices": [{"index": i, "text": text, "logprobs": None, "finish_reason": "stop"} for i, text in enumerate(texts)],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
        **fields,
    }  # fmt: skip


def text_chunk(text: str = "", finish=None, **fields) -> bytes:
    """One event of a completion's stream."""
    document = {
        "id": "cmpl-abc123", "object": "text_completion", "created": 1700000000, "model": "m",
        "choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": finish}], **fields,
    }  # fmt: skip
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def event(document) -> bytes:
    """An event of one JSON document, characters beyond ASCII as they are."""
    return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"


class Numbered:
    """A script: healthy, and every answer says how many there were: ``answer 1``, ``answer 2``, …"""

    def __init__(self) -> None:
        self.given = 0

    async def __call__(self, exchange: Exchange) -> None:
        if b"completions" not in exchange.seen.target:
            await plain(exchange)
            return
        self.given += 1
        text = f"answer {self.given}"
        asked = exchange.seen.json if exchange.seen.body else {}
        count = (asked.get("n") if isinstance(asked, dict) else None) or 1
        chat = b"/chat/" in exchange.seen.target
        if isinstance(asked, dict) and asked.get("stream") is True:
            first = chunk({"role": "assistant", "content": text}) if chat else text_chunk(text)
            last = chunk(finish="stop") if chat else text_chunk(finish="stop")
            wants = (asked.get("stream_options") or {}).get("include_usage")
            await exchange.events(first, last, *([usage_chunk()] if wants else []))
        elif chat:
            document = completion(text)
            document["choices"] = [{**document["choices"][0], "index": i} for i in range(count)]
            await exchange.json(document)
        else:
            await exchange.json(text_completion(*[text] * count))


def sends(data: bytes, *, close: bool = False) -> Script:
    """A script that answers with these bytes, and then closes if told to."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(data)
        exchange.close = close

    return script


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection by a reset, which no framing can take for a clean end."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def gives(document, status: str = "200 OK", extra: bytes = b"") -> Script:
    """A script that answers with a JSON document (or raw bytes called JSON)."""

    async def script(exchange: Exchange) -> None:
        await exchange.json(document, status, extra)

    return script


def streams(*pieces: bytes, done: bool = True, extra: bytes = b"") -> Script:
    """A script that answers with a stream of these pieces."""

    async def script(exchange: Exchange) -> None:
        await exchange.events(*pieces, done=done, extra=extra)

    return script


@asynccontextmanager
async def bare(handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[str]:
    """A server that does nothing by itself, for what happens before a whole request has come; its URL."""
    tasks: set[asyncio.Task] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            await handle(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
