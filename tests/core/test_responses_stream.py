"""A document given as a stream says what the document says, in pieces, and is read back as the same document."""

import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.model import Answer
from cacheproxy.core.responses import as_document, as_events, trouble_of_document
from tests.core import shapes
from tests.core.answers import spoken
from tests.core.shapes import plain
from tests.core.test_responses import CALL, CUSTOM, MESSAGE, RESPONSE, TEXT, THOUGHT, USAGE, response
from tests.core.test_responses_recording import recorded

tokens = st.fixed_dictionaries({"token": spoken, "logprob": shapes.floats}, optional={"x": shapes.leaves})
annotations = st.lists(st.fixed_dictionaries({"type": st.just("url_citation"), "url": shapes.texts}), max_size=3)
names = st.sampled_from(["x_y", "x_z", "phase", "namespace", "encrypted_content", "created_by"])
unknown = st.dictionaries(names, shapes.values, max_size=2)
states = st.fixed_dictionaries({}, optional={"status": st.sampled_from(["completed", None])})
identities = st.fixed_dictionaries({}, optional={"id": st.sampled_from(["msg_1", "rs_1", "", None, 7])})


@st.composite
def texts(draw: st.DrawFn) -> dict[str, Any]:
    """A text with probabilities of tokens that spell it, or do not, or without any."""
    logprobs = draw(st.none() | st.lists(tokens | shapes.values, max_size=3) | st.lists(tokens, min_size=1, max_size=5))
    spelled = "".join(t["token"] for t in logprobs or () if isinstance(t, dict) and isinstance(t.get("token"), str))
    text = draw(st.sampled_from([spelled, "Hello"]) | spoken)
    told = {"annotations": draw(st.none() | annotations), "logprobs": logprobs}
    return {"type": "output_text", "text": text, **draw(st.sampled_from([told, told, {}])), **draw(unknown)}


def part(kind: str, name: str = "text") -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda text, more: {"type": kind, name: text, **more}, spoken, unknown)


def item(kind: str, **members: st.SearchStrategy) -> st.SearchStrategy[dict[str, Any]]:
    told = st.fixed_dictionaries({"type": st.just(kind), **members})
    return st.builds(lambda *parts: {n: v for p in parts for n, v in p.items()}, unknown, identities, told, states)


parts = st.lists(texts() | texts() | part("refusal", "refusal") | part("something_new"), max_size=3)
thoughts = st.none() | st.lists(part("reasoning_text"), max_size=2)
items = st.one_of(
    item("message", content=parts, role=st.just("assistant")),
    item("reasoning", summary=st.none() | st.lists(part("summary_text"), max_size=2), content=thoughts),
    item("function_call", name=st.just("f"), call_id=st.just("call_1"), arguments=spoken),
    item("custom_tool_call", name=st.just("g"), call_id=st.just("call_1"), input=spoken),
    item("compaction"),
)
more = st.fixed_dictionaries(
    {}, optional={"completed_at": shapes.integers, "output_text": spoken | shapes.values, "x": shapes.values}
)
responses = st.builds(
    lambda output, last, fields, usage: {**RESPONSE, **fields, "usage": usage, "output": [*output, last]},
    st.lists(items, max_size=3), st.sampled_from([MESSAGE, CALL]), more, st.sampled_from([USAGE, None]),
)  # fmt: skip


def documents_of(events: list[bytes]) -> list[dict[str, Any]]:
    """The data of each event, whose form is checked: a name, one line of data, the blank line."""
    documents = []
    for raw in events:
        name, data, *rest = raw.split(b"\n")
        documents.append(json.loads(data.removeprefix(b"data: ")))
        assert rest == [b"", b""]
        assert name == b"event: " + documents[-1]["type"].encode()
    return documents


GROWING = {"output_text", "refusal", "reasoning_text", "summary_text", "function_call", "custom_tool_call"}


