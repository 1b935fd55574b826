"""Removing answers: once a purge has been acknowledged, no older answer is served or stored, not even by a request
that was already running (CONTRACT 6.6)."""

import asyncio
import json

import pytest

from cacheproxy.engine import batch
from cacheproxy.errors import Trouble
from tests.fakes.backend import Numbered, chunk, completion, gives
from tests.rig import BODY, Client, until

EVERYTHING = {"selector": {"all": True}, "confirm": "purge all"}


class Admin:
    """Orders purges at a proxy."""

    def __init__(self, session, base: str) -> None:
        self._session, self._base = session, base

    async def call(self, document=None, path: str = "/admin/purge", method: str = "POST") -> tuple[int, dict]:
        data = document if isinstance(document, bytes) or document is None else json.dumps(document)
        async with self._session.request(method, self._base + path, data=data) as answer:
            return answer.status, await answer.json()

    async def purge(self, document) -> dict:
        status, told = await self.call(document)
        assert status == 200, told
        return told


@pytest.fixture
def numbered(backend):
    backend.script = Numbered()
    return backend


@pytest.fixture
def admin(proxy, session) -> Admin:
    return Admin(session, proxy.admin)


SELECTORS = {
    "tags of the request": {"tags": "faq"},
    "tags of the backend": {"tags": ["given"]},
    "a knowledge base": {"kb": "handbook"},
    "a model": {"model": "special"},
    "a namespace": {"namespace": "ours"},
}


@pytest.mark.parametrize("name", SELECTORS)
async def test_what_is_meant_is_gone_and_the_rest_is_there(admin, client, backend, name):
    answered = completion("x")
    plain, given = gives(answered), gives(answered, extra=b"Cache-Tag: given, more\r\n")

    async def script(exchange) -> None:
        await (given if exchange.seen.json["model"] == "tagged" else plain)(exchange)

    backend.script = script
    requests = {
        "tags of the request": {"X_Cache_Tags": "faq, b"},
        "tags of the backend": {"model": "tagged"},
        "a knowledge base": {"X_Cache_KB": "handbook@7"},
        "a model": {"model": "special"},
        "a namespace": {"X_Cache_Namespace": "ours"},
    }
    for asked in requests.values():
        await client.chat(**asked)
    assert await admin.purge({"selector": SELECTORS[name], "dry_run": True}) == {"matched": 1, "purged": 0, "epoch": 0}
    assert {(await client.chat(**asked)).cache for asked in requests.values()} == {"HIT"}
    assert await admin.purge({"selector": SELECTORS[name]}) == {"matched": 1, "purged": 1, "epoch": 1}
    caches = {key: (await client.chat(**asked)).cache for key, asked in requests.items()}
    assert caches == {key: "MISS" if key == name else "HIT" for key in requests}


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("a%40b", "a@b"), ("a%40b@7", "a@b"), ("a%40b@7", "a@b@7"), ("%F0%9F%98%80%25%2C", "😀%,"), ("x, y@1", "y")],
)
async def test_names_of_knowledge_bases_may_be_any_text(admin, client, backend, asked, meant):
    """CONTRACT section 2: in headers some signs are percent-encoded; in the selector a name is what it is."""
    await client.chat(X_Cache_KB=asked)
    await client.chat(X_Cache_KB="other")
    assert (await admin.purge({"selector": {"kb": meant}}))["matched"] == 1
    assert (await client.chat(X_Cache_KB=asked)).cache == "MISS"
    assert (await client.chat(X_Cache_KB="other")).cache == "HIT"


async def test_one_answer_by_its_id(admin, client, numbered):
    await client.chat()
    entry = (await client.chat()).get("x-cache-entry-id")
    other = (await client.chat(seed=1)).get("x-cache-entry-id")
    assert (await admin.call(path=f"/admin/entries/{entry}", method="DELETE"))[0] == 200
    assert (await client.chat(seed=1)).cache == "HIT"
    assert (await client.chat()).cache == "MISS"
    assert await admin.purge({"selector": {"entry_ids": [other, "unknown"]}}) == {"matched": 1, "purged": 1, "epoch": 2}
    assert (await client.chat(seed=1)).cache == "MISS"
    status, told = await admin.call(path="/admin/entries/unknown", method="DELETE")
    assert (status, told["error"]["code"]) == (404, "not_found")


async def test_softly_purged_answers_are_stale_from_now(start, session, numbered):
    proxy = await start(exact__stale_while_revalidate=600)
    client, admin = Client(proxy.base, session), Admin(session, proxy.admin)
    await client.chat()
    told = await admin.purge({"selector": {"model": "m"}, "mode": "soft"})
    assert (told["matched"], told["purged"]) == (1, 1)
    stale = await client.chat()
    assert (stale.cache, stale.text, stale.get("x-cache-reason")) == ("STALE", "answer 1", "refreshed")
    await until(lambda: proxy.house.engine.refresher.running == 0)
    fresh = await client.chat()
    assert (fresh.cache, fresh.text) == ("HIT", "answer 2")


