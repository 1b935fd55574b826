"""Clients that send or take too slowly lose their connection within the deadline, and nobody else notices; whoever
makes progress, or is quiet where nothing is awaited, keeps it."""

import asyncio
import json
from unittest import mock

import aiohttp
import pytest

from cacheproxy.errors import ConfigurationError
from cacheproxy.http.deadlines import AT_ONCE, Deadlines, Overdue, Watch
from cacheproxy.http.handlers import Proxy
from cacheproxy.settings import resolve
from tests import rig
from tests.fakes.backend import bare, chunk, completion, gives, plain, usage_chunk
from tests.hostile.crowd import (
    BOUND,
    GET,
    HEAD,
    SHORT,
    UPLOAD,
    connections,
    errors,
    flood,
    narrow,
    outlive,
    refused,
    rest,
    trickled,
)
from tests.proxy import wire

BODY = json.dumps(rig.BODY).encode()
ASK = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


@pytest.fixture
async def proxy(start) -> rig.InProcess:
    """A proxy with short deadlines."""
    return await start(**SHORT)


# --- heads -----------------------------------------------------------------------------------------------------------


async def test_slow_heads_end_and_good_clients_are_answered(proxy, client, backend):
    """A hundred heads a byte at a time; each is told 408 and closed, hits go on being served meanwhile."""
    assert (await client.chat()).cache == "MISS"
    crowd = [asyncio.create_task(trickled(proxy.port, HEAD, b"X-A: b\r\n")) for _ in range(100)]
    while not all(task.done() for task in crowd):
        assert (await client.chat()).cache == "HIT"
    for task in crowd:
        refused(await task)
    assert (errors(proxy), backend.calls) == (100, 1)
    await rig.until(lambda: len(connections(proxy)) == 1)


async def test_a_silent_connection_is_closed_without_a_word(proxy):
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await rest(reader) == (b"", False)
    assert errors(proxy) == 0
    writer.close()


async def test_behind_many_connections_none_is_forgotten(proxy, session):
    """All are looked at, though only some in one turn of the loop."""
    client = rig.Client(proxy.base, session)
    await asyncio.gather(*(client.send(method="GET", path=f"/v1/{n}") for n in range(AT_ONCE + 6)))
    assert len(connections(proxy)) == AT_ONCE + 6
    await outlive(proxy.port, 1)


async def test_slow_head_of_a_further_request(proxy):
    """On a kept connection the deadline runs from the first byte of the next request."""
    async with wire.dial(proxy.port) as caller:
        await caller.write(ASK)
        assert (await caller.whole()).status == 200
        await outlive(proxy.port)
        await caller.write(HEAD[:40])
        refused((await rest(caller.reader))[0])


@pytest.mark.parametrize("between", [b"", b"\r\n"])
async def test_an_idle_kept_connection_stays(proxy, between):
    """Nothing, or the empty line that some clients end a body with, begins no request."""
    async with wire.dial(proxy.port) as caller:
        for _ in range(2):
            await caller.write(ASK)
            assert (await caller.whole()).status == 200
            await caller.write(between)
            await outlive(proxy.port)
    assert errors(proxy) == 0


# --- bodies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("already", [1, 60_000], ids=["from the first byte", "after many"])
async def test_silent_body_of_a_cacheable_request(proxy, backend, already):
    """Bytes that came fast earn no patience for a silence."""
    async with wire.dial(proxy.port) as caller:
        await caller.write(HEAD + b"Content-Length: 90000\r\n\r\n" + b"{" * already)
        refused((await rest(caller.reader))[0])
    assert backend.connections == 0
    await rig.until(lambda: proxy.house.proxy.running == 0)


async def test_slow_body_of_a_cacheable_request(proxy, backend):
    """A body that comes at less than 1 KiB a second ends in 408; the backend hears nothing."""
    head = HEAD + b"Content-Length: 5000\r\n\r\n{"
    for got in await asyncio.gather(*(trickled(proxy.port, head, b" ") for _ in range(20))):
        refused(got)
    assert (backend.connections, proxy.house.store.census().entries) == (0, 0)
    await rig.until(lambda: proxy.house.proxy.running == 0)


