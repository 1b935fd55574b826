"""Admin calls that begin long work: warming and replaying, through a running proxy; and those that look after it."""

import asyncio
import json
import logging

import pytest

from cacheproxy.engine import replaying
from cacheproxy.engine.traffic import read
from cacheproxy.engine.warming import Said
from cacheproxy.wiring.jobs import errands
from tests.fakes.backend import gives, plain
from tests.fakes.embedder import Chosen
from tests.proxy.doors import FULL, READ, Caller
from tests.proxy.test_embeddings import embed
from tests.rig import BODY, Client, until
from tests.test_commands import Refusing

KEY = "Bearer A"
"""The credential of `Client.chat`."""


@pytest.fixture
def admin(proxy, session) -> Caller:
    return Caller(session, proxy.admin)


@pytest.fixture
def warm(admin):
    """Warms, and waits for the end: ``job = await warm([line, …], concurrency=2)``."""
    return lambda told, **query: over(admin, "warm", told, **query)


@pytest.fixture
def replay(admin):
    return lambda told, **query: over(admin, "replay", told, **query)


def lines(told) -> bytes:
    return b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in told)


async def order(caller: Caller, call: str, told, *, key: str | None = KEY, **query) -> tuple[int, dict]:
    target = f"/admin/{call}?" + "&".join(f"{name}={value}" for name, value in query.items())
    headers = {"X_Warm_Authorization": key} if key is not None and call == "warm" else {}
    return await caller.call("POST", target, data=lines(told), **headers)


async def end_of(caller: Caller, name: str) -> dict:
    async with asyncio.timeout(10):
        while (job := (await caller.get(f"/admin/jobs/{name}"))[1])["ended_at"] is None:
            await asyncio.sleep(0.005)
    return job


async def over(caller: Caller, call: str, told, **options) -> dict:
    status, job = await order(caller, call, told, **options)
    assert status == 202, job
    return await end_of(caller, job["id"])


def bodies(number: int) -> list[dict]:
    return [{**BODY, "seed": seed} for seed in range(number)]


def own(key: str, body=BODY, **headers) -> dict:
    return {"headers": {"Authorization": key, **headers}, "body": body}


# --- warm ------------------------------------------------------------------------------------------------------------


async def test_what_was_warmed_is_a_hit_for_its_key_alone(warm, client, backend):
    job = await warm([*bodies(3), {"headers": {"X-Cache-KB": "faq"}, "body": BODY}])
    assert (job["kind"], job["state"], job["error"]) == ("warm", "done", None)
    assert job["result"] == {
        "asked": 4, "stored": 4, "not_kept": {}, "present": 0, "left": 0, "tokens": 28, "failed": [], "bad": [],
    }  # fmt: skip
    assert job["progress"] == {
        "total": 4, "bad": 0, "done": 4, "asked": 4, "stored": 4, "present": 0, "failed": 0, "tokens": 28,
    }  # fmt: skip
    assert [(await client.chat(seed=seed)).cache for seed in range(3)] == ["HIT"] * 3
    assert (await client.chat(X_Cache_KB="faq")).cache == "HIT"
    assert (await client.chat(seed=1, key="B")).cache == "MISS"
    assert [seen.all(b"authorization") for seen in backend.seen[:4]] == [[b"Bearer A"]] * 4
    assert all(seen.all(b"x-priority") == [] for seen in backend.seen)


async def test_the_reply_says_where_the_job_is(admin, session):
    async with session.post(
        f"{admin._base}/admin/warm", data=lines(bodies(1)), headers={"X-Warm-Authorization": KEY}
    ) as answer:
        job = await answer.json()
        assert (answer.status, answer.headers["Location"]) == (202, f"/admin/jobs/{job['id']}")
    assert (await end_of(admin, job["id"]))["state"] == "done"
    status, told = await admin.get("/admin/jobs")
    assert (status, [one["id"] for one in told["jobs"]]) == (200, [job["id"]])
    assert "result" not in told["jobs"][0]


async def test_sent_again_it_costs_nothing(warm, backend):
    job = await warm(bodies(5), budget_requests=2)
    assert (job["result"]["stored"], job["result"]["left"]) == (2, 3)
    job = await warm(bodies(5), budget_requests=3)
    assert (job["result"]["present"], job["result"]["stored"], job["result"]["left"]) == (2, 3, 0)
    job = await warm(bodies(5), budget_requests=0)
    assert job["result"]["left"] == 5
    assert len(backend.seen) == 5


