"""A stream and its document say the same: nothing is lost, nothing is made up, in either direction."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.assemble import assemble, disassemble
from cacheproxy.core.model import Endpoint
from tests.core import answers
from tests.core.shapes import plain

BASE = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1700000000,
    "model": "m",
    "system_fingerprint": "fp",
}
USAGE = {
    "prompt_tokens": 5,
    "completion_tokens": 9,
    "total_tokens": 14,
    "completion_tokens_details": {"reasoning_tokens": 7},
}


def chunk(delta: Any = None, finish: str | None = None, index: int = 0, **more: Any) -> dict[str, Any]:
    return {**BASE, "choices": [{"index": index, "delta": delta or {}, "finish_reason": finish, **more}]}


def chat(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    return assemble(json.loads(json.dumps(chunks)), Endpoint.CHAT)


def call(index: int, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, **more}]}


def token(text: str) -> dict[str, Any]:
    return {"token": text, "logprob": -0.5, "bytes": None, "top_logprobs": []}


def test_a_stream_keeps_all_that_was_said():
    """B17: thoughts, calls in pieces, token probabilities, refusal, annotations, unknown fields, usage details."""
    document = chat([
        chunk({"role": "assistant", "content": ""}, logprobs=None),
        chunk({"reasoning_content": "Let me "}), chunk({"reasoning_content": "think."}),
        chunk({"content": "Hel"}, logprobs={"content": [token("Hel")], "refusal": None}),
        chunk({"content": "lo", "x_y": {"a": [1]}}, logprobs={"content": [token("lo")], "refusal": None}),
        chunk({"refusal": "No"}), chunk({"refusal": "pe"}), chunk({"x_y": {"a": [2], "b": "c"}}),
        chunk({"annotations": [{"type": "url_citation", "url": "a"}]}), chunk({"annotations": [{"url": "b"}]}),
        chunk(call(0, id="call_1", type="function", function={"name": "get_", "arguments": ""})),
        chunk(call(0, function={"name": "weather", "arguments": '{"city":'})),
        chunk(call(1, id="call_2", type="function", function={"name": "f", "arguments": "{"})),
        chunk(call(0, function={"arguments": '"B"}'})), chunk(call(1, function={"arguments": "}"})),
        chunk(None, "tool_calls", content_filter_results={"hate": False}),
        {**BASE, "choices": [], "usage": USAGE, "timings": {"ms": 1.5}},
    ])  # fmt: skip
    [choice] = document["choices"]
    assert choice["message"] == {
        "role": "assistant", "content": "Hello", "reasoning_content": "Let me think.", "refusal": "Nope",
        "x_y": {"a": [1, 2], "b": "c"}, "annotations": [{"type": "url_citation", "url": "a"}, {"url": "b"}],
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"B"}'}},
            {"id": "call_2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        ],
    }  # fmt: skip
    assert choice["logprobs"] == {"content": [token("Hel"), token("lo")], "refusal": None}
    assert (choice["finish_reason"], choice["content_filter_results"]) == ("tool_calls", {"hate": False})
    del document["choices"]
    assert document == {**BASE, "object": "chat.completion", "usage": USAGE, "timings": {"ms": 1.5}}


def test_choices_may_come_in_any_order():
    chunks = [
        chunk({"content": "b"}, index=1),
        chunk({"content": "a"}),
        chunk(None, "stop"),
        chunk({"content": "B"}, "stop", 1),
    ]
    assert [(c["index"], c["message"]["content"]) for c in chat(chunks)["choices"]] == [(0, "a"), (1, "bB")]


def test_a_first_chunk_without_identity_gives_none():
    """B20: the chunk with the filter results of the prompt has an empty id and model; the answer has real ones."""
    first = {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": [{"index": 0}]}
    document = chat([first, chunk({"content": "a"}, "stop")])
    assert (document["id"], document["model"], document["created"]) == ("chatcmpl-1", "m", 1700000000)
    assert document["prompt_filter_results"] == [{"index": 0}]


def test_what_only_streams_have_is_left_out():
    """Random padding of chunks is no part of the answer."""
    assert "obfuscation" not in chat([{**chunk({"content": "a"}, "stop"), "obfuscation": "xyz"}])


def test_repeated_constants_are_not_joined():
    """Some servers repeat role, call id and type on every piece."""
    piece = {"role": "assistant", **call(0, id="call_1", type="function", function={"name": "f", "arguments": "x"})}
    [choice] = chat([chunk(piece), chunk(piece), chunk(None, "tool_calls")])["choices"]
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["tool_calls"] == [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "xx"}}
    ]


def test_required_members_of_a_document_are_there():
    """The API promises them, null where there is nothing to say: clients index them without asking."""
    [choice] = chat(
        [chunk({"role": "assistant", "content": "a", "refusal": None}, logprobs=None), chunk(None, "stop")]
    )["choices"]
    assert choice == {
        "index": 0, "message": {"role": "assistant", "content": "a", "refusal": None}, "logprobs": None,
        "finish_reason": "stop",
    }  # fmt: skip


def test_text_completions_are_joined():
    """B17: with their token probabilities, for each prompt its own."""
    pieces = [
        {"index": 0, "text": "Hel", "logprobs": {"tokens": ["Hel"], "top_logprobs": [{"a": 1}]}, "finish_reason": None},
        {"index": 1, "text": "x", "logprobs": None, "finish_reason": "stop"},
        {"index": 0, "text": "lo", "logprobs": {"tokens": ["lo"], "top_logprobs": [{"b": 2}]}, "finish_reason": "stop"},
    ]
    document = assemble(
        [{"id": "cmpl-1", "object": "text_completion", "choices": [p]} for p in pieces], Endpoint.COMPLETIONS
    )
    first, second = document["choices"]
    assert (first["text"], second["text"], document["object"]) == ("Hello", "x", "text_completion")
    assert first["logprobs"] == {"tokens": ["Hel", "lo"], "top_logprobs": [{"a": 1}, {"b": 2}]}
    assert [c["finish_reason"] for c in (first, second)] == ["stop", "stop"]


@given(answers.chat_answers)
def test_a_chat_answer_survives_being_streamed(document):
    """B17: document -> stream -> document is the identity."""
    streamed = disassemble(json.loads(plain(document)), Endpoint.CHAT, with_usage=True)
    assert plain(chat(streamed)) == plain(document)


@given(answers.text_answers)
def test_a_text_answer_survives_being_streamed(document):
    streamed = disassemble(json.loads(plain(document)), Endpoint.COMPLETIONS, with_usage=True)
    assert plain(assemble(streamed, Endpoint.COMPLETIONS)) == plain(document)


@given(answers.chat_answers, st.booleans())
def test_a_made_stream_is_one_that_clients_can_read(document, with_usage):
    """Every chunk has identity and choices; roles first, finish reasons last, usage only where asked."""
    streamed = disassemble(document, Endpoint.CHAT, with_usage=with_usage)
    assert {(c["id"], c["object"], c["created"], c["model"]) for c in streamed} == {
        ("chatcmpl-1", "chat.completion.chunk", 1700000000, "m")
    }
    told = [c["usage"] for c in streamed if c.get("usage") is not None]
    assert told == ([document["usage"]] if with_usage and "usage" in document else [])
    if told:
        assert streamed.pop()["choices"] == []
    assert all(len(c["choices"]) == 1 for c in streamed)
    for choice in document["choices"]:
        pieces = [c["choices"][0] for c in streamed if c["choices"][0]["index"] == choice["index"]]
        assert pieces[0]["delta"]["role"] == "assistant"
        assert [p["finish_reason"] for p in pieces] == [None] * (len(pieces) - 1) + [choice["finish_reason"]]
        assert all(call["index"] >= 0 for p in pieces for call in p["delta"].get("tool_calls") or ())


LONG = {
    "words": "The quick brown fox. " * 500,
    "no spaces": "缓存代理位于客户端与后端之间，" * 300,
    "one word": "x" * 20_000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
@pytest.mark.parametrize("endpoint", [Endpoint.CHAT, Endpoint.COMPLETIONS])
def test_a_long_text_is_streamed_in_pieces(text, endpoint):
    """B18: not as one lump, in whatever script; not in thousands of events either."""
    said = {"message": {"role": "assistant", "content": text}} if endpoint is Endpoint.CHAT else {"text": text}
    choice = {"index": 0, **said, "finish_reason": "stop"}
    streamed = disassemble({**BASE, "choices": [choice]}, endpoint, with_usage=False)
    pieces = [c["choices"][0] for c in streamed]
    told = [(p["delta"].get("content") if "delta" in p else p["text"]) or "" for p in pieces]
    assert "".join(told) == text
    assert 1 < len([t for t in told if t]) <= 300
