"""What was recorded in one form is given in the other exactly, or not at all.

The truth is the document from which a stream was told (`tests.core.tellings`), and what a client gathers is worked out
here as the API's own clients do: texts joined, lists by index, nothing else expected more than once.
"""

import json
import random
from typing import Any

import pytest

from cacheproxy.core import replay
from cacheproxy.core.events import DONE, split
from cacheproxy.core.model import Answer, Endpoint
from cacheproxy.core.outcome import Reason
from cacheproxy.core.recording import recorder
from tests.core.shapes import ask, events, plain
from tests.core.streams import Writer
from tests.core.tellings import Teller

USAGE = {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12}
HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m"}
TEXT_HEAD = {**HEAD, "object": "text_completion"}


def recorded(raw: bytes, choices: int = 1, *, stream: bool = True, endpoint: Endpoint = Endpoint.CHAT) -> Answer:
    kind = "text/event-stream" if stream else "application/json"
    taking = recorder(ask(stream=stream, choices=choices, endpoint=endpoint), kind)
    taking.feed(raw)
    answer = taking.finish()
    assert isinstance(answer, Answer), answer
    return answer


def chunks_of(body: bytes) -> list[Any]:
    data = [e.data for e in split(body) if e.data is not None]
    assert data.pop() == DONE
    return [json.loads(d) for d in data]


def solid(value: Any) -> Any:
    """Without members that are null: a stream has no need to say them."""
    if isinstance(value, dict):
        return {n: solid(v) for n, v in value.items() if v is not None}
    return [solid(v) for v in value] if isinstance(value, list) else value


def silent_beside_calls(document: dict[str, Any]) -> dict[str, Any]:
    for choice in document["choices"]:
        if choice["message"].get("tool_calls") and not choice["message"].get("content"):
            choice["message"]["content"] = None
    return solid(document)


def gathered(chunks: list[Any]) -> dict[str, Any]:
    """What a strict client makes of a stream: whatever it does not know to be a text may come but once."""
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for piece in chunk["choices"]:
            choice = choices.setdefault(piece["index"], {"index": piece["index"], "message": {}})
            _gather(choice["message"], piece["delta"])
            for name, value in piece.items():
                if name == "logprobs" and value is not None:
                    known = choice.setdefault(name, {})
                    known |= {n: [*known.get(n, []), *v] if isinstance(v, list) else v for n, v in value.items()}
                elif name not in ("index", "delta", "logprobs") and value is not None:
                    assert name not in choice, f"{name} comes twice"
                    choice[name] = value
        whole |= {n: v for n, v in chunk.items() if v is not None}
    return {**whole, "object": "chat.completion", "choices": [choices[n] for n in sorted(choices)]}


