"""What would become of a request: told as it then comes, without anything being asked, counted or changed."""

import json

import pytest

from cacheproxy.core.model import Unfit
from cacheproxy.errors import Trouble
from tests.fakes.backend import completion, gives
from tests.fakes.embedder import Chosen
from tests.proxy.doors import Caller
from tests.proxy.test_embeddings import embed
from tests.rig import BODY, Client, until

KEY = {"Authorization": "Bearer A"}
ASKED = "How do I get a new password for my account?"
LIKE = "How can I get a new password for my account?"
OTHER = "How can I get 7 new passwords for my account?"


@pytest.fixture
def admin(proxy, session) -> Caller:
    return Caller(session, proxy.admin)


async def looked(admin: Caller, body=None, path: str = "/v1/chat/completions", **headers: str) -> dict:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    status, told = await admin.post("/admin/lookup", {"path": path, "headers": {**KEY, **sent}, "body": body or BODY})
    assert status == 200, told
    return told


CASES = {
    "nothing stored": ({}, {"seed": 5}, {}),
    "stored": ({}, {}, {}),
    "no-cache": ({}, {}, {"Cache_Control": "no-cache"}),
    "no-store": ({}, {}, {"Cache_Control": "no-store"}),
    "too old": ({}, {}, {"Cache_Control": "max-age=0"}),
    "another namespace": ({}, {}, {"X_Cache_Namespace": "ours"}),
    "its namespace": ({"X_Cache_Namespace": "ours"}, {}, {"X_Cache_Namespace": "ours"}),
    "another version": ({"X_Cache_KB": "a@1"}, {}, {"X_Cache_KB": "a@2"}),
    "usage asked": ({}, {"stream": True, "stream_options": {"include_usage": True}}, {}),
    "as a stream": ({}, {"stream": True}, {}),
    "stream details": ({}, {"stream": True, "stream_options": {"continuous_usage_stats": True}}, {}),
    "not an object": ({}, {"stream": "yes"}, {}),
}


@pytest.mark.parametrize("name", CASES)
async def test_it_is_told_as_it_then_comes(admin, client, backend, name):
    before, fields, headers = CASES[name]
    await client.chat(**before)
    told = await looked(admin, {**BODY, **fields}, **headers)
    answer = await client.chat(**fields, **headers)
    assert told["would"] == ("exact" if answer.cache == "HIT" else "backend")
    assert told["reason"] == answer.get("x-cache-reason")
    if answer.cache == "HIT":
        assert told["entry_id"] == answer.get("x-cache-entry-id")
        assert told["exact"][0]["serves"] is True
    else:
        assert told["why"]


async def test_what_is_past_its_lifetime(clock, start, session, backend):
    proxy = await start(exact__ttl=100, exact__keep_stale=1000)
    client, admin = Client(proxy.base, session), Caller(session, proxy.admin)
    await client.chat()
    clock.time += 200
    told = await looked(admin)
    assert (told["would"], told["reason"]) == ("backend", "expired")
    assert told["exact"][0]["age"] == 200 and told["exact"][0]["ttl"] < 0
    assert (await looked(admin, Cache_Control="max-stale=1000"))["would"] == "exact"


async def test_another_callers_answer_is_not_told(admin, client):
    await client.chat()
    status, told = await admin.post("/admin/lookup", {"headers": {"Authorization": "Bearer B"}, "body": BODY})
    assert (status, told["would"], told["reason"]) == (200, "backend", "absent")
    assert told["exact"] == [{"entry_id": told["entry_id"], "serves": False, "reason": "absent"}]


async def test_each_input_of_a_batch(admin, client, backend):
    backend.script = embed
    await client.send({"model": "m", "input": "one"}, path="/v1/embeddings")
    told = await looked(admin, {"model": "m", "input": ["one", "two"]}, "/v1/embeddings")
    assert [row["serves"] for row in told["exact"]] == [True, False]
    assert (told["would"], told["reason"], told["endpoint"]) == ("backend", "absent", "embeddings")


async def test_the_request_as_it_is(admin, client, proxy, session):
    """Its very bytes, its path in the query, its header fields marked."""
    raw = b'{"messages" : [{"role":"user","content":"Say hello."}],"model":"m", "x": 1.0e2, "y": 123456789012345678}'
    await client.send(raw, X_Cache_Namespace="ours")
    entry_id = (await client.send(raw, X_Cache_Namespace="ours")).get("x-cache-entry-id")
    marked = {"X_Lookup_Authorization": "Bearer A", "x_lookup_x_cache_namespace": "ours"}
    for path in ("/admin/lookup", "/admin/lookup?path=/v1/chat/completions"):
        status, told = await admin.call("POST", path, data=raw, **marked)
        assert (status, told["would"], told["entry_id"]) == (200, "exact", entry_id)
    headers = {"Authorization": "Bearer A", "X-Cache-Namespace": "ours"}
    spelled = json.dumps({"headers": headers, "body": None}).encode()
    for envelope in (spelled.replace(b"null", raw), spelled.replace(b"null", json.dumps(raw.decode()).encode())):
        assert (await admin.call("POST", "/admin/lookup", data=envelope))[1]["entry_id"] == entry_id
    status, told = await admin.call("POST", "/admin/lookup?path=/v1/completions", data=raw, **marked)
    assert (status, told["would"], told["endpoint"]) == (200, "backend", "completions")
    status, told = await admin.call("POST", "/admin/lookup?path=/v1/files", data=raw)
    assert (status, told["endpoint"], told["reason"]) == (200, None, "uncacheable_path")


