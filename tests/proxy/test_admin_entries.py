"""What is stored, for a person to look through: page by page, without the words of the answers."""

import json

import pytest

from cacheproxy.engine import catalogue
from cacheproxy.errors import Trouble
from cacheproxy.http import entries
from tests.fakes.backend import chunk, completion, gives, streams
from tests.proxy.doors import Caller
from tests.proxy.test_embeddings import embed
from tests.redis_fixtures import redis, redis_server  # noqa: F401
from tests.rig import Client


@pytest.fixture(params=["memory", "disk", pytest.param("redis", marks=pytest.mark.redis)])
async def stored(request, start, tmp_path):
    """A proxy with each of the stores."""
    if request.param == "redis":
        return await start(redis__url=request.getfixturevalue("redis").url, redis__timeout="2s")
    return await start(store__data_dir="none" if request.param == "memory" else str(tmp_path / "data"))


@pytest.fixture
def asking(stored, session) -> Client:
    return Client(stored.base, session)


@pytest.fixture
def admin(stored, session) -> Caller:
    return Caller(session, stored.admin)


async def listed(admin: Caller, query: str = "") -> list[dict]:
    """All entries, over all pages."""
    rows, cursor = [], ""
    for _ in range(100):
        status, told = await admin.get(f"/admin/entries?{query}{cursor}")
        assert status == 200, told
        rows += told["entries"]
        if told["cursor"] is None:
            return rows
        cursor = f"&cursor={told['cursor']}"
    raise AssertionError("a list without end")


async def test_a_row_says_all_but_the_answer(clock, start, session, backend):
    backend.script = gives(completion("SECRET-7"), extra=b"Cache-Tag: from-backend\r\n")
    proxy = await start()
    client, admin = Client(proxy.base, session), Caller(session, proxy.admin)
    await client.chat(
        X_Cache_Tags="faq, doc:7", X_Cache_KB="a%40b@v1, other", X_Cache_Namespace="our%00s", X_Cache_TTL="60"
    )
    entry_id = (
        await client.chat(X_Cache_Tags="faq, doc:7", X_Cache_KB="a%40b@v1, other", X_Cache_Namespace="our%00s")
    ).get("x-cache-entry-id")
    (row,) = await listed(admin)
    assert "SECRET-7" not in json.dumps(row) and "hello" not in json.dumps(row)
    assert row == {
        "id": entry_id, "endpoint": "chat.completions", "model": "m", "namespace": "our\0s",
        "tags": row["tags"], "kb": ["a@b@v1", "other"], "stored_at": clock.time, "fresh_until": row["fresh_until"],
        "prefix": row["prefix"], "scope": row["scope"], "credential": row["scope"], "expires_at": row["expires_at"], "state": "fresh", "bytes": row["bytes"], "took": row["took"],
        "tokens": row["tokens"],
    }  # fmt: skip
    assert set(row["tags"]) == {"faq", "doc:7", "from-backend"}
    assert row["bytes"] > 100 and abs(row["fresh_until"] - clock.time - 60) <= 6


SELECTED = [
    ("kb=handbook", "12"), ("kb=handbook%401", "1"), ("tag=faq", "3"), ("model=special", "4"), ("namespace=ours", "5"),
    ("namespace=", "123467"), ("model=special&tag=faq", ""), ("q=answer", "1234567"), ("q=ANSWER+5", "5"),
    ("q=nothing", ""), ("kb=&tag=&model=&q=", "1234567"), ("tag=%F0%9F%98%80", "6"), ("tag=a%2Cb", "7"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "meant"), SELECTED)
async def test_those_that_are_meant(stored, asking, admin, backend, query, meant):
    requests = [
        {"X_Cache_KB": "handbook@1"}, {"X_Cache_KB": "handbook"}, {"X_Cache_Tags": "faq"}, {"model": "special"},
        {"X_Cache_Namespace": "ours"}, {"X_Cache_Tags": "%F0%9F%98%80"}, {"X_Cache_Tags": "a%2Cb"},
    ]  # fmt: skip
    ids = {}
    for number, asked in enumerate(requests, 1):
        backend.script = gives(completion(f"answer {number}"))
        await asking.chat(seed=number, **asked)
        ids[(await asking.chat(seed=number, **asked)).get("x-cache-entry-id")] = str(number)
    for limit in ("", "limit=2&"):
        assert "".join(sorted(ids[row["id"]] for row in await listed(admin, limit + query))) == meant


@pytest.mark.parametrize(
    "words", ["strasse", "STRASSE", "Stra%C3%9Fe", "STRA%E1%BA%9EE", "%C3%89t%C3%A9+%C3%A9T%C3%89"]
)
@pytest.mark.parametrize("said", ["Straße, ÉTÉ", "STRASSE été", "strasse Été"])
async def test_words_are_the_same_in_any_case(stored, asking, admin, backend, said, words):
    backend.script = gives(completion(said))
    await asking.chat()
    assert len(await listed(admin, f"q={words}")) == 1


BAD = [
    ("limit=0", "limit"), ("limit=-1", "limit"), ("limit=1001", "limit"), ("limit=x", "limit"), ("limit=1.0", "limit"),
    ("limit=%D9%A1", "limit"), ("limit=1&limit=2", "limit"), ("cursor=x", "cursor"), ("cursor=%00", "cursor"),
    ("kb=a&kb=b", "kb"), ("page=2", "page"), ("Tag=x", "Tag"), ("q=" + "a+" * 30, "q"), ("q=" + "a" * 2000, "q"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "name"), BAD)
