"""Names of documents, labels and knowledge bases that stand in the body of a request: what was answered to it falls with
them, and what cannot be named is not kept."""

import json

import pytest

from cacheproxy.core.controls import MOST_LABELS
from tests.fakes.backend import completion, gives
from tests.fakes.embedder import Chosen
from tests.proxy.test_embeddings import embed
from tests.proxy.test_knowledge import Desk, says
from tests.proxy.test_purge import Admin
from tests.proxy.test_semantic import ASKED, LIKE, learnt
from tests.rig import Client

DOC = {"into": "documents", "pattern": '<doc id="([^"]+)"'}
LISTED = {"into": "documents", "pointer": "/metadata/documents"}
KB = {"X_Cache_KB": "handbook"}


@pytest.fixture
async def asking(start, session):
    """Starts a proxy that looks for names: ``client = await asking(DOC)``; it has a desk and an admin."""

    async def begin(*places, **values) -> Client:
        proxy = await start(kb__extract=list(places), **values)
        client = Client(proxy.base, session)
        client.proxy, client.desk, client.admin = proxy, Desk(session, proxy.admin), Admin(session, proxy.admin)
        return client

    return begin


def prompt(*documents: str, question: str = "Why?", **more):
    text = "".join(f'<doc id="{name}">Read this.</doc>\n' for name in documents)
    return {"messages": [{"role": "system", "content": text}, {"role": "user", "content": question}], **more}


async def cached(client, body, **more) -> bool:
    return (await client.chat(**body, **more)).cache == "HIT"


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
async def test_a_changed_document_fells_what_has_it_in_its_prompt(asking, stream):
    client = await asking(DOC)
    bodies = [prompt("faq-7", stream=stream), prompt("faq-7", "faq-8", stream=stream), prompt("faq-8", stream=stream)]
    bodies.append(prompt(stream=stream))
    for body in bodies:
        await client.chat(**body, **KB)
    assert (await client.desk.put("handbook", "v2", changed_documents=["faq-7"]))["purged"] == 3
    assert [await cached(client, body, **KB) for body in bodies] == [False, False, True, False]


async def test_they_are_labels_like_those_of_a_header(asking, backend):
    """Beside those of the request, the rules and the backend."""
    rules = [{"match": {"model": "m"}, "set": {"tags": "ruled", "extract": [{"into": "tags", "pointer": "/x/*/t"}]}}]
    client = await asking(LISTED, {"into": "kb", "pointer": "/metadata/kb"}, rules=rules)
    backend.script = gives(completion("x"), extra=b"Cache-Tag: theirs\r\nX-Cache-KB: other\r\n")
    told = {"metadata": {"documents": ["faq-7", 8], "kb": "handbook@v1, faq"}, "x": [{"t": "a"}, {}, {"t": "b"}]}
    await client.chat(**told, X_Cache_Tags="mine")
    (row,) = (await client.admin.call(path="/admin/entries", method="GET"))[1]["entries"]
    assert row["tags"] == ["a", "b", "doc:8", "doc:faq-7", "mine", "ruled", "theirs"]
    assert set(row["kb"]) >= {"handbook@v1", "faq", "other"}
    assert (await client.admin.purge({"selector": {"tags": "doc:8"}}))["purged"] == 1


async def test_a_version_in_the_prompt_is_one_that_the_request_declares(asking, backend):
    """It is part of the key, is kept under that version alone, and a backend that read another contradicts it."""
    client = await asking({"into": "kb", "pattern": r"\[kb:([^\]]+)\]"})
    await client.desk.put("handbook", "v2")
    old, new = prompt(question="[kb:handbook@v1] Why?"), prompt(question="[kb:handbook@v2] Why?")
    backend.script = says("old", X_Cache_KB="handbook@v1")
    assert not await cached(client, old)
    assert await cached(client, old)
    assert (await client.chat(**new)).get("x-cache-reason") == "other_version"
    backend.script = says("new", X_Cache_KB="handbook@v2")
    assert not await cached(client, new)
    assert await cached(client, new)
    assert (await client.desk.put("handbook", "v3"))["purged"] == 2


async def test_where_the_key_leaves_the_place_out_it_is_part_of_it_all_the_same(asking, backend):
    """`metadata` does not belong to the key; what the answer rests on does, and labels do not."""
    client = await asking(
        LISTED, {"into": "kb", "pointer": "/metadata/kb"}, {"into": "tags", "pointer": "/metadata/tag"}
    )
    metadata = [{}, {"documents": "a"}, {"documents": "b"}, {"documents": ["a", "b"]}, {"kb": "k"}, {"kb": "k@1"}]
    for one in metadata:
        assert not await cached(client, {"metadata": one})
    assert await cached(client, {"metadata": {"documents": ["b", "a"], "other": 1}})
    assert await cached(client, {"metadata": {"documents": ["a"], "tag": "t"}})
    assert len(backend.seen) == len(metadata)


