"""How long an answer is served: `exact.ttl` with its spread, `X-Cache-TTL` to the letter, and the age that is told."""

import asyncio
import re

import pytest

from tests.fakes.backend import Numbered, plain
from tests.rig import Answer, Client, until


@pytest.fixture
def backend(backend):
    """Every answer of the backend is another text."""
    backend.script = Numbered()
    return backend


@pytest.fixture
async def proxy(start):
    """One that refreshes nothing: whether a use near the end of a lifetime does is left to chance."""
    return await start(exact__refresh=0)


def ttl(answer: Answer) -> int:
    """The seconds left that a hit tells of."""
    found = re.fullmatch(r"cacheproxy; hit; ttl=(-?\d+); detail=exact", answer.get("cache-status") or "")
    assert found, answer.get("cache-status")
    return int(found.group(1))


async def test_lifetime_asked_for_is_kept_to_the_letter(clock, client, backend):
    """Served until its last moment, then not."""
    await client.chat(X_Cache_TTL="60")
    assert ttl(await client.chat()) == 60
    clock.time += 59
    last = await client.chat(stream=True)
    assert (last.cache, ttl(last), last.get("age")) == ("HIT", 1, "59")
    clock.time += 1
    gone = await client.chat()
    assert (gone.cache, gone.text, gone.get("x-cache-reason")) == ("MISS", "answer 2", "expired")
    assert "fwd=stale" in (gone.get("cache-status") or "")


async def test_lifetime_of_a_stream_asked_for(clock, client):
    """The same for what was stored from a stream."""
    await client.chat(stream=True, X_Cache_TTL="60")
    assert ttl(await client.chat(stream=True)) == 60
    clock.time += 60
    assert (await client.chat(stream=True)).cache == "MISS"


async def test_serving_does_not_lengthen_a_life(clock, client):
    await client.chat(X_Cache_TTL="60")
    for _ in range(5):
        clock.time += 11
        assert (await client.chat(X_Cache_TTL="1000")).cache == "HIT"
    clock.time += 6
    assert (await client.chat()).cache == "MISS"


async def test_age_counts_from_the_storing(clock, client):
    """B43: whole seconds, 0 at once; on hits only."""
    first = await client.chat()
    assert first.get("age") is None
    for passed in (0, 0.9, 6.1, 100):
        clock.time += passed
    assert (await client.chat()).get("age") == "107"


async def test_usual_lifetime_is_spread_by_a_tenth(clock, start, session):
    """±10 %, so that what came together does not end together; never beyond."""
    proxy = await start(exact__ttl="1000s")
    client = Client(proxy.base, session)
    for number in range(80):
        await client.chat(seed=number)
    lives = [ttl(await client.chat(seed=number)) for number in range(80)]
    assert 900 <= min(lives) <= max(lives) <= 1100
    assert len(set(lives)) > 20
    assert min(lives) < 980 and max(lives) > 1020
    clock.time += 1101
    assert (await client.chat(seed=0)).cache == "MISS"


async def test_spread_never_passes_the_longest_lifetime(clock, start, session):
    proxy = await start(exact__ttl="1000s", exact__max_ttl="1000s")
    client = Client(proxy.base, session)
    for number in range(30):
        await client.chat(seed=number)
    lives = [ttl(await client.chat(seed=number)) for number in range(30)]
    assert max(lives) == 1000 and min(lives) < 1000


@pytest.mark.parametrize(("asked", "given"), [("5", 5), ("50", 50), ("51", 50), ("9" * 40, 50), ("0.5", 0), ("007", 7)])
async def test_lifetime_asked_for_is_capped(clock, start, session, asked, given):
    """B40: by `exact.max_ttl`."""
    proxy = await start(exact__ttl="10s", exact__max_ttl="50s")
    client = Client(proxy.base, session)
    await client.chat(X_Cache_TTL=asked)
    assert ttl(await client.chat()) == given


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("lines", [{"X_Cache_TTL": "0"}, {"X_Cache_TTL": "0.0"}, {"cache": {"ttl": 0}}])
async def test_lifetime_of_nothing_stores_nothing(client, proxy, backend, lines, stream):
    """B40: 0 is not "for ever" and not the default."""
    for text in ("answer 1", "answer 2"):
        answer = await client.chat(stream=stream, **lines)
        assert (answer.cache, answer.text, answer.get("x-cache-reason")) == ("MISS", text, "zero_ttl")
        assert "stored" not in (answer.get("cache-status") or "")
    assert proxy.house.store.census().entries == 0


