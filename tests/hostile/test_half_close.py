"""A client that ends its sending and waits is answered; one that keeps connections and then takes nothing has left, and
so has whoever is really gone."""

import asyncio
import json
import socket

import pytest

from cacheproxy.http import listen
from tests import rig
from tests.fakes.backend import chunk, plain, reset
from tests.hostile.crowd import BOUND, SHORT, connections, rest
from tests.proxy import wire

WAYS = {
    "close": (b"HTTP/1.1", b"Connection: close\r\n"),
    "1.0": (b"HTTP/1.0", b""),
    "kept": (b"HTTP/1.1", b""),
}


def ask(way: str | None, *, stream: bool = False) -> bytes:
    """A request that states its end in `way`; None for a connection to be kept."""
    version, line = WAYS[way] if way else (b"HTTP/1.1", b"")
    body = json.dumps({**rig.BODY, "stream": stream}).encode()
    head = b"POST /v1/chat/completions " + version + b"\r\nHost: x\r\nAuthorization: Bearer A\r\n" + line
    return head + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def half_closed(proxy: rig.InProcess) -> bool:
    return any(c._watch._half_closed for c in connections(proxy))


class Gate:
    """A script that answers when told to."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, exchange) -> None:
        gone = asyncio.create_task(exchange.gone())
        opened = asyncio.create_task(self.open.wait())
        await asyncio.wait([gone, opened], return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        opened.cancel()
        await asyncio.gather(gone, opened, return_exceptions=True)
        if not exchange.close:
            await plain(exchange)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", WAYS)
async def test_the_whole_answer_comes_miss_and_hit(proxy, backend, way, stream):
    """The backend answers only after the end of sending was seen; the hit's request and its end come as one."""
    backend.script = gate = Gate()
    async with wire.dial(proxy.port) as caller:
        await caller.write(ask(way, stream=stream))
        caller.writer.write_eof()
        await rig.until(lambda: half_closed(proxy))
        gate.open.set()
        miss = wire.wire((await rest(caller.reader))[0])
    async with wire.dial(proxy.port) as caller:
        caller.writer.write(ask(way, stream=stream))
        caller.writer.write_eof()
        hit = wire.wire((await rest(caller.reader))[0])
    assert [(a.status, a.whole, a.get(b"x-cache")) for a in (miss, hit)] == [(200, True, b"MISS"), (200, True, b"HIT")]
    assert backend.calls == 1
    await rig.until(lambda: connections(proxy) == [])


async def test_a_request_and_the_end_in_one_turn_of_the_loop(proxy):
    """As it happens on loops that read a socket more than once in a turn: the handler has not started yet."""
    async with wire.dial(proxy.port) as caller:
        await rig.until(lambda: connections(proxy))
        connections(proxy)[0].data_received(ask("close"))
        assert connections(proxy)[0].eof_received()
        assert wire.wire((await rest(caller.reader))[0]).status == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_keeps_connections_and_takes_nothing_has_left(proxy, backend, stream):
    """B61: the end of the backend's call."""
    backend.script = Gate()
    async with wire.dial(proxy.port) as caller:
        await caller.write(ask(None, stream=stream))
        await rig.until(lambda: backend.calls == 1)
        caller.writer.write_eof()
        await rig.until(lambda: backend.open == 0 and proxy.house.proxy.running == 0)
        assert await rest(caller.reader) == (b"", False)
    assert proxy.house.store.census().entries == 0


async def test_a_client_that_keeps_connections_and_takes_what_comes_is_there(proxy, backend, monkeypatch):
    """What it takes after the end of its sending shows that it has not left: then a stream may be quiet again."""
    judged = asyncio.Event()
    silence = listen._Connection._judge_silence
    monkeypatch.setattr(listen, "HALF_CLOSED", 0.2)
    monkeypatch.setattr(listen._Connection, "_judge_silence", lambda self: (silence(self), judged.set()))

    async def quiet_between(exchange) -> None:
        await rig.until(lambda: half_closed(proxy))
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        await exchange.chunk(chunk({"role": "assistant", "content": "slow"}))
        await judged.wait()
        await exchange.chunk(chunk({}, "stop") + b"data: [DONE]\n\n")
        await exchange.end()

    backend.script = quiet_between
    async with wire.dial(proxy.port) as caller:
        await caller.write(ask(None, stream=True))
        caller.writer.write_eof()
        answer = wire.wire((await rest(caller.reader))[0])
    assert (answer.status, answer.whole) == (200, True)
    await rig.until(lambda: connections(proxy) == [])