async def test_a_softly_purged_answer_still_helps_when_the_backend_fails(start, session, numbered, backend):
    proxy = await start(exact__stale_if_error=600)
    client, admin = Client(proxy.base, session), Admin(session, proxy.admin)
    await client.chat()
    await admin.purge({**EVERYTHING, "mode": "soft"})
    backend.script = gives({"error": {"message": "x"}}, "503 Service Unavailable")
    rescued = await client.chat()
    assert (rescued.cache, rescued.text, rescued.get("x-cache-reason")) == ("STALE", "answer 1", "backend_failed")
    await admin.purge(EVERYTHING)
    assert (await client.chat()).status == 503


class Held:
    """A backend that holds an answer until `go`."""

    def __init__(self, backend) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()
        self.inner = Numbered()
        backend.script = self

    async def __call__(self, exchange) -> None:
        if exchange.seen.method == b"POST":
            self.asked.set()
            await self.go.wait()
        await self.inner(exchange)


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("mode", ["hard", "soft"])
async def test_an_answer_under_way_goes_to_its_caller_and_to_nobody_later(proxy, admin, client, backend, stream, mode):
    held = Held(backend)
    running = asyncio.create_task(client.chat(stream=stream, X_Cache_Tags="faq"))
    await held.asked.wait()
    await admin.purge({"selector": {"tags": "faq"}, "mode": mode})
    held.go.set()
    answer = await running
    assert (answer.status, answer.text) == (200, "answer 1")
    assert proxy.house.store.census().entries == 0
    again = await client.chat(stream=stream, X_Cache_Tags="faq")
    assert (again.cache, again.text) == ("MISS", "answer 2")
    assert (await client.chat(X_Cache_Tags="faq")).cache == "HIT"


async def test_a_purge_in_the_middle_of_a_stream(proxy, admin, client, backend):
    half, go = asyncio.Event(), asyncio.Event()

    async def slow(exchange) -> None:
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        await exchange.chunk(chunk({"role": "assistant", "content": "old"}))
        half.set()
        await go.wait()
        await exchange.chunk(chunk({}, "stop") + b"data: [DONE]\n\n")
        await exchange.end()

    backend.script = slow
    running = asyncio.create_task(client.chat(stream=True))
    await half.wait()
    await admin.purge(EVERYTHING)
    go.set()
    assert (await running).text == "old"
    assert proxy.house.store.census().entries == 0


async def test_a_purge_that_does_not_mean_it_leaves_an_answer_under_way_alone(admin, client, backend):
    held = Held(backend)
    running = asyncio.create_task(client.chat(X_Cache_Tags="faq"))
    await held.asked.wait()
    await admin.purge({"selector": {"tags": "other"}})
    held.go.set()
    await running
    assert (await client.chat(X_Cache_Tags="faq")).cache == "HIT"


async def test_a_hit_that_waits_for_its_callers_proof_is_not_served(clock, start, session, backend):
    """The stored answer is in hand, the purge is acknowledged while the credential is being proven."""
    proxy = await start(access__grant_ttl=1)
    client, admin = Client(proxy.base, session), Admin(session, proxy.admin)
    numbered, proving, go = Numbered(), asyncio.Event(), asyncio.Event()

    async def script(exchange) -> None:
        if exchange.seen.method == b"GET":
            proving.set()
            await go.wait()
        await numbered(exchange)

    backend.script = script
    await client.chat()
    clock.time += 60
    running = asyncio.create_task(client.chat())
    await proving.wait()
    await admin.purge(EVERYTHING)
    go.set()
    answer = await running
    assert (answer.cache, answer.text, answer.get("x-cache-reason")) == ("MISS", "answer 2", "purged")


