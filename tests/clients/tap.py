"""What passes between a client and the proxy, byte for byte."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.fakes.backend import bare


class Tap:
    """`url`: where the client asks; `seen`: all that the proxy has answered on any connection."""

    def __init__(self, port: int) -> None:
        self.url = ""
        self.seen = b""
        self._port = port

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_on(reader, forth))
                both.create_task(self._pass_on(back, writer, noted=True))
        finally:
            forth.close()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, noted: bool = False
    ) -> None:
        while data := await reader.read(65536):
            if noted:
                self.seen += data
            writer.write(data)
            await writer.drain()
        writer.write_eof()


@asynccontextmanager
async def tapped(port: int) -> AsyncIterator[Tap]:
    """A tap before what listens on `port`."""
    tap = Tap(port)
    async with bare(tap.serve) as tap.url:
        yield tap
