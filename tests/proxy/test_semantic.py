"""Layer 2 seen from both sides: a like question has the stored answer, any other goes to the backend."""

import numpy as np
import pytest

from cacheproxy.core.model import Unfit
from cacheproxy.errors import Trouble
from tests.fakes.backend import completion, gives
from tests.fakes.embedder import DIM, Chosen
from tests.rig import Client, until

ASKED = "How do I get a new password for my account?"
LIKE = "How can I get a new password for my account?"


@pytest.fixture
def embedder() -> Chosen:
    made = Chosen()
    made.near(ASKED, 1.0)
    made.near(LIKE, 0.97)
    return made


@pytest.fixture
async def semantic(start, embedder):
    return await start(embedder=embedder)


@pytest.fixture
def client(semantic, session) -> Client:
    return Client(semantic.base, session)


def rows(proxy) -> int:
    return len(proxy.house.meaning.index._index)


async def learnt(proxy, count: int = 1) -> None:
    await until(lambda: rows(proxy) == count, what=f"{count} rows")


def ask(client, text, *, system="Be short.", **more):
    messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    return client.chat(messages=messages, **more)


async def test_a_like_question_has_the_stored_answer(semantic, client, backend):
    first = await ask(client, ASKED)
    await learnt(semantic)
    second = await ask(client, LIKE)
    assert (first.cache, second.cache, second.get("x-cache-tier")) == ("MISS", "HIT", "semantic")
    assert second.text == first.text
    assert (second.get("x-cache-similarity"), second.get("x-cache-threshold")) == ("0.9700", "0.9200")
    assert "detail=semantic" in second.get("cache-status")
    assert second.get("x-cache-entry-id") == first.get("x-cache-entry-id")
    assert len(backend.seen) == 1
    stages = second.get("server-timing")
    assert all(f"{stage};dur=" in stages for stage in ("embed", "search", "verify"))


async def test_a_fault_of_ours_on_the_way_costs_a_miss_and_one_line(semantic, client, session, monkeypatch, caplog):
    def fail(*_):
        raise ZeroDivisionError("what is the password")

    await ask(client, ASKED)
    await learnt(semantic)
    monkeypatch.setattr("cacheproxy.core.likeness.prepare", fail)
    for _ in range(2):
        answer = await ask(client, LIKE, X_Cache_TTL="0")
        assert (answer.status, answer.cache) == (200, "MISS")
    async with session.get(semantic.admin + "/admin/stats") as told:
        assert (await told.json())["semantic_looks"]["semantic_trouble"] == 2
    assert caplog.text.count("a fault in answers by meaning") == 1
    assert "password" not in caplog.text


async def test_looks_and_what_came_of_them_are_counted(semantic, client, backend, session):
    """B71: a layer that never finds anything is seen."""
    await ask(client, ASKED)
    await learnt(semantic)
    await ask(client, LIKE)
    await ask(client, ASKED)
    async with session.get(semantic.admin + "/metrics") as answer:
        metrics = await answer.text()
    assert 'cacheproxy_semantic_looks_total{result="nothing_near"} 1.0' in metrics
    assert 'cacheproxy_semantic_looks_total{result="found"} 1.0' in metrics
    async with session.get(semantic.admin + "/admin/stats") as answer:
        assert (await answer.json())["semantic_looks"] == {"nothing_near": 1, "found": 1}


@pytest.mark.parametrize("recorded", [False, True])
async def test_as_a_stream_or_not_whichever_way_it_was_recorded(semantic, client, backend, recorded):
    first = await ask(client, ASKED, stream=recorded)
    await learnt(semantic)
    for stream in (False, True):
        answer = await ask(client, LIKE, stream=stream)
        assert (answer.cache, answer.get("x-cache-tier"), answer.text) == ("HIT", "semantic", first.text)
        assert answer.get("content-type").startswith("text/event-stream" if stream else "application/json")
    assert len(backend.seen) == 1