BAD = [
    ({"body": {}, "path": 5}, "path"), ({"body": {}, "path": "v1"}, "path"), ({"body": {}, "path": "/a b"}, "path"),
    ({"body": {}, "path": "/a\r\nX: y"}, "path"), ({"body": {}, "headers": []}, "headers"), ({"body": {}, "headers": 5}, "headers"),
    ({"body": {}, "headers": {"a b": "c"}}, "headers"), ({"body": {}, "headers": {"": "c"}}, "headers"),
    ({"body": {}, "headers": {"a": "c\r\nd"}}, "headers.a"), ({"body": {}, "headers": {"a": 1}}, "headers.a"),
    ({"body": {}, "headers": {str(n): "" for n in range(101)}}, "headers"),
    ({"body": {}, "headers": {"X-Cache-Semantic": "much"}}, "X-Cache-Semantic"),
    ({"body": {}, "headers": {"X-Cache-TTL": "soon"}}, "X-Cache-TTL"),
    ({"body": "SECRET-7"}, None), ({"body": {}, "headers": {"Content-Encoding": "gzip"}}, None),
]  # fmt: skip


async def test_what_is_said_to_be_json_is_json(admin):
    """On any path; without a word of it."""
    for path in ("/v1/chat/completions", "/v1/files"):
        for data in (b"SECRET-7", b"", b"{"):
            status, told = await admin.call(
                "POST", f"/admin/lookup?path={path}", data=data, Content_Type="Application/JSON; charset=x"
            )
            assert (status, told["error"]["param"]) == (400, "body")
            assert "SECRET-7" not in json.dumps(told)
    for data in (b"[" * 9000 + b"]" * 9000, b'{"a": 1e999}', b'{"a": "\\ud800"}'):
        status, told = await admin.call("POST", "/admin/lookup", data=data, Content_Type="application/json")
        assert (status, told["reason"]) == (200, "unkeyable")


@pytest.mark.parametrize(("document", "name"), BAD)
async def test_what_is_wrong_is_named(admin, backend, document, name):
    status, told = await admin.post("/admin/lookup", document)
    assert status in (400, 415)
    assert (told["error"]["param"] or "").lower() == (name or "").lower()
    assert "SECRET-7" not in json.dumps(told)


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"5", b"\xff\xfe", b'{"a":1,"a":2}', b"NaN", b"[" * 5000])
async def test_a_body_that_is_none(admin, data):
    status, told = await admin.call("POST", "/admin/lookup", data=data)
    assert status in (200, 400)
    assert (told["error"]["code"] if status == 400 else told["would"]) in ("invalid_json", "backend")


async def test_nobody_is_asked_and_nothing_changes(admin, client, proxy, backend):
    await client.chat()
    before = (await admin.get("/admin/stats"))[1]
    asked = len(backend.seen)
    for seed in (0, 1):
        await looked(admin, {**BODY, "seed": seed})
    assert (await admin.get("/admin/stats"))[1] == before
    assert len(backend.seen) == asked
    assert (await client.chat(seed=1)).cache == "MISS"


@pytest.fixture
def embedder() -> Chosen:
    made = Chosen()
    made.near(ASKED, 1.0)
    made.near(LIKE, 0.97)
    made.near(OTHER, 0.99)
    return made


@pytest.fixture
async def semantic(start, embedder):
    return await start(embedder=embedder)


def question(text: str) -> dict:
    return {**BODY, "messages": [{"role": "user", "content": text}]}


async def learnt(proxy, client, text: str, **more: str):
    before = len(proxy.house.meaning.index._index)
    answer = await client.chat(question(text), **more)
    await until(lambda: len(proxy.house.meaning.index._index) == before + 1, what="a row")
    return answer