async def test_what_began_before_a_purge_is_from_before_it(proxy, admin, client, backend):
    """A caller may have read its documents before it sent its request: what counts is when that began to arrive."""
    backend.script = Numbered()
    body = json.dumps({**BODY, "seed": 1}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer A\r\nX-Cache-KB: handbook\r\n"
    head += b"Content-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    writer.write(head + body[:20])
    await until(lambda: proxy.house.proxy.running == 1)
    await admin.purge({"selector": {"kb": "handbook"}})
    writer.write(body[20:])
    assert b"answer 1" in await reader.read()
    writer.close()
    assert (await client.chat(seed=1, X_Cache_KB="handbook")).text == "answer 2"


async def test_a_batch_that_waits_for_its_callers_proof_is_not_served_from_the_store(clock, start, session, backend):
    proxy = await start(access__grant_ttl=1)
    client, admin = Client(proxy.base, session), Admin(session, proxy.admin)
    proving, go, made = asyncio.Event(), asyncio.Event(), 0

    async def embed(exchange) -> None:
        nonlocal made
        if exchange.seen.method == b"GET":
            proving.set()
            await go.wait()
            await exchange.json({"object": "list", "data": []})
            return
        made += 1
        data = [{"object": "embedding", "index": i, "embedding": [float(made)]} for i in range(2)]
        usage = {"prompt_tokens": 2, "total_tokens": 2}
        await exchange.json({"object": "list", "data": data, "model": "e", "usage": usage})

    backend.script = embed
    await client.send({"model": "e", "input": ["a", "b"]}, path="/v1/embeddings")
    clock.time += 60
    running = asyncio.create_task(client.send({"model": "e", "input": ["a", "b"]}, path="/v1/embeddings"))
    await proving.wait()
    await admin.purge(EVERYTHING)
    go.set()
    answer = await running
    assert (answer.cache, made) == ("MISS", 2)


async def test_an_answer_that_would_help_is_not_used_once_it_is_purged(start, session, numbered, backend):
    """The backend is failing, the stored answer is meant to stand in, and is purged before the failure is known."""
    proxy = await start(exact__stale_if_error=600)
    client, admin = Client(proxy.base, session), Admin(session, proxy.admin)
    await client.chat()
    await admin.purge({**EVERYTHING, "mode": "soft"})
    held = Held(backend)
    held.inner = gives({"error": {"message": "x"}}, "503 Service Unavailable")
    running = asyncio.create_task(client.chat())
    await held.asked.wait()
    await admin.purge(EVERYTHING)
    held.go.set()
    assert (await running).status == 503


async def test_a_refresh_under_way_stores_nothing(clock, start, session, backend):
    proxy = await start(exact__stale_while_revalidate=600)
    client, admin = Client(proxy.base, session), Admin(session, proxy.admin)
    backend.script = Numbered()
    await client.chat(X_Cache_TTL="60")
    clock.time += 61
    held = Held(backend)
    assert (await client.chat()).cache == "STALE"
    await held.asked.wait()
    await admin.purge(EVERYTHING)
    held.go.set()
    await until(lambda: proxy.house.engine.refresher.running == 0)
    assert proxy.house.store.census().entries == 0


async def test_a_batch_under_way_stores_nothing_and_uses_nothing_old(proxy, admin, client, backend):
    """Of a batch one input is stored; while the backend computes the other, both are purged."""
    asked, go = asyncio.Event(), asyncio.Event()
    calls: list[list[str]] = []

    async def embed(exchange) -> None:
        texts = exchange.seen.json["input"]
        texts = [texts] if isinstance(texts, str) else texts
        calls.append(texts)
        if len(calls) == 2:
            asked.set()
            await go.wait()
        data = [
            {"object": "embedding", "index": i, "embedding": [float(len(calls)), float(i)]} for i in range(len(texts))
        ]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        await exchange.json({"object": "list", "data": data, "model": "e", "usage": usage})

    backend.script = embed

    async def ask(texts):
        return await client.send({"model": "e", "input": texts}, path="/v1/embeddings")

    await ask("a")
    running = asyncio.create_task(ask(["a", "b"]))
    await asked.wait()
    await admin.purge({"selector": {"model": "e"}})
    go.set()
    answer = await running
    assert answer.status == 200
    assert answer.cache == "MISS"
    assert calls == [["a"], ["b"], ["a", "b"]]  # what was purged meanwhile is no part of the answer
    assert [one["embedding"][0] for one in answer.json["data"]] == [3.0, 3.0]
    assert proxy.house.store.census().entries == 0


async def test_a_batch_that_is_being_put_together_is_not_served(proxy, admin, client, backend, monkeypatch):
    """A large one is put together beside the loop; meanwhile its parts are purged."""
    at, go, made = asyncio.Event(), asyncio.Event(), 0
    aside = batch.aside

    async def held(size, work):
        done = await aside(size, work)
        if made == 1:
            at.set()
            await go.wait()
        return done

    async def embed(exchange) -> None:
        nonlocal made
        made += 1
        data = [{"object": "embedding", "index": i, "embedding": [float(made)]} for i in range(2)]
        usage = {"prompt_tokens": 2, "total_tokens": 2}
        await exchange.json({"object": "list", "data": data, "model": "e", "usage": usage})

    backend.script = embed
    asked = {"model": "e", "input": ["a", "b"]}
    await client.send(asked, path="/v1/embeddings")
    monkeypatch.setattr(batch, "aside", held)
    running = asyncio.create_task(client.send(asked, path="/v1/embeddings"))
    await at.wait()
    await admin.purge(EVERYTHING)
    go.set()
    assert ((await running).cache, made) == ("MISS", 2)


async def test_nothing_comes_back_after_a_kill(spawn, backend, session, tmp_path):
    """Acknowledged means on the disk too."""
    backend.script = Numbered()
    directory = str(tmp_path / "data")
    first = await spawn("--data-dir", directory)
    client, admin = Client(first.base, session), Admin(session, first.admin)
    for seed in range(20):
        await client.chat(seed=seed, X_Cache_Tags="even" if seed % 2 == 0 else "odd")
    assert (await admin.purge({"selector": {"tags": "odd"}}))["matched"] == 10
    first.process.kill()
    first.process.wait()
    second = await spawn("--data-dir", directory)
    client = Client(second.base, session)
    for seed in range(20):
        cache = (await client.chat(seed=seed, X_Cache_Tags="even" if seed % 2 == 0 else "odd")).cache
        assert cache == ("HIT" if seed % 2 == 0 else "MISS")


async def test_what_cannot_be_removed_is_not_acknowledged(proxy, admin, client, backend, monkeypatch):
    await client.chat()
    whole = type(proxy.house.store).fell

    async def failing(*_):
        raise Trouble("the disk is full: secret-path")

    monkeypatch.setattr(type(proxy.house.store), "fell", failing)
    status, told = await admin.call(EVERYTHING)
    assert (status, told["error"]["code"]) == (503, "store_trouble")
    assert "secret-path" not in json.dumps(told)
    monkeypatch.setattr(type(proxy.house.store), "fell", whole)
    assert (await client.chat()).cache == "MISS", "nothing was promised; it holds here all the same"
    assert (await admin.purge(EVERYTHING))["matched"] == 1


@pytest.mark.parametrize(
    ("document", "code", "param"),
    [
        (b"{", "invalid_json", None),
        (b"", "invalid_json", None),
        ({}, "invalid_request", "selector"),
        ({"selector": {"all": True}}, "invalid_request", "confirm"),
        ({"selector": {"tag": "x"}}, "invalid_request", "selector.tag"),
        ({"selector": {"tags": "x"}, "mode": "mild"}, "invalid_request", "mode"),
    ],
)
async def test_an_order_that_is_none_removes_nothing(admin, client, backend, document, code, param):
    await client.chat()
    status, told = await admin.call(document)
    assert (status, told["error"]["code"], told["error"]["param"]) == (400, code, param)
    assert (await client.chat()).cache == "HIT"


async def test_only_the_operator_may_purge(start, session, backend):
    """B85."""
    proxy = await start(admin__token="a-long-admin-token")
    client, admin = Client(proxy.base, session), Admin(session, proxy.admin)
    await client.chat()
    assert (await admin.call(EVERYTHING))[0] == 401
    assert (await admin.call(path="/admin/entries/x", method="DELETE"))[0] == 401
    assert (await client.chat()).cache == "HIT"
    headers = {"Authorization": "Bearer a-long-admin-token"}
    async with session.post(proxy.admin + "/admin/purge", data=json.dumps(EVERYTHING), headers=headers) as answer:
        assert answer.status == 200
    assert (await client.chat()).cache == "MISS"


async def test_purges_are_counted(proxy, admin, client, session, backend):
    await client.chat()
    await admin.purge(EVERYTHING)
    await admin.purge({**EVERYTHING, "mode": "soft"})
    async with session.get(proxy.admin + "/metrics") as answer:
        text = await answer.text()
    assert 'cacheproxy_purges_total{mode="hard"} 1.0' in text
    assert 'cacheproxy_purges_total{mode="soft"} 1.0' in text
    assert "cacheproxy_purged_answers_total 1.0" in text


async def test_readers_at_full_speed_never_see_an_older_answer(start, session, backend, tmp_path):
    """Each answer says which version it was made from. From the moment a purge has returned, no request that begins
    then is given an older one; memory and disk both."""
    proxy = await start(store__data_dir=str(tmp_path), store__memory_bytes="64KiB")
    client, admin = Client(proxy.base, session), Admin(session, proxy.admin)
    current, acknowledged, over = 0, 0, False

    async def versioned(exchange) -> None:
        made_from = current
        await asyncio.sleep(0)
        await exchange.json(completion(f"{made_from}"))

    backend.script = versioned
    seen = {"HIT": 0, "MISS": 0}

    async def read(number: int) -> None:
        while not over:
            least = acknowledged
            answer = await client.send({**BODY, "seed": number % 8}, X_Cache_KB="handbook")
            assert int(answer.text) >= least
            seen[answer.cache] += 1

    readers = [asyncio.create_task(read(number)) for number in range(12)]
    for version in range(1, 40):
        hits = seen["HIT"]
        current = version
        await admin.purge({"selector": {"kb": "handbook"}})
        acknowledged = version
        await until(lambda hits=hits: seen["HIT"] > hits or any(r.done() for r in readers))
    over = True
    await asyncio.gather(*readers)
    assert seen["MISS"] > 40
