"""The gate as callers meet it: slots, order, refusals, leaving."""

import asyncio
import json
import time
from dataclasses import replace

import pytest

from cacheproxy.core.model import Answer, Entry, Form
from tests.fakes.backend import completion
from tests.rig import Client, until
from tests.stores.entries import entry


def says(text: str, **more) -> dict:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def ask(client: Client, text: str, priority: str | None = None, key: str = "A", **more) -> asyncio.Task:
    headers = {} if priority is None else {"X_Priority": priority}
    headers.update({name: more.pop(name) for name in list(more) if name[0].isupper()})
    return asyncio.ensure_future(client.send(says(text, **more), key=key, **headers))


def waiting(proxy, priority: int) -> int:
    return proxy.house.door.admission.queues.waiting(priority)


async def queued(proxy, *counts: int) -> None:
    await until(lambda: tuple(waiting(proxy, p) for p in range(3)) == counts, what=f"{counts} waiting")


@pytest.fixture
async def gated(start, session, backend):
    """Starts a proxy with one slot."""

    async def begin(slots=1, **values):
        proxy = await start(upstreams=[{"url": backend.url, "max_inflight": slots}], **values)
        return proxy, Client(proxy.base, session)

    return begin


async def test_no_more_at_once_than_there_are_slots(gated, held):
    proxy, client = await gated(3)
    tasks = [ask(client, f"q{n}") for n in range(10)]
    await held.has(3)
    await queued(proxy, 0, 7, 0)
    held.let_all()
    assert [(await task).status for task in tasks] == [200] * 10
    assert held.most == 3
    assert proxy.house.door.admission.places.used == 0


async def test_the_urgent_go_first_and_a_hit_never_waits(gated, held):
    proxy, client = await gated(1)
    stored = ask(client, "known")
    await held.has(1)
    held.let()
    assert (await stored).cache == "MISS"
    tasks = [ask(client, "first")]
    await held.has(1)
    for text, priority in (("p2", "P2"), ("p1", "P1"), ("p0", "P0"), ("default", None)):
        tasks.append(ask(client, text, priority))
        await until(lambda: len(proxy.house.door.admission.queues) == len(tasks) - 1)
    assert (await client.send(says("known"), X_Priority="P2")).cache == "HIT"
    for _ in range(5):
        await held.has(1)
        held.let()
        await until(lambda: not held.waiting or held.waiting[0].is_set() is False)
    await asyncio.gather(*tasks)
    assert held.order[1:] == ["first", "p0", "p1", "default", "p2"]


async def test_a_full_queue_answers_429_at_once_with_a_time_to_come_back(gated, held):
    proxy, client = await gated(1, admission__p1__depth=2)
    tasks = [ask(client, f"q{n}") for n in range(3)]
    await queued(proxy, 0, 2, 0)
    await held.has(1)
    began = time.perf_counter()
    refused = await client.send(says("one more"))
    assert time.perf_counter() - began < 1
    assert (refused.status, refused.json["error"]["code"]) == (429, "queue_full")
    assert refused.json["error"]["type"] == "rate_limit_error"
    assert 1 <= int(refused.get("retry-after")) <= 60
    assert refused.get("x-should-retry") == "true"
    assert len(held.order) == 1
    held.let_all()
    await asyncio.gather(*tasks)
    assert (await client.send(says("one more"))).status == 200


async def test_who_waits_too_long_is_told_503(gated, held):
    proxy, client = await gated(1, admission__p0__timeout="50ms")
    first = ask(client, "first")
    await held.has(1)
    late = await client.send(says("late"), X_Priority="P0")
    assert (late.status, late.json["error"]["code"]) == (503, "queue_timeout")
    assert int(late.get("retry-after")) >= 1
    assert waiting(proxy, 0) == 0
    held.let_all()
    await first
    assert held.order == ["first"]


async def test_who_leaves_the_queue_never_reaches_the_backend(gated, held):
    proxy, client = await gated(1)
    tasks = [ask(client, f"q{n}") for n in range(10)]
    await queued(proxy, 0, 9, 0)
    for task in tasks[1:9]:
        task.cancel()
    await queued(proxy, 0, 1, 0)
    held.let_all()
    assert [(await tasks[0]).status, (await tasks[9]).status] == [200, 200]
    assert len(held.order) == 2