async def test_lifetime_of_nothing_still_reads(client, backend):
    """It says what becomes of a new answer, not what may be served."""
    await client.chat()
    assert (await client.chat(X_Cache_TTL="0")).cache == "HIT"


async def test_usual_lifetime_of_nothing_stores_what_asks_for_a_lifetime(clock, start, session):
    """B40: `exact.ttl: 0` keeps nothing unless a request says how long."""
    proxy = await start(exact__ttl=0)
    client = Client(proxy.base, session)
    assert [(await client.chat()).cache for _ in range(2)] == ["MISS", "MISS"]
    assert [(await client.chat(X_Cache_TTL="5")).cache for _ in range(2)] == ["MISS", "HIT"]
    assert ttl(await client.chat()) == 5


JUNK = ["abc", "-1", "-0", "1e3", "NaN", "inf", "1 2", "1,5", "0x10", "60s", "", " ", "+5", "1.", ".5", "٣"]


@pytest.mark.parametrize("value", JUNK)
async def test_lifetime_that_is_no_number_is_refused(client, backend, value):
    """B40: 400 in OpenAI form that says which header, and no call."""
    answer = await client.chat(X_Cache_TTL=value)
    assert (answer.status, answer.get("content-type")) == (400, "application/json")
    error = answer.json["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert (error["code"], error["type"], error["param"]) == ("invalid_header", "invalid_request_error", "X-Cache-TTL")
    assert value.strip() == "" or value not in error["message"]
    assert backend.calls == 0


async def test_shorter_of_two_lifetimes_counts(clock, client):
    await client.chat(X_Cache_TTL="60", cache={"ttl": 30})
    assert ttl(await client.chat()) == 30


async def test_lifetime_in_the_file(clock, start, session, tmp_path):
    """The same on the disk: what is past its end there is not served."""
    proxy = await start(store__data_dir=str(tmp_path / "data"), store__memory_bytes=0)
    client = Client(proxy.base, session)
    await client.chat(X_Cache_TTL="60")
    hit = await client.chat()
    assert (hit.cache, ttl(hit)) == ("HIT", 60)
    clock.time += 60
    assert (await client.chat()).cache == "MISS"


async def test_clock_that_goes_back_gives_no_negative_age(clock, client):
    await client.chat(X_Cache_TTL="60")
    clock.time -= 100
    hit = await client.chat()
    assert (hit.cache, hit.get("age")) == ("HIT", "0")


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
async def test_an_answer_proves_acceptance_from_when_it_was_asked_for(clock, proxy, client, backend, stream):
    """CONTRACT 6.5: a refusal while it was generated is later than that; by the wall clock that was read then."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(exchange) -> None:
        asked.set()
        await go_on.wait()
        await plain(exchange)

    backend.script = slow
    asking = asyncio.create_task(client.chat(stream=stream))
    await asked.wait()
    asked_at = clock.time
    clock.time += 10
    go_on.set()
    await asking
    [entry] = proxy.house.store._entries.values()
    assert (entry.asked_at, entry.stored_at) == (asked_at, asked_at + 10)


async def test_a_refresh_proves_acceptance_from_when_it_was_asked_for(clock, start, session, backend):
    proxy = await start(exact__stale_while_revalidate=600)
    client = Client(proxy.base, session)
    asked, go_on = asyncio.Event(), asyncio.Event()
    await client.chat(X_Cache_TTL="60")
    clock.time += 61

    async def slow(exchange) -> None:
        asked.set()
        await go_on.wait()
        await plain(exchange)

    backend.script = slow
    assert (await client.chat()).cache == "STALE"
    await asked.wait()
    asked_at = clock.time
    clock.time += 10
    go_on.set()
    await until(lambda: proxy.house.engine.refresher.running == 0)
    [entry] = proxy.house.store._entries.values()
    assert (entry.asked_at, entry.stored_at) == (asked_at, asked_at + 10)