@pytest.mark.parametrize(
    "told",
    [
        {"documents": {"id": "faq-7"}}, {"documents": [True]}, {"documents": 0.5},
        {"documents": [f"n{number}" for number in range(MOST_LABELS + 1)]},
    ],
    ids=["an object", "a boolean", "a fraction", "too many"],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
async def test_what_cannot_all_be_named_is_not_kept_and_counted(asking, session, told, stream):
    """Else a changed document would spare it."""
    client = await asking(LISTED)
    for _ in range(2):
        answer = await client.chat(metadata=told, stream=stream, **KB)
        assert (answer.status, answer.cache, answer.get("x-cache-reason")) == (200, "BYPASS", "unnamed_dependency")
        assert answer.text == "Hello."
    async with session.get(client.proxy.admin + "/admin/stats") as stats:
        assert (await stats.json())["reasons"]["unnamed_dependency"] == 2
    assert client.proxy.house.store.census().entries == 0


async def test_more_text_than_is_searched_is_not_kept(asking):
    client = await asking(DOC, kb__extract_bytes=1000)
    assert (await client.chat(**prompt("a"))).cache == "MISS"
    assert (await client.chat(**prompt("a", question="x" * 1000))).get("x-cache-reason") == "unnamed_dependency"


async def test_only_if_cached_goes_to_no_backend(asking, backend):
    client = await asking(LISTED)
    answer = await client.chat(metadata={"documents": {}}, Cache_Control="only-if-cached")
    assert (answer.status, backend.seen) == (504, [])


async def test_a_rule_of_the_prefix_layer_hides_no_document(asking, backend):
    """Names are those in the caller's words, also where the backend is told others."""
    drop = [{"pattern": '<doc id="[^"]+">', "action": "drop"}]
    client = await asking(DOC, prefix__rules__patterns=drop)
    await client.chat(**prompt("faq-7"), **KB)
    assert b"faq-7" not in backend.seen[0].body
    assert not await cached(client, prompt("faq-8"), **KB)
    assert (await client.desk.put("handbook", "v2", changed_documents=["faq-7"]))["purged"] == 1
    assert await cached(client, prompt("faq-8"), **KB)


async def test_of_a_batch_every_input_has_all_of_them(asking, backend):
    client = await asking(DOC)
    backend.script = embed
    body = {"model": "e", "input": ['<doc id="a">', '<doc id="b">']}
    await client.send(body, path="/v1/embeddings")
    assert (await client.send(body, path="/v1/embeddings")).cache == "HIT"
    other = {**body, "input": [*body["input"], '<doc id="c">']}
    assert (await client.send(other, path="/v1/embeddings")).get("x-cache-reason") == "absent"
    assert (await client.admin.purge({"selector": {"tags": "doc:c"}}))["purged"] == 3


async def test_by_meaning_only_what_rests_on_the_same(asking, backend):
    """The documents are part of what is compared: a like question about another one is another question."""
    embedder = Chosen()
    for text, similarity in ((ASKED, 1.0), (LIKE, 0.97)):
        embedder.near(text, similarity)
    client = await asking(LISTED, {"into": "kb", "pointer": "/metadata/kb"}, embedder=embedder)

    async def ask(text, **metadata):
        answer = await client.chat(messages=[{"role": "user", "content": text}], metadata=metadata)
        return answer.get("x-cache-tier")

    await ask(ASKED, documents=["faq-7"], kb="handbook")
    await learnt(client.proxy)
    assert await ask(LIKE, documents=["faq-7"], kb="handbook") == "semantic"
    for other in ({"documents": ["faq-8"], "kb": "handbook"}, {"kb": "handbook"}, {"documents": ["faq-7"]}):
        assert await ask(LIKE, **other) is None


async def test_a_document_that_changed_is_not_found_by_meaning(asking, backend):
    embedder = Chosen()
    for text, similarity in ((ASKED, 1.0), (LIKE, 0.97)):
        embedder.near(text, similarity)
    client = await asking(DOC, embedder=embedder)
    body, like = prompt("faq-7", question=ASKED), prompt("faq-7", question=LIKE)
    await client.chat(**body, **KB)
    await learnt(client.proxy)
    assert (await client.chat(**like, **KB)).get("x-cache-tier") == "semantic"
    await client.desk.put("handbook", "v2", changed_documents=["faq-7"])
    assert (await client.chat(**like, **KB, Cache_Control="only-if-cached")).status == 504


async def test_a_lookup_says_what_was_found(asking):
    client = await asking({"into": "kb", "pointer": "/metadata/kb"})
    body = json.dumps(
        {"model": "m", "messages": [{"role": "user", "content": "x"}], "metadata": {"kb": "a b"}}
    ).encode()
    status, told = await client.admin.call(body, path="/admin/lookup")
    assert (status, told["kb"]) == (200, ["a b"])