async def test_who_leaves_while_being_answered_frees_the_slot(gated, held):
    proxy, client = await gated(1)
    first, second = ask(client, "first"), ask(client, "second")
    await queued(proxy, 0, 1, 0)
    first.cancel()
    await until(lambda: held.order == ["first", "second"])
    held.let_all()
    assert (await second).status == 200


async def test_one_key_does_not_starve_another(gated, held):
    proxy, client = await gated(1, admission__p1__depth=10)
    tasks = [ask(client, f"flood{n}", key="flood") for n in range(11)]
    await queued(proxy, 0, 10, 0)
    few = ask(client, "few", key="few")
    dropped = [task for task in tasks if task.done()] or None
    await until(lambda: any(task.done() for task in tasks))
    dropped = [task.result() for task in tasks if task.done()]
    assert [(a.status, a.json["error"]["code"]) for a in dropped] == [(429, "queue_full")]
    for _ in range(2):
        await held.has(1)
        held.let()
        await until(lambda: all(not word.is_set() for word in held.waiting))
    await until(lambda: "few" in held.order)
    assert held.order.index("few") <= 2
    held.let_all()
    assert (await few).status == 200
    await asyncio.gather(*tasks)


async def test_the_class_that_a_rule_gives_beats_the_header(gated, held):
    proxy, client = await gated(
        1,
        access__key_groups=[{"name": "cheap", "keys": ["low"]}],
        rules=[{"match": {"key_group": "cheap"}, "set": {"priority": "P2"}}],
    )
    tasks = [ask(client, "first")]
    await held.has(1)
    tasks.append(ask(client, "cheap", "P0", key="low"))
    tasks.append(ask(client, "cheap, unseen", "P0", key="low", Cache_Control="no-store"))
    await queued(proxy, 0, 0, 2)
    held.let_all()
    await asyncio.gather(*tasks)


@pytest.mark.parametrize(
    ("body", "headers", "priority"),
    [
        ({}, {}, 1), ({}, {"X_Priority": "P0"}, 0), ({}, {"X_Priority": "p2"}, 2), ({}, {"Priority": "u=0, i"}, 0),
        ({}, {"Priority": "u=6"}, 2), ({"service_tier": "flex"}, {}, 2), ({"service_tier": "priority"}, {}, 0),
        ({"service_tier": "auto"}, {}, 1), ({"service_tier": "flex"}, {"X_Priority": "P0"}, 0),
        ({"metadata": {"kind": "nightly batch"}}, {}, 2), ({"metadata": {"kind": "chat"}}, {}, 1),
        ({"model": "small-1"}, {}, 0),
    ],
)  # fmt: skip
async def test_how_a_class_is_found(gated, held, body, headers, priority):
    proxy, client = await gated(
        1,
        rules=[
            {"match": {"metadata": {"kind": "*batch*"}}, "set": {"priority": "P2"}},
            {"match": {"model": "small-*"}, "set": {"priority": "P0"}},
        ],
    )
    tasks = [ask(client, "first", "P0")]
    await held.has(1)
    tasks.append(ask(client, "second", **body, **headers))
    await queued(proxy, *(int(p == priority) for p in range(3)))
    held.let_all()
    await asyncio.gather(*tasks)


async def test_an_unknown_class_is_a_400(gated, held):
    _, client = await gated()
    refused = await client.send(says("q"), X_Priority="urgent!!")
    assert (refused.status, refused.json["error"]["code"]) == (400, "invalid_header")


async def test_what_only_reads_takes_no_slot(gated, held):
    proxy, client = await gated(1)
    first = ask(client, "first")
    await held.has(1)
    assert (await client.send(method="GET", path="/v1/models")).status == 200
    assert (await client.send(method="GET", path="/health")).status == 200
    held.let_all()
    await first
    assert proxy.house.door.admission.places.used == 0


