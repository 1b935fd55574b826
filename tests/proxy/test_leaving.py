"""Callers and backends that leave, are slow, or hang: who is told what, and what is left behind (nothing)."""

import asyncio

import aiohttp
import pytest

from tests import rig
from tests.fakes.backend import Backend, chunk, completion, usage_chunk


async def hang(exchange) -> None:
    await exchange.gone()


async def stream_then_hang(exchange) -> None:
    await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
    await exchange.chunk(chunk({"content": "a"}))
    await exchange.gone()


@pytest.mark.parametrize(("script", "stream"), [(hang, False), (hang, True), (stream_then_hang, True)])
async def test_leaving_caller_ends_the_backend_call(client, backend, proxy, script, stream):
    """B61: the backend sees its socket close; nothing is stored, nothing is left over."""
    backend.script = script
    task = asyncio.create_task(client.chat(stream=stream))
    await rig.until(lambda: backend.calls == 1)
    if script is stream_then_hang:
        await rig.until(lambda: proxy.house.engine.budget.held > 0)
    task.cancel()
    await rig.until(lambda: backend.open == 0, 1.5, "the end of the backend call")
    await rig.until(lambda: proxy.house.proxy.running == 0 and proxy.house.engine.budget.held == 0)
    assert proxy.house.store.census().entries == 0


async def test_leaving_while_uploading(backend, proxy):
    """A body that breaks off on its way never looks whole to the backend."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"PUT /files HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    await rig.until(lambda: backend.connections == 1)
    writer.close()
    await rig.until(lambda: backend.open == 0)
    assert backend.seen == []
    del reader


async def test_silent_backend_ends_at_the_idle_limit(start, session, backend):
    """B53: a stream that falls silent is cut visibly; one that goes on slowly is never cut."""
    proxy = await start(limits__idle_timeout="300ms")
    client = rig.Client(proxy.base, session)
    backend.script = stream_then_hang
    with pytest.raises(aiohttp.ClientPayloadError):
        await client.chat(stream=True)
    await rig.until(lambda: backend.open == 0)
    assert proxy.house.store.census().entries == 0

    async def slow(exchange) -> None:
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        for _ in range(8):
            await exchange.chunk(chunk({"content": "a"}))
            await asyncio.sleep(0.1)
        for piece in (chunk(finish="stop"), usage_chunk(), b"data: [DONE]\n\n"):
            await exchange.chunk(piece)
        await exchange.end()

    backend.script = slow
    assert (await client.chat(stream=True)).text == "a" * 8
    assert (await client.chat(stream=True)).cache == "HIT"


async def test_backend_without_a_first_byte_is_a_504(start, session, backend):
    proxy = await start(limits__first_byte_timeout="200ms")
    backend.script = hang
    answer = await rig.Client(proxy.base, session).chat()
    assert (answer.status, answer.json["error"]["code"]) == (504, "upstream_timeout")
    await rig.until(lambda: backend.open == 0)


async def test_no_backend_is_a_502(start, session):
    proxy = await start(upstream="http://127.0.0.1:1")
    answer = await rig.Client(proxy.base, session).chat()
    assert (answer.status, answer.json["error"]["code"]) == (502, "upstream_unreachable")
    assert answer.json["error"].keys() == {"message", "type", "param", "code"}


async def test_connections_closed_between_requests_cost_no_error(client, backend):
    """B54: a backend that announces keep-alive and closes right after each reply."""

    async def closing(exchange) -> None:
        await exchange.json(completion())
        asyncio.get_running_loop().call_later(0.001, exchange.writer.close)

    backend.script = closing
    for number in range(200):
        assert (await client.chat(seed=number)).status == 200
    assert 200 <= backend.calls <= 400


async def test_body_taken_and_no_reply_is_tried_again_at_most_once(client, backend):
    """B54: on a kept connection once more, on a new one never."""
    await client.chat(seed=0)

    async def takes(exchange) -> None:
        exchange.cut()

    backend.script = takes
    assert (await client.chat(seed=1)).status == 502
    assert backend.calls == 3  # 1 before, then the kept connection and one new one
    assert (await client.chat(seed=2)).status == 502
    assert backend.calls == 4


async def test_never_again_after_a_status(client, backend):
    """B77: the backend's own 503 passes, once."""

    async def busy(exchange) -> None:
        await exchange.json({"error": {"message": "busy"}}, "503 Service Unavailable", b"Retry-After: 7\r\n")

    backend.script = busy
    answer = await client.chat()
    assert (answer.status, answer.get("retry-after"), backend.calls) == (503, "7", 1)


