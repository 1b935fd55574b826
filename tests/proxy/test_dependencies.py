"""Where an answer's labels and knowledge bases come from: each source counts alike, for streams and JSON, for the exact
layer and the one by meaning; and what cannot be read is not kept."""

import json

import pytest

from cacheproxy.core.controls import MOST_LABELS
from tests.fakes.backend import chunk, completion
from tests.fakes.embedder import Chosen
from tests.proxy.test_embeddings import embed
from tests.proxy.test_knowledge import Desk
from tests.proxy.test_purge import Admin
from tests.proxy.test_semantic import ASKED, LIKE, learnt
from tests.rig import Client

EMBEDDINGS = "/v1/embeddings"
SOURCES = {
    "X-Cache-Tags of the request": ({"X_Cache_Tags": "red, b"}, b"", {}),
    "X-Cache-KB of the request": ({"X_Cache_KB": "red"}, b"", {}),
    "X-Cache-KB of the request, with a version": ({"X_Cache_KB": "red@1"}, b"", {}),
    "X-Cache-Namespace of the request": ({"X_Cache_Namespace": "red"}, b"", {}),
    "Cache-Tag of the backend": ({}, b"Cache-Tag: b,red\r\n", {}),
    "two lines Cache-Tag": ({}, b"Cache-Tag: b\r\ncache-tag: red\r\n", {}),
    "Surrogate-Key of the backend": ({}, b"Surrogate-Key: b red\r\n", {}),
    "X-Cache-KB of the backend": ({}, b"X-Cache-KB: b, red@1\r\n", {}),
    "a rule for the model": ({}, b"", {"match": {"model": "m*"}, "set": {"kb": "red"}}),
    "a rule for the path": ({}, b"", {"match": {"path": "/v1/chat/*"}, "set": {"tags": ["b", "red"]}}),
    "a rule for a label": ({"X_Cache_Tags": "b"}, b"", {"match": {"tag": "b"}, "set": {"kb": "red@2"}}),
    "a rule for a header": ({"X_Team": "one"}, b"", {"match": {"header": {"X-Team": "o*"}}, "set": {"kb": "red"}}),
    "a rule for the namespace": (
        {"X_Cache_Namespace": "n"}, b"", {"match": {"header": {"X-Cache-Namespace": "n"}}, "set": {"kb": "red"}},
    ),
    "a rule for the credential": ({"key": "sk-1"}, b"", {"match": {"key_group": "g"}, "set": {"kb": "red"}}),
}  # fmt: skip


def meant(source: str) -> dict:
    """The selector by which it falls."""
    if "Namespace of" in source:
        return {"namespace": "red"}
    kb = "KB" in source or source in (
        "a rule for the model", "a rule for a label", "a rule for a header", "a rule for the namespace",
        "a rule for the credential",
    )  # fmt: skip
    return {"kb": "red"} if kb else {"tags": "red"}


def labelled(extra: bytes):
    """A backend whose answers carry header lines, as JSON or stream as asked."""

    async def script(exchange) -> None:
        if exchange.seen.target == EMBEDDINGS.encode():
            await embed(exchange)
        elif exchange.seen.json.get("stream"):
            await exchange.events(chunk({"content": "Hello."}), chunk(finish="stop"), extra=extra)
        else:
            await exchange.json(completion(), extra=extra)

    return script


class Asking(Client):
    """A caller who asks by question."""

    async def ask(self, question: str = ASKED, **told):
        return await self.chat(messages=[{"role": "user", "content": question}], **told)


@pytest.fixture
async def asking(start, session):
    async def begin(**values) -> Asking:
        groups = [{"name": "g", "keys": ["sk-1"]}]
        proxy = await start(access__key_groups=groups, **values)
        client = Asking(proxy.base, session)
        client.proxy, client.desk, client.admin = proxy, Desk(session, proxy.admin), Admin(session, proxy.admin)
        return client

    return begin


