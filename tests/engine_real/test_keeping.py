"""What of a real engine's answers is kept, and what another request is."""

import pytest

from tests.engine_real.asking import BODIES, EXACTLY, FORMS, finishes, name_of, work_done
from tests.rig import CHAT

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
PERSON = {
    "type": "json_schema",
    "json_schema": {
        "name": "person",
        "schema": {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 10}, "age": {"type": "integer"}},
            "required": ["name", "age"],
            "additionalProperties": False,
        },
    },
}
BOB = {**EXACTLY, "messages": [{"role": "user", "content": "Bob is 5 years old."}]}


@pytest.mark.parametrize("form", FORMS, ids=name_of)
@pytest.mark.parametrize("path", BODIES, ids=name_of)
async def test_an_answer_cut_by_the_token_limit_is_not_stored(client, direct, path, form):
    """B29."""
    body = {**BODIES[path], **form, "max_tokens": 3}
    one = await client.send(body, path=path, key=None)
    before = await work_done(direct)
    two = await client.send(body, path=path, key=None)
    assert (one.cache, two.cache) == ("MISS", "MISS")
    assert finishes(one) == finishes(two) == ["length"]
    assert await work_done(direct) > before


async def test_a_larger_limit_gets_its_own_answer(client):
    """B01, B29."""
    cut = await client.send({**BODIES[CHAT], "max_tokens": 3})
    whole = await client.send(BODIES[CHAT])
    assert (cut.cache, whole.cache) == ("MISS", "MISS")
    assert whole.text.startswith(cut.text)
    assert len(whole.text) > len(cut.text)


@pytest.mark.parametrize("second", FORMS, ids=name_of)
async def test_a_schema_is_answered_by_the_cache_and_is_part_of_the_key(client, second):
    """B34: the same words with and without the schema are two questions."""
    asked = {**BOB, "response_format": PERSON, "max_tokens": 80}
    one = await client.send(asked)
    two = await client.send({**asked, **second})
    free = await client.send({**asked, "response_format": None})
    assert (one.cache, two.cache, free.cache) == ("MISS", "HIT", "MISS")
    assert one.text == two.text
    assert '"name"' in one.text
    assert free.text != one.text


async def test_tools_are_answered_by_the_cache_and_are_part_of_the_key(client):
    """B03, B34."""
    asked = {**BODIES[CHAT], "tools": [WEATHER], "tool_choice": "auto"}
    one = await client.send(asked)
    two = await client.send({**asked, "stream": True})
    none = await client.send({**asked, "tool_choice": "none"})
    without = await client.send(BODIES[CHAT])
    assert (one.cache, two.cache, none.cache, without.cache) == ("MISS", "HIT", "MISS", "MISS")
    assert one.text == two.text


async def test_a_field_of_the_engine_alone_is_part_of_the_key_and_reaches_it(client):
    """B03: `grammar` is llama.cpp's own field."""
    asked = {**BODIES[CHAT], "grammar": 'root ::= "Lyon" | "Nice"'}
    one, two, plain = await client.send(asked), await client.send(asked), await client.send(BODIES[CHAT])
    assert (one.cache, two.cache, plain.cache) == ("MISS", "HIT", "MISS")
    assert one.text == two.text
    assert one.text in ("Lyon", "Nice")
    assert "Paris" in plain.text


async def test_credentials_do_not_share(client):
    """B30: the engine asks for none, and still each has a cache of its own."""
    caches = [(await client.send(BODIES[CHAT], key=key)).cache for key in ("A", "B", None, "A", "B", None)]
    assert caches == ["MISS", "MISS", "MISS", "HIT", "HIT", "HIT"]
