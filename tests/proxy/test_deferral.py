"""Refused requests of P2 that are kept and asked later, as their callers and the operator see it."""
# ruff: noqa: F811 - fixtures are imported

import asyncio
import json
import sqlite3

import pytest

from tests.admission.conftest import held  # noqa: F401
from tests.fakes.backend import Numbered, chunk
from tests.rig import Client, until

FULL = {"admission__p2__depth": 0}
SECRET_WORDS = ("the-caller-key", "a question nobody may read")


def says(text: str, **more) -> dict:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def later(client: Client, text: str, key: str = "A", prefer: str | None = "respond-async", **more):
    headers = {"X_Priority": "P2", **({} if prefer is None else {"Prefer": prefer})}
    headers.update({name: more.pop(name) for name in list(more) if name[0].isupper()})
    return client.send(says(text, **more), key=key, **headers)


@pytest.fixture
async def busy(start, session, backend, held):
    """Starts proxies of one slot, which is taken: ``proxy, client = await busy()``."""
    asked: list[asyncio.Task] = []

    async def begin(**values):
        options = {**FULL, "jobs__path": "/_jobs", "jobs__pause": 0.05, **values}
        proxy = await start(upstreams=[{"url": backend.url, "max_inflight": 1}], **options)
        client = Client(proxy.base, session)
        asked.append(asyncio.ensure_future(client.send(says("first"))))
        await held.has(1)
        return proxy, client

    yield begin
    held.let_all()
    await asyncio.gather(*asked, return_exceptions=True)


async def ended(client: Client, where: str, key: str = "A"):
    """What a job's URL says once it has ended."""
    found = []

    async def ask() -> bool:
        found[:] = [await client.send(method="GET", path=where, key=key)]
        return found[0].status != 202

    async with asyncio.timeout(15):
        while not await ask():
            await asyncio.sleep(0.02)
    return found[0]


async def test_it_is_kept_asked_when_there_is_room_and_its_answer_is_a_hit(busy, held, backend):
    _, client = await busy()
    taken = await later(client, "second")
    assert (taken.status, taken.get("Preference-Applied")) == (202, "respond-async")
    assert taken.get("Cache-Control") == "private, no-store" and int(taken.get("Retry-After")) >= 1
    where = taken.get("Location")
    assert where.startswith("/_jobs/") and taken.json == {"id": where[7:], "status": "queued", "location": where}
    waiting = await client.send(method="GET", path=where)
    assert (waiting.status, waiting.json["status"]) == (202, "queued") and waiting.get("Retry-After")
    assert held.order == ["first"]
    held.let_all()
    answer = await ended(client, where)
    assert answer.status == 200 and answer.text == "answer to second"
    assert [name for name, _ in answer.headers if name.lower().startswith(("x-cache", "cache-status"))] == []
    again = await later(client, "second")
    assert (again.status, again.cache, again.text) == (200, "HIT", "answer to second")
    assert held.order == ["first", "second"]
    assert b"prefer" not in {n.lower() for n, _ in backend.seen[-1].headers}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("nobody asked", {"prefer": None}),
        ("another preference", {"prefer": "return=minimal"}),
        ("not P2", {"X_Priority": "P1"}),
    ],
)
async def test_whoever_does_not_ask_or_is_more_urgent_is_refused_as_before(busy, held, text, options):
    _, client = await busy(admission__p1__depth=0)
    refused = await later(client, text, **options)
    assert (refused.status, refused.json["error"]["code"]) == (429, "queue_full")
    assert refused.get("Location") is None


@pytest.mark.parametrize("prefer", ["Respond-Async", "respond-async, wait=0", 'handling=lenient, respond-async; x="y"'])
async def test_the_preference_is_read_as_the_standard_says(busy, prefer):
    _, client = await busy()
    assert (await later(client, "second", prefer=prefer)).status == 202


async def test_a_request_for_another_path_is_refused(busy):
    _, client = await busy()
    refused = await client.send(says("x"), path="/v1/other", X_Priority="P2", Prefer="respond-async")
    assert refused.status == 429


async def test_another_credential_neither_reads_nor_cancels_it(busy, held):
    _, client = await busy()
    where = (await later(client, "second")).get("Location")
    for method in ("GET", "DELETE"):
        for key in ("B", None):
            other = await client.send(method=method, path=where, key=key)
            assert (other.status, other.json["error"]["code"]) == (404, "not_found")
    nothing = await client.send(method="GET", path=where[:-1] + ("A" if where[-1] != "A" else "B"))
    assert nothing.status == 404
    held.let_all()
    assert (await ended(client, where)).text == "answer to second"
    assert (await client.send(method="GET", path=where, key="B")).status == 404
    assert (await client.send(says("second"), key="B")).cache == "MISS"