@pytest.mark.parametrize(("similarity", "cache"), [(0.9199, "MISS"), (0.9201, "HIT"), (0.0, "MISS"), (-1.0, "MISS")])
async def test_the_threshold_is_a_cosine_similarity(semantic, client, embedder, similarity, cache):
    """B70: never a distance; orthogonal and opposite vectors are as far as they can be."""
    embedder.near(LIKE, similarity)
    await ask(client, ASKED)
    await learnt(semantic)
    answer = await ask(client, LIKE)
    assert answer.cache == cache
    assert answer.get("x-cache-reason") == (None if cache == "HIT" else "nothing_near")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How do I enable two-factor login?", "How do I disable two-factor login?"),
        ("Is it allowed to smoke here?", "Is it not allowed to smoke here?"),
        ("Move the file from A to B.", "Move the file from B to A."),
        ("Where is order 1042?", "Where is order 1043?"),
        ("What is new in v3.1?", "What is new in v3.2?"),
        ("May I take 10 mg?", "May I take 100 mg?"),
        ("What happened in 2025?", "What happened in 2026?"),
        ("Delete the branch.", "Delete the repo."),
    ],
)
async def test_what_a_vector_cannot_tell_apart_the_guards_do(semantic, client, embedder, session, backend, one, other):
    """B68: a MISS even at 0.97; the objection is counted."""
    embedder.near(one, 1.0)
    embedder.near(other, 0.97)
    await ask(client, one)
    await learnt(semantic)
    answer = await ask(client, other)
    assert (answer.cache, answer.get("x-cache-reason")) == ("MISS", "unlike")
    assert len(backend.seen) == 2
    async with session.get(semantic.admin + "/metrics") as metrics:
        assert "cacheproxy_unlike_total{guard=" in await metrics.text()


@pytest.mark.parametrize(
    "other",
    [
        {"system": "Be long."},
        {"model": "another"},
        {"temperature": 0.5},
        {"max_tokens": 7},
        {"unheard_of": 1},
        {"key": "B"},
        {"X_Cache_Namespace": "apart"},
        {"X_Cache_KB": "handbook"},
    ],
)
async def test_everything_but_the_question_must_be_the_same(semantic, client, other):
    """B71 the other way: the partition is hard."""
    await ask(client, ASKED)
    await learnt(semantic)
    answer = await ask(client, LIKE, **other)
    assert (answer.cache, answer.get("x-cache-reason")) == ("MISS", "nothing_near")


@pytest.mark.parametrize("other", [{"user": "u-2"}, {"metadata": {"request": "2"}}, {"stream": True}, {"n": 1}])
async def test_what_does_not_change_an_answer_does_not_keep_it_from_being_found(semantic, client, other):
    """B71: the filter has not the hash of the request."""
    await ask(client, ASKED, user="u-1")
    await learnt(semantic)
    assert (await ask(client, LIKE, **other)).cache == "HIT"


async def test_an_earlier_turn_that_differs_is_another_conversation(semantic, client):
    def talk(city):
        return [
            {"role": "user", "content": f"I live in {city}."},
            {"role": "assistant", "content": "Nice."},
        ]

    await client.chat(messages=[*talk("Rome"), {"role": "user", "content": ASKED}])
    await learnt(semantic)
    answers = [
        await client.chat(messages=[*talk(city), {"role": "user", "content": LIKE}]) for city in ("Rome", "Oslo")
    ]
    assert [a.cache for a in answers] == ["HIT", "MISS"]


TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"tools": [TOOL]}, "not_a_question"),
        ({"n": 2}, "not_a_question"),
        ({"logprobs": True}, "not_a_question"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "not_a_question"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": LIKE}, PICTURE]}]}, "not_a_question"),
        ({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": LIKE}]}, "not_a_question"),
        ({"messages": [{"role": "user", "content": " \n"}]}, "empty_question"),
        ({"messages": [{"role": "user", "content": ""}]}, "empty_question"),
        ({"messages": [{"role": "user", "content": None}]}, "not_a_question"),
        ({"messages": [{"role": "user", "content": [PICTURE]}]}, "not_a_question"),
        ({"messages": []}, "not_a_question"),
    ],
)
async def test_what_is_more_than_a_question_in_words_is_not_asked(client, embedder, more, reason):
    """B74: no error, no look by meaning, and a word for why."""
    body = {"messages": [{"role": "user", "content": LIKE}], **more}
    answer = await client.chat(**body)
    assert answer.status == 200
    # With two choices wanted and one given the answer is not kept, which is what is said then.
    assert answer.get("x-cache-reason") == ("unfinished_choice" if more.get("n") == 2 else reason)
    assert embedder.asked == []


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Unfit.TOO_LONG, "too_long_question"),
        (Unfit.UNKNOWN_TOKENS, "unknown_words"),
        (Trouble("down", "other"), "semantic_trouble"),
        (np.full(DIM, np.nan, np.float32), "semantic_trouble"),
        (np.zeros(DIM, np.float32), "semantic_trouble"),
        (np.ones(DIM + 1, np.float32), "semantic_trouble"),
    ],
)
async def test_an_embedder_that_fails_costs_a_miss(semantic, client, embedder, backend, given, reason):
    """B70, B73: the exact layer goes on."""
    embedder.given = given
    first = await ask(client, ASKED)
    assert (first.status, first.cache, first.get("x-cache-reason")) == (200, "MISS", reason)
    assert (await ask(client, ASKED)).cache == "HIT"
    assert rows(semantic) == 0


async def test_an_embedder_that_hangs_costs_its_deadline_once(start, session, embedder, backend):
    """B73: then nobody waits for it."""
    proxy = await start(embedder=embedder, semantic__embed_timeout="20ms")
    client = Client(proxy.base, session)
    embedder.hang = True
    await ask(client, "one")
    asked = len(embedder.asked)
    for number in range(20):
        answer = await ask(client, f"question {number}")
        assert (answer.status, answer.get("x-cache-reason")) == (200, "semantic_trouble")
    assert proxy.house.meaning.embedder.breaker.state != "closed"
    assert len(embedder.asked) - asked < 10, "tried in the background alone"


@pytest.mark.parametrize("header", ["off", "OFF", "0.98", "1"])
async def test_a_caller_can_tighten(semantic, client, header):
    await ask(client, ASKED)
    await learnt(semantic)
    assert (await ask(client, LIKE, X_Cache_Semantic=header)).cache == "MISS"


async def test_a_caller_cannot_loosen(semantic, client, embedder):
    embedder.near(LIKE, 0.91)
    await ask(client, ASKED)
    await learnt(semantic)
    assert (await ask(client, LIKE, X_Cache_Semantic="0.5")).cache == "MISS"
    embedder.near(LIKE, 0.93)
    hit = await ask(client, LIKE + " Please.", X_Cache_Semantic="0.5")
    assert hit.get("x-cache-threshold") in (None, "0.9200")


@pytest.mark.parametrize("junk", ["", "on", "1.01", "-0.5", "0.9,0.95", "1e-1", "nan"])
async def test_junk_is_refused(client, junk, backend):
    answer = await ask(client, LIKE, X_Cache_Semantic=junk)
    assert (answer.status, answer.json["error"]["code"]) == (400, "invalid_header")
    assert backend.seen == []


