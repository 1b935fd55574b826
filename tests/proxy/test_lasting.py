"""Answers near and past the end of their lifetime: refreshed, served stale while that goes on or when the backend
fails; client errors kept for a moment; the pace of a replay."""

import asyncio

import pytest

from tests.fakes.backend import Numbered, completion, gives, reset
from tests.rig import Client, until


@pytest.fixture
def numbered(backend):
    backend.script = Numbered()
    return backend


async def test_stale_while_revalidate(clock, start, session, numbered):
    """Once past its end the answer is served at once and a new one fetched; the next caller gets that."""
    proxy = await start(exact__stale_while_revalidate=30)
    client = Client(proxy.base, session)
    await client.chat(X_Cache_TTL="60")
    clock.time += 75
    stale = await client.chat()
    assert (stale.cache, stale.text, stale.get("x-cache-reason")) == ("STALE", "answer 1", "refreshed")
    await until(lambda: proxy.house.engine.refresher.running == 0)
    assert ((await client.chat()).text, numbered.calls) == ("answer 2", 2)
    strict = await client.chat(Cache_Control="max-age=0")
    assert strict.cache == "MISS"


async def test_past_the_allowance_it_is_a_miss(clock, start, session, numbered):
    proxy = await start(exact__stale_while_revalidate=30)
    client = Client(proxy.base, session)
    await client.chat(X_Cache_TTL="60")
    clock.time += 90
    assert (await client.chat()).cache == "MISS"


async def test_one_refresh_at_a_time(clock, start, session, backend):
    proxy = await start(exact__stale_while_revalidate=30)
    client = Client(proxy.base, session)
    backend.script = Numbered()
    await client.chat(X_Cache_TTL="60")
    clock.time += 61
    going = asyncio.Event()

    async def slow(exchange) -> None:
        await going.wait()
        await exchange.json(completion("new"))

    backend.script = slow
    answers = [await client.chat() for _ in range(5)]
    assert [a.cache for a in answers] == ["STALE"] * 5
    assert proxy.house.engine.refresher.running == 1
    going.set()
    await until(lambda: proxy.house.engine.refresher.running == 0)
    assert ((await client.chat()).text, backend.calls) == ("new", 2)


async def test_active_refresh(clock, start, session, numbered):
    """Used in the last part of its lifetime, an answer is fetched anew before it dies; batch work does not do that."""
    proxy = await start(exact__refresh=0.5)
    client = Client(proxy.base, session)
    await client.chat(X_Cache_TTL="60")
    clock.time += 30
    assert (await client.chat()).cache == "HIT"
    clock.time += 29.99999
    assert (await client.chat(X_Priority="P2")).get("x-cache-reason") is None
    assert numbered.calls <= 2
    last = await client.chat()
    assert last.cache == "HIT"
    await until(lambda: proxy.house.engine.refresher.running == 0)
    clock.time += 1
    assert ((await client.chat()).cache, numbered.calls) == ("HIT", 2)


async def test_only_if_cached_has_nothing_refreshed(clock, start, session, numbered):
    """Who wants nothing of the backend causes no call to it."""
    proxy = await start(exact__stale_while_revalidate=30)
    client = Client(proxy.base, session)
    await client.chat(X_Cache_TTL="60")
    clock.time += 61
    answer = await client.chat(Cache_Control="only-if-cached")
    assert (answer.cache, answer.get("x-cache-reason"), numbered.calls) == ("STALE", None, 1)


async def test_no_refresh_where_it_is_off(clock, start, session, numbered):
    client = Client((await start(exact__refresh=0)).base, session)
    await client.chat(X_Cache_TTL="60")
    clock.time += 59.999
    assert (await client.chat()).get("x-cache-reason") is None
    clock.time += 1
    assert (await client.chat()).cache == "MISS"