async def test_who_asked_can_cancel_it_and_it_is_never_asked(busy, held):
    _, client = await busy()
    where = (await later(client, "second")).get("Location")
    gone = await client.send(method="DELETE", path=where)
    assert (gone.status, gone.body) == (204, b"")
    assert (await client.send(method="GET", path=where)).status == 404
    third = (await later(client, "third")).get("Location")
    held.let_all()
    await ended(client, third)
    assert held.order == ["first", "third"]


async def test_methods_that_mean_nothing_there_are_refused_and_the_connection_goes_on(busy):
    _, client = await busy()
    where = (await later(client, "second")).get("Location")
    wrong = await client.send({"x": 1}, method="POST", path=where)
    assert (wrong.status, wrong.get("Allow")) == (405, "GET, HEAD, DELETE")
    assert (await client.send(method="GET", path=where)).status == 202


async def test_without_a_path_the_operator_sees_it_and_no_path_is_taken(busy, held, session, backend):
    proxy, client = await busy(jobs__path=None)
    taken = await later(client, "second")
    where = taken.get("Location")
    assert where == f"{proxy.admin}/admin/jobs/{taken.json['id']}"
    admin = Client("", session)
    waiting = (await admin.send(method="GET", path=where, key=None)).json
    assert (waiting["kind"], waiting["state"], waiting["result"]) == ("deferred", "queued", None)
    held.let_all()
    async with asyncio.timeout(15):
        while (told := (await admin.send(method="GET", path=where, key=None)).json)["state"] != "done":
            await asyncio.sleep(0.02)
    assert told["result"]["status"] == 200
    assert json.loads(told["result"]["body"])["choices"][0]["message"]["content"] == "answer to second"
    assert (await admin.send(method="DELETE", path=where, key=None)).status == 200
    assert (await admin.send(method="GET", path=where, key=None)).status == 404


async def test_a_hidden_text_is_not_shown_to_the_operator(busy, held, session):
    _, client = await busy(jobs__path=None, admin__show_answers=False)
    where = (await later(client, "second")).get("Location")
    held.let_all()
    admin = Client("", session)
    async with asyncio.timeout(15):
        while (told := (await admin.send(method="GET", path=where, key=None)).json)["state"] != "done":
            await asyncio.sleep(0.02)
    assert "body" not in told["result"]


async def test_a_stream_is_given_back_as_a_stream(busy, held, backend):
    _, client = await busy()
    where = (await later(client, "second", stream=True)).get("Location")

    async def streamed(exchange):
        await exchange.events(chunk({"role": "assistant", "content": "as a stream"}), chunk(finish="stop"))

    backend.script = streamed
    held.let_all()
    answer = await ended(client, where)
    assert answer.get("Content-Type").startswith("text/event-stream")
    assert answer.text == "as a stream" and answer.events[-1] == b"[DONE]"


@pytest.mark.parametrize("status", ["500 Internal Server Error", "429 Too Many Requests"])
async def test_a_backend_that_fails_is_asked_again(busy, held, backend, status):
    _, client = await busy()
    where = (await later(client, "second")).get("Location")
    numbered, failures = Numbered(), []

    async def failing(exchange):
        if b"completions" in exchange.seen.target and len(failures) < 2:
            failures.append(1)
            await exchange.json({"error": {"message": "no"}}, status)
        else:
            await numbered(exchange)

    backend.script = failing
    held.let_all()
    answer = await ended(client, where)
    assert (answer.status, answer.text, len(failures)) == (200, "answer 1", 2)


async def test_a_backend_that_always_fails_is_asked_so_often_and_then_it_has_failed(busy, held, backend, session):
    proxy, client = await busy(jobs__attempts=3)
    where = (await later(client, "second")).get("Location")
    asked = []

    async def failing(exchange):
        if b"completions" in exchange.seen.target:
            asked.append(1)
        await exchange.json({"error": {"message": "broken", "type": "x", "code": "oops"}}, "500 Internal Server Error")

    backend.script = failing
    held.let_all()
    answer = await ended(client, where)
    assert (answer.status, answer.json["error"]["code"], len(asked)) == (500, "oops", 3)
    told = await Client(proxy.admin, session).send(method="GET", path=f"/admin/jobs/{where[7:]}", key=None)
    assert (told.json["state"], told.json["error"]["code"]) == ("failed", "oops")


async def test_a_request_that_the_backend_rejects_is_answered_with_that(busy, held, backend):
    _, client = await busy()
    where = (await later(client, "second")).get("Location")
    asked = []

    async def rejecting(exchange):
        asked.append(1)
        await exchange.json({"error": {"message": "bad", "code": "bad"}}, "400 Bad Request")

    backend.script = rejecting
    held.let_all()
    answer = await ended(client, where)
    assert (answer.status, answer.json["error"]["code"], len(asked)) == (400, "bad", 1)


async def test_there_is_a_bound_for_each_credential(busy):
    _, client = await busy(jobs__max_deferred_per_key=2)
    assert [(await later(client, f"q{n}")).status for n in range(3)] == [202, 202, 429]
    assert (await later(client, "q", key="B")).status == 202


