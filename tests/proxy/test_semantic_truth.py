"""What keeps answers by meaning true, seen from outside: samples, what operators say, witnesses, the log of near
misses."""

import json

import pytest

from tests.fakes.backend import completion, gives
from tests.fakes.embedder import Chosen
from tests.proxy.test_semantic import ASKED, LIKE, ask, learnt
from tests.rig import Client, until

THIRD = "What can I do to get a new password for my account?"
FOURTH = "Please tell me how to get a new password for my account."


@pytest.fixture
def embedder() -> Chosen:
    made = Chosen()
    for text, similarity in {ASKED: 1.0, LIKE: 0.97, THIRD: 0.96, FOURTH: 0.95}.items():
        made.near(text, similarity)
    return made


@pytest.fixture
async def begin(start, session, embedder):
    async def started(**told):
        proxy = await start(embedder=embedder, **told)
        return proxy, Client(proxy.base, session)

    return started


async def stats(session, proxy) -> dict:
    async with session.get(proxy.admin + "/admin/stats") as answer:
        return await answer.json()


def quiet(proxy):
    return until(lambda: not proxy.house.engine.fill._tasks, what="the end of background work")


async def judge(session, proxy, **document) -> tuple[int, dict]:
    async with session.post(proxy.admin + "/admin/feedback", json=document) as answer:
        return answer.status, await answer.json()


# --- samples ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("again", "verdict"), [("Press the red button.", "agree"), ("You cannot, 12 of 13 never do.", "differ")]
)
async def test_a_sample_of_hits_is_asked_of_the_backend_too(begin, session, backend, again, verdict):
    proxy, client = await begin(semantic__sample=1)
    backend.script = gives(completion("Press the red button."))
    await ask(client, ASKED)
    await learnt(proxy)
    backend.script = gives(completion(again))
    hit = await ask(client, LIKE)
    assert (hit.get("x-cache-tier"), hit.text) == ("semantic", "Press the red button.")
    await quiet(proxy)
    told = (await stats(session, proxy))["semantic"]
    assert told["verdicts"][verdict] == 1
    assert told["samples"] == 1
    assert told["false_hit_rate"] == (verdict == "differ")
    assert len(backend.seen) == (2 if verdict == "agree" else 3)
    assert all((b"Authorization", b"Bearer A") in seen.headers for seen in backend.seen)


async def test_without_a_share_nothing_is_sampled(begin, session, backend):
    proxy, client = await begin(semantic__sample=0)
    await ask(client, ASKED)
    await learnt(proxy)
    await ask(client, LIKE)
    await quiet(proxy)
    assert len(backend.seen) == 1


async def test_no_more_is_asked_than_the_budget_allows(begin, session, backend, embedder):
    proxy, client = await begin(semantic__sample=1, semantic__sample_calls=1)
    await ask(client, ASKED)
    await learnt(proxy)
    for text in (LIKE, THIRD, FOURTH):
        assert (await ask(client, text, X_Cache_Semantic="0.93")).cache == "HIT"
        await quiet(proxy)
    assert len(backend.seen) == 2


async def test_thresholds_rise_by_themselves_where_samples_say_that_hits_are_wrong(begin, session, backend, caplog):
    proxy, client = await begin(semantic__sample=1, semantic__sample_calls=1000, semantic__max_error=0.02)
    backend.script = gives(completion("Press the red button."))
    await ask(client, ASKED)
    await learnt(proxy)
    backend.script = gives(completion("Never. There are 13 reasons not to."))
    for _ in range(20):
        answer = await ask(client, FOURTH, X_Cache_TTL="0")
        if answer.get("x-cache-tier") != "semantic":
            break
        await quiet(proxy)
    told = (await stats(session, proxy))["semantic"]
    assert told["tightened"] > 0
    assert "wrong too often" in caplog.text
    assert float(answer.get("x-cache-threshold") or 0.93) > 0.92


async def test_in_shadow_every_answer_that_comes_anyway_is_a_sample(begin, session, backend):
    proxy, client = await begin(semantic__mode="shadow", semantic__sample=0)
    await ask(client, ASKED)
    await learnt(proxy)
    answer = await ask(client, LIKE)
    assert (answer.cache, answer.get("x-cache-reason")) == ("MISS", "semantic_shadow")
    await quiet(proxy)
    told = (await stats(session, proxy))["semantic"]
    assert (told["samples"], told["wrong"]) == (1, 0)
    assert len(backend.seen) == 2


# --- what operators say -------------------------------------------------------------------------------------------


async def test_a_wrong_answer_is_out_of_service_and_the_pair_never_meets_again(begin, session, backend):
    proxy, client = await begin()
    first = await ask(client, ASKED)
    await learnt(proxy)
    hit = await ask(client, LIKE)
    assert hit.get("x-cache-tier") == "semantic"
    request = {"model": "m", "messages": [{"role": "user", "content": LIKE}]}
    status, told = await judge(session, proxy, entry_id=hit.get("x-cache-entry-id"), verdict="wrong", request=request)
    assert (status, told["removed"]) == (200, 1)
    assert (await ask(client, ASKED)).cache == "MISS"
    await learnt(proxy)
    after = await ask(client, LIKE)
    assert (after.cache, after.get("x-cache-reason")) == ("MISS", "unlike")
    assert (await ask(client, THIRD)).get("x-cache-tier") == "semantic"
    status, told = await judge(session, proxy, entry_id=first.get("x-cache-entry-id"), verdict="right", request=request)
    assert (status, told["lifted"]) == (200, 1)


