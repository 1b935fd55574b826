"""Limits on how many requests a key may send: what counts, what is free, what is told, and what holds without the
shared count."""

import asyncio
import time

import pytest

from tests.fakes.backend import completion, gives, plain
from tests.proxy.limited import ask, clock, told
from tests.redis_fixtures import redis, redis_server, relay, relay_to
from tests.rig import until

__all__ = ["ask", "clock", "redis", "redis_server", "relay", "relay_to"]


async def test_without_limits_no_answer_says_anything_of_them_and_there_is_no_part_for_it(ask, backend):
    client = await ask()
    answers = [await client.chat(seed=n) for n in range(30)]
    assert {answer.status for answer in answers} == {200}
    assert [told(answer) for answer in answers] == [{}] * 30
    assert client.house.rates is None
    backend.script = gives(completion(), extra=b"X-RateLimit-Remaining-Requests: 5\r\n")
    assert told(await client.chat(seed=99)) == {"remaining-requests": "5"}


async def test_more_requests_than_a_key_may_send_are_refused_until_they_may_come_again(ask, backend, clock):
    client = await ask(rates__requests_per_minute=2)
    first, second = await client.chat(seed=1), await client.chat(seed=2)
    assert told(first) == {"limit-requests": "2", "remaining-requests": "1", "reset-requests": "1m0s"}
    assert told(second) == {"limit-requests": "2", "remaining-requests": "0", "reset-requests": "1m0s"}
    clock.moved += 30
    refused = await client.chat(seed=3)
    assert (refused.status, refused.get("x-should-retry"), refused.get("content-type")) == (
        429, "true", "application/json",
    )  # fmt: skip
    error = refused.json["error"]
    assert (error["type"], error["code"], error["param"]) == ("requests", "rate_limit_exceeded", None)
    assert told(refused) == {"limit-requests": "2", "remaining-requests": "0", "reset-requests": "30s"}
    wait = int(refused.get("retry-after"))
    assert 29 <= wait <= 30
    assert backend.calls == 2
    clock.moved += wait
    again = await client.chat(seed=3)
    assert (again.status, backend.calls) == (200, 3)


async def test_limits_hold_where_nothing_waits_too(ask, backend):
    client = await ask(admission__mode="off", rates__requests_per_minute=1)
    assert [(await client.chat(seed=number)).status for number in range(3)] == [200, 429, 429]
    assert backend.calls == 1


async def test_stored_answers_are_free_and_say_nothing_of_limits(ask, backend):
    client = await ask(rates__requests_per_minute=1)
    assert told(await client.chat())["remaining-requests"] == "0"
    hits = [await client.chat() for _ in range(5)]
    assert [(hit.status, hit.cache, told(hit)) for hit in hits] == [(200, "HIT", {})] * 5
    assert (await client.chat(seed=2)).status == 429
    assert (await client.chat()).cache == "HIT"


async def test_shared_answers_are_free_and_say_nothing_of_limits(ask, backend):
    client = await ask(rates__requests_per_minute=1)
    go = asyncio.Event()

    async def slow(exchange) -> None:
        await go.wait()
        await plain(exchange)

    backend.script = slow
    tasks = [asyncio.create_task(client.chat()) for _ in range(4)]
    await until(lambda: client.house.engine.flights.waiting == 4)
    go.set()
    answers = await asyncio.gather(*tasks)
    assert [answer.status for answer in answers] == [200] * 4
    assert sorted(len(told(answer)) for answer in answers) == [0, 0, 0, 3]
    assert backend.calls == 1


async def test_each_key_is_counted_by_itself_whatever_the_scope(ask):
    client = await ask(rates__requests_per_minute=1, access__scope="shared")
    for key in ("A", "B", None):
        assert (await client.chat(seed=1, key=key, Cache_Control="no-cache")).status == 200
        assert (await client.chat(seed=2, key=key, Cache_Control="no-cache")).status == 429


async def test_every_path_to_the_backend_counts(ask, backend):
    client = await ask(rates__requests_per_minute=3)
    assert told(await client.chat(Cache_Control="no-store"))["remaining-requests"] == "2"
    assert told(await client.send({"model": "m", "input": "x"}, path="/v1/audio/speech"))["remaining-requests"] == "1"
    assert told(await client.chat(stream=True))["remaining-requests"] == "0"
    for headers in ({}, {"Cache_Control": "no-store"}):
        assert (await client.chat(seed=5, **headers)).status == 429
    assert (await client.send({"model": "m", "input": "x"}, path="/v1/audio/speech")).status == 429


async def test_a_request_that_no_backend_took_does_not_count(ask, backend):
    client = await ask(rates__requests_per_minute=1)
    await backend.stop()
    for number in range(3):
        assert (await client.chat(seed=number)).status == 502
    await backend.start()
    assert (await client.chat(seed=7)).status == 200
    assert (await client.chat(seed=8)).status == 429