def _gather(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for name, value in delta.items():
        if name == "tool_calls":
            calls = message.setdefault(name, [])
            for call in value:
                assert call["index"] == len(calls), "calls come one after the other, whole"
                calls.append({n: v for n, v in call.items() if n != "index"})
        elif name in message and message[name] is not None:
            assert isinstance(value, str), f"{name} comes twice"
            message[name] += value
        else:
            message[name] = value


SEEDS = range(400)


@pytest.mark.parametrize("block", range(4))
def test_a_told_document_comes_back_in_every_form(block):
    """B17, B20, B21, B25: however it was told, the document is the truth; the stream keeps every event; usage is for
    who asked."""
    for seed in SEEDS[block::4]:
        teller = Teller(random.Random(seed))
        truth = teller.document()
        writer = Writer(teller.dice).stream(teller.chunks(truth))
        answer = recorded(writer.raw, len(truth["choices"]))
        assert not answer.one_form, seed
        document = replay.document_of(answer, Endpoint.CHAT)
        assert plain(silent_beside_calls(document)) == plain(silent_beside_calls(truth)), seed
        assert b"".join(e.stored for e in split(answer.body)) == writer.stored, seed
        quiet = replay.render(answer, Endpoint.CHAT, stream=True, wants_usage=False)
        told = [c for c in chunks_of(quiet.body) if c.get("usage") is not None]
        assert all(c["choices"] for c in told), seed


@pytest.mark.parametrize("block", range(2))
def test_a_document_is_streamed_exactly(block):
    """B17, B21: a client gathers from the stream what the document says, with its usage only if it asked."""
    for seed in SEEDS[block::2]:
        truth = Teller(random.Random(seed)).document()
        answer = recorded(plain(truth), len(truth["choices"]), stream=False)
        assert not answer.one_form
        for wants in (True, False):
            made = replay.render(answer, Endpoint.CHAT, stream=True, wants_usage=wants)
            found = gathered(chunks_of(made.body))
            assert plain(solid(found)) == plain(solid({n: v for n, v in truth.items() if wants or n != "usage"})), seed


def delta(**said: Any) -> dict[str, Any]:
    return {**HEAD, "choices": [{"index": 0, "delta": said, "finish_reason": None}]}


def call(**piece: Any) -> dict[str, Any]:
    return delta(tool_calls=[piece])


def function(name: Any = None, arguments: str = "") -> dict[str, Any]:
    return {"name": name, "arguments": arguments} if name is not None else {"arguments": arguments}


def beside(**told: Any) -> dict[str, Any]:
    return {**HEAD, "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None, **told}]}


END = {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
COUNTED = {**HEAD, "choices": [], "usage": USAGE}
F = function

DOUBTFUL: dict[str, list[Any]] = {
    "two calls under one index": [call(index=0, id="a", function=F("f", "{}")), call(index=0, id="b", function=F("g", "{}"))],
    "pieces without index": [call(id="a", function=F("f", "{")), call(function=F(None, "}"))],
    "pieces without index, id repeated": [call(id="a", function=F("f", "{")), call(id="a", function=F(None, "}"))],
    "some with index": [call(index=0, id="a", function=F("f", "{}")), call(id="b", function=F("g", "{}"))],
    "some without": [call(id="a", function=F("f", "{}")), call(index=1, id="b", function=F("g", "{}"))],
    "a name said twice": [call(index=0, id="a", function=F("go")), call(index=0, function=F("go", "{}"))],
    "a name that grows": [call(index=0, id="a", function=F("go")), call(index=0, id="a", function=F("go_on", "{}"))],
    "another type": [call(index=0, id="a", type="function", function=F("f")), call(index=0, type="custom")],
    "a signature said twice": [call(index=0, id="a", function=F("f"), sig="x"), call(index=0, sig="y")],
    "an unknown text in pieces": [delta(content="a", x_y="b"), delta(x_y="c")],
    "an unknown text again": [delta(content="a", x_y="b"), delta(x_y="b")],
    "an unknown list in pieces": [delta(content="a", x_y=[1]), delta(x_y=[2])],
    "an unknown object in pieces": [delta(content="a", x_y={"a": 1}), delta(x_y={"b": 1})],
    "an unknown number that changes": [delta(content="a", x_y=1), delta(x_y=2)],
    "a citation again": [delta(content="a", annotations=[{"u": 1}]), delta(annotations=[{"u": 1}, {"u": 2}])],
    "thoughts without index": [delta(content="a", reasoning_details=[{"text": "b"}]), delta(reasoning_details=[{"text": "c"}])],
    "thoughts out of order": [delta(content="a", reasoning_details=[{"index": 1}]), delta(reasoning_details=[{"index": 0}])],
    "thoughts of two types": [
        delta(content="a", reasoning_details=[{"index": 0, "type": "a"}]), delta(reasoning_details=[{"index": 0, "type": "b"}]),
    ],
    "another model": [delta(content="a"), {**delta(content="b"), "model": "n"}],
    "another tier": [{**delta(content="a"), "service_tier": "auto"}, {**END, "service_tier": "default"}],
    "another fingerprint": [{**delta(content="a"), "system_fingerprint": "1"}, {**END, "system_fingerprint": "2"}],
    "an unknown member that changes": [{**delta(content="a"), "x_groq": {"id": 1}}, {**END, "x_groq": {"usage": 1}}],
    "filter results that change": [beside(content_filter_results={"a": 1}), beside(content_filter_results={"a": 2})],
    "another finish": [beside(finish_reason="tool_calls")],
    "another kind of event": [delta(content="a"), {"object": "x.status", "stage": 1}],
    "a number of many digits": [delta(content="a", x_y=2**64)],
    "the end not weighed": [beside(logprobs={"content": [{"token": "a", "logprob": -1}] * 8})],
}  # fmt: skip


@pytest.mark.parametrize("name", DOUBTFUL)
def test_what_is_in_doubt_stays_a_stream(name):
    """B21: whether pieces are to be joined only the backend knows, so it is asked again; the stream is given as it was."""
    raw = events([*DOUBTFUL[name], END, COUNTED])
    answer = recorded(raw)
    assert answer.one_form
    assert replay.why_not(answer, Endpoint.CHAT, stream=False, wants_usage=False) is Reason.ONE_FORM
    assert replay.can_give(answer, Endpoint.CHAT, stream=True, wants_usage=True)
    assert replay.render(answer, Endpoint.CHAT, stream=True, wants_usage=True).body == raw


def test_counts_that_came_before_the_end_are_not_those_of_the_document():
    answer = recorded(events([{**delta(content="a"), "usage": USAGE}, END]))
    assert replay.why_not(answer, Endpoint.CHAT, stream=False, wants_usage=False) is Reason.ONE_FORM
    assert not recorded(events([{**delta(content="a"), "usage": USAGE}, {**END, "usage": USAGE}])).one_form


def test_counts_told_in_parts_are_not_those_of_the_document():
    parts = [{"prompt_tokens": 3}, {"completion_tokens": 9}]
    answer = recorded(events([{**delta(content="a"), "usage": parts[0]}, {**END, "usage": parts[1]}]))
    assert replay.why_not(answer, Endpoint.CHAT, stream=False, wants_usage=False) is Reason.ONE_FORM


def test_an_empty_object_is_no_usage():
    answer = recorded(events([delta(content="a"), {**END, "usage": {}}]))
    assert replay.why_not(answer, Endpoint.CHAT, stream=False, wants_usage=False) is Reason.USAGE_MISSING


def test_an_event_of_another_name_leaves_doubt():
    raw = events([delta(content="a"), END, COUNTED])
    assert not recorded(b"event: message\n" + raw).one_form
    assert recorded(b'event: x\ndata: {"x":1}\n\n' + raw).one_form


PLACES = {(0, 5): False, (0, 0): False, (5, 0): True, (0, "a"): True}


@pytest.mark.parametrize("places", PLACES, ids=str)
def test_places_in_a_text_must_count_on(places):
    """Some backends begin again in each chunk; in the document they count on."""
    told = [{"index": 0, "text": "a", "logprobs": {"tokens": ["a"], "text_offset": [at]}} for at in places]
    told[-1]["finish_reason"] = "stop"
    chunks = [{**TEXT_HEAD, "choices": [piece]} for piece in told]
    answer = recorded(events([*chunks, {**TEXT_HEAD, "choices": [], "usage": USAGE}]), endpoint=Endpoint.COMPLETIONS)
    assert answer.one_form is PLACES[places]


ODD_DOCUMENTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "calls that all have one index": (
        {"tool_calls": [{"index": 0, "id": i, "type": "function", "function": F("f", "{}")} for i in "ab"]},
        {"tool_calls": [{"id": i, "type": "function", "function": F("f", "{}")} for i in "ab"]},
    ),
    "no calls": ({"content": "a", "tool_calls": []}, {"content": "a", "tool_calls": []}),
    "an empty text": ({"content": "", "refusal": "b", "reasoning": ""}, {"content": "", "refusal": "b", "reasoning": ""}),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_DOCUMENTS)
def test_an_odd_document_is_streamed_as_it_is(name):
    message, expected = ODD_DOCUMENTS[name]
    choice = {"message": {"role": "assistant", **message}, "finish_reason": "stop"}
    other = {**choice, "delta": None, "message": {"role": "assistant", "content": "the other"}}
    raw = plain({**HEAD, "object": "chat.completion", "choices": [choice, other]})
    made = replay.render(recorded(raw, 2, stream=False), Endpoint.CHAT, stream=True, wants_usage=False)
    first, second = gathered(chunks_of(made.body))["choices"]
    assert first["message"] == {"role": "assistant", **expected}
    assert second["message"]["content"] == "the other", "choices without an index go by their place"


def test_a_document_that_no_stream_can_tell_stays_one():
    said = {"role": "assistant", "content": "a"}
    choice = {"index": 0, "message": said, "delta": {"content": "b"}, "finish_reason": "stop"}
    for told in ({"choices": [choice]}, {"choices": [{**choice, "delta": None, "x_y": 2**70}]}):
        answer = recorded(plain({**HEAD, "object": "chat.completion", **told}), stream=False)
        assert replay.why_not(answer, Endpoint.CHAT, stream=True, wants_usage=False) is Reason.ONE_FORM
        assert replay.can_give(answer, Endpoint.CHAT, stream=False, wants_usage=False)


@pytest.mark.parametrize("form", [{}, {"choices": None}, {"choices": []}], ids=["no choices", "null", "empty"])
def test_usage_without_a_choice_is_for_who_asked(form):
    """B20: also where the event has no choices at all."""
    answer = recorded(events([delta(content="a"), END, {**HEAD, **form, "usage": USAGE}]))
    for wants in (True, False):
        body = replay.render(answer, Endpoint.CHAT, stream=True, wants_usage=wants).body
        assert (b'"usage"' in body) is wants