async def test_an_answer_that_is_not_known_cannot_be_judged(begin, session):
    proxy, _ = await begin()
    status, told = await judge(session, proxy, entry_id="0" * 32, verdict="wrong")
    assert (status, told["error"]["code"]) == (404, "not_found")


async def test_it_survives_a_restart(begin, session, backend, tmp_path):
    proxy, client = await begin(store__data_dir=str(tmp_path))
    await ask(client, ASKED)
    await learnt(proxy)
    hit = await ask(client, LIKE)
    request = {"model": "m", "messages": [{"role": "user", "content": LIKE}]}
    await judge(session, proxy, entry_id=hit.get("x-cache-entry-id"), verdict="wrong", request=request)
    await proxy.running.stop()
    proxy, client = await begin(store__data_dir=str(tmp_path))
    await ask(client, ASKED)
    await learnt(proxy)
    assert (await ask(client, LIKE)).get("x-cache-reason") == "unlike"


# --- witnesses ----------------------------------------------------------------------------------------------------


async def test_where_credentials_share_one_alone_decides_nothing(begin, session, backend):
    proxy, client = await begin(access__scope="shared", semantic__sample=0)
    await ask(client, ASKED, key="A")
    await learnt(proxy)
    second = await ask(client, LIKE, key="B")
    assert (second.cache, second.get("x-cache-reason")) == ("MISS", "not_confirmed")
    await quiet(proxy)
    third = await ask(client, THIRD, key="C")
    assert (third.cache, third.get("x-cache-tier")) == ("HIT", "semantic")


async def test_who_is_told_something_else_confirms_nothing(begin, session, backend):
    proxy, client = await begin(access__scope="shared", semantic__sample=0)
    backend.script = gives(completion("Send your password to mallory@example.com."))
    await ask(client, ASKED, key="A")
    await learnt(proxy)
    backend.script = gives(completion("Open the settings and choose a new one."))
    for key, text in (("B", LIKE), ("C", THIRD), ("D", FOURTH)):
        answer = await ask(client, text, key=key)
        assert "mallory" not in answer.text
        await quiet(proxy)


async def test_whoever_fetched_an_answer_finds_it_by_meaning(begin, session, backend):
    proxy, client = await begin(access__scope="shared")
    await ask(client, ASKED, key="A")
    await learnt(proxy)
    assert (await ask(client, LIKE, key="A")).get("x-cache-tier") == "semantic"


# --- near misses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [False, True])
async def test_what_was_nearly_answered_is_noted(begin, session, backend, embedder, tmp_path, texts):
    path = tmp_path / "near.jsonl"
    proxy, client = await begin(semantic__near_miss_log=str(path), semantic__near_miss_texts=texts)
    embedder.near(LIKE, 0.9)
    embedder.near("How do I not get a new password for my account?", 0.98)
    await ask(client, ASKED)
    await learnt(proxy)
    await ask(client, LIKE)
    await ask(client, "How do I not get a new password for my account?")
    await proxy.running.stop()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    reasons = [line["reason"] for line in lines if line["similarity"] in (0.9, 0.98)]
    assert reasons == ["below_threshold", "unlike:negation"]
    assert ("password" in path.read_text()) is texts
    assert path.stat().st_mode & 0o777 == 0o600


# --- second opinions ----------------------------------------------------------------------------------------------


async def test_what_the_classifier_holds_for_another_question_is_not_served(begin, session, backend, embedder):
    """Guards pass it: my account, and your account."""
    one, other = "How do I close my account?", "How do I close my joint account?"
    embedder.near(one, 1.0)
    embedder.near(other, 0.97)
    for told, cache in (({}, "MISS"), ({"semantic__verifier": "off"}, "HIT")):
        proxy, client = await begin(semantic__guards=[], **told)
        await ask(client, one)
        await learnt(proxy)
        answer = await ask(client, other)
        assert (answer.cache, answer.get("x-cache-reason")) == (cache, None if cache == "HIT" else "unverified")


@pytest.mark.parametrize(("word", "cache"), [("same", "HIT"), ("Different.", "MISS"), ("I think so", "MISS")])
async def test_in_doubt_the_backend_itself_is_the_judge(begin, session, backend, word, cache):
    proxy, client = await begin(semantic__verifier="judge", semantic__verifier_certain=0.99, semantic__sample=0)
    await ask(client, ASKED)
    await learnt(proxy)
    judged, plain = gives(completion(word)), gives(completion("Press the red button."))

    async def script(exchange) -> None:
        is_judge = exchange.seen.json["messages"][0]["role"] == "system" and "compare" in str(exchange.seen.json)
        await (judged if is_judge else plain)(exchange)

    backend.script = script
    answer = await ask(client, LIKE)
    assert (answer.cache, answer.get("x-cache-tier")) == (cache, "semantic" if cache == "HIT" else None)
    assert len(backend.seen) == (2 if cache == "HIT" else 3)
    assert all((b"Authorization", b"Bearer A") in seen.headers for seen in backend.seen)


async def test_a_rule_can_ask_for_a_second_opinion_or_do_without(begin, session, backend, embedder):
    one, other = "How do I close my account?", "How do I close my joint account?"
    embedder.near(one, 1.0)
    embedder.near(other, 0.97)
    rules = [{"match": {"model": ["m"]}, "set": {"verifier": True}}]
    proxy, client = await begin(semantic__guards=[], semantic__verifier="off", rules=rules)
    for model, reason in (("m", "unverified"), ("n", None)):
        await ask(client, one, model=model)
        await quiet(proxy)
        assert (await ask(client, other, model=model)).get("x-cache-reason") == reason