@pytest.mark.parametrize("failure", ["500", "502", "503", "504", "reset"])
@pytest.mark.parametrize("wish", [{}, {"Cache_Control": "stale-if-error=60"}])
async def test_stale_if_error(clock, start, session, numbered, failure, wish):
    proxy = await start(exact__stale_if_error=0 if wish else 60)
    client = Client(proxy.base, session)
    await client.chat(X_Cache_TTL="60")
    clock.time += 100

    async def die(exchange) -> None:
        reset(exchange.writer)

    error = gives({"error": {"message": "no"}}, status=f"{failure} Failed")
    numbered.script = die if failure == "reset" else error
    answer = await client.chat(**wish)
    assert (answer.status, answer.cache, answer.text) == (200, "STALE", "answer 1")
    assert answer.get("x-cache-reason") == "backend_failed"
    clock.time += 20
    assert (await client.chat(**wish)).status >= 500, "past the allowance the backend's own word counts"


@pytest.mark.parametrize("status", ["400 Bad Request", "401 Unauthorized", "429 Too Many Requests"])
async def test_a_callers_error_is_never_hidden(clock, start, session, numbered, status):
    client = Client((await start(exact__stale_if_error=60)).base, session)
    await client.chat(X_Cache_TTL="60")
    clock.time += 61
    numbered.script = gives({"error": {"message": "no"}}, status=status)
    assert (await client.chat()).status == int(status[:3])


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_client_errors_are_kept_for_a_moment_if_wanted(clock, start, session, backend, status):
    proxy = await start(exact__negative_ttl=5)
    client = Client(proxy.base, session)
    backend.script = Numbered()
    await client.chat(seed=7)  # the backend accepts the credential
    backend.script = gives({"error": {"message": "no"}}, status=f"{status} No")
    first = await client.chat()
    again = await client.chat()
    assert [(a.status, a.cache, a.json) for a in (first, again)] == [
        (status, "MISS", {"error": {"message": "no"}}), (status, "HIT", {"error": {"message": "no"}}),
    ]  # fmt: skip
    clock.time += 5
    backend.script = Numbered()
    assert ((await client.chat()).status, (await client.chat(seed=1)).cache) == (200, "MISS")


@pytest.mark.parametrize("status", [401, 403, 409, 429, 500])
async def test_other_errors_are_never_kept(start, session, backend, status):
    proxy = await start(exact__negative_ttl=5)
    backend.script = gives({"error": {"message": "no"}}, status=f"{status} No")
    assert [(await Client(proxy.base, session).chat()).cache for _ in range(2)] == ["MISS", "MISS"]


async def test_models_are_kept_for_a_moment_per_credential(clock, client, backend):
    backend.script = gives({"object": "list", "data": [{"id": "m", "object": "model"}]})
    states = [
        (await client.send(method="GET", path="/v1/models", key=key)).cache for key in ("A", "A", "B")
    ]  # fmt: skip
    assert states == ["MISS", "HIT", "MISS"]
    clock.time += 12
    assert (await client.send(method="GET", path="/v1/models")).cache == "MISS"


@pytest.mark.parametrize("pace", [{"replay__pace": "recorded", "replay__speed": 2}, {"replay__pace": 20}])
async def test_a_replay_keeps_its_pace(start, session, backend, pace):
    """The events of a replay come apart, and are those of the instant one."""
    proxy = await start(**pace)

    async def slow(exchange) -> None:
        pieces = [b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"%d"}}]}\n\n' % n for n in range(4)]
        await exchange.head(**{"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        for piece in pieces:
            await exchange.chunk(piece)
            await asyncio.sleep(0.1)  # the pace itself is what is recorded
        await exchange.chunk(b'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
        await exchange.chunk(b"data: [DONE]\n\n")
        await exchange.end()

    backend.script = slow
    client = Client(proxy.base, session)
    first = await client.chat(stream=True)
    loop = asyncio.get_running_loop()
    began = loop.time()
    again = await client.chat(stream=True)
    assert (again.cache, again.text) == ("HIT", first.text)
    assert loop.time() - began > 0.1