async def test_tokens_are_a_budget_too(warm):
    result = (await warm(bodies(9), budget_tokens=8, concurrency=1))["result"]
    assert (result["asked"], result["left"], result["tokens"]) == (2, 7, 14)


async def test_nothing_is_begun_when_the_time_is_over(warm, backend):
    result = (await warm(bodies(3), budget_seconds="0"))["result"]
    assert (result["asked"], result["left"], backend.seen) == (0, 3, [])


async def test_the_credential_of_a_line_is_its_own(warm, client, backend):
    """That of the call is for the others; never both."""
    told = [own("Bearer B", {**BODY, "seed": 1}), {"headers": {"x-api-key": "C"}, "body": {**BODY, "seed": 2}}, BODY]
    assert (await warm(told, concurrency=1))["result"]["stored"] == 3
    who = [(seen.all(b"authorization"), seen.all(b"x-api-key")) for seen in backend.seen]
    assert who == [([b"Bearer B"], []), ([], [b"C"]), ([b"Bearer A"], [])]
    assert (await client.chat(seed=1, key="B")).cache == "HIT"
    assert (await client.chat(seed=1)).cache == "MISS"


async def test_without_a_credential_nobody_would_gain(warm, admin, client, backend):
    told = [BODY, own(KEY)]
    result = (await warm(told, key=None))["result"]
    assert (result["stored"], [one["line"] for one in result["bad"]]) == (1, [1])
    assert "X-Warm-Authorization" in result["bad"][0]["why"]
    status, error = await order(admin, "warm", [BODY], key=None)
    assert (status, error["error"]["code"]) == (400, "invalid_request")
    assert "line 1 has no `Authorization`" in error["error"]["message"]
    assert (await order(admin, "warm", [BODY], key=" "))[0] == 400
    assert len(backend.seen) == 1
    assert (await warm([BODY], key=None, anonymous="yes"))["result"]["stored"] == 1
    assert (await client.chat(key=None)).cache == "HIT"


async def test_credentials_are_told_nowhere(start, session, caplog):
    caplog.set_level(logging.DEBUG)
    proxy = await start(admin__token=FULL)
    admin = Caller(session, proxy.admin, FULL)
    job = await over(admin, "warm", [own("Bearer SECRET-7"), b"{SECRET-7", BODY], key="Bearer SECRET-8")
    told = json.dumps([job, await admin.get("/admin/jobs"), await admin.get("/admin/stats")]) + caplog.text
    assert job["result"]["stored"] == 2
    assert not any(word in told for word in ("SECRET", FULL, BODY["messages"][0]["content"]))


async def test_what_is_not_kept_says_why(warm, backend):
    async def script(exchange):
        if exchange.seen.json.get("seed") == 7:
            await exchange.json({"choices": [{"message": {"content": "x"}, "finish_reason": "length", "index": 0}]})
        else:
            await plain(exchange)

    backend.script = script
    told = [
        own(KEY, {**BODY, "seed": 7}), own(KEY, BODY, **{"Cache-Control": "no-store"}),
        {"path": "/v1/files", "body": {}}, own(KEY, BODY),
    ]  # fmt: skip
    result = (await warm(told))["result"]
    assert (result["asked"], result["stored"]) == (3, 1)
    assert result["not_kept"] == {"finish_reason": 1, "no_store": 1, "uncacheable_path": 1}
    assert {seen.target for seen in backend.seen} == {b"/v1/chat/completions"}


