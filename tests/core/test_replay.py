"""A stored answer is given back in either form, equal to what was recorded in all but id and time."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import replay
from cacheproxy.core.events import DONE, split
from cacheproxy.core.model import Answer, Endpoint, Form
from cacheproxy.core.recording import recorder
from tests.core import answers, shapes
from tests.core.shapes import ask, events, plain

UNIQUE = "0123456789abcdef" * 2
NOW = 1800000000
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
WANTED = [(False, False), (True, False), (True, True)]


def recorded(raw: bytes, *, stream: bool, endpoint: Endpoint = Endpoint.CHAT, choices: int = 1) -> Answer:
    taking = recorder(
        ask(stream=stream, endpoint=endpoint, choices=choices), "text/event-stream" if stream else "application/json"
    )
    taking.feed(raw)
    answer = taking.finish()
    assert isinstance(answer, Answer), answer
    return answer


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m"}
    return {**base, "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


CHUNKS = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "Hel"}),
    chunk({"content": "lo"}),
    chunk(None, "stop"),
]
WITH_USAGE = [*CHUNKS, {**chunk(), "choices": [], "usage": USAGE}]
MESSAGE = {"role": "assistant", "content": "Hello"}
DOCUMENT = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": "m", "usage": USAGE,
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
}  # fmt: skip
RECORDINGS = {
    "document": (json.dumps(DOCUMENT).encode(), False),
    "stream": (events(CHUNKS), True),
    "stream with usage": (events(WITH_USAGE), True),
}


def data_of(body: bytes) -> list[dict[str, Any]]:
    found = [e.data for e in split(body)]
    assert found[-1] == DONE
    assert found.count(DONE) == 1
    return [json.loads(data) for data in found[:-1]]


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.parametrize(("stream", "wants_usage"), WANTED)
def test_every_recording_is_given_in_every_form(name, stream, wants_usage):
    """B18, B21: the form follows the request; the end marker comes once and last; usage as asked."""
    raw, streamed = RECORDINGS[name]
    answer = recorded(raw, stream=streamed)
    if not replay.can_give(answer, Endpoint.CHAT, stream=stream, wants_usage=wants_usage):
        assert name == "stream"
        assert wants_usage or not stream
        return
    given_ = replay.render(answer, Endpoint.CHAT, stream=stream, wants_usage=wants_usage)
    assert given_.form is (Form.EVENTS if stream else Form.JSON)
    assert given_.content_type.startswith("text/event-stream" if stream else "application/json")
    if not stream:
        assert json.loads(given_.body) == DOCUMENT
        return
    documents = data_of(given_.body)
    assert len(documents) > 2
    assert "".join(c["delta"].get("content") or "" for d in documents for c in d["choices"]) == "Hello"
    assert [d["usage"] for d in documents if d.get("usage")] == ([USAGE] if wants_usage else [])
    assert given_.has_usage == wants_usage


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_recorded_form_is_the_recorded_bytes(name):
    raw, streamed = RECORDINGS[name]
    answer = recorded(raw, stream=streamed)
    wants_usage = name != "stream"
    assert replay.is_ready(answer, Endpoint.CHAT, stream=streamed, wants_usage=wants_usage)
    assert replay.render(answer, Endpoint.CHAT, stream=streamed, wants_usage=wants_usage) is answer


@pytest.mark.parametrize(
    ("form", "has_usage", "stream", "wants_usage", "possible"),
    [
        (Form.EVENTS, False, True, True, False), (Form.EVENTS, False, False, False, False),
        (Form.EVENTS, False, True, False, True), (Form.EVENTS, True, True, True, True),
        (Form.EVENTS, True, False, False, True),
        (Form.JSON, False, True, False, True), (Form.JSON, True, True, True, True),
        (Form.JSON, False, False, False, True),
    ],
)  # fmt: skip
def test_usage_is_never_invented(form, has_usage, stream, wants_usage, possible):
    """A stream recorded without its usage can be neither a document nor a stream with usage."""
    assert (
        replay.can_give(Answer(form, "x", b"", has_usage), Endpoint.CHAT, stream=stream, wants_usage=wants_usage)
        is possible
    )


@given(answers.chat_answers)
def test_a_streamed_hit_says_what_the_document_said(document):
    """B17: a document given as a stream and read as a document again is the same document."""
    body = plain(document)
    answer = Answer(Form.JSON, "application/json", body, "usage" in document)
    streamed = replay.render(answer, Endpoint.CHAT, stream=True, wants_usage=True)
    again = replay.render(streamed, Endpoint.CHAT, stream=False, wants_usage=False)
    assert plain(json.loads(again.body)) == body


def given_back(raw: bytes, *, stream: bool, endpoint: Endpoint) -> list[bytes]:
    """The answer in every form; empty where the recorder did not keep it."""
    taking = recorder(ask(stream=stream, endpoint=endpoint), "text/event-stream" if stream else "application/json")
    taking.feed(raw)
    answer = taking.finish()
    if not isinstance(answer, Answer):
        return []
    return [replay.render(answer, endpoint, stream=wanted, wants_usage=usage).body for wanted, usage in WANTED]


ODD_PIECES = [
    {"delta": "a"}, {"delta": []}, {"delta": 1}, {"text": []}, {"text": 1}, {"text": "a"}, {"logprobs": []},
    {"logprobs": "a"},
    {"delta": {"content": []}}, {"delta": {"content": {}}}, {"delta": {"content": 1}}, {"delta": {"tool_calls": {}}},
    {"delta": {"tool_calls": 1}}, {"delta": {"tool_calls": ["a", 1, {}, {"index": "0"}]}}, {"delta": {"role": 1}},
    {"delta": {"tool_calls": [{"index": 0, "function": "f"}, {"index": 0, "function": {"name": "g"}}]}}, {"delta": {}},
    {"index": True}, {"finish_reason": None}, {"logprobs": {"content": 1}},
    {"delta": {"content": "a"}, "logprobs": [1]},
]  # fmt: skip


@pytest.mark.parametrize("endpoint", [Endpoint.CHAT, Endpoint.COMPLETIONS])
@pytest.mark.parametrize("odd", ODD_PIECES, ids=json.dumps)
def test_a_kept_stream_with_odd_pieces_can_be_given(endpoint, odd):
    """A backend's oddity is either not kept or given back in both forms; it never fails the hit."""
    said = {"index": 0, **({"delta": {"content": "a"}} if endpoint is Endpoint.CHAT else {"text": "a"})}
    for choices in ([odd, said], [said, odd], [{**said, **odd}, said]):
        raw = events(
            [*({"usage": USAGE, "choices": [c]} for c in choices), {"choices": [{**said, "finish_reason": "stop"}]}]
        )
        assert all(given_back(raw, stream=True, endpoint=endpoint))