async def test_other_backend_takes_over_when_one_cannot_be_connected_to(start, session, backend):
    second = await Backend().start()
    gone = await Backend().start()
    await gone.stop()
    proxy = await start(upstream=[gone.url, backend.url + "/v1/", second.url], prefix__routing="round-robin")
    client = rig.Client(proxy.base, session)
    for number in range(20):
        assert (await client.chat(seed=number)).status == 200
    assert backend.calls + second.calls == 20
    assert min(backend.calls, second.calls) >= 8
    await second.stop()


@pytest.mark.parametrize(
    "reply",
    [
        b"NOT HTTP AT ALL\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"a":',
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)  # fmt: skip
async def test_broken_answer_is_an_error_and_never_stored(client, backend, proxy, reply):
    """B49: an answer that is not HTTP, or not whole, is a 502; one framing leaves us."""

    async def broken(exchange) -> None:
        await exchange.send(reply)
        exchange.close = True

    backend.script = broken
    answer = await client.chat()
    assert (answer.status, answer.json["error"]["code"]) == (502, "upstream_unreachable")
    assert proxy.house.store.census().entries == 0


async def test_doubled_framing_of_an_answer_leaves_once(proxy, backend):
    """B49: two Transfer-Encoding lines of the backend, one of ours."""
    body = b'{"id":"x"}'

    async def doubled(exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n")
        await exchange.chunk(body)
        await exchange.end()
        exchange.close = True

    backend.script = doubled
    reply = await rig.raw(proxy.port, b"GET /v1/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert reply.lower().count(b"transfer-encoding") == 1
    assert body in reply
    assert reply.endswith(b"0\r\n\r\n")


async def test_bytes_after_an_answer_never_reach_the_next_request(client, backend, proxy):
    """A backend that sends more than its answer has its connection closed; the next request gets its own answer."""

    async def chatty(exchange) -> None:
        await exchange.json(completion(f"for {exchange.seen.json['seed']}"))
        await exchange.json(completion("for somebody else"))

    backend.script = chatty
    for number in range(5):
        assert (await client.chat(seed=number)).text == f"for {number}"


async def test_slow_reader_does_not_make_the_proxy_hoard(proxy, backend, session):
    """Backpressure: what a caller does not read, the backend cannot send."""
    sent = 0

    async def flood(exchange) -> None:
        nonlocal sent
        await exchange.head(Content_Type="application/octet-stream", Transfer_Encoding="chunked")
        while sent < 200 * 2**20:
            await exchange.chunk(b"z" * 65536)
            sent += 65536

    backend.script = flood
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, limit=1024)
    writer.write(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readexactly(1000)
    seen = -1
    while seen != sent:  # until it stands still
        seen = sent
        await asyncio.sleep(0.2)
    assert sent < 40 * 2**20
    writer.close()
    await rig.until(lambda: backend.open == 0)


async def test_proxy_survives_every_leaving(client, backend, proxy):
    """Fifty callers leave at random moments; then one call is answered, and nothing is in flight."""

    async def slowly(exchange) -> None:
        await asyncio.sleep(0.01)
        await exchange.events(chunk({"content": "a"}), chunk(finish="stop"), usage_chunk())

    backend.script = slowly
    tasks = [asyncio.create_task(client.chat(seed=n, stream=True)) for n in range(50)]
    for number, task in enumerate(tasks):
        await asyncio.sleep(0.001 * (number % 4))
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await rig.until(lambda: proxy.house.proxy.running == 0)
    await rig.until(lambda: proxy.house.engine.budget.held == 0)
    assert (await client.chat(seed=99, stream=True)).text == "a"