@pytest.mark.parametrize("mode", ["off", "shadow", "opt-in"])
async def test_other_modes_do_not_serve(start, session, embedder, mode):
    proxy = await start(embedder=embedder, semantic__mode=mode)
    client = Client(proxy.base, session)
    await ask(client, ASKED, X_Cache_Semantic="0.92")
    if mode != "off":
        await learnt(proxy)
    answer = await ask(client, LIKE)
    assert answer.cache == "MISS"
    assert (answer.get("x-cache-reason") == "semantic_shadow") == (mode == "shadow")
    assert (await ask(client, LIKE + " Thanks.", X_Cache_Semantic="0.92")).status == 200
    if mode == "opt-in":
        embedder.near("How can I get a new password for the account?", 0.98)
        assert (await ask(client, "How can I get a new password for the account?", X_Cache_Semantic="0.92")).get(
            "x-cache-tier"
        ) == "semantic"


async def test_a_row_without_an_answer_is_passed_over_and_swept(semantic, client, embedder, backend):
    """B39: the next one that has an answer is used."""
    await ask(client, ASKED)
    embedder.near("How might I get a new password for my account?", 0.985)
    await learnt(semantic)
    backend.script = gives(completion("another answer"))
    await client.chat(
        messages=[
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "How might I get a new password for my account?"},
        ],
        X_Cache_Semantic="1",
    )
    await learnt(semantic, 2)
    entry = next(iter(semantic.house.store._entries))
    semantic.house.store.drop(entry)
    answer = await ask(client, LIKE)
    assert (answer.cache, answer.get("x-cache-tier")) == ("HIT", "semantic")
    assert answer.text == "another answer"
    await learnt(semantic, 1)


@pytest.mark.parametrize(("keywords", "best"), [(0, "by vector"), (10, "by words"), (None, "by words")])
async def test_words_can_count_more_in_the_order_of_candidates(start, session, backend, embedder, keywords, best):
    """Part numbers and codes: by the setting, or by a rule for those who need it."""
    rule = {"match": {"model": ["m"]}, "set": {"keywords": 10}}
    told = {"rules": [rule]} if keywords is None else {"semantic__keywords": keywords}
    client = Client((proxy := await start(embedder=embedder, semantic__guards=[], **told)).base, session)
    for number, (text, similarity) in enumerate({"What is it for?": 0.98, "Use of part AX-4711": 0.94}.items(), 1):
        embedder.near(text, similarity)
        backend.script = gives(completion("by vector" if number == 1 else "by words"))
        await ask(client, text, X_Cache_Semantic="1")
        await learnt(proxy, number)
    embedder.near("Part AX-4711?", 1.0)
    answer = await ask(client, "Part AX-4711?")
    assert (answer.get("x-cache-tier"), answer.text) == ("semantic", best)


async def test_what_is_purged_is_not_found_by_meaning(semantic, client, session):
    """B39: both sides are gone."""
    await ask(client, ASKED, X_Cache_Tags="faq")
    await learnt(semantic)
    async with session.post(semantic.admin + "/admin/purge", json={"selector": {"tags": ["faq"]}}) as answer:
        assert answer.status == 200
    assert rows(semantic) == 0
    assert (await ask(client, LIKE)).cache == "MISS"


async def test_what_is_past_its_lifetime_is_not_found_by_meaning(clock, start, session, embedder):
    proxy = await start(embedder=embedder)
    client = Client(proxy.base, session)
    await ask(client, ASKED, X_Cache_TTL="10")
    await learnt(proxy)
    clock.time += 11
    assert (await ask(client, LIKE)).cache == "MISS"


@pytest.mark.parametrize("finish", ["tool_calls", "refusal"])
async def test_an_answer_that_is_more_than_words_is_not_learnt(semantic, client, backend, finish):
    document = completion("no")
    message = document["choices"][0]["message"]
    if finish == "refusal":
        message["refusal"] = "I will not."
    else:
        message["tool_calls"] = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
        document["choices"][0]["finish_reason"] = "tool_calls"
    backend.script = gives(document)
    assert "stored" in (await ask(client, ASKED)).get("cache-status")
    await until(lambda: not semantic.house.engine.fill._tasks, what="the end of background work")
    assert rows(semantic) == 0
    assert (await ask(client, LIKE)).cache == "MISS"