ODD_CHOICES = [
    {"logprobs": []}, {"logprobs": "a"}, {"logprobs": {"content": 1}}, {"index": True}, {"delta": {"content": "a"}},
    {"text": 1},
    {"text": ["a"]}, {"text": "a"},
    *({"message": {"content": "a", "tool_calls": odd}} for odd in (5, "a", {"a": 1}, [1, None], ["a"])),
    *({"message": {"content": odd}} for odd in (["a"], {"a": 1}, 5, True)), {"message": {"content": "a", "role": None}},
    {"message": {"content": "a", "reasoning_content": 7, "refusal": [1]}}, {"message": {"content": "a", "audio": []}},
]  # fmt: skip


@pytest.mark.parametrize("endpoint", [Endpoint.CHAT, Endpoint.COMPLETIONS])
@pytest.mark.parametrize("odd", ODD_CHOICES, ids=json.dumps)
def test_a_kept_document_with_odd_choices_can_be_given(endpoint, odd):
    said = {"message": {"content": "a"}} if endpoint is Endpoint.CHAT else {"text": "a"}
    raw = json.dumps({"choices": [{**said, "finish_reason": "stop", **odd}], "usage": USAGE}).encode()
    assert all(given_back(raw, stream=False, endpoint=endpoint))


FIELDS = st.sampled_from(
    ["delta", "message", "text", "logprobs", "content", "tool_calls", "function", "index", "role", "x"]
)
junk = st.recursive(
    shapes.leaves, lambda v: st.lists(v, max_size=2) | st.dictionaries(FIELDS, v, max_size=2), max_leaves=4
)


