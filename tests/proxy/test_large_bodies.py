"""Large bodies: what is not cached streams through in little memory, what is cached arrives whole up to its limit."""

import asyncio
import hashlib
import json

import psutil
import pytest

from tests import rig
from tests.fakes.backend import Numbered, bare, completion, gives
from tests.proxy import wire

MIB = 2**20
SIZE = 100 * MIB
PIECE = bytes(range(256)) * 256


class Watch:
    """The resident memory of a process: how far it has grown at most."""

    def __init__(self, process: rig.Process) -> None:
        self._process = psutil.Process(process.process.pid)
        self._before = self._process.memory_info().rss
        self.grown = 0

    def look(self) -> None:
        self.grown = max(self.grown, self._process.memory_info().rss - self._before)


async def warm(process: rig.Process) -> Watch:
    """After a first megabyte each way, so that what is loaded once is not counted."""
    await wire.ask(process.port, wire.request(b"a" * MIB, method="PUT", path="/warm"))
    return Watch(process)


async def upload(process: rig.Process, framing: bytes, watch: Watch, go_on: asyncio.Event) -> None:
    """Send 100 MB; `go_on` is set once nothing more can be sent because nobody reads."""
    chunked, sent = b"chunked" in framing, 0
    async with wire.dial(process.port) as caller:
        await caller.write(b"PUT /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + framing + b"\r\n\r\n")

        async def send() -> None:
            nonlocal sent
            while sent < SIZE:
                await caller.write(b"10000\r\n" + PIECE + b"\r\n" if chunked else PIECE)
                sent += len(PIECE)
                if sent % MIB == 0:
                    watch.look()
            await caller.write(b"0\r\n\r\n" if chunked else b"")

        sending = asyncio.create_task(send())
        stood = -1
        while stood != sent or not sent:  # until it stands still
            stood = sent
            await asyncio.sleep(0.1)
        watch.look()
        assert sent < 30 * MIB
        go_on.set()
        await sending
        assert (await caller.whole()).status == 200
    watch.look()


@pytest.mark.parametrize("framing", [b"Content-Length: %d" % SIZE, b"Transfer-Encoding: chunked"])
async def test_upload_streams_in_flat_memory(tmp_path, framing):
    """100 MB to a backend that does not read for a while, then does: every byte arrives, growth below 40 MB."""
    go_on, digest, taken = asyncio.Event(), hashlib.sha256(), 0
    chunked = b"chunked" in framing

    async def handle(reader, writer) -> None:
        nonlocal taken
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"PUT /warm"):
            await reader.readexactly(MIB)
        else:
            assert framing.lower() in head.lower()
            await go_on.wait()
            while taken < SIZE:
                size = int(await reader.readuntil(b"\r\n"), 16) if chunked else min(65536, SIZE - taken)
                data = await reader.readexactly(size + 2 * chunked)
                digest.update(data[:size])
                taken += size
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async with bare(handle) as url:
        process = await rig.spawn(url, tmp_path / "log", "--data-dir", "none")
        try:
            watch = await warm(process)
            await upload(process, framing, watch, go_on)
        finally:
            process.kill()
    assert digest.hexdigest() == hashlib.sha256(PIECE * (SIZE // len(PIECE))).hexdigest()
    assert watch.grown < 40e6, f"grew by {watch.grown / 1e6:.0f} MB"


@pytest.mark.parametrize("path", ["/v1/x", rig.CHAT])
async def test_download_streams_in_flat_memory(spawn, backend, path):
    """100 MB to a caller that reads slower than the backend writes; too long to be kept on a cached path."""

    async def flood(exchange) -> None:
        if exchange.seen.target == b"/warm":
            await gives({})(exchange)
            return
        await exchange.head(Content_Type="application/json", Content_Length=str(SIZE))
        for _ in range(SIZE // len(PIECE)):
            await exchange.send(PIECE)

    backend.script = flood
    process = await spawn("--data-dir", "none")
    watch = await warm(process)
    digest, taken = hashlib.sha256(), 0
    async with wire.dial(process.port) as caller:
        await caller.write(wire.request({}, path=path))
        assert (await caller.head()).get(b"content-length") == b"%d" % SIZE
        while taken < SIZE:
            data = await caller.reader.read(65536)
            assert data
            digest.update(data)
            taken += len(data)
            if taken % 16 == 0:
                watch.look()
    watch.look()
    assert digest.hexdigest() == hashlib.sha256(PIECE * (SIZE // len(PIECE))).hexdigest()
    assert watch.grown < 40e6, f"grew by {watch.grown / 1e6:.0f} MB"


def long_chat(size: int) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": "y" * size}]}).encode()


@pytest.mark.parametrize("size", [3 * MIB // 2, 40 * MIB])
async def test_long_chats_arrive_whole(proxy, backend, size):
    """B45: no limit of 1 MiB stands in the way of a long chat; and it is kept like any other."""
    backend.script = Numbered()
    body = long_chat(size)
    for expected in (b"MISS", b"HIT"):
        answer = await wire.ask(proxy.port, wire.request(body))
        assert (answer.status, answer.get(b"x-cache")) == (200, expected)
    assert [s.body == body for s in backend.seen] == [True]


def in_chunks(body: bytes) -> bytes:
    head = wire.request(None, b"Transfer-Encoding: chunked", close=False)
    parts = [body[i : i + 60_000] for i in range(0, len(body), 60_000)]
    return head + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("make", [lambda body: wire.request(body, close=False), in_chunks])
async def test_body_over_the_limit(start, backend, make):
    """B45: an OpenAI-shaped 413, read by a caller that sends all of it first; the next one is answered."""
    proxy = await start(limits__body_bytes="1MiB")
    for size in (MIB, 8 * MIB):
        async with wire.dial(proxy.port) as caller:
            await caller.write(make(long_chat(size)))
            answer = await caller.whole()
        assert answer.status == 413
        error = json.loads(answer.body)["error"]
        assert (error["code"], error["type"]) == ("request_too_large", "invalid_request_error")
    assert backend.seen == []
    assert (
        await wire.ask(proxy.port, make(long_chat(MIB - 1000)).replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
    ).status == 200


async def test_answer_over_the_limit_passes_and_is_not_kept(start, backend):
    """Also where its length is not known before."""
    proxy = await start(limits__answer_bytes=10_000)
    document = completion("z" * 20_000)

    async def chunked(exchange) -> None:
        body = json.dumps(document).encode()
        await exchange.head(Content_Type="application/json", Transfer_Encoding="chunked")
        await exchange.chunk(body[:15_000])
        await exchange.chunk(body[15_000:])
        await exchange.end()

    for script in (gives(document), chunked):
        backend.script = script
        for _ in range(2):
            answer = await wire.ask(proxy.port, wire.request(long_chat(10)))
            assert (answer.get(b"x-cache"), answer.get(b"x-cache-reason")) == (b"MISS", b"too_large")
            assert json.loads(answer.body) == document
    assert (proxy.house.store.census().entries, proxy.house.engine.budget.held) == (0, 0)
