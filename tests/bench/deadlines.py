"""A crowd of slow clients at the default deadlines, and one good client beside them: ``python -m tests.bench.deadlines``.

1,000 heads a byte a second, 200 bodies a byte a second, 100 clients of an endless answer that never read. Told: when
each kind was over (by its first and last connection), what the good client waited, and how the proxy's memory grew.
"""

import argparse
import array
import asyncio
import fcntl
import json
import resource
import socket
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import aiohttp
import psutil

from tests import rig
from tests.fakes.backend import Backend, plain
from tests.hostile.crowd import GET, HEAD, flood, narrow


async def _slow(port: int, start: bytes, byte: bytes) -> float:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = time.monotonic()
    writer.write(start)

    async def trickle() -> None:
        while True:
            await asyncio.sleep(1)
            writer.write(byte)

    sending = asyncio.create_task(trickle())
    try:
        while await reader.read(4096):
            pass
    except ConnectionError:
        pass
    sending.cancel()
    writer.close()
    return time.monotonic() - began


async def _unread(port: int) -> float:
    """From the last byte that its system took to its end."""
    sock = await narrow(port, GET)
    unread, last = array.array("i", [0]), time.monotonic()
    while sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == 1:  # established
        before = unread[0]
        fcntl.ioctl(sock, termios.FIONREAD, unread)
        last = time.monotonic() if unread[0] != before else last
        await asyncio.sleep(0.05)
    sock.close()
    return time.monotonic() - last


KINDS = {
    "heads": (1000, lambda port: _slow(port, b"GET /", b"a")),
    "bodies": (200, lambda port: _slow(port, HEAD + b"Content-Length: 5000\r\n\r\n{", b" ")),
    "answers": (100, _unread),
}


async def crowd(kind: str, port: int) -> None:
    """Be the crowd of one kind; prints when its first and its last connection was over."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    count, client = KINDS[kind]
    tasks = []
    for _ in range(count):
        tasks.append(asyncio.create_task(client(port)))
        await asyncio.sleep(0.001)
    ends = sorted(await asyncio.gather(*tasks))
    print(json.dumps({"kind": kind, "count": count, "first": round(ends[0], 2), "last": round(ends[-1], 2)}))


async def _backend() -> None:
    async def script(exchange) -> None:
        await (flood(exchange) if exchange.seen.target == b"/big" else plain(exchange))

    backend = await Backend(script=script).start()
    print(backend.port, flush=True)
    while True:
        await asyncio.sleep(1)
        print(backend.open, flush=True)


def _part(*arguments: object, **options) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-m", "tests.bench.deadlines", *map(str, arguments)], text=True, **options)


async def main(kinds: list[str]) -> None:
    """Run it all."""
    with tempfile.TemporaryDirectory() as place:
        backend = _part("backend", stdout=subprocess.PIPE)
        port = int(backend.stdout.readline())
        proxy = await rig.spawn(f"http://127.0.0.1:{port}", Path(place) / "log", "--data-dir", "none")
        try:
            await _measure(kinds, proxy, backend)
        finally:
            proxy.kill()
            backend.kill()
            backend.wait()
            backend.stdout.close()


async def _measure(kinds: list[str], proxy: rig.Process, backend: subprocess.Popen) -> None:
    memory, waits, grown = psutil.Process(proxy.process.pid), [], 0
    async with aiohttp.ClientSession() as session:
        client = rig.Client(proxy.base, session)
        for _ in range(200):
            await client.chat()
        before = memory.memory_info().rss
        start = time.perf_counter()
        crowds = [_part("crowd", kind, proxy.port) for kind in kinds]
        while any(c.poll() is None for c in crowds):
            began = time.perf_counter()
            assert (await client.chat()).cache == "HIT"
            waits.append(((time.perf_counter() - began) * 1000, round(began - start, 1)))
            grown = max(grown, memory.memory_info().rss - before)
            await asyncio.sleep(0.005)
        for _ in range(1000):
            line = await asyncio.to_thread(backend.stdout.readline)
            if int(line) <= 1:
                break
    waits.sort()
    found = {name: round(waits[int(len(waits) * share)][0], 2) for name, share in (("p50", 0.5), ("p99", 0.99))}
    print(json.dumps({"hits": len(waits), **found, "grown_mib": round(grown / 2**20, 1)}))
    print(json.dumps({"longest_ms_and_second": [(round(wait, 1), second) for wait, second in waits[-5:]]}))
    print(json.dumps({"backend_connections_left": int(line)}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", default="all", choices=["all", "backend", "crowd"])
    parser.add_argument("rest", nargs="*")
    given = parser.parse_args()
    if given.part == "backend":
        asyncio.run(_backend())
    elif given.part == "crowd":
        asyncio.run(crowd(given.rest[0], int(given.rest[1])))
    else:
        asyncio.run(main(given.rest or list(KINDS)))