async def test_the_same_question_waits_once_and_as_urgently_as_the_most_urgent_caller(gated, held):
    proxy, client = await gated(1)
    first = ask(client, "first")
    await held.has(1)
    batch = ask(client, "same", "P2")
    await queued(proxy, 0, 0, 1)
    other = ask(client, "other", "P1")
    await queued(proxy, 0, 1, 1)
    urgent = ask(client, "same", "P0")
    await queued(proxy, 1, 1, 0)
    held.let_all()
    answers = await asyncio.gather(first, batch, other, urgent)
    assert held.order == ["first", "same", "other"]
    assert answers[1].text == answers[3].text == "answer to same"
    assert answers[3].get("x-cache-coalesced") == "1"


async def test_the_time_in_the_queue_is_told(gated, held):
    proxy, client = await gated(1)
    first, second = ask(client, "first"), ask(client, "second")
    await queued(proxy, 0, 1, 0)
    held.let_all()
    await first
    timing = (await second).get("server-timing")
    assert "queue;dur=" in timing
    assert "queue;dur=" not in (await client.send(says("third"))).get("server-timing")


async def test_a_stored_answer_stands_in_for_a_refusal(gated, held, clock):
    _, client = await gated(1, admission__p1__depth=0, exact__stale_if_error=600)
    known = ask(client, "known", X_Cache_TTL="60")
    await held.has(1)
    held.let()
    await known
    clock.time += 100
    first = ask(client, "first")
    await held.has(1)
    stale = await client.send(says("known"))
    assert (stale.status, stale.cache, stale.get("x-cache-reason")) == (200, "STALE", "overloaded")
    assert (await client.send(says("unknown"))).status == 429
    held.let_all()
    await first


async def test_refused_over_and_over_leaves_nothing_behind(gated, held, backend):
    """50 streams that are left, 20 that time out, 20 bad bodies, 20 hits: then a call is immediate."""
    proxy, client = await gated(2, limits__first_byte_timeout="100ms", admission__p1__depth=200)
    left = [ask(client, f"left{n}", stream=True) for n in range(50)]
    await held.has(2)
    for task in left:
        task.cancel()
    await until(lambda: proxy.house.door.admission.places.used == 0 and not proxy.house.door.admission.queues)
    late = await asyncio.gather(*(client.send(says(f"late{n}")) for n in range(20)))
    assert {a.status for a in late} <= {504, 503}
    bad = await asyncio.gather(*(client.send(b"{") for n in range(20)))
    assert {a.status for a in bad} == {400}
    held.open = True

    async def well() -> bool:
        return (await client.send(says("known"))).status == 200

    for _ in range(200):
        if await well():
            break
        await asyncio.sleep(0.05)
    hits = await asyncio.gather(*(client.send(says("known")) for _ in range(20)))
    assert {a.cache for a in hits} == {"HIT"}
    assert (await client.send(says("new"))).status == 200
    await until(lambda: proxy.house.door.admission.places.used == 0)
    assert not proxy.house.door.admission.queues


async def test_what_was_stored_meanwhile_is_not_asked_for(gated, held):
    """Two that may not share a running answer wait for the same: the second finds it stored when its turn comes."""
    proxy, client = await gated(1, flight__mode="on")
    first = ask(client, "first")
    await held.has(1)
    waits = ask(client, "same")
    await queued(proxy, 0, 1, 0)
    keys = list(proxy.house.engine.flights._shared)
    assert len(keys) == 2
    # Another replica, an import or a refresh stores it while this one waits.
    other = proxy.house.engine.flights._shared[keys[1]].work.bound
    await proxy.house.store.put(stored_for(other))
    held.let_all()
    await first
    answer = await waits
    assert (answer.cache, answer.text) == ("HIT", "stored meanwhile")
    assert held.order == ["first"]


def stored_for(bound) -> Entry:
    """An answer to the request of `bound`, as if it had been fetched elsewhere."""
    now, body = time.time(), json.dumps(completion("stored meanwhile")).encode()
    return replace(
        entry(bound.ask.key, expires_at=now + 3600), owner=bound.ask.scope.owner, credential=bound.ask.credential,
        stored_at=now, answer=Answer(Form.JSON, "application/json", body, has_usage=True),
    )  # fmt: skip