@pytest.fixture
def embedder() -> Chosen:
    made = Chosen()
    made.near(ASKED, 1.0)
    made.near(LIKE, 0.97)
    return made


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("source", SOURCES)
async def test_what_falls_with_it_and_what_does_not(asking, backend, source, stream):
    asked, extra, rule = SOURCES[source]
    client = await asking(rules=[rule] if rule else [])
    backend.script = labelled(extra)
    await client.ask(stream=stream, **asked)
    await client.send({"model": "e", "input": "x"}, path=EMBEDDINGS)
    selector = meant(source)
    other = {name: f"{value}d" for name, value in selector.items()}
    assert (await client.admin.purge({"selector": other}))["matched"] == 0
    assert (await client.ask(stream=stream, **asked)).cache == "HIT"
    assert (await client.admin.purge({"selector": selector}))["purged"] == 1
    assert (await client.ask(stream=stream, **asked)).cache == "MISS"
    assert (await client.send({"model": "e", "input": "x"}, path=EMBEDDINGS)).cache == "HIT"


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("source", SOURCES)
async def test_what_fell_is_not_found_by_meaning(asking, backend, embedder, source, stream):
    asked, extra, rule = SOURCES[source]
    client = await asking(rules=[rule] if rule else [], embedder=embedder)
    backend.script = labelled(extra)
    await client.ask(stream=stream, **asked)
    await learnt(client.proxy)
    assert (await client.ask(LIKE, stream=stream, **asked)).get("x-cache-tier") == "semantic"
    selector = meant(source)
    if "kb" in selector:
        assert (await client.desk.put("red", "2"))["purged"] == 1
    else:
        assert (await client.admin.purge({"selector": selector}))["purged"] == 1
    assert (await client.ask(LIKE, stream=stream, **asked, Cache_Control="only-if-cached")).status == 504


async def test_all_sources_of_one_answer_count(asking, backend):
    rules = [{"set": {"kb": "d", "tags": "e"}}]
    client = await asking(rules=rules, kb__extract=[{"into": "tags", "pointer": "/metadata/tag"}])
    backend.script = labelled(b"Cache-Tag: b\r\nSurrogate-Key: c\r\nX-Cache-KB: f\r\n")
    told = {"X_Cache_Tags": "a", "X_Cache_KB": "g", "metadata": {"tag": "h"}}
    for selector in [{"tags": name} for name in "abceh"] + [{"kb": name} for name in "dfg"]:
        await client.ask(**told)
        assert (await client.admin.purge({"selector": selector}))["purged"] == 1, selector


UNREADABLE = {
    "no UTF-8": b"Cache-Tag: doc:faq-7, doc:caf\xe9\r\n",
    "no UTF-8, percent-encoded": b"Surrogate-Key: a %C3\r\n",
    "too many": b"Cache-Tag: " + b",".join(b"%d" % n for n in range(MOST_LABELS + 1)) + b"\r\n",
    "too long": b"Cache-Tag: " + b"x" * 16_385 + b"\r\n",
    "too many bases": b"X-Cache-KB: " + b",".join(b"%d" % n for n in range(MOST_LABELS + 1)) + b"\r\n",
    "a base that is no UTF-8": b"X-Cache-KB: \xff\r\n",
}


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("name", UNREADABLE)
async def test_what_cannot_all_be_told_is_passed_on_and_not_kept(asking, backend, name, stream):
    """A purge by what is missing would miss it, and a changed document spare it."""
    client = await asking()
    backend.script = labelled(UNREADABLE[name])
    for _ in range(2):
        answer = await client.ask(stream=stream, X_Cache_KB="handbook")
        assert (answer.status, answer.cache, answer.text) == (200, "MISS", "Hello.")
        assert answer.get("x-cache-reason") == "unnamed_dependency"
    assert client.proxy.house.store.census().entries == 0


async def test_as_many_as_are_kept_are_all_kept(asking, backend):
    client = await asking()
    names = [f"doc:{number}" for number in range(MOST_LABELS)]
    backend.script = labelled(b"Cache-Tag: " + ",".join(names).encode() + b"\r\n")
    await client.ask(X_Cache_KB="handbook")
    for name in (names[0], names[-1]):
        assert (await client.admin.purge({"selector": {"tags": name}, "dry_run": True}))["matched"] == 1
    assert (await client.desk.put("handbook", "2", changed_documents=["x"]))["purged"] == 0
    assert (await client.desk.put("handbook", "3", changed_documents=[str(MOST_LABELS - 1)]))["purged"] == 1


async def test_a_backend_that_read_two_versions_of_one_base(asking, backend):
    """While an index is being exchanged it may read from both: one of them is not the current one."""
    client = await asking()
    await client.desk.put("handbook", "v2")
    backend.script = labelled(b"X-Cache-KB: handbook@v1\r\nX-Cache-KB: handbook@v2\r\n")
    for _ in range(2):
        assert (await client.ask()).get("x-cache-reason") == "other_version"


async def test_more_names_than_are_kept_are_refused(asking, backend):
    client = await asking()
    for header in ("X-Cache-Tags", "X-Cache-KB"):
        answer = await client.send({"model": "m"}, **{header: ",".join(map(str, range(MOST_LABELS + 1)))})
        assert (answer.status, json.loads(answer.body)["error"]["param"]) == (400, header)
    assert backend.seen == []