@given(st.sampled_from([Endpoint.CHAT, Endpoint.COMPLETIONS]), st.dictionaries(FIELDS, junk, max_size=3))
def test_what_is_kept_can_be_given_in_every_form(endpoint, odd):
    """Whatever a backend puts into a complete answer."""
    whole = {"index": 0, "delta": {"content": "a"}, "message": {"content": "a"}, "text": "a", "finish_reason": "stop"}
    del whole["text" if endpoint is Endpoint.CHAT else "delta"]
    assert all(given_back(events([{"choices": [odd]}, {"choices": [whole]}]), stream=True, endpoint=endpoint))
    del whole["message" if endpoint is Endpoint.COMPLETIONS else "delta"]
    assert all(given_back(json.dumps({"choices": [{**whole, **odd}]}).encode(), stream=False, endpoint=endpoint))


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_hit_has_an_id_and_a_time_of_its_own(name, stream):
    """Everywhere in the answer the same new ones, with the old prefix; every other byte as it was."""
    raw, streamed = RECORDINGS[name]
    answer = replay.render(recorded(raw, stream=streamed), Endpoint.CHAT, stream=stream, wants_usage=False)
    fresh = replay.refresh(answer, UNIQUE, NOW)
    found = data_of(fresh) if stream else [json.loads(fresh)]
    assert {(d["id"], d["created"]) for d in found} == {(f"chatcmpl-{UNIQUE}", NOW)}
    assert fresh.replace(UNIQUE.encode(), b"1").replace(b"%d" % NOW, b"1700000000") == answer.body