@pytest.mark.parametrize("way", ["close", "1.0"])
async def test_one_that_said_it_was_its_last_is_waited_for(proxy, backend, monkeypatch, way):
    """Though nothing is written to it in the second after the end of its sending."""
    judged = asyncio.Event()
    silence = listen._Connection._judge_silence
    monkeypatch.setattr(listen, "HALF_CLOSED", 0.05)
    monkeypatch.setattr(listen._Connection, "_judge_silence", lambda self: (silence(self), judged.set()))
    backend.script = gate = Gate()
    async with wire.dial(proxy.port) as caller:
        await caller.write(ask(way))
        caller.writer.write_eof()
        await judged.wait()
        gate.open.set()
        answer = wire.wire((await rest(caller.reader))[0])
    assert (answer.status, answer.whole) == (200, True)


async def test_all_of_several_requests_are_answered_before_the_end(proxy, backend):
    async with wire.dial(proxy.port) as caller:
        caller.writer.write(ask(None) * 3)
        caller.writer.write_eof()
        answers, _ = await rest(caller.reader)
    assert answers.count(b"HTTP/1.1 200 ") == 3
    await rig.until(lambda: connections(proxy) == [])


async def test_an_end_inside_a_body_is_no_request(proxy, backend):
    async with wire.dial(proxy.port) as caller:
        await caller.write(ask("close")[:-5])
        caller.writer.write_eof()
        assert await rest(caller.reader) == (b"", False)
    assert backend.connections == 0


@pytest.mark.parametrize("line", [b"Connection: close, Upgrade\r\n", b"Connection: Upgrade\r\n"], ids=["last", "kept"])
async def test_an_upgrade_does_not_wait_half_closed(proxy, backend, monkeypatch, line):
    """Both halves are needed for it, so its client has left; at once, without the second of silence."""
    monkeypatch.setattr(listen, "HALF_CLOSED", 3600.0)
    backend.script = Gate()
    lines = b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n"
    async with wire.dial(proxy.port) as caller:
        await caller.write(b"GET /v1/realtime HTTP/1.1\r\nHost: x\r\n" + line + lines)
        await rig.until(lambda: len(backend.seen) == 1)
        caller.writer.write_eof()
        assert await rest(caller.reader) == (b"", False)
        await rig.until(lambda: backend.open == 0 and proxy.house.proxy.running == 0)


async def test_who_left_for_good_is_noticed_at_the_next_writes(proxy, backend):
    """After the end of sending only a write shows that nobody reads: a stream that goes on ends then."""

    async def going_on(exchange) -> None:
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        while True:
            await exchange.chunk(b": still here\n\n")
            await asyncio.sleep(0.01)

    backend.script = going_on
    async with wire.dial(proxy.port) as caller:
        await caller.write(ask("close", stream=True))
        await caller.head()
    await rig.until(lambda: backend.open == 0 and proxy.house.proxy.running == 0)
    assert proxy.house.store.census().entries == 0


async def test_who_was_cut_off_is_noticed_while_nothing_is_written(start, backend):
    """The kernel knows; the sweep asks it."""
    proxy = await start(**SHORT)
    backend.script = Gate()
    async with wire.dial(proxy.port) as caller:
        await caller.write(ask("close"))
        caller.writer.write_eof()
        await rig.until(lambda: half_closed(proxy) and backend.calls == 1)
        reset(caller.writer)
        await rig.until(lambda: backend.open == 0 and proxy.house.proxy.running == 0, BOUND)
    assert proxy.house.store.census().entries == 0


async def test_the_kernel_is_told_to_ask_a_half_closed_client(proxy, backend):
    """So that one that closed for good is found out in about a minute, though nothing is written to it."""
    backend.script = Gate()
    async with wire.dial(proxy.port) as caller:
        await caller.write(ask("close"))
        caller.writer.write_eof()
        await rig.until(lambda: half_closed(proxy))
        sock = connections(proxy)[0]._watch.transport.get_extra_info("socket")
        asked = [socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT]
        assert [sock.getsockopt(socket.IPPROTO_TCP, option) for option in asked] == [15, 5, 3]
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1


async def test_every_loop_answers_who_closed_its_half(spawn, backend):
    """A proxy as it is started, on uvloop where that is installed."""
    process = await spawn("--data-dir", "none")
    for state in (b"MISS", b"HIT"):
        async with wire.dial(process.port) as caller:
            caller.writer.write(ask("close", stream=True))
            caller.writer.write_eof()
            assert wire.wire((await rest(caller.reader))[0]).get(b"x-cache") == state
