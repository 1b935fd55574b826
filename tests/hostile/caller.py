"""A client that sends bytes as it is told and keeps every byte that comes, until the other side ends the connection."""

import asyncio
from typing import cast


class Caller(asyncio.Protocol):
    """One connection. `heard`: all that came; `ended`: the other side has closed or reset it."""

    def __init__(self) -> None:
        self.heard = b""
        self.ended = asyncio.Event()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def connection_lost(self, exc: BaseException | None) -> None:
        self.ended.set()


async def converse(
    port: int, data: bytes, *, bytewise: bool = False, leave: bool = False, seconds: float = 20
) -> bytes:
    """Send `data` at once or byte by byte, and what came until the other side ended the connection. `leave`: end the
    sending side after it."""
    loop = asyncio.get_running_loop()
    _, caller = await loop.create_connection(Caller, "127.0.0.1", port)
    transport = caller.transport
    assert transport is not None
    try:
        for piece in [data[i : i + 1] for i in range(len(data))] if bytewise else [data]:
            if transport.is_closing():
                break
            transport.write(piece)
            if bytewise:
                await asyncio.sleep(0)  # twice: once out, once in at the other end, which shares this loop
                await asyncio.sleep(0)
        if leave and not transport.is_closing():
            transport.write_eof()
        async with asyncio.timeout(seconds):
            await caller.ended.wait()
    except TimeoutError:
        raise AssertionError(f"the connection stays open; came {caller.heard[:300]!r}") from None
    finally:
        transport.abort()
    return caller.heard
