"""What of a request is its question: the last words of the user alone, and everything else is its frame."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import key
from cacheproxy.core.model import Endpoint
from cacheproxy.core.outcome import Reason
from cacheproxy.core.question import PLACE, Question, question

BODY = {
    "model": "m", "temperature": 0.5,
    "messages": [
        {"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Where is it?"},
    ],
}  # fmt: skip


def of(body, endpoint=Endpoint.CHAT):
    return question(endpoint, body)


def asking(text):
    body = copy.deepcopy(BODY)
    body["messages"][-1]["content"] = text
    return body


def test_the_last_words_of_the_user_are_taken_out():
    found = of(BODY)
    assert found.text == "Where is it?"
    assert b"Where is it?" not in found.frame
    assert all(word in found.frame for word in (b"Be short.", b"Hi.", b"Hello.", b'"m"', b"0.5"))


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1).filter(str.strip))
def test_whatever_is_asked_the_frame_is_the_same(one, other):
    a, b = of(asking(one)), of(asking(other))
    assert (a.text, b.text) == (one, other)
    assert a.frame == b.frame


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.update(model="n"),
        lambda b: b.update(temperature=0.6),
        lambda b: b.update(unheard_of=1),
        lambda b: b.update(max_tokens=5),
        lambda b: b["messages"][0].update(content="Be long."),
        lambda b: b["messages"][1].update(content="Hi!"),
        lambda b: b["messages"].pop(0),
        lambda b: b["messages"][-1].update(name="Ann"),
        lambda b: b["messages"].insert(0, {"role": "developer", "content": "x"}),
    ],
)
def test_any_other_change_is_another_frame(change):
    body = copy.deepcopy(BODY)
    change(body)
    assert of(body).frame != of(BODY).frame


@pytest.mark.parametrize(
    "change", [{"user": "u"}, {"metadata": {"a": "b"}}, {"stream": True}, {"n": 1}, {"seed": None}]
)
def test_what_is_no_part_of_a_key_is_no_part_of_the_frame(change):
    assert of({**BODY, **change}).frame == of(BODY).frame


def test_a_single_text_part_is_a_text():
    assert of(asking([{"type": "text", "text": "Where is it?"}])) == of(BODY)


def test_the_responses_api():
    told = {"model": "m", "input": "Where is it?"}
    turns = {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "Where is it?"}]}]}
    assert of(told, Endpoint.RESPONSES) == of(turns, Endpoint.RESPONSES)
    assert isinstance(of(told, Endpoint.RESPONSES), Question)


@pytest.mark.parametrize(
    "change",
    [
        {"tools": [{"type": "function"}]}, {"functions": [{}]}, {"tool_choice": "auto"}, {"n": 2}, {"n": "1"},
        {"logprobs": True}, {"top_logprobs": 3}, {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema"}}, {"guided_json": {}, "guided_regex": "a"}, {"grammar": "x"},
        {"messages": []}, {"messages": None}, {"messages": "hi"}, {"messages": ["hi"]},
        {"messages": [{"role": "assistant", "content": "a"}]}, {"messages": [{"role": "tool", "content": "a"}]},
        {"messages": [{"role": "user"}]}, {"messages": [{"role": "user", "content": 5}]},
        {"messages": [{"role": "user", "content": []}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": None}]}]},
    ],
)  # fmt: skip
def test_what_has_no_question(change):
    assert of({**BODY, **change}) is Reason.NOT_A_QUESTION


@pytest.mark.parametrize("endpoint", [e for e in Endpoint if e not in (Endpoint.CHAT, Endpoint.RESPONSES)])
def test_operations_without_questions(endpoint):
    assert of(BODY, endpoint) is Reason.NOT_A_QUESTION


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_no_words(text):
    assert of(asking(text)) is Reason.EMPTY_QUESTION


def test_a_request_that_asks_the_placeholder_is_like_any_other():
    found = of(asking(PLACE))
    assert found == Question(PLACE, of(BODY).frame)


PARTS = {
    "realm": b"r", "owner": b"o" * 16, "namespace": "", "knowledge": "", "target": b"/v1/chat/completions",
    "fields": (), "frame": b"{}",
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"realm": b"s"}, {"owner": b"p" * 16}, {"namespace": "n"}, {"knowledge": "k"}, {"target": b"/v1"},
        {"fields": ((b"a", b"b"),)}, {"frame": b"[]"}, {"namespace": "k", "knowledge": ""},
        {"namespace": "", "knowledge": "n"},
    ],
)  # fmt: skip
def test_every_part_makes_another_partition(change):
    secret = b"s" * 32
    assert key.partition(secret, **{**PARTS, **change}) != key.partition(secret, **PARTS)
    assert key.partition(b"t" * 32, **PARTS) != key.partition(secret, **PARTS)


def test_a_partition_is_no_exact_key():
    exact = {name: value for name, value in PARTS.items() if name != "frame"}
    assert key.partition(b"s" * 32, **PARTS) != key.exact(b"s" * 32, **exact, body=PARTS["frame"])