@pytest.mark.parametrize(
    ("given_id", "fresh_id"),
    [
        ("chatcmpl-1", f"chatcmpl-{UNIQUE}"), ("cmpl-a-b", f"cmpl-{UNIQUE}"), ("gen_7", f"gen_{UNIQUE}"), ("7", UNIQUE),
        ("a:b", UNIQUE), ("", ""), ("a b", "a b"), ('a"b', 'a"b'), ("é", "é"), ("chatcmpl-", f"chatcmpl-{UNIQUE}"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("space", ["", " ", "\n\t"])
def test_ids_of_all_kinds(given_id, fresh_id, space):
    """Where an id cannot be exchanged safely it stays; it never breaks the JSON."""
    body = json.dumps({**DOCUMENT, "id": given_id}, separators=(f"{space},{space}", f"{space}:{space}")).encode()
    fresh = json.loads(replay.refresh(recorded(body, stream=False), UNIQUE, NOW))
    assert fresh == {**DOCUMENT, "id": fresh_id, "created": NOW}


TELLING = [
    '"id":"chatcmpl-1"', '"created":1700000000', 'my id is "chatcmpl-1"', "chatcmpl-1", "1700000000",
    '\\"id\\":\\"chatcmpl-1\\"',
]  # fmt: skip


@pytest.mark.parametrize("text", TELLING)
@pytest.mark.parametrize("spaces", [(",", ":"), (", ", ": ")])
def test_text_that_looks_like_an_id_is_never_touched(text, spaces):
    message = {"role": "assistant", "content": text, "tool_calls": [{"id": "call_1", "function": {"arguments": text}}]}
    document = {**DOCUMENT, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    answer = recorded(json.dumps(document, separators=spaces).encode(), stream=False)
    fresh = json.loads(replay.refresh(answer, UNIQUE, NOW))
    assert fresh == {**document, "id": f"chatcmpl-{UNIQUE}", "created": NOW}


@pytest.mark.parametrize(
    "head",
    [
        '"x":{"id":"7"},"id":7', '"x":{"created":7},"created":"7"', '"x":{"id":"chatcmpl-1"},"id" : "chatcmpl-1"',
        '"x":{"created":1700000000},"created" : 1700000000', '"x":{"created":1700000000.5},"created": 1700000000',
        '"x":{"a\\"id":"chatcmpl-1"},"id": "chatcmpl-1"', '"x":{"created":17000000001},"created":1700000000',
        '"id":"chatcmpl-1","x":[{"id":"chatcmpl-1"}]', '"id":null,"x":{"id":"null"}', '"id":true,"x":{"id":"True"}',
        '"created":1700000000.0,"x":{"created":1700000000}', '"created":17e8,"x":{"created":1700000000}',
    ],
)  # fmt: skip
def test_twins_deeper_down_are_never_touched(head):
    """Members of other objects with the same name and value, in another type or formatting."""
    body = b'{%b,"choices":%b}' % (head.encode(), plain(DOCUMENT["choices"]))
    fresh = json.loads(replay.refresh(recorded(body, stream=False), UNIQUE, NOW))
    told = json.loads(body)
    assert plain(fresh["x"]) == plain(told["x"])
    assert fresh.get("id") in (told.get("id"), f"chatcmpl-{UNIQUE}")
    assert fresh.get("created") in (told.get("created"), NOW)


names = st.sampled_from(["id", "created", "x", 'a"id', '"id', "meta"])
twins = st.recursive(
    st.sampled_from(["chatcmpl-1", "7", 7, 1700000000, "1700000000", 17000000001, *TELLING]),
    lambda v: st.lists(v, max_size=2) | st.dictionaries(names, v, max_size=3), max_leaves=6,
)  # fmt: skip


@given(
    twins,
    st.sampled_from(["chatcmpl-1", 7, "7", None]),
    st.sampled_from([1700000000, 7, "7", 1.5, None]),
    shapes.randoms,
)
def test_refresh_changes_nothing_but_the_top_level(inner, given_id, created, rnd):
    """Other members with the same names and values stay, whatever the formatting of each."""
    body = {"x": inner, "id": given_id, "created": created, "choices": DOCUMENT["choices"]}
    answer = recorded(shapes.write(body, rnd, shuffle=True), stream=False)
    fresh = json.loads(replay.refresh(answer, UNIQUE, NOW))
    assert fresh["id"] in (given_id, UNIQUE, f"chatcmpl-{UNIQUE}")
    assert fresh["created"] in (created, NOW)
    assert plain({**fresh, "id": given_id, "created": created}) == plain(body)


@given(twins, shapes.randoms)
def test_refresh_of_a_stream_is_the_same_in_every_event(inner, rnd):
    """Either all events state the new id, or all state the old one."""
    documents = [chunk({"x": inner}), chunk({"content": "a"}, meta=inner), chunk(None, "stop")]
    raw = (
        b"".join(b"data: " + re.sub(rb"[\r\n]", b" ", shapes.write(d, rnd)) + b"\n\n" for d in documents)
        + b"data: [DONE]\n\n"
    )
    fresh = data_of(replay.refresh(recorded(raw, stream=True), UNIQUE, NOW))
    assert {d["id"] for d in fresh} in ({"chatcmpl-1"}, {f"chatcmpl-{UNIQUE}"})
    assert {d["created"] for d in fresh} in ({1700000000}, {NOW})
    assert plain([{**d, "id": "chatcmpl-1", "created": 1700000000} for d in fresh]) == plain(documents)


def test_an_id_that_changes_within_a_stream_stays():
    """Exchanging one of two ids would make one answer look like two."""
    raw = events([CHUNKS[0], {**CHUNKS[1], "id": "chatcmpl-2"}, *CHUNKS[2:]])
    fresh = data_of(replay.refresh(recorded(raw, stream=True), UNIQUE, NOW))
    assert [d["id"] for d in fresh] == ["chatcmpl-1", "chatcmpl-2", "chatcmpl-1", "chatcmpl-1"]
    assert {d["created"] for d in fresh} == {NOW}
