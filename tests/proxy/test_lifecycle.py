"""Start, drain and sudden death of a proxy in its own process."""

import asyncio
import json
import re
import time

import aiohttp
import psutil

from tests import rig
from tests.fakes.backend import chunk, completion, usage_chunk


async def ready(session: aiohttp.ClientSession, admin: str) -> int:
    async with session.get(admin + "/readyz") as answer:
        return answer.status


async def test_start_is_quick_and_without_heavy_imports(spawn):
    """Ready in 1.5 s; the fastest of several counts, since the machine is shared."""
    times: list[float] = []
    while len(times) < 8 and min(times, default=9.0) >= 1.5:
        began = time.monotonic()
        process = await spawn("--data-dir", "none")
        times.append(time.monotonic() - began)
        process.kill()
    assert min(times) < 1.5


async def test_restart_is_warm(spawn, session, backend, tmp_path):
    """What was answered before the restart is a HIT after it, JSON and stream; the file closes cleanly."""
    data = str(tmp_path / "data")
    first = await spawn("--data-dir", data)
    client = rig.Client(first.base, session)
    assert (await client.chat()).cache == "MISS"
    assert (await client.chat(seed=1, stream=True)).cache == "MISS"
    first.process.terminate()
    first.process.terminate()
    assert await first.exit() == 0
    second = await spawn("--data-dir", data)
    client = rig.Client(second.base, session)
    assert (await client.chat()).cache == "HIT"
    assert (await client.chat(seed=1)).text == "Hello."
    assert (await client.chat(key="B")).cache == "MISS"
    assert backend.calls == 3


async def test_kill_at_any_moment_leaves_whole_answers_or_none(spawn, session, backend, tmp_path):
    """Killed with -9 while it stores: after the restart each answer is whole, and old ones are still there."""
    data = str(tmp_path / "data")

    async def numbered(exchange) -> None:
        await exchange.json(completion(exchange.seen.json["messages"][0]["content"] * 50))

    backend.script = numbered
    asked = 0
    for round_ in range(5):
        process = await spawn("--data-dir", data)
        client = rig.Client(process.base, session)

        few = asyncio.Semaphore(8)

        async def ask(number: int, client: rig.Client = client, few: asyncio.Semaphore = few) -> None:
            async with few:
                await client.chat(messages=[{"role": "user", "content": f"<{number}>"}])

        tasks = [asyncio.create_task(ask(n)) for n in range(asked, asked + 300)]
        before = backend.calls
        await rig.until(lambda before=before, round_=round_: backend.calls > before + 40 * (round_ + 1))
        process.kill()
        await asyncio.gather(*tasks, return_exceptions=True)
        asked = 300 * (round_ + 1)
    process = await spawn("--data-dir", data)
    client = rig.Client(process.base, session)
    hits = 0
    for number in range(asked):
        answer = await client.chat(messages=[{"role": "user", "content": f"<{number}>"}])
        assert answer.text == f"<{number}>" * 50
        hits += answer.cache == "HIT"
    assert hits > 0
    assert "set aside" not in process.output()


async def test_damaged_file_is_set_aside_with_one_line(spawn, session, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "cache.sqlite3").write_bytes(b"this is no database, but it is somebody's" * 100)
    process = await spawn("--data-dir", str(data))
    client = rig.Client(process.base, session)
    assert [(await client.chat()).cache for _ in range(2)] == ["MISS", "HIT"]
    assert process.output().count("set aside") == 1
    assert len(list(data.glob("cache.sqlite3.set-aside-*"))) == 1