async def test_there_is_a_bound_for_all(busy):
    _, client = await busy(jobs__max_deferred_bytes=2000)
    assert (await later(client, "short")).status == 202
    assert (await later(client, "x" * 2000)).status == 429
    assert (await later(client, "brief", key="B")).status == 202


async def test_after_a_purge_its_url_does_not_give_the_older_answer(busy, held, session):
    proxy, client = await busy(jobs__max_age=60)
    where = (await later(client, "second")).get("Location")
    held.let_all()
    assert (await ended(client, where)).status == 200
    order = {"selector": {"tags": "other"}, "mode": "soft"}
    admin = Client(proxy.admin, session)
    assert (await admin.send(order, path="/admin/purge", key=None)).status == 200
    assert (await client.send(method="GET", path=where)).status == 200
    assert (await admin.send({**order, "mode": "hard"}, path="/admin/purge", key=None)).status == 200
    gone = await client.send(method="GET", path=where)
    assert (gone.status, gone.json["error"]["code"]) == (410, "purged")
    assert (await client.send(says("second"))).cache == "HIT"


async def test_one_that_the_backend_no_longer_accepts_is_not_told_the_answer(busy, held, backend):
    _, client = await busy(access__grant_ttl=0, access__grace=0)
    where = (await later(client, "second")).get("Location")
    held.let_all()
    assert (await ended(client, where)).status == 200

    async def refusing(exchange):
        await exchange.json({"error": {"message": "no"}}, "401 Unauthorized")

    backend.script = refusing
    assert (await client.send(method="GET", path=where)).status == 404


async def test_it_is_not_asked_as_long_as_somebody_waits(busy, held):
    proxy, client = await busy()
    where = (await later(client, "later")).get("Location")
    waiting = asyncio.ensure_future(client.send(says("waits")))
    await until(lambda: len(proxy.house.door.admission.queues) == 1)
    held.let()
    await until(lambda: held.order == ["first", "waits"])
    held.let()
    await waiting
    held.let_all()
    await ended(client, where)
    assert held.order == ["first", "waits", "later"]


async def test_nothing_of_it_can_be_read_in_the_file_and_it_survives_the_proxy(busy, held, start, session, tmp_path):
    data = tmp_path / "data"
    proxy, client = await busy(store__data_dir=str(data))
    key, question = SECRET_WORDS
    where = (await later(client, question, key=key)).get("Location")
    file = data / "deferred.sqlite3"
    assert file.stat().st_mode & 0o777 == 0o600
    held.let_all()
    answer = await ended(client, where, key)
    assert answer.text == f"answer to {question}"
    stored = b"".join(path.read_bytes() for path in data.glob("deferred.sqlite3*"))
    for word in (key, question, "answer to"):
        assert word.encode() not in stored
    await proxy.running.stop()
    again = await start(store__data_dir=str(data), jobs__path="/_jobs")
    kept = await Client(again.base, session).send(method="GET", path=where, key=key)
    assert kept.body == answer.body


async def test_a_record_that_cannot_be_opened_has_failed(busy, held, tmp_path):
    data = tmp_path / "data"
    _, client = await busy(store__data_dir=str(data))
    where = (await later(client, "second")).get("Location")
    with sqlite3.connect(data / "deferred.sqlite3") as connection:
        connection.execute("UPDATE deferred SET sealed = zeroblob(length(sealed))")
    connection.close()
    held.let_all()
    answer = await ended(client, where)
    assert (answer.status, answer.json["error"]["code"]) == (500, "internal_error")
    assert held.order == ["first"]


async def test_one_that_is_being_asked_when_the_proxy_stops_is_asked_by_the_next(busy, held, start, session, tmp_path):
    data = tmp_path / "data"
    proxy, client = await busy(store__data_dir=str(data))
    where = (await later(client, "second")).get("Location")
    held.let()
    await until(lambda: held.order == ["first", "second"])
    assert (await client.send(method="GET", path=where)).json["status"] == "running"
    await proxy.running.stop()
    held.let_all()
    again = await start(store__data_dir=str(data), jobs__path="/_jobs")
    answer = await ended(Client(again.base, session), where)
    assert answer.text == "answer to second"
    assert held.order == ["first", "second", "second"]


async def test_a_rule_can_want_it_for_who_does_not_say(busy, held):
    rules = [{"match": {"model": "m"}, "set": {"defer": True}}, {"set": {"defer": False}}]
    _, client = await busy(rules=rules)
    taken = await later(client, "second", prefer=None)
    assert (taken.status, taken.get("Preference-Applied")) == (202, None)
    assert (await client.send({**says("x"), "model": "n"}, X_Priority="P2")).status == 429
    assert (await client.send({**says("y"), "model": "n"}, X_Priority="P2", Prefer="respond-async")).status == 202
    held.let_all()
    assert (await ended(client, taken.get("Location"))).text == "answer to second"