def things_of(output: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items and their parts."""
    return [t for i in output for t in (i, *(i.get("summary") or ()), *(i.get("content") or ()))]


class Client:
    """Builds the output from the deltas alone, as a client does that shows an answer while it comes."""

    def __init__(self) -> None:
        self.output: list[dict[str, Any]] = []
        self.finished = 0

    def take(self, event: dict[str, Any]) -> None:
        *_, about, what = event["type"].split(".")
        if about == "output_item":
            self._take_item(what, event)
            return
        found = self.output[event["output_index"]]
        assert event["item_id"] == (found["id"] if isinstance(found.get("id"), str) else "")
        if about.endswith(("_arguments", "_input")):
            self._grow(found, "arguments" if about.endswith("_arguments") else "input", what, event)
            return
        of = "summary" if "summary_index" in event else "content"
        place = event.get("summary_index", event.get("content_index"))
        if about.endswith("_part"):
            assert about == ("reasoning_summary_part" if of == "summary" else "content_part")
            if what == "added":
                assert len(found[of]) == place
                found[of].append(event["part"])
            assert what == "added" or plain(found[of][place]) == plain(event["part"])
            return
        if about == "annotation":
            assert len(found[of][place]["annotations"]) == event["annotation_index"]
            found[of][place]["annotations"].append(event["annotation"])
            return
        self._grow(found[of][place], "refusal" if about == "refusal" else "text", what, event)

    def _take_item(self, what: str, event: dict[str, Any]) -> None:
        item = event["item"]
        if what == "added":
            assert len(self.output) == event["output_index"]
            assert item.get("status") in {None, "in_progress"}
            self.output.append(item)
            return
        if item.get("status") is not None:
            self.output[-1]["status"] = "completed"
        assert plain(self.output[event["output_index"]]) == plain(item)

    def _grow(self, what: dict[str, Any], name: str, how: str, event: dict[str, Any]) -> None:
        if how == "done":
            self.finished += 1
            assert event[name] == what[name]
            assert event.get("logprobs", []) == (what.get("logprobs") or [])
            return
        what[name] += event["delta"]
        if event.get("logprobs"):
            what["logprobs"] += event["logprobs"]


@given(responses)
def test_a_stream_made_of_a_document_says_what_it_says(document):
    """B17: begun empty, told piece by piece, each piece once, and in the end the document itself."""
    assert trouble_of_document(document) is None
    events = as_events(document)
    told = documents_of(events)
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    assert [event["type"] for event in (*told[:2], told[-1])] == [
        "response.created", "response.in_progress", "response.completed",
    ]  # fmt: skip
    begun = {"status": "in_progress", "output": []} | {n: None for n in ("usage", "completed_at") if n in document}
    if isinstance(document.get("output_text"), str):
        begun["output_text"] = ""
    assert plain(told[0]["response"]) == plain(told[1]["response"]) == plain({**document, **begun})
    client = Client()
    for event in told[2:-1]:
        client.take(event)
    kinds = Counter(event["type"] for event in told)
    assert all(
        kinds[k.replace(".added", ".done")] == n for k, n in kinds.items() if k.endswith(("item.added", "part.added"))
    )
    assert client.finished == sum(thing["type"] in GROWING for thing in things_of(document["output"]))
    assert plain(client.output) == plain(document["output"])
    assert plain(as_document(b"".join(events))) == plain(document)


@given(responses)
def test_a_stream_made_of_a_document_is_a_complete_one(document):
    answer = recorded(b"".join(as_events(document)))
    assert isinstance(answer, Answer)
    assert answer.has_usage == (document["usage"] is not None)
    assert plain(as_document(answer.body)) == plain(document)


def deltas(*items: dict[str, Any]) -> list[str]:
    told = documents_of(as_events(response(*items)))
    return [event["delta"] for event in told if event["type"].endswith(".delta")]


def test_texts_come_in_pieces():
    """At words, not letter by letter, and not in thousands of events either."""
    assert deltas({**MESSAGE, "content": [{**TEXT, "text": "Hello there, you"}]}) == ["Hello", " there,", " you"]
    assert deltas({**CALL, "arguments": '{"city": "Rome"}'}) == ['{"city":', ' "Rome"}']
    assert deltas({**CUSTOM, "input": "a b"}, THOUGHT) == ["a", " b", "Hm."]
    assert 1 < len(deltas({**MESSAGE, "content": [{**TEXT, "text": "word " * 9999}]})) <= 256
    assert deltas({**CALL, "arguments": ""}) == []


def test_probabilities_go_with_the_text_they_are_of():
    """Token by token where the tokens spell the text, else all with the whole text."""
    told = [{"token": token, "logprob": -1.0} for token in ("Hel", "lo", " you")]
    for text, expected in (("Hello you", [[t] for t in told]), ("Hello", [told])):
        events = documents_of(as_events(response({**MESSAGE, "content": [{**TEXT, "text": text, "logprobs": told}]})))
        pieces = [e for e in events if e["type"] == "response.output_text.delta"]
        assert [e["logprobs"] for e in pieces] == expected
        assert "".join(e["delta"] for e in pieces) == text
