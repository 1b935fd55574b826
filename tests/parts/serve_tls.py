"""Ends TLS before a Unix socket: ``python -m tests.parts.serve_tls PORT SOCKET server|mutual`` (see tests/parts/redis.py).

``mutual``: only clients with a certificate of our authority. A server that is gone: the connection is closed.
"""

import asyncio
import contextlib
import ssl
import sys

from tests.parts import redis


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()
    writer.close()


async def serve(port: int, path: str, kind: str) -> None:
    made = redis.certificates()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=made.authority)
    context.load_cert_chain(made.server)
    if kind == "mutual":
        context.verify_mode = ssl.CERT_REQUIRED

    async def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_server, to_server = await asyncio.open_unix_connection(path)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pass(reader, to_server), _pass(from_server, writer))

    server = await asyncio.start_server(taken, "127.0.0.1", port, ssl=context)
    async with server:
        await server.serve_forever()


asyncio.run(serve(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