async def test_a_stream_counts_as_stored_once_it_was_proven_whole(warm, client, backend):
    async def script(exchange):
        if exchange.seen.json.get("seed") == 1:
            await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
            await exchange.chunk(b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n')
            await exchange.end()
        else:
            await plain(exchange)

    backend.script = script
    told = [{**BODY, "stream": True, "seed": seed} for seed in (1, 2)]
    result = (await warm(told))["result"]
    assert (result["asked"], result["stored"], result["tokens"]) == (2, 1, 7)
    assert (await client.chat(seed=2)).cache == "HIT"


async def test_hidden_hits_are_no_riddle(start, session, backend):
    proxy = await start(access__hide_hits=True)
    admin = Caller(session, proxy.admin)
    await over(admin, "warm", bodies(2))
    assert (await over(admin, "warm", bodies(3)))["result"]["present"] == 2


async def test_failures_and_bad_lines_are_told_by_number(warm, backend):
    async def script(exchange):
        if exchange.seen.json["seed"] == 1:
            await exchange.json({"error": {"message": "SECRET-7"}}, "400 Bad Request")
        elif exchange.seen.json["seed"] == 2:
            exchange.cut()
        else:
            await plain(exchange)

    backend.script = script
    job = await warm([b"{", *bodies(3), b"[]", b"", {"x": 1}, {"body": {**BODY}, "path": "/a b"}])
    assert job["state"] == "done"
    assert job["result"]["failed"] == [{"line": 3, "status": 400}, {"line": 4, "status": 502}]
    assert [one["line"] for one in job["result"]["bad"]] == [1, 5, 7, 8]
    assert "SECRET" not in json.dumps(job)
    assert job["progress"]["failed"] == 2


async def test_the_same_twice_at_once_arrives_once(admin, backend):
    backend.script = gate = Gate()
    _, job = await order(admin, "warm", [BODY, {**BODY, "stream": True}, BODY])
    await until(lambda: gate.waiting == 1)
    gate.open.set()
    result = (await end_of(admin, job["id"]))["result"]
    assert (result["asked"], result["stored"], result["present"], len(backend.seen)) == (1, 1, 2, 1)


async def test_a_stream_that_breaks_off_has_failed(warm, backend):
    async def script(exchange):
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        await exchange.chunk(b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n')
        exchange.cut()

    backend.script = script
    job = await warm([{**BODY, "stream": True}])
    assert (job["state"], job["result"]["failed"]) == ("done", [{"line": 1, "status": 0}])


async def test_a_fault_of_ours_costs_one_line(warm, proxy, monkeypatch, caplog):
    answer = proxy.house.engine.pipeline.answer

    async def faulty(call):
        if b'"seed": 1' in call.body:
            raise RuntimeError("SECRET-7")
        return await answer(call)

    monkeypatch.setattr(proxy.house.engine.pipeline, "answer", faulty)
    result = (await warm(bodies(3)))["result"]
    assert (result["stored"], result["failed"]) == (2, [{"line": 2, "status": 500}])
    assert "SECRET-7" not in caplog.text


async def test_how_long_one_is_put_off_is_heard(proxy, backend):
    ask = errands(proxy.house).ask
    backend.script = gives({"error": {}}, "429 Too Many Requests", b"retry-after: 7\r\n")
    assert await ask(read(1, json.dumps(BODY).encode()), ()) == Said(429, pause=7.0)


async def test_a_batch_costs_what_it_says(warm, backend):
    backend.script = embed
    result = (await warm([{"path": "/v1/embeddings", "body": {"model": "m", "input": ["a", "b"]}}]))["result"]
    assert (result["stored"], result["tokens"] > 0) == (1, True)


async def test_what_is_put_off_is_asked_again(warm, backend):
    backend.script = refusing = Refusing(2)
    result = (await warm(bodies(1)))["result"]
    assert (result["stored"], result["failed"], refusing.left) == (1, [], 0)


class Gate:
    """A backend that holds its answers back. `waiting`: callers that wait; `gone`: those that left meanwhile."""

    def __init__(self) -> None:
        self.open, self.waiting, self.gone = asyncio.Event(), 0, 0

    async def __call__(self, exchange) -> None:
        self.waiting += 1
        let, left = asyncio.ensure_future(self.open.wait()), asyncio.ensure_future(exchange.gone())
        await asyncio.wait([let, left], return_when=asyncio.FIRST_COMPLETED)
        self.waiting -= 1
        if left.done():
            self.gone += 1
            let.cancel()
        else:
            left.cancel()
            await asyncio.wait([left])
            await plain(exchange)


async def test_no_more_than_so_many_are_asked_at_once(admin, backend):
    backend.script = gate = Gate()
    _, job = await order(admin, "warm", bodies(9), concurrency=3)
    await until(lambda: gate.waiting == 3)
    assert (await admin.get(f"/admin/jobs/{job['id']}"))[1]["state"] == "running"
    gate.open.set()
    assert (await end_of(admin, job["id"]))["result"]["stored"] == 9
    assert len(backend.seen) == 9


async def test_a_job_is_ended_and_tells_how_far_it_came(admin, client, backend):
    backend.script = gate = Gate()
    gate.open.set()
    assert (await over(admin, "warm", bodies(2)))["state"] == "done"
    gate.open.clear()
    _, job = await order(admin, "warm", bodies(9), concurrency=2)
    await until(lambda: gate.waiting == 2)
    status, told = await admin.call("DELETE", f"/admin/jobs/{job['id']}")
    assert (status, told["state"], told["error"]["code"]) == (200, "failed", "cancelled")
    assert (told["result"]["present"], told["result"]["left"], told["result"]["asked"]) == (2, 7, 0)
    await until(lambda: gate.gone == 2)  # the backend is let go of
    assert (await admin.call("DELETE", f"/admin/jobs/{job['id']}"))[0] == 200
    assert (await admin.get(f"/admin/jobs/{job['id']}"))[0] == 404


async def test_jobs_end_when_a_drain_begins(start, session, backend):
    """Not with it: what they hold of the backend is for those who still ask."""
    proxy = await start(drain__grace=1000)
    admin = Caller(session, proxy.admin)
    backend.script = gate = Gate()
    _, job = await order(admin, "warm", bodies(3))
    await until(lambda: gate.waiting == 3)
    serving = asyncio.create_task(proxy.running.serve())
    await admin.post("/admin/drain")
    assert (await end_of(admin, job["id"]))["error"] == {"code": "draining", "message": "The proxy shut down."}
    proxy.running._now.set()
    await serving


async def test_a_drain_ends_jobs_and_says_so(start, session, backend):
    proxy = await start(drain__grace=0, drain__timeout=0.1)
    admin = Caller(session, proxy.admin)
    backend.script = gate = Gate()
    _, job = await order(admin, "warm", bodies(3))
    await until(lambda: gate.waiting == 3)
    jobs = proxy.house.jobs
    serving = asyncio.create_task(proxy.running.serve())
    await admin.post("/admin/drain")
    await serving
    assert (jobs.find(job["id"]).state, jobs.find(job["id"]).error[0]) == ("failed", "draining")
    await until(lambda: gate.gone == 3)


async def test_while_draining_no_job_is_taken(proxy, admin):
    await proxy.house.jobs.drain()
    for call in ("warm", "replay"):
        status, told = await order(admin, call, [BODY])
        assert (status, told["error"]["code"]) == (503, "draining")


async def test_there_are_only_so_many(start, session, backend):
    proxy = await start(jobs__max_jobs=2, jobs__max_bytes=500)
    admin = Caller(session, proxy.admin)
    backend.script = gate = Gate()
    for _ in range(2):
        assert (await order(admin, "warm", bodies(1)))[0] == 202
    status, told = await order(admin, "warm", bodies(1))
    assert (status, told["error"]["code"]) == (429, "queue_full")
    assert (await order(admin, "warm", bodies(9)))[0] == 413
    gate.open.set()


@pytest.mark.parametrize(
    ("query", "names"),
    [("concurrency=0", "concurrency"), ("concurrency=257", "concurrency"), ("concurrency=1.5", "concurrency"),
     ("budget_requests=-1", "budget_requests"), ("budget_tokens=x", "budget_tokens"), ("budget_tokens=٣", "budget_tokens"),
     ("budget_seconds=1h", "budget_seconds"), ("anonymous=true", "anonymous"), ("speed=1", "speed"),
     ("concurrency=1&concurrency=2", "concurrency"), ("budget_requests=" + "9" * 5000, "budget_requests")],
)  # fmt: skip
async def test_what_cannot_be_meant_begins_nothing(admin, backend, query, names):
    status, told = await admin.call("POST", f"/admin/warm?{query}", data=lines([BODY]), X_Warm_Authorization=KEY)
    assert (status, told["error"]["param"]) == (400, names)
    assert (await admin.get("/admin/jobs"))[1] == {"jobs": []}


@pytest.mark.parametrize("body", [b"", b"\n\n", b"{", b"[1]\n{}"])
@pytest.mark.parametrize("call", ["warm", "replay"])
async def test_a_body_without_a_request_begins_nothing(admin, call, body):
    status, told = await admin.call("POST", f"/admin/{call}", data=body, X_Warm_Authorization=KEY)
    assert (status, told["error"]["param"]) == (400, "body")


async def test_a_token_that_reads_looks_after_jobs_and_begins_none_that_asks(start, session, backend):
    proxy = await start(admin__token=FULL, admin__read_token=READ)
    full, reader = Caller(session, proxy.admin, FULL), Caller(session, proxy.admin, READ)
    job = await over(full, "warm", bodies(1))
    assert (await reader.get(f"/admin/jobs/{job['id']}"))[1]["result"]["stored"] == 1
    assert (await order(reader, "warm", bodies(1)))[0] == 403
    assert (await reader.call("DELETE", f"/admin/jobs/{job['id']}"))[0] == 403
    assert (await over(reader, "replay", [BODY]))["state"] == "done"
    assert len(backend.seen) == 1


# --- replay ----------------------------------------------------------------------------------------------------------


async def test_a_log_is_replayed_and_nobody_asked(replay, backend, client):
    told = [
        {"body": BODY, "time": at, "latency": 1.5, "usage": {"prompt_tokens": 4}} for at in (30, 10, 20)
    ]  # fmt: skip
    job = await replay([*told, {"body": BODY, "path": "/v1/x"}, b"{"])
    assert job["result"] == {
        "requests": 4, "bad_lines": 1, "timed": True, "hit_rate": 0.5, "exact": {"hits": 2, "rate": 0.5},
        "semantic": None, "misses": {"absent": 1}, "bypasses": {"uncacheable_path": 1},
        "tokens": {"saved": 8, "of": 12}, "seconds": {"saved": 3.0, "of": 4.5},
    }  # fmt: skip
    assert job["progress"] == {"total": 4, "bad": 1, "done": 4}
    assert backend.seen == []
    assert (await client.chat()).cache == "MISS"


async def test_it_is_by_meaning_where_the_proxy_answers_so(start, session, backend):
    embedder, (one, other) = Chosen(), ("how do I reset my password", "how do I reset my password please")
    embedder.near(one, 1.0)
    embedder.near(other, 0.95)
    proxy = await start(embedder=embedder, semantic__threshold=0.9)
    admin = Caller(session, proxy.admin)
    told = [{"model": "m", "messages": [{"role": "user", "content": text}]} for text in (one, other, one)]
    job = await over(admin, "replay", told)
    assert (job["result"]["semantic"]["hits"], job["result"]["exact"]["hits"]) == (1, 1)
    assert (job["progress"]["questions"], job["progress"]["embedded"]) == (2, 2)
    assert (await over(admin, "replay", told, semantic="off"))["result"]["semantic"] is None
    proxy.house.meaning.threshold = 0.99
    assert (await over(admin, "replay", told, semantic="on"))["result"]["semantic"]["hits"] == 0
    assert backend.seen == []


async def test_by_meaning_needs_the_layer(admin):
    status, told = await order(admin, "replay", [BODY], semantic="on")
    assert (status, told["error"]["param"]) == (400, "semantic")
    assert (await order(admin, "replay", [BODY], semantic="maybe"))[0] == 400


async def test_a_model_that_is_not_there_is_said(start, session):
    proxy = await start(embedder=Chosen())
    proxy.house.meaning.embedder._embedder = None
    job = await over(Caller(session, proxy.admin), "replay", [BODY])
    assert (job["state"], job["error"]) == (
        "failed", {"code": "trouble", "message": "the embedding model is not loaded"},
    )  # fmt: skip
    proxy.house.meaning.embedder._embedder = Chosen()


async def test_more_lines_than_a_call_takes_are_refused(admin, monkeypatch):
    from cacheproxy.http import traffic

    monkeypatch.setattr(traffic, "MOST_REPLAYED", 2)
    monkeypatch.setattr(traffic, "MOST_WARMED", 2)
    for call in ("warm", "replay"):
        assert (await order(admin, call, bodies(2)))[0] == 202
        status, told = await order(admin, call, bodies(3))
        assert (status, told["error"]["param"]) == (400, "body")


async def test_a_replay_gives_way_to_callers(admin, client, proxy, monkeypatch):
    """After each slice of its work it rests, here for ever."""
    monkeypatch.setattr(replaying, "SLICE", 0.0)
    monkeypatch.setattr(replaying, "REST", 3600.0)
    _, job = await order(admin, "replay", bodies(3))
    await until(lambda: proxy.house.jobs.find(job["id"]).counts.get("done") == 1)
    await client.chat()
    assert (await client.chat()).cache == "HIT"
    _, told = await admin.call("DELETE", f"/admin/jobs/{job['id']}")
    assert (told["state"], told["progress"], told["result"]) == ("failed", {"total": 3, "bad": 0, "done": 1}, None)


async def test_it_says_what_the_proxy_does(admin, session, proxy, backend):
    """The same requests, warmed, are the hits that a replay told of."""
    told = [*bodies(3), *bodies(2)]
    told = (await over(admin, "replay", told))["result"]
    client = Client(proxy.base, session)
    real = [(await client.chat(body)).cache for body in [*bodies(3), *bodies(2)]]
    assert (told["exact"]["hits"], real.count("HIT")) == (2, 2)