async def test_drain(spawn, session, backend, tmp_path):
    """B79: at SIGTERM not ready at once, new work still taken for the grace, a running stream completes and is
    stored, exit 0."""
    data = str(tmp_path / "data")
    go_on = asyncio.Event()

    async def slow(exchange) -> None:
        if not exchange.seen.body or not exchange.seen.json.get("stream"):
            await exchange.json(completion())
            return
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        await exchange.chunk(chunk({"role": "assistant", "content": "Hel"}))
        await go_on.wait()
        for piece in (chunk({"content": "lo."}), chunk(finish="stop"), usage_chunk(), b"data: [DONE]\n\n"):
            await exchange.chunk(piece)
        await exchange.end()

    backend.script = slow
    process = await spawn("--data-dir", data, CACHEPROXY_DRAIN__GRACE="1s", CACHEPROXY_DRAIN__TIMEOUT="20s")
    client = rig.Client(process.base, session)
    assert await ready(session, process.admin) == 200
    running = asyncio.create_task(client.chat(stream=True))
    await rig.until(lambda: backend.calls == 1)
    process.terminate()
    await rig.until(lambda: "draining" in process.output())
    assert await ready(session, process.admin) == 503
    assert (await client.chat(seed=2)).status == 200  # still within the grace

    async def refused() -> bool:
        try:
            async with aiohttp.ClientSession() as fresh, fresh.get(process.base + "/v1/models"):
                return False
        except aiohttp.ClientError:
            return True

    while not await refused():
        await asyncio.sleep(0.02)
    assert process.process.poll() is None
    go_on.set()
    assert (await running).text == "Hello."
    assert await process.exit() == 0
    again = await spawn("--data-dir", data)
    assert (await rig.Client(again.base, session).chat(stream=True)).cache == "HIT"


async def test_drain_ends_a_stream_that_never_ends(spawn, session, backend):
    """B79: the process exits at its time-out, and the caller sees a cut, not a clean end."""

    async def endless(exchange) -> None:
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        while True:
            await exchange.chunk(chunk({"content": "x"}))
            await asyncio.sleep(0.01)

    backend.script = endless
    process = await spawn("--data-dir", "none", CACHEPROXY_DRAIN__GRACE="0", CACHEPROXY_DRAIN__TIMEOUT="500ms")
    running = asyncio.create_task(rig.Client(process.base, session).chat(stream=True))
    await rig.until(lambda: backend.calls == 1)
    process.terminate()
    assert await process.exit() == 0
    try:
        await running
    except aiohttp.ClientPayloadError:
        return
    raise AssertionError("a cut stream looked whole")


async def test_second_signal_ends_at_once(spawn):
    process = await spawn("--data-dir", "none", CACHEPROXY_DRAIN__GRACE="1h")
    process.terminate()
    await rig.until(lambda: "draining" in process.output())
    process.terminate()
    assert await process.exit(5) == 0


async def test_probes_ask_nobody(spawn, session, backend):
    """B82: 200 health probes with the backend hanging make no call at all; live and ready stay 200."""

    async def hang(exchange) -> None:
        await exchange.gone()

    backend.script = hang
    process = await spawn("--data-dir", "none")
    waiting = asyncio.create_task(rig.Client(process.base, session).chat())
    await rig.until(lambda: backend.calls == 1)
    for _ in range(100):
        async with session.get(process.admin + "/livez") as live:
            assert live.status == 200
        assert await ready(session, process.admin) == 200
    await backend.stop()
    assert await ready(session, process.admin) == 200
    assert len(backend.seen) == 1
    assert (await waiting).status == 502


async def test_memory_is_bounded(spawn, session, backend):
    """B78: many large answers and one far larger: the process stays near its cap, everything is delivered."""

    async def large(exchange) -> None:
        size = exchange.seen.json.get("size", 100_000)
        await exchange.json(completion("y" * size))

    backend.script = large
    process = await spawn("--data-dir", "none", CACHEPROXY_STORE__MEMORY_BYTES="30MB")
    client = rig.Client(process.base, session)
    await client.chat(size=1000)
    before = psutil.Process(process.process.pid).memory_info().rss
    limit = asyncio.Semaphore(8)

    async def ask(number: int) -> None:
        async with limit:
            assert len((await client.chat(seed=number)).text) == 100_000

    await asyncio.gather(*(ask(n) for n in range(1200)))
    assert len((await client.chat(size=20_000_000)).text) == 20_000_000
    assert (await client.chat(size=20_000_000)).cache == "MISS"
    async with session.get(process.admin + "/admin/stats") as answer:
        stats = json.loads(await answer.read())
    assert 10_000_000 < stats["store_bytes"] <= 30_000_000
    assert stats["recording_bytes"] == 0
    grown = psutil.Process(process.process.pid).memory_info().rss - before
    assert grown < 30_000_000 + 120_000_000, f"grew by {grown / 1e6:.0f} MB"
    assert (await client.chat(seed=1199)).cache == "HIT"
    assert (await client.chat(seed=0)).cache == "MISS"


async def test_nothing_is_printed_but_log_lines(spawn):
    process = await spawn("--data-dir", "none")
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", line) for line in process.output().splitlines())
