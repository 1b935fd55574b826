"""An answer is made only of what is proven complete; everything else has its reason."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.model import Answer, Endpoint, Form
from cacheproxy.core.outcome import Reason
from cacheproxy.core.recording import recorder
from tests.core import shapes
from tests.core.shapes import ask, bytewise, events, pieces

STREAM_TYPE, JSON_TYPE = "text/event-stream", "application/json"
BASE = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m"}
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def piece(delta: Any = None, finish: Any = None, index: int = 0) -> dict[str, Any]:
    return {**BASE, "choices": [{"index": index, "delta": delta or {}, "finish_reason": finish}]}


HELLO = [piece({"role": "assistant", "content": ""}), piece({"content": "Hel"}), piece({"content": "lo"})]
WHOLE = [*HELLO, piece(finish="stop")]


def record(raw: bytes | list[bytes], *, content_type: str = STREAM_TYPE, **about: Any) -> Answer | Reason:
    about.setdefault("stream", content_type == STREAM_TYPE)
    taking = recorder(ask(**about), content_type)
    for data in raw if isinstance(raw, list) else [raw]:
        taking.feed(data)
    return taking.finish()


def document(*choices: Any, **fields: Any) -> bytes:
    return json.dumps({"id": "chatcmpl-1", "created": 1700000000, "choices": list(choices), **fields}).encode()


def choice(content: Any = "Hello", finish: Any = "stop", index: int = 0, **said: Any) -> dict[str, Any]:
    return {"index": index, "message": {"role": "assistant", "content": content, **said}, "finish_reason": finish}


def record_json(raw: bytes, **about: Any) -> Answer | Reason:
    return record(raw, content_type=JSON_TYPE, **about)


INCOMPLETE = {
    "three chunks, then the end": (events(HELLO, done=False), Reason.UNFINISHED_CHOICE),
    "done, but never finished": (events(HELLO), Reason.UNFINISHED_CHOICE),
    "finished, but never done": (events(WHOLE, done=False), Reason.NO_TERMINAL_EVENT),
    "done without a blank line": (events(WHOLE)[:-1], Reason.NO_TERMINAL_EVENT),
    "half an event after done": (events(WHOLE) + b"data: {", Reason.NO_TERMINAL_EVENT),
    "an event after done": (events(WHOLE) + events([piece()], done=False), Reason.MALFORMED),
    "done twice": (events(WHOLE) + b"data: [DONE]\n\n", Reason.MALFORMED),
    "nothing at all": (b"", Reason.EMPTY),
    "done alone": (b"data: [DONE]\n\n", Reason.EMPTY),
    "usage alone": (events([{**BASE, "choices": [], "usage": USAGE}]), Reason.EMPTY),
    "no text": (events([piece({"content": ""}), piece(finish="stop")]), Reason.EMPTY),
    "only thoughts": (events([piece({"reasoning_content": "hm"}), piece(finish="stop")]), Reason.EMPTY),
    "cut by the limit": (events([*HELLO, piece(finish="length")]), Reason.FINISH_REASON),
    "filtered": (events([*HELLO, piece(finish="content_filter")]), Reason.FINISH_REASON),
    "an old function call": (events([*HELLO, piece(finish="function_call")]), Reason.FINISH_REASON),
    "an unknown finish": (events([*HELLO, piece(finish="eos")]), Reason.FINISH_REASON),
    "a finish that is no text": (events([*HELLO, piece(finish=True)]), Reason.FINISH_REASON),
    "an error inside": (events([*HELLO, {"error": {"message": "x"}}]), Reason.IN_BAND_ERROR),
    "an error after the finish": (events([*WHOLE, {"error": {"message": "x"}}]), Reason.IN_BAND_ERROR),
    "an error text": (events([*WHOLE, {"error": "x"}]), Reason.IN_BAND_ERROR),
    "an error object": (events([*WHOLE, {"object": "error", "message": "x", "code": 500}]), Reason.IN_BAND_ERROR),
    "an error event": (events(WHOLE, done=False) + b"event: error\ndata: {}\n\n" + events([]), Reason.IN_BAND_ERROR),
    "an error beside choices": (events([{**WHOLE[0], "error": {"code": 5}}, *WHOLE[1:]]), Reason.IN_BAND_ERROR),
    "text between": (events(HELLO, done=False) + b"data: oops\n\n" + events(WHOLE), Reason.MALFORMED),
    "a broken character": (b'data: {"choices":[{"delta":{"content":"\xe6\xbc"}}]}\n\n' + events(WHOLE),
    Reason.MALFORMED),
    "a list": (events([[], *WHOLE]), Reason.MALFORMED),
    "choices that are none": (events([{**BASE, "choices": {}}, *WHOLE]), Reason.MALFORMED),
    "a choice that is none": (events([{**BASE, "choices": [None]}, *WHOLE]), Reason.MALFORMED),
    "an index that is none": (events([piece(index="0"), *WHOLE]), Reason.MALFORMED),
    "audio": (events([piece({"audio": {"data": "AA"}}), *WHOLE]), Reason.AUDIO),
    "an error page": (b"<html>502 Bad Gateway</html>", Reason.EMPTY),
    "a JSON error glued on": (events(WHOLE) + b'{"error":{"message":"x"}}', Reason.NO_TERMINAL_EVENT),
}  # fmt: skip


@pytest.mark.parametrize("name", INCOMPLETE)
def test_an_incomplete_stream_has_its_reason(name):
    """B15, B29, B55: also when the stream comes byte by byte."""
    raw, reason = INCOMPLETE[name]
    assert record(raw) is reason
    assert record(bytewise(raw)) is reason


COMPLETE = {
    "plain": WHOLE,
    "usage last": [*WHOLE, {**BASE, "choices": [], "usage": USAGE}],
    "filter results first": [{**BASE, "choices": [], "prompt_filter_results": []}, *WHOLE],
    "no choices between": [*HELLO, {"id": "chatcmpl-1", "ping": 1}, piece(finish="stop")],
    "choices null": [{**BASE, "choices": None}, *WHOLE],
    "delta null": [{**BASE, "choices": [{"index": 0, "delta": None}]}, *WHOLE],
    "no index": [{**BASE, "choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}],
    "finish with the text": [piece({"content": "a"}, "stop")],
    "tool calls": [piece({"tool_calls": [{"index": 0, "id": "c"}]}), piece(finish="tool_calls")],
    "a refusal": [piece({"refusal": "No."}), piece(finish="stop")],
    "error null": [{**WHOLE[0], "error": None}, *WHOLE[1:]],
}


@pytest.mark.parametrize("name", COMPLETE)
def test_a_complete_stream_is_an_answer(name):
    """B20: chunks without choices are no trouble, and none of them is lost."""
    raw = events(COMPLETE[name])
    answer = record(raw)
    assert isinstance(answer, Answer)
    assert (answer.form, answer.content_type, answer.body) == (Form.EVENTS, STREAM_TYPE, raw)
    assert answer.has_usage == (name == "usage last")
    assert record(bytewise(raw)) == answer


def test_comments_are_not_kept():
    """B25: keep-alives pass beside the answer, also inside an event and after the end."""
    noisy = b": hi\n\n" + events(WHOLE).replace(b"data:", b": ping\ndata:").replace(b"\n", b"\r\n") + b": bye\n\n"
    answer = record(noisy)
    assert isinstance(answer, Answer)
    assert answer.body == events(WHOLE)


@pytest.mark.parametrize(
    ("finishes", "wanted", "reason"),
    [
        (["stop", "stop"], 2, None), (["stop", None], 2, Reason.UNFINISHED_CHOICE),
        (["stop"], 2, Reason.UNFINISHED_CHOICE),
        (["stop", "stop"], 1, Reason.UNFINISHED_CHOICE), (["stop", "length"], 2, Reason.FINISH_REASON),
        (["stop", "tool_calls", "stop"], 3, None),
    ],
)  # fmt: skip
def test_every_choice_asked_for_must_be_there(finishes, wanted, reason):
    """B15: one finished choice of two is no answer, in either form."""
    chunks = [piece({"content": "a"}, finish, i) for i, finish in enumerate(finishes)]
    whole = document(*(choice("a", finish, i) for i, finish in enumerate(finishes)))
    for result in (record(events(chunks), choices=wanted), record_json(whole, choices=wanted)):
        assert isinstance(result, Answer) if reason is None else result is reason


def test_every_cut_of_a_stream_is_incomplete():
    """B15: only the last byte makes it an answer, whatever the place of the break."""
    raw = events([*WHOLE, {**BASE, "choices": [], "usage": USAGE}])
    assert [i for i in range(len(raw) + 1) if isinstance(record(raw[:i]), Answer)] == [len(raw)]


def test_every_cut_of_a_document_is_incomplete():
    raw = document(choice("漢字 😀"), usage=USAGE)
    assert [i for i in range(len(raw) + 1) if isinstance(record_json(raw[:i]), Answer)] == [len(raw)]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", Reason.MALFORMED), (b"<html>502</html>", Reason.MALFORMED), (b"[]", Reason.MALFORMED),
        (b"{}", Reason.MALFORMED),
        (document(choice()) + b'{"error":{}}', Reason.MALFORMED), (document(), Reason.EMPTY),
        (document("x"), Reason.MALFORMED),
        (document(choice(), error={"message": "x"}), Reason.IN_BAND_ERROR), (b'{"error":"x"}', Reason.IN_BAND_ERROR),
        (document(choice("")), Reason.EMPTY),
        (document(choice(None)), Reason.EMPTY), (document(choice(None, refusal="")), Reason.EMPTY),
        (document(choice(None, tool_calls=[])), Reason.EMPTY), (document(choice("a", "length")), Reason.FINISH_REASON),
        (document(choice("a", "content_filter")), Reason.FINISH_REASON),
        (document(choice("a", None)), Reason.UNFINISHED_CHOICE),
        (document({"index": 0, "finish_reason": "stop"}), Reason.MALFORMED),
        (document(choice(audio={"id": "a"})), Reason.AUDIO),
        (document({"index": 0, "text": "a", "finish_reason": "stop"}), Reason.MALFORMED),
        (events(WHOLE), Reason.MALFORMED),
        (b'{"choices":[{"message":{"content":"\\ud800"},"finish_reason":"stop"}]}', Reason.MALFORMED),
        (b'{"choices":NaN}', Reason.MALFORMED), (b'{"choices":' + b"[" * 100_000, Reason.MALFORMED),
        (document(choice(index="0")), Reason.MALFORMED), (document(choices={"0": choice()}), Reason.MALFORMED),
    ],
)  # fmt: skip
def test_an_incomplete_document_has_its_reason(raw, reason):
    """B29, B55: an apology is not an answer."""
    assert record_json(raw) is reason


def test_the_old_error_object_is_no_answer():
    """B55: some servers answer 200 with an error that is not under `error`."""
    assert record_json(b'{"object":"error","message":"x","code":400}') in (Reason.IN_BAND_ERROR, Reason.MALFORMED)


@pytest.mark.parametrize(
    "raw",
    [
        document(choice()), document(choice(), usage=USAGE, error=None), document(choice(None, refusal="No.")) + b"\n",
        document(choice(None, "tool_calls", tool_calls=[{"id": "c"}])), document(choice(), x_y={"a": [1]}),
    ],
)  # fmt: skip
def test_a_complete_document_is_kept_byte_for_byte(raw):
    answer = record_json([raw[:7], raw[7:]] if len(raw) % 2 else raw)
    assert isinstance(answer, Answer)
    assert (answer.form, answer.content_type, answer.body) == (Form.JSON, JSON_TYPE, raw)
    assert answer.has_usage == (b'"usage"' in raw)


def test_text_completions_speak_in_text():
    chunks = [{"choices": [{"index": 0, "text": "a", "finish_reason": finish}]} for finish in (None, "stop")]
    silent = [{"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]}]
    for about in ({"endpoint": Endpoint.COMPLETIONS},):
        assert isinstance(record(events(chunks), **about), Answer)
        assert record(events(silent), **about) is Reason.EMPTY
        assert isinstance(record_json(json.dumps(chunks[1]).encode(), **about), Answer)
        assert record_json(json.dumps(silent[0]).encode(), **about) is Reason.EMPTY


def test_the_recorder_knows_what_it_holds_and_when_the_answer_is_over():
    taking = recorder(ask(stream=True), STREAM_TYPE)
    raw = events(WHOLE)
    for data in bytewise(raw[:-1]):
        taking.feed(data)
        assert not taking.ended
    taking.feed(raw[-1:])
    assert (taking.ended, taking.held) == (True, len(raw))


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, "stop", "tool_calls", "length"]), st.booleans())),
    st.data(),
)
def test_an_answer_if_and_only_if_complete(told, data):
    """B15, B29: any order of pieces of up to three choices, cut anywhere, judged by hand."""
    chunks = [piece({"content": "a"} if speaks else {}, finish, i) for i, finish, speaks in told]
    done = data.draw(st.booleans())
    finishes = {i: {f for j, f, _ in told if j == i and f is not None} for i, *_ in told}
    fine = len(finishes) == 2 and all(f and f <= {"stop", "tool_calls"} for f in finishes.values())
    complete = done and fine and any(speaks for *_, speaks in told)
    result = record(data.draw(pieces(events(chunks, done=done))), choices=2)
    assert isinstance(result, Answer) == complete


names = st.sampled_from([
    "choices", "delta", "message", "text", "index", "finish_reason", "error", "usage", "id", "created", "content",
    "tool_calls", "audio", "object",
])  # fmt: skip
junk = st.recursive(
    shapes.leaves | st.just("stop"),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(names, v, max_size=4),
    max_leaves=12,
)


@given(
    st.lists(junk | st.fixed_dictionaries({"choices": st.lists(st.dictionaries(names, junk))}), max_size=4),
    st.booleans(),
)
def test_arbitrary_json_never_raises(documents, done):
    for endpoint in Endpoint:
        result = record(events(documents, done=done), endpoint=endpoint)
        assert isinstance(result, Answer | Reason)
        for each in documents:
            assert isinstance(record_json(json.dumps(each).encode(), endpoint=endpoint), Answer | Reason)


@given(
    st.binary(max_size=40)
    | st.lists(st.sampled_from([b"data:", b"{", b"}", b"\n", b"\r", b"[DONE]", b'"choices":[]'])).map(b"".join)
)
def test_arbitrary_bytes_are_no_answer(raw):
    assert isinstance(record(raw), Reason)
    assert isinstance(record_json(raw), Reason)


def test_damage_to_one_byte_never_raises():
    raw = events(WHOLE)
    results = {
        type(record(raw[:i] + bytes([b]) + raw[i + 1 :])) for i in range(len(raw)) for b in (0, 34, 92, 125, 255)
    }
    assert results == {Answer, Reason}