async def test_slow_upload_ends_the_backends_call(proxy, backend):
    """The backend never takes the body for whole, and sees its connection end."""
    got = asyncio.create_task(trickled(proxy.port, UPLOAD, b"1\r\nx\r\n"))
    await rig.until(lambda: backend.connections == 1)
    refused(await got)
    await rig.until(lambda: backend.open == 0 and proxy.house.proxy.running == 0)
    assert backend.seen == []


async def test_chunks_without_content_are_no_progress(proxy):
    """Bytes of an endless chunk extension are no bytes of the body."""
    refused(await trickled(proxy.port, UPLOAD + b"1;", b"a" * 1000))


async def test_a_slow_body_after_the_answer_has_begun_is_cut(proxy, backend):
    """No second answer is written into the first."""

    async def early(reader, writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n")
        await reader.read()
        while await reader.read(1000):
            pass

    async with bare(early) as url:
        proxy.house.backends._upstreams[0].port = int(url.rsplit(":", 1)[1])
        async with wire.dial(proxy.port) as caller:
            await caller.write(UPLOAD + b"5\r\nhello\r\n")
            got, was_reset = await rest(caller.reader)
    assert was_reset and got.endswith(b"\r\n\r\n2\r\nhi\r\n") and got.count(b"HTTP/1.1") == 1
    assert errors(proxy) == 0


async def test_a_slow_upload_that_makes_progress_survives(proxy, backend):
    """Longer than the deadline, in many small pieces, every pause shorter than it."""
    backend.script = gives({"object": "file"})
    async with wire.dial(proxy.port) as caller:
        await caller.write(UPLOAD)
        passing, sent = asyncio.create_task(outlive(proxy.port)), 0
        while not passing.done():
            await caller.write(b"400\r\n" + b"y" * 1024 + b"\r\n")
            sent += 1024
            await asyncio.sleep(0.02)
        await caller.write(b"0\r\n\r\n")
        assert (await caller.whole()).status == 200
    assert len(backend.seen[0].body) == sent


async def test_the_clock_of_a_body_stands_while_the_backend_does_not_take_it(start):
    """The client sends what it can; that nothing moves is the backend's doing."""
    size, go_on = 24 * 2**20, asyncio.Event()

    async def late(reader, writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await go_on.wait()
        await reader.readexactly(size)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with bare(late) as url:
        proxy = await start(upstream=url, **SHORT)
        async with wire.dial(proxy.port) as caller:
            await caller.write(b"PUT /files HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
            sending = asyncio.create_task(caller.write(bytes(size)))
            await rig.until(lambda: any(c._watch._payload is not None for c in connections(proxy)))
            await rig.until(lambda: not any(c.transport.is_reading() for c in connections(proxy)))
            await outlive(proxy.port)
            go_on.set()
            await sending
            assert (await caller.whole()).body == b"ok"


# --- answers ---------------------------------------------------------------------------------------------------------


async def test_clients_that_do_not_read_are_cut_off(proxy, backend):
    """Twenty clients of an endless answer; buffers stay small, each connection and backend call ends."""
    go_on, held = asyncio.Event(), 0

    async def together(exchange) -> None:
        await go_on.wait()
        await flood(exchange)

    backend.script = together
    crowd = [await narrow(proxy.port, GET) for _ in range(20)]
    await rig.until(lambda: backend.open == 20)
    go_on.set()

    def ended() -> bool:
        nonlocal held
        held = max([held, *(c._watch.transport.get_write_buffer_size() for c in connections(proxy))])
        return backend.open == 0 and proxy.house.proxy.running == 0 and not connections(proxy)

    await rig.until(ended, BOUND)
    assert 0 < held < 2**20
    for sock in crowd:
        sock.close()


async def test_a_client_that_does_not_read_a_hit_is_cut_off(proxy, backend, client):
    """And as long as it is not, what waits for it is a small part of a large answer."""
    held = 0

    async def large(exchange) -> None:
        await exchange.json(completion("x" * 8 * 2**20))

    backend.script = large
    assert (await client.chat()).status == 200
    sock = await narrow(proxy.port, ASK)
    await rig.until(lambda: proxy.house.proxy.running == 1)

    def ended() -> bool:
        nonlocal held
        held = max([held, *(c._watch.transport.get_write_buffer_size() for c in connections(proxy))])
        return proxy.house.proxy.running == 0

    await rig.until(ended, BOUND)
    assert 0 < held < 2**20
    await rig.until(lambda: len(connections(proxy)) == 1)
    assert backend.calls == 1
    sock.close()


async def test_a_client_that_reads_slowly_but_steadily_survives(proxy, backend):
    backend.script = flood
    sock = await narrow(proxy.port, GET)
    loop, passing = asyncio.get_running_loop(), asyncio.create_task(outlive(proxy.port))
    while not passing.done():
        assert await loop.sock_recv(sock, 1024)
        await asyncio.sleep(0.01)
    assert backend.open == 1
    sock.close()


async def test_a_quiet_live_stream_survives(proxy, backend, client):
    """A backend that thinks is no client that does not read."""
    go_on = asyncio.Event()

    async def thinking(exchange) -> None:
        if b"completions" not in exchange.seen.target:
            await plain(exchange)
            return
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        await exchange.chunk(chunk({"content": "a"}))
        await go_on.wait()
        for piece in (chunk({"content": "b"}), chunk(finish="stop"), usage_chunk(), b"data: [DONE]\n\n"):
            await exchange.chunk(piece)
        await exchange.end()

    backend.script = thinking
    asking = asyncio.create_task(client.chat(stream=True))
    await rig.until(lambda: proxy.house.engine.budget.held > 0)
    await outlive(proxy.port)
    go_on.set()
    assert (await asking).text == "ab"


async def test_a_tunnel_has_no_deadline(proxy, backend):
    """Neither its silence nor its fullness."""
    many = 32 * 2**20

    async def accept(exchange) -> None:
        await exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        assert await exchange.reader.readexactly(5) == b"hello"
        exchange.writer.write(bytes(many))
        await exchange.writer.drain()
        await exchange.gone()

    backend.script = accept
    lines = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n"
    async with wire.dial(proxy.port) as caller:
        await caller.write(b"GET /v1/realtime HTTP/1.1\r\nHost: x\r\n" + lines)
        assert (await caller.head()).status == 101
        await outlive(proxy.port)
        caller.writer.transport.pause_reading()
        await caller.write(b"hello")
        await rig.until(lambda: any(c._watch.transport.get_write_buffer_size() for c in connections(proxy)))
        await outlive(proxy.port)
        caller.writer.transport.resume_reading()
        assert len(await caller.reader.readexactly(many)) == many


# --- beside ----------------------------------------------------------------------------------------------------------


async def test_every_loop_keeps_the_deadlines(spawn, backend, session):
    """A proxy as it is started, on uvloop where that is installed."""
    process = await spawn("--data-dir", "none", **{f"CACHEPROXY_{n.upper()}": v for n, v in SHORT.items()})
    client = rig.Client(process.base, session)
    assert (await client.chat()).status == 200
    refused(await trickled(process.port, HEAD, b"X-A: b\r\n"))
    refused(await trickled(process.port, HEAD + b"Content-Length: 5000\r\n\r\n{", b" "))
    await outlive(process.port)
    backend.script = flood
    sock = await narrow(process.port, GET)
    await rig.until(lambda: backend.seen[-1].target == b"/big")
    await rig.until(lambda: backend.open == 0, BOUND)
    sock.close()
    assert (await client.chat()).cache == "HIT"


async def test_no_connection_no_timer(proxy, client, session):
    sweep = proxy.running._server._sweep
    assert sweep._timer is None
    await client.chat()
    assert sweep._timer is not None
    await session.close()
    await rig.until(lambda: sweep._timer is None)


async def test_an_answer_that_fails_has_no_second_one_in_it(proxy, backend, monkeypatch, caplog):
    """Whatever breaks while an answer is written: its framing shows the cut."""

    async def broken(self, request, body, *, chunked) -> None:
        request.transport.write(b"3\r\nabc\r\n")
        raise RuntimeError("SECRET-77")

    async def slow(exchange) -> None:
        await exchange.head(Transfer_Encoding="chunked")
        await exchange.chunk(b"abc")
        await exchange.gone()

    monkeypatch.setattr(Proxy, "_relay", broken)
    backend.script = slow
    got = await rig.raw(proxy.port, b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
    assert got.endswith(b"\r\n\r\n3\r\nabc\r\n") and got.count(b"HTTP/1.1") == 1
    assert "an answer failed inside the proxy: " in caplog.text
    assert "RuntimeError" in caplog.text
    assert not any(word in caplog.text for word in ("SECRET-77", "Traceback"))


class Transport:
    """A transport of which the kernel tells nothing, and a clock, both set by hand."""

    def __init__(self) -> None:
        self.now, self.buffered, self.closing, self.protocol = 0.0, 0, False, object()
        self.watch = Watch(self, self.protocol, lambda: self.now)

    def at(self, now: float, buffered: int = 0) -> Overdue | None:
        self.now, self.buffered = now, buffered
        return self.watch.judge(now, Deadlines(10, 10, 10))

    def begin(self) -> aiohttp.StreamReader:
        payload = aiohttp.StreamReader(mock.Mock(), 2**16, loop=mock.Mock())
        self.watch.begin(payload, mock.Mock(output_size=0), last=False, upgrade=False)
        return payload

    def get_protocol(self) -> object:
        return self.protocol

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def get_extra_info(self, name: str) -> None:
        return None

    def is_closing(self) -> bool:
        return self.closing

    def is_reading(self) -> bool:
        return True


def test_what_waits_in_a_closing_connection_is_waited_for_no_longer_than_else():
    transport = Transport()
    transport.closing = True
    assert [transport.at(now, 5) for now in (0, 5, 9, 10)] == [None, None, None, Overdue.WRITE]


def test_a_buffer_that_was_empty_in_between_starts_anew():
    transport = Transport()
    transport.begin().feed_eof()
    assert [transport.at(*look) for look in ((0, 5), (6, 0), (9, 5), (18, 5))] == [None] * 4
    assert transport.at(19, 5) is Overdue.WRITE


def test_a_buffer_that_grows_is_no_progress_and_one_that_shrinks_is():
    transport = Transport()
    transport.begin().feed_eof()
    assert [transport.at(*look) for look in ((0, 5), (6, 4), (10, 6), (15, 7))] == [None] * 4
    assert transport.at(16, 8) is Overdue.WRITE


def test_the_rest_of_a_body_that_was_answered_early_begins_no_head():
    transport = Transport()
    payload = transport.begin()
    transport.watch.end()
    transport.watch.hear(b"rest of the body")
    assert transport.at(20) is None
    payload.feed_eof()
    assert transport.at(40) is None
    transport.watch.hear(b"GET")
    assert [transport.at(49), transport.at(50)] == [None, Overdue.HEAD]


@pytest.mark.parametrize(
    ("deadlines", "interval"), [((10, 30, 60), 0.5), ((0.5, 30, 60), 0.125), ((10, 30, 1), 0.25), ((9, 0.01, 9), 0.02)]
)
def test_the_shortest_deadline_says_how_often_it_is_looked_at(deadlines, interval):
    assert Deadlines(*deadlines).interval == interval


@pytest.mark.parametrize("name", ["header_timeout", "body_timeout", "write_timeout"])
def test_a_deadline_of_0_is_refused(name):
    with pytest.raises(ConfigurationError, match=f"`limits.{name}`"):
        resolve({"upstreams": ["http://b"], f"limits.{name}": 0}, None, {})