async def test_the_nearest_questions_and_what_each_guard_says(semantic, session, backend):
    client, admin = Client(semantic.base, session), Caller(session, semantic.admin)
    backend.script = gives(completion("Press the button."))
    for text in (ASKED, OTHER):
        await learnt(semantic, client, text)
    first = (await client.chat(question(ASKED))).get("x-cache-entry-id")
    before = (await admin.get("/admin/stats"))[1]
    told = await looked(admin, question(LIKE))
    assert (told["would"], told["entry_id"], told["reason"]) == ("semantic", first, None)
    rows = {row["question"]: row for row in told["semantic"]["neighbours"]}
    assert rows.keys() == {ASKED, OTHER}
    assert (rows[ASKED]["similarity"], rows[ASKED]["verdict"]) == (0.97, "serves")
    assert rows[OTHER]["verdict"].startswith("unlike:")
    objecting = {guard["guard"] for guard in rows[OTHER]["guards"] if guard["objects"]}
    assert rows[OTHER]["verdict"].removeprefix("unlike:") in objecting
    assert not any(guard["objects"] for guard in rows[ASKED]["guards"] if guard["on"])
    assert told["semantic"]["threshold"] == 0.92
    assert (await admin.get("/admin/stats"))[1] == before
    answer = await client.chat(question(LIKE))
    assert (answer.get("x-cache-tier"), answer.get("x-cache-entry-id")) == ("semantic", first)


async def test_why_nothing_is_answered_by_meaning(semantic, session, embedder, backend):
    """As it then comes, word for word."""
    client, admin = Client(semantic.base, session), Caller(session, semantic.admin)
    embedder.near("Where is it?", 0.5)

    async def same(text: str, verdicts: set[str], **headers: str) -> str:
        told = await looked(admin, question(text), **headers)
        answer = await client.chat(question(text), **{**headers, "Cache_Control": "only-if-cached"})
        assert (told["would"] == "backend") == (answer.status == 504)
        assert {row["verdict"].partition(":")[0] for row in told["semantic"].get("neighbours", ())} == verdicts
        return told["reason"]

    assert await same(LIKE, set()) == "nothing_near"
    await learnt(semantic, client, ASKED)
    assert await same("Where is it?", {"below_threshold"}) == "nothing_near"
    assert await same(OTHER, {"unlike"}) == "unlike"
    assert await same(LIKE, {"below_threshold"}, X_Cache_Semantic="0.99") == "nothing_near"
    assert await same(LIKE, set(), X_Cache_Semantic="off") == "absent"
    assert await same(LIKE, set(), X_Cache_Namespace="ours") == "nothing_near"
    for given, reason in ((Unfit.EMPTY, "empty_question"), (Unfit.TOO_LONG, "too_long_question"),
                          (Unfit.UNKNOWN_TOKENS, "unknown_words"), (Trouble("x"), "semantic_trouble")):  # fmt: skip
        embedder.given = given
        assert await same(LIKE, set()) == reason
    embedder.given = None


async def test_what_was_called_wrong_is_barred(semantic, session):
    client, admin = Client(semantic.base, session), Caller(session, semantic.admin)
    await learnt(semantic, client, ASKED)
    entry_id = (await client.chat(question(ASKED))).get("x-cache-entry-id")
    told = {"entry_id": entry_id, "verdict": "wrong", "request": question(LIKE)}
    assert (await admin.post("/admin/feedback", told))[0] == 200
    await client.chat(question(ASKED))
    told = await looked(admin, question(LIKE))
    assert (told["would"], told["reason"]) == ("backend", "unlike")
    assert [row["verdict"] for row in told["semantic"]["neighbours"]] == ["barred"]


async def test_questions_are_not_shown_where_that_is_forbidden(start, session, embedder):
    proxy = await start(embedder=embedder, admin__show_answers=False)
    client, admin = Client(proxy.base, session), Caller(session, proxy.admin)
    for text in (ASKED, OTHER):
        await learnt(proxy, client, text)
    told = json.dumps(await looked(admin, question(LIKE)))
    assert '"verdict": "serves"' in told and '"objects": true' in told
    assert "password" not in told and "- / 7" not in told


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        (b'{"model":"m","messages":[],"seed":1,"seed":2}', "unkeyable"),
        (b'{"model":"m","messages":[{"role":"user","role":"user","content":"x"}]}', "unkeyable"),
        (b'{"model":"m","messages":[{"role":"user","content":"x"}],"top_p":1e400}', "unkeyable"),
        (b'{"model":"m","messages":[{"role":"user","content":"x"}]}', "absent"),
    ],
)  # fmt: skip
async def test_it_is_the_bytes_that_are_looked_up(admin, client, inner, reason):
    """What a parser would have put right: told as it comes."""
    told = []
    for document in (b'{"body": %b}', b'{"body": {}, "path": "/v1/chat/completions", "body": %b}'):
        status, found = await admin.call("POST", "/admin/lookup", data=document % inner)
        told.append((status, found.get("reason")))
    answer = await client.send(inner, key=None)
    assert told == [(200, reason)] * 2
    assert answer.get("x-cache-reason") == reason
