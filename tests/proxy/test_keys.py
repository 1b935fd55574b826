"""What is the same question and what is not, as a caller sees it: the second way of writing it is a HIT, every change
of meaning is a MISS whose own answer is kept beside the first."""

import json
import random

import pytest

from tests.fakes.backend import Numbered
from tests.rig import BODY

TOOL = {
    "type": "function",
    "function": {
        "name": "f",
        "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"enum": [1, 2.5, "é"]}}},
    },
}
BARE = b'{"model":"m","messages":[{"role":"user","content":"Say hello."}]%b}'


def says(content, **fields) -> dict:
    return {**BODY, "messages": [{"role": "user", "content": content}], **fields}


def raw(more: bytes = b"") -> bytes:
    return BARE % more


SAME = {
    "order of the keys": (
        b'{"model":"m","seed":1,"messages":[{"role":"user","content":"x"}]}',
        b'{"messages":[{"content":"x","role":"user"}],"seed":1,"model":"m"}',
    ),
    "order of the keys of a tool": ({**BODY, "tools": [TOOL]}, {"tools": [dict(reversed(TOOL.items()))], **BODY}),
    "white space": (raw(), b' {\r\n\t"model" : "m",\n"messages":[ { "role":"user" , "content":"Say hello." } ] } \n'),
    "escapes": (raw(b',"stop":"\xc3\xa9/"'), raw(b',"stop":"\\u00e9\\/"')),
    "stream on": ({**BODY}, {**BODY, "stream": True}),
    "stream off": ({**BODY, "stream": True}, {**BODY, "stream": False}),
    "stream null": ({**BODY, "stream": True}, {**BODY, "stream": None}),
    "one text part": (says("hello"), says([{"type": "text", "text": "hello"}])),
    "the text of one part": (says([{"type": "text", "text": "hello"}]), says("hello")),
    "user": ({**BODY, "user": "u1"}, {**BODY, "user": "u2"}),
    "metadata": ({**BODY, "metadata": {"a": "1"}}, {**BODY, "metadata": {"b": "2"}}),
    "store": ({**BODY, "store": True}, {**BODY, "store": False}),
    "safety identifier": ({**BODY, "safety_identifier": "x"}, {**BODY}),
    "prompt cache key": ({**BODY, "prompt_cache_key": "x"}, {**BODY, "prompt_cache_key": "y"}),
    "stream options": (
        {**BODY, "stream": True, "stream_options": {"include_usage": True}},
        {**BODY, "stream": True, "stream_options": {"include_usage": False, "include_obfuscation": False}},
    ),
    "temperature null": (raw(), raw(b',"temperature":null')),
    "max_tokens null": ({**BODY, "max_tokens": None}, {**BODY}),
    "one choice": ({**BODY, "n": 1}, {**BODY}),
    "temperature as a whole number": (raw(b',"temperature":0'), raw(b',"temperature":0.0')),
    "temperature with an exponent": (raw(b',"temperature":0.5'), raw(b',"temperature":5e-1')),
}


@pytest.mark.parametrize("name", SAME)
async def test_same_question_written_differently_is_a_hit(client, backend, name):
    """B01 (order), B03 (the deny-list), B04, B06: the second is answered with the first one's answer."""
    backend.script = Numbered()
    first, second = [await client.send(body) for body in SAME[name]]
    assert (first.cache, second.cache, backend.calls) == ("MISS", "HIT", 1)
    assert first.text == second.text == "answer 1"


def field(name: str, *values) -> tuple:
    return tuple({**BODY, name: value} for value in values)


