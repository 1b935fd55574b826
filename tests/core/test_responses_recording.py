"""A response's event stream is recorded as it came when it is proven complete; everything else has its reason."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.events import split
from cacheproxy.core.model import Answer, Form
from cacheproxy.core.outcome import Reason
from cacheproxy.core.responses import EventRecorder, as_document
from tests.core.shapes import bytewise, pieces, plain
from tests.core.test_responses import MESSAGE, RESPONSE, response

TYPE = "text/event-stream"


def recorded(raw: bytes | list[bytes], most_tokens: int | None = None) -> Answer | Reason:
    taking = EventRecorder(TYPE, most_tokens)
    for data in raw if isinstance(raw, list) else [raw]:
        taking.feed(data)
    return taking.finish()


def event(kind: str, *, named: bool = True, **fields: Any) -> bytes:
    """One event, by hand."""
    name = b"event: %b\n" % kind.encode() if named else b""
    return name + b"data: " + json.dumps({"type": kind, **fields}, ensure_ascii=False).encode() + b"\n\n"


CREATED = event("response.created", response={"id": "resp_1", "status": "in_progress"}, sequence_number=0)
ADDED = event("response.output_item.added", item={**MESSAGE, "content": []}, output_index=0, sequence_number=1)
DELTA = event("response.output_text.delta", delta="Hello", obfuscation="x9Kq", sequence_number=2)
COMPLETED = event("response.completed", response=RESPONSE, sequence_number=3, timings={"n": 1})
BEGUN = CREATED + ADDED + DELTA
WHOLE = BEGUN + COMPLETED
DONE = b"data: [DONE]\n\n"
STREAMS = {
    "as the API sends it": WHOLE,
    "with an end marker": WHOLE + DONE,
    "without event names": b"".join(e.with_data(e.data or b"").partition(b"\n")[2] for e in split(WHOLE)),
    "types only in the names": CREATED + b"event: response.completed\ndata: " + plain({"response": RESPONSE}) + b"\n\n",
    "the end alone": COMPLETED,
    "with unknown events": CREATED + event("response.new", x={"item": 1}) + event("x", item=None) + DELTA + COMPLETED,
    "with ids": b"id: 7\n" + WHOLE + b"id: 8\n\n",
    "with CRLF": WHOLE.replace(b"\n", b"\r\n"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_complete_stream_is_kept_as_it_came(name):
    """Event by event, numbers and unknown events included, whichever way the bytes were cut."""
    raw = STREAMS[name]
    answer = recorded(raw)
    assert isinstance(answer, Answer)
    assert (answer.form, answer.content_type, answer.has_usage, answer.tokens) == (Form.EVENTS, TYPE, True, (3, 4))
    assert (answer.id_literal, answer.created_literal) == (b"", b"")
    assert answer.body == raw.replace(b"\r\n", b"\n").removesuffix(b"id: 8\n\n")
    assert as_document(answer.body) == RESPONSE
    assert recorded(bytewise(raw)) == answer


def test_comments_are_dropped():
    answer = recorded(b": hi\n\n" + CREATED + b": keep-alive\n\n" + b": a\n" + COMPLETED + b": bye\n\n")
    assert getattr(answer, "body", answer) == CREATED + COMPLETED


INCOMPLETE = {
    "nothing at all": (b"", Reason.NO_TERMINAL_EVENT),
    "no end": (BEGUN, Reason.NO_TERMINAL_EVENT),
    "an end marker alone": (BEGUN + DONE, Reason.NO_TERMINAL_EVENT),
    "half an event after the end": (WHOLE + b"data: {", Reason.NO_TERMINAL_EVENT),
    "an event after the end": (WHOLE + DELTA, Reason.MALFORMED),
    "an event after the marker": (WHOLE + DONE + DELTA, Reason.MALFORMED),
    "two ends": (WHOLE + COMPLETED, Reason.MALFORMED),
    "two markers": (WHOLE + DONE + DONE, Reason.MALFORMED),
    "the marker before the end": (BEGUN + DONE + COMPLETED, Reason.NO_TERMINAL_EVENT),
    "text between": (BEGUN + b"data: oops\n\n" + COMPLETED, Reason.MALFORMED),
    "a list": (BEGUN + b"data: []\n\n" + COMPLETED, Reason.MALFORMED),
    "an end without response": (BEGUN + event("response.completed"), Reason.MALFORMED),
    "an end with a text": (BEGUN + event("response.completed", response="a"), Reason.MALFORMED),
    "an error event": (BEGUN + event("error", message="a") + COMPLETED, Reason.IN_BAND_ERROR),
    "an error by name": (BEGUN + b"event: error\ndata: oops\n\n" + COMPLETED, Reason.IN_BAND_ERROR),
    "an error by type": (BEGUN + event("error", named=False) + COMPLETED, Reason.IN_BAND_ERROR),
    "an error inside": (BEGUN + b'data: {"error": {"code": 500}}\n\n' + COMPLETED, Reason.IN_BAND_ERROR),
    "an error object": (BEGUN + b'data: {"object": "error"}\n\n' + COMPLETED, Reason.IN_BAND_ERROR),
    "failed": (BEGUN + event("response.failed", response={**RESPONSE, "status": "failed"}), Reason.IN_BAND_ERROR),
    "cut": (BEGUN + event("response.incomplete", response={**RESPONSE, "status": "incomplete"}), Reason.FINISH_REASON),
    "cut, but completed": (
        BEGUN + event("response.completed", response={**RESPONSE, "status": "incomplete"}), Reason.FINISH_REASON
    ),
    "said nothing": (BEGUN + event("response.completed", response=response()), Reason.EMPTY),
    "a tool ran": (
        event("response.output_item.added", item={"type": "code_interpreter_call"}) + WHOLE, Reason.SIDE_EFFECTS
    ),
    "a tool had run": (
        event("response.output_item.done", item={"type": "mcp_call"}) + WHOLE, Reason.SIDE_EFFECTS
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INCOMPLETE)
def test_a_stream_that_is_not_proven_complete_is_refused(name):
    raw, reason = INCOMPLETE[name]
    assert recorded(raw) is reason
    assert recorded(bytewise(raw)) is reason


def test_a_stream_as_long_as_the_request_allows_was_cut():
    """Also where the backend says that it is complete."""
    assert recorded(WHOLE, 4) is Reason.FINISH_REASON
    assert isinstance(recorded(WHOLE, 5), Answer)


def test_every_truncation_is_refused():
    """Up to the blank line that completes the terminal event."""
    for length in range(len(WHOLE)):
        assert isinstance(recorded(WHOLE[:length]), Reason), length
    for length in range(len(WHOLE), len(WHOLE + DONE)):
        kept = recorded((WHOLE + DONE)[:length])
        assert isinstance(kept, Answer) == (length == len(WHOLE)), length


def test_what_the_recorder_tells_of_itself():
    """What it was fed, how many events it keeps, and that the answer is over before its framing is."""
    taking = EventRecorder(TYPE)
    assert (taking.held, taking.events, taking.ended) == (0, 0, False)
    taking.feed(b": hi\n\n" + CREATED + DELTA + COMPLETED[:-1])
    assert (taking.events, taking.ended) == (2, False)
    taking.feed(COMPLETED[-1:])
    assert (taking.held, taking.events, taking.ended) == (6 + len(CREATED + DELTA + COMPLETED), 3, True)
    taking.feed(b": bye\n\n" + DONE)
    assert (taking.events, taking.ended) == (4, True)
    assert isinstance(taking.finish(), Answer)


@given(st.data())
def test_any_cutting_gives_the_same_answer(data):
    raw = data.draw(st.sampled_from([*STREAMS.values(), *(raw for raw, _ in INCOMPLETE.values())]))
    assert recorded(data.draw(pieces(raw))) == recorded(raw)


@pytest.mark.parametrize(
    "raw", [b"", DONE, BEGUN, CREATED, WHOLE + DELTA, b"data: 1\n\n", b"data: {\n\n", b"data: []\n\n"]
)
def test_an_incomplete_body_amounts_to_nothing(raw):
    assert as_document(raw) is None


@given(
    st.lists(st.sampled_from([b"data: ", b"event: error", b"\n", b"\r", b"{}", DONE, CREATED, COMPLETED, b": c\n\n"]))
)
def test_no_bytes_are_beyond_recording(parts):
    """Whatever a backend sends: an answer that can be read, or a reason."""
    answer = recorded(b"".join(parts))
    assert isinstance(answer, Reason) or as_document(answer.body) == RESPONSE