async def test_who_leaves_while_it_waits_for_its_turn_is_not_counted(ask, backend):
    client = await ask(upstream=[{"url": backend.url, "max_inflight": 1}], rates__requests_per_minute=1)
    go = asyncio.Event()

    async def slow(exchange) -> None:
        await go.wait()
        await plain(exchange)

    backend.script = slow
    busy = asyncio.create_task(client.chat(seed=1, key="B"))
    await until(lambda: backend.calls == 1)
    waits = asyncio.create_task(client.chat(seed=2))
    await until(lambda: len(client.house.backends.admission.queues) == 1)
    refused = await client.chat(seed=3)
    assert refused.status == 429
    waits.cancel()
    await until(lambda: len(client.house.backends.admission.queues) == 0)
    again = asyncio.create_task(client.chat(seed=3))
    await until(lambda: len(client.house.backends.admission.queues) == 1)
    go.set()
    assert [(await task).status for task in (busy, again)] == [200, 200]
    assert (await client.chat(seed=4)).status == 429


async def test_rules_set_limits_for_key_groups_and_models_and_each_is_counted_by_itself(ask):
    client = await ask(
        rates__requests_per_minute=2,
        access__key_groups=[{"name": "trial", "keys": ["T1", "T2"]}, {"name": "house", "keys": ["H"]}],
        rules=[
            {"match": {"key_group": "house"}, "set": {"rates": {"requests_per_minute": 0}}},
            {"match": {"key_group": "trial"}, "set": {"rates": {"requests_per_minute": 1}}},
            {"match": {"model": "dear-*"}, "set": {"rates": {"requests_per_minute": 1, "tokens_per_minute": 5000}}},
        ],
    )

    async def statuses(key: str, model: str = "m") -> list[int]:
        return [(await client.chat(key=key, model=model, seed=time.monotonic_ns())).status for _ in range(4)]

    assert await statuses("H") == [200] * 4
    assert await statuses("T1") == [200, 429, 429, 429]
    assert await statuses("T2") == [200, 429, 429, 429]
    assert await statuses("A") == [200, 200, 429, 429]
    assert await statuses("A", "dear-1") == [200, 429, 429, 429]
    answer = await client.chat(key="H", model="dear-1")
    assert set(told(answer)) == {"limit-tokens", "remaining-tokens", "reset-tokens"}


async def test_where_hits_are_hidden_no_answer_says_anything_of_limits(ask, backend):
    client = await ask(rates__requests_per_minute=1, access__hide_hits=True)
    backend.script = gives(completion())
    miss, hit, refused = await client.chat(), await client.chat(), await client.chat(seed=2)
    assert (told(miss), told(hit), refused.status) == ({}, {}, 429)
    assert refused.get("retry-after") is not None


async def test_our_limits_are_told_in_place_of_the_backends_own(ask, backend):
    client = await ask(rates__requests_per_minute=7)
    extra = b"X-RateLimit-Limit-Requests: 500\r\nx-ratelimit-remaining-requests: 499\r\nx-ratelimit-limit-tokens: 9\r\n"
    backend.script = gives(completion(), extra=extra)
    answer = await client.chat()
    assert told(answer) == {
        "limit-requests": "7", "remaining-requests": "6", "reset-requests": "1m0s", "limit-tokens": "9",
    }  # fmt: skip
    assert told(await client.chat()) == {}


async def test_a_caller_is_not_told_that_another_one_has_used_up_its_own(ask, backend, monkeypatch):
    client = await ask(rates__requests_per_minute=1, access__scope="shared")
    spent = ["A", "B", "C", "D", "E"]
    for number, key in enumerate(spent):
        assert (await client.chat(seed=number, key=key)).status == 200
    go, rates = asyncio.Event(), client.house.rates
    admit = rates.admit

    async def later(standing) -> None:
        await go.wait()
        await admit(standing)

    monkeypatch.setattr(rates, "admit", later)
    tasks = []
    for key in [*spent, "Y", "Z"]:
        tasks.append(asyncio.create_task(client.chat(seed=99, key=key)))
        await until(lambda: client.house.engine.flights.waiting == len(tasks))
    go.set()
    answers = await asyncio.gather(*tasks)
    assert [answer.status for answer in answers[-2:]] == [200, 200]
    for answer in answers[: len(spent)]:
        assert answer.status == 429 or told(answer) == {}


@pytest.mark.redis
async def test_replicas_on_one_redis_count_together(ask, redis):
    url = redis.url
    clients = [await ask(redis__url=url, redis__timeout="5s", rates__requests_per_minute=3) for _ in range(2)]
    await until(lambda: clients[0].house.secret == clients[1].house.secret)
    statuses = [(await clients[n % 2].chat(seed=n)).status for n in range(6)]
    assert statuses == [200, 200, 200, 429, 429, 429]
    with redis.line() as line:
        names = line.call("KEYS", "cacheproxy:*:rate:*")
        assert len(names) == 1
        assert 0 < line.call("PTTL", names[0]) <= 60_000


@pytest.mark.redis
@pytest.mark.parametrize("how", ["freeze", "refuse"])
async def test_without_redis_this_process_limits_by_its_own_count_and_nobody_gets_an_error(ask, redis, relay, how):
    client = await ask(redis__url=relay.url, rates__requests_per_minute=4)
    for number in range(2):
        assert (await client.chat(seed=number)).status == 200
    getattr(relay, how)()
    if how == "refuse":
        relay.reset()
    statuses = [(await client.chat(seed=number)).status for number in range(2, 8)]
    assert statuses == [200, 200, 429, 429, 429, 429]
    assert not client.house.rates.breaker.closed