async def test_signs_of_life_tell_the_place_in_the_queue(gated, held, session):
    """B26: with signs of life a later refusal is told inside the stream, which does not end as a whole one does."""
    proxy, client = await gated(1, admission__p1__timeout="300ms")
    first = ask(client, "first", "P0")
    await held.has(1)
    before = ask(client, "before", "P0")
    await queued(proxy, 1, 0, 0)
    answer = await client.send(says("late", stream=True), X_Cache_Heartbeat="0.05")
    assert answer.status == 200
    assert b": waiting, 1 before\n\n" in answer.body
    assert answer.documents[-1]["error"]["code"] == "queue_timeout"
    assert b"[DONE]" not in answer.body
    plain = await client.send(says("late", stream=True))
    assert (plain.status, plain.json["error"]["code"]) == (503, "queue_timeout")
    held.let_all()
    await asyncio.gather(first, before)


async def test_the_backends_own_refusal_passes_with_its_hints(gated, backend):
    """B47."""

    async def busy(exchange) -> None:
        await exchange.json(
            {"error": {"message": "slow down"}}, "429 Too Many Requests",
            b"Retry-After: 30\r\nretry-after-ms: 1500\r\nx-should-retry: false\r\n",
        )  # fmt: skip

    backend.script = busy
    _, client = await gated(1)
    answers = [await client.send(says("q")) for _ in range(2)]
    for answer in answers:
        assert (answer.status, answer.json) == (429, {"error": {"message": "slow down"}})
        hints = [answer.get(name) for name in ("retry-after", "retry-after-ms", "x-should-retry")]
        assert hints == ["30", "1500", "false"]
    assert backend.calls == 2


@pytest.mark.parametrize(
    ("whose", "field", "line"),
    [("off", 7, None), ("vllm", 2, None), ("sglang", 0, None), ("dynamo", 7, b"0")],
)
async def test_a_backends_own_scheduler_is_told_the_class_only_where_it_is_configured(
    gated, backend, whose, field, line
):
    """What the caller says of it counts only where nothing is configured."""
    _, client = await gated(1, admission__forward=whose)
    assert (await client.send(says("q", priority=7), X_Priority="P2")).status == 200
    assert backend.seen[0].json["priority"] == field
    assert backend.seen[0].get(b"x-dynamo-request-priority") == line


async def test_a_backend_that_knows_no_priorities_is_asked_without(gated, backend):
    async def strict(exchange) -> None:
        if "priority" in exchange.seen.json:
            await exchange.json({"error": {"message": "unknown field"}}, "400 Bad Request")
        else:
            await exchange.json(completion())

    backend.script = strict
    _, client = await gated(1, admission__forward="vllm")
    assert [(await client.send(says(f"q{n}"))).status for n in range(2)] == [200, 200]
    assert backend.calls == 3


async def test_a_burst_that_goes_quickly_may_be_longer_than_the_queue(gated):
    """Three hundred at once, by default; none is refused."""
    proxy, client = await gated(16)
    answers = await asyncio.gather(*(client.send(says(f"q{n}")) for n in range(300)))
    assert {answer.status for answer in answers} == {200}
    await until(lambda: not proxy.house.door.admission._bursts)


async def test_of_a_burst_that_does_not_go_what_is_too_many_is_refused(gated, held):
    proxy, client = await gated(1, admission__p1__depth=5)
    tasks = [ask(client, f"q{n}") for n in range(20)]
    await until(lambda: sum(task.done() for task in tasks) == 14)
    await queued(proxy, 0, 5, 0)
    assert [task.result().json["error"]["code"] for task in tasks if task.done()] == ["queue_full"] * 14
    refused = await client.send(says("one more"))  # the burst is over: at once
    assert refused.status == 429
    held.let_all()
    assert {(await task).status for task in tasks if not task.done()} <= {200}


async def test_without_bursts_the_depth_is_the_depth(gated, held):
    proxy, client = await gated(1, admission__p1__depth=5, admission__p1__burst=0)
    tasks = [ask(client, f"q{n}") for n in range(20)]
    await until(lambda: sum(task.done() for task in tasks) == 14)
    assert waiting(proxy, 1) == 5
    held.let_all()
    await asyncio.gather(*tasks)
