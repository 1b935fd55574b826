"""What backends are told for their own prefix cache: off by default, nobody's own words replaced, never twice to one that
refuses it, and no caller blamed for it."""

import json

import pytest

from tests import rig
from tests.fakes.backend import completion, plain

KEY, SALT, PROMPT = "prompt_cache_key", "cache_salt", "cache_prompt"
ON = {f"prefix__hints__{name}": True for name in (KEY, SALT, PROMPT)}


def chat(system="Be kind.", user="u", **more):
    return {
        "model": "m",
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        **more,
    }


@pytest.fixture
async def hinting(start, session):
    return rig.Client((await start(**ON)).base, session)


def bodies(backend):
    return [json.loads(s.body) for s in backend.seen if s.body]


async def test_off_by_default(client, backend):
    await client.chat(chat())
    assert not {KEY, SALT, PROMPT} & bodies(backend)[0].keys()


@pytest.mark.parametrize("name", [KEY, SALT, PROMPT])
async def test_each_is_switched_alone_and_changes_no_other_byte(start, session, backend, name):
    client = rig.Client((await start(**{f"prefix__hints__{name}": True})).base, session)
    raw = json.dumps(chat(), indent=1).encode()
    await client.send(raw)
    sent = backend.seen[0].body
    assert {KEY, SALT, PROMPT} & json.loads(sent).keys() == {name}
    assert len(sent) > len(raw)
    assert sent.endswith(raw[1:])


async def test_values(hinting, backend):
    """The cache key is one for a family of prompts and a scope, the salt one for a scope; neither tells either."""
    for n, (system, who) in enumerate([("Be kind.", "A"), ("Be kind.", "A"), ("Be rude.", "A"), ("Be kind.", "B")]):
        await hinting.chat(chat(system, f"u{n}"), key=who)
    keys, salts = ([b[name] for b in bodies(backend)] for name in (KEY, SALT))
    assert keys[0] == keys[1]
    assert len({keys[0], keys[2], keys[3]}) == 3
    assert salts[0] == salts[1] == salts[2] != salts[3]
    assert all(len(v) == 32 for v in keys + salts)
    assert all(b[PROMPT] is True for b in bodies(backend))


async def test_the_callers_own_words_stay(hinting, backend):
    await hinting.chat(chat(prompt_cache_key="mine", cache_salt="also mine", cache_prompt=False))
    sent = bodies(backend)[0]
    assert (sent[KEY], sent[SALT], sent[PROMPT]) == ("mine", "also mine", False)


async def test_hints_are_not_part_of_the_key(start, session, backend):
    plainly, hinting = [rig.Client((await start(**v)).base, session) for v in ({}, ON)]
    answers = [await c.chat(chat()) for c in (hinting, hinting, plainly)]
    assert [a.cache for a in answers] == ["MISS", "HIT", "MISS"]


async def test_responses_are_not_told_what_they_would_repeat(hinting, backend):
    """An answer of the Responses API echoes the cache key; the caller never said one."""
    await hinting.send({"model": "m", "instructions": "Be kind.", "input": "u"}, path="/v1/responses")
    assert {KEY, SALT, PROMPT} & bodies(backend)[0].keys() == {SALT}


async def test_also_for_what_is_not_looked_up(hinting, backend):
    """A salt that some requests lack would tell others apart."""
    await hinting.chat(chat(), Cache_Control="no-store")
    await hinting.send({"model": "m", "prompt": "p"}, path="/v1/completions", Cache_Control="no-store")
    assert all(SALT in b for b in bodies(backend))


def refusing(*names, status="400 Bad Request"):
    """A backend that does not know these fields."""

    async def script(exchange):
        if exchange.seen.body and set(names) & exchange.seen.json.keys():
            await exchange.json({"error": {"message": "Unrecognized request argument"}}, status)
        else:
            await plain(exchange)

    return script


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", ["400 Bad Request", "422 Unprocessable Content"])
async def test_refused_once_then_never_again(hinting, backend, stream, status):
    """The caller gets its answer; the second request has no hint."""
    backend.script = refusing(KEY, status=status)
    answers = [await hinting.chat(chat(user=f"u{n}"), stream=stream) for n in range(3)]
    assert [a.status for a in answers] == [200, 200, 200]
    told = [KEY in b for b in bodies(backend)]
    assert told == [True, False, False, False]
    if stream:
        assert all("stream_options" in b for b in bodies(backend))


async def test_usage_and_hints_refused_alike(hinting, backend):
    backend.script = refusing(KEY, "stream_options")
    answers = [await hinting.chat(chat(user=f"u{n}"), stream=True) for n in range(3)]
    assert [a.status for a in answers] == [200, 200, 200]
    last = bodies(backend)[-1]
    assert not {KEY, "stream_options"} & last.keys()


async def test_a_bad_request_teaches_nothing(hinting, backend):
    """What is refused without hints too was the caller's fault: it gets that refusal, and hints go on."""

    async def script(exchange):
        if exchange.seen.json["messages"][1]["content"] == "bad":
            await exchange.json({"error": {"message": "bad", "with": KEY in exchange.seen.json}}, "400 Bad Request")
        else:
            await exchange.json(completion())

    backend.script = script
    answer = await hinting.chat(chat(user="bad"))
    assert (answer.status, answer.json["error"]["with"]) == (400, False)
    await hinting.chat(chat(user="good"))
    assert KEY in bodies(backend)[-1]


async def test_a_backend_that_changes_its_mind(hinting, backend):
    """One that took a hint and refuses it later, after a change of versions: no caller sees that."""
    assert (await hinting.chat(chat(user="u1"))).status == 200
    backend.script = refusing(SALT)
    answers = [await hinting.chat(chat(user=f"u{n}")) for n in (2, 3)]
    assert [a.status for a in answers] == [200, 200]
    assert [SALT in b for b in bodies(backend)] == [True, True, False, False]


@pytest.mark.parametrize("headers", [{}, {"Cache_Control": "no-store"}])
async def test_what_one_operation_refuses_another_may_take(hinting, backend, headers):
    """Looked up or not: what is remembered is remembered of the operation and the model."""

    async def script(exchange):
        if exchange.seen.target == b"/v1/responses" and SALT in exchange.seen.json:
            await exchange.json({"error": {"message": "no"}}, "400 Bad Request")
        else:
            await exchange.json(completion())

    backend.script = script
    await hinting.chat(chat(), **headers)
    for text in ("u", "u2"):
        answer = await hinting.send(
            {"model": "m", "instructions": "Be kind.", "input": text}, path="/v1/responses", **headers
        )
        assert answer.status == 200
    await hinting.chat(chat(user="u2"), **headers)
    assert [SALT in b for b in bodies(backend)] == [True, True, False, False, True]