async def test_bad_parameters_are_named(proxy, session, query, name):
    status, told = await Caller(session, proxy.admin).get(f"/admin/entries?{query}")
    assert (status, told["error"]["code"], told["error"]["param"]) == (400, "invalid_request", name)


@pytest.mark.parametrize("stream", [False, True])
async def test_one_answer_with_what_it_says(stored, asking, admin, backend, stream):
    said = streams(chunk({"role": "assistant", "content": "It says "}), chunk({"content": "this."}), chunk({}, "stop"))
    backend.script = said if stream else gives(completion("It says this."))
    await asking.chat(stream=stream)
    entry_id = (await asking.chat(stream=stream)).get("x-cache-entry-id")
    status, told = await admin.get(f"/admin/entries/{entry_id}")
    assert status == 200
    assert told["answer"] == {"status": 200, "stream": stream, "text": "It says this.", "cut": False}
    assert told["id"] == entry_id
    assert (await listed(admin))[0] == {name: value for name, value in told.items() if name != "answer"}


async def test_what_is_no_text_is_shown_as_it_is(stored, asking, admin, backend):
    backend.script = embed
    for _ in range(2):
        await asking.send({"model": "m", "input": "x"}, path="/v1/embeddings")
    (row,) = await listed(admin)
    _, told = await admin.get(f"/admin/entries/{row['id']}")
    assert "embedding" in json.loads(told["answer"]["text"])["data"][0]


async def test_a_long_answer_is_cut(stored, asking, admin, backend, monkeypatch):
    monkeypatch.setattr(entries, "LONGEST", 10)
    backend.script = gives(completion("0123456789ABC \U0001f600"))
    await asking.chat()
    entry_id = (await asking.chat()).get("x-cache-entry-id")
    assert (await admin.get(f"/admin/entries/{entry_id}"))[1]["answer"]["text"] == "0123456789"
    assert (await admin.get(f"/admin/entries/{entry_id}"))[1]["answer"]["cut"] is True


@pytest.mark.parametrize(
    "entry_id", ["0" * 32, "unknown", "..%2f..%2fconfig", "%00", "A" * 32, "0" * 31, "%F0%9F%98%80"]
)
async def test_what_is_not_there(stored, asking, admin, entry_id):
    await asking.chat()
    status, told = await admin.get(f"/admin/entries/{entry_id}")
    assert (status, told["error"]["code"]) == (404, "not_found")


async def test_answers_are_not_shown_where_that_is_forbidden(start, session, backend):
    backend.script = gives(completion("SECRET-7"))
    proxy = await start(admin__show_answers=False)
    client, admin = Client(proxy.base, session), Caller(session, proxy.admin)
    await client.chat()
    entry_id = (await client.chat()).get("x-cache-entry-id")
    status, told = await admin.get(f"/admin/entries/{entry_id}")
    assert (status, told["answer"]) == (200, None)
    assert "SECRET-7" not in json.dumps(told)


async def test_what_is_past_its_lifetime_is_stale_and_what_expired_is_not_shown(clock, start, session, backend):
    proxy = await start(exact__keep_stale=1000, exact__ttl=100)
    client, admin = Client(proxy.base, session), Caller(session, proxy.admin)
    await client.chat()
    entry_id = (await client.chat()).get("x-cache-entry-id")
    clock.time += 200
    assert [row["state"] for row in await listed(admin)] == ["stale"]
    clock.time += 2000
    assert await listed(admin) == []
    assert (await admin.get(f"/admin/entries/{entry_id}"))[0] == 404


async def test_what_was_purged_is_not_listed(stored, asking, admin):
    await asking.chat(X_Cache_Tags="faq")
    await asking.chat(seed=1)
    await admin.post("/admin/purge", {"selector": {"tags": "faq"}})
    assert len(await listed(admin)) == 1


async def test_a_page_is_given_when_its_time_is_up(stored, asking, admin, monkeypatch):
    """However much there is to look through, and whatever little is found."""
    for number in range(30):
        await asking.chat(seed=number)
    monkeypatch.setattr(catalogue, "BUDGET", 0.0)
    monkeypatch.setattr(catalogue, "WHOLE", 3)
    status, told = await admin.get("/admin/entries?q=hello&limit=30")
    assert (status, len(told["entries"]) < 30, bool(told["cursor"])) == (200, True, True)
    assert len(await listed(admin, "limit=30&q=")) == 30


async def test_looking_through_is_no_use_of_an_entry(start, session, backend):
    """What is about to be let go is not kept for having been listed."""
    proxy = await start(store__memory_bytes=12_000)
    client, admin = Client(proxy.base, session), Caller(session, proxy.admin)
    for number in range(20):
        await client.chat(seed=number)
    order = list(proxy.house.store._entries)
    for row in await listed(admin, "q=e"):
        await admin.get(f"/admin/entries/{row['id']}")
    assert list(proxy.house.store._entries) == order


async def test_trouble_is_told_and_no_list_looks_empty_for_it(proxy, session, monkeypatch, caplog):
    async def fail(*_args, **_options):
        raise Trouble("the file is gone")

    monkeypatch.setattr(proxy.house.store, "browse", fail)
    for path in ("/admin/entries", f"/admin/entries/{'0' * 32}"):
        async with session.get(proxy.admin + path) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
            assert (await answer.json())["error"]["code"] == "store_trouble"