DIFFERENT = {
    # B01: every field of the sampling
    "max_tokens": field("max_tokens", 16, 4000),
    "max_completion_tokens": field("max_completion_tokens", 16, 4000),
    "seed": field("seed", 1, 2),
    "stop": field("stop", "a", "b", ["a"], ["a", "b"], ["b", "a"]),
    "n": field("n", 1, 2),
    "top_p": field("top_p", 0.1, 0.2),
    "top_k": field("top_k", 1, 2),
    "logit_bias": field("logit_bias", {"1": 1}, {"1": 2}, {"2": 1}),
    "response_format": field("response_format", {"type": "text"}, {"type": "json_object"}),
    "presence_penalty": field("presence_penalty", 0.5, -0.5),
    "frequency_penalty": field("frequency_penalty", 0.5, -0.5),
    "logprobs": field("logprobs", True, False),
    "top_logprobs": field("top_logprobs", 1, 2),
    "model": field("model", "m", "M", "m-2"),
    # B02: absent is the default, never 0
    "temperature": (BODY, *field("temperature", 0, 1, 0.7)),
    # B03: newer fields, and ones that nobody knows
    "reasoning_effort": field("reasoning_effort", "low", "high"),
    "tool_choice": field("tool_choice", "none", "required"),
    "chat_template_kwargs": field("chat_template_kwargs", {"enable_thinking": False}, {"enable_thinking": True}),
    "unknown field": (BODY, *field("x_future", 1, 2, 1.0, "1", True, None, [1], {"a": 1})),
    "unknown field of a message": tuple(
        {**BODY, "messages": [{"role": "user", "content": "x", "name": name}]} for name in ("a", "b")
    ),
    "tools": (BODY, {**BODY, "tools": []}, {**BODY, "tools": [TOOL]}, {**BODY, "tools": [TOOL, TOOL]}),
    "order in a schema": field("tools", *([{"function": {"enum": e}}] for e in ([1, 2], [2, 1]))),
    "number or text": field("seed", 1, 1.0, "1", True),
    # B06: nothing inside a text is folded
    "case": (says("what does print(A) do"), says("what does print(a) do")),
    "indent": (says("if x:\n  y"), says("if x:\n    y"), says("if x:\n\ty")),
    "trailing lines": (says("x=1\n\n"), says("x=1"), says("x=1\n"), says(" x=1"), says("x=1\r\n")),
    "composed or not": (says("é"), says("e\u0301")),
    "look-alike space": (says("a b"), says("a\u00a0b"), says("a\u2009b")),
    "role": tuple({**BODY, "messages": [{"role": role, "content": "x"}]} for role in ("user", "system", "developer")),
    "where a message ends": (
        {**BODY, "messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]},
        {**BODY, "messages": [{"role": "user", "content": "ab"}]},
        {**BODY, "messages": [{"role": "user", "content": "b"}, {"role": "user", "content": "a"}]},
    ),
    "content null or empty": (says(None), says(""), says([])),
    "two parts or one": (
        says([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        says("ab"),
        says("a\nb"),
    ),
    "part with more to it": (says("a"), says([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}])),
}


@pytest.mark.parametrize("name", DIFFERENT)
async def test_every_change_of_meaning_is_a_miss(client, backend, name):
    """B01, B02, B03, B06: each way gets an answer of its own, and keeps it."""
    backend.script = Numbered()
    bodies = DIFFERENT[name]
    first = [await client.send(body) for body in bodies]
    again = [await client.send(body) for body in bodies]
    assert [a.cache for a in first] == ["MISS"] * len(bodies)
    assert [a.cache for a in again] == ["HIT"] * len(bodies)
    texts = [f"answer {i + 1}" for i in range(len(bodies))]
    assert [a.text for a in first] == [a.text for a in again] == texts
    assert backend.calls == len(bodies)


async def test_absent_and_null_temperature_are_one_and_reach_the_backend_as_written(client, backend):
    """B02: null is the default like absence; neither is turned into a number on its way."""
    bodies = [raw(), raw(b',"temperature":null'), raw(b',"temperature":0')]
    assert [(await client.send(b)).cache for b in bodies] == ["MISS", "HIT", "MISS"]
    assert [s.body for s in backend.seen] == [bodies[0], bodies[2]]
    await client.send(bodies[1], Cache_Control="no-cache")
    assert backend.seen[-1].body == bodies[1]


PATHS = [
    "/v1/chat/completions", "/v1/completions", "/v1/chat/completions?api-version=1",
    "/v1/chat/completions?api-version=2", "/v1/completions?api-version=1",
]  # fmt: skip


async def test_path_and_query_are_part_of_the_question(client, backend):
    """B06: the same body elsewhere is another question."""
    backend.script = Numbered()
    body = {**BODY, "prompt": "Say hello."}
    first = [await client.send(body, path=path) for path in PATHS]
    again = [await client.send(body, path=path) for path in PATHS]
    assert [a.cache for a in first] == ["MISS"] * len(PATHS)
    assert [a.cache for a in again] == ["HIT"] * len(PATHS)
    assert [a.text for a in again] == [f"answer {i + 1}" for i in range(len(PATHS))]
    assert [s.target.decode() for s in backend.seen] == PATHS


OTHERS = {
    "/v1/audio/speech": [{"input": "x", "voice": "a"}, {"input": "x", "voice": "b"}],
    "/v1/messages": [{"messages": [], "max_tokens": 1}, {"messages": [], "max_tokens": 2}],
}


@pytest.mark.parametrize("path", OTHERS)
async def test_other_operations_are_never_answered_from_the_cache(client, backend, path):
    """B03, B13: calls that differ in one field both reach the backend as they are, and so does a repeat."""
    bodies = [*OTHERS[path], OTHERS[path][0]]
    answers = [await client.send(body, path=path) for body in bodies]
    assert [a.cache for a in answers] == ["BYPASS"] * 3
    assert [s.json for s in backend.seen] == bodies


LONG = "A" * 70_000
PICTURES = {
    "image": lambda data: {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64," + data}},
    "sound": lambda data: {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
    "file": lambda data: {"type": "file", "file": {"filename": "a.pdf", "file_data": data}},
}


@pytest.mark.parametrize("kind", PICTURES)
async def test_payloads_equal_but_for_their_end_are_two(client, backend, kind):
    """B11: the whole content counts, and where it stands."""
    backend.script = Numbered()
    text = {"type": "text", "text": "What is this?"}
    part = PICTURES[kind]
    bodies = [
        says([text, part(LONG + "B" * 20)]), says([text, part(LONG + "C" * 20)]), says([part(LONG + "B" * 20), text]),
        says([text, part(LONG + "B" * 20), part(LONG + "B" * 20)]), says([text]),
    ]  # fmt: skip
    assert [(await client.send(body)).cache for body in bodies] == ["MISS"] * 5
    assert [(await client.send(body)).text for body in bodies] == [f"answer {i + 1}" for i in range(5)]


async def test_many_pictures_never_meet(client, backend):
    """B11: 1,000 pictures named at random are 1,000 questions (a 16-bit digest would not last)."""
    backend.script = Numbered()
    chance = random.Random(11)
    pictures = [says([PICTURES["image"](chance.randbytes(24).hex())]) for _ in range(1000)]
    answers = [await client.send(json.dumps(body).encode()) for body in pictures]
    assert {a.cache for a in answers} == {"MISS"}
    assert (await client.send(pictures[0])).cache == "HIT"
