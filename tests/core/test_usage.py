"""Usage is asked for without another byte changing, and taken out again as if it had never been asked for."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cacheproxy.core import usage
from tests.core import shapes
from tests.core.shapes import bytewise, pieces, plain

USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
BASE = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def asked(raw: bytes) -> bytes:
    return usage.ask(raw, json.loads(raw).get("stream_options"))


@given(shapes.objects, shapes.randoms)
def test_asking_adds_one_member_and_no_other_byte(fields, rnd):
    raw = shapes.write({"model": "m", **fields}, rnd)
    changed = usage.ask(raw, None)
    assert plain(json.loads(changed)) == plain({"model": "m", **fields, "stream_options": {"include_usage": True}})
    added = b'"stream_options":{"include_usage":true},'
    assert changed.replace(added, b"", 1) == raw


@pytest.mark.parametrize(
    "options", ["null", "{}", '{"include_usage":false}', '{"include_usage" : null, "x": [1, "}"]}']
)
@pytest.mark.parametrize(
    "around",
    ['{"stream_options": %s}', ' {"a":"\\"stream_options\\":1",\n"stream_options" :%s ,"b":{"stream_options":0}} '],
)
def test_asking_changes_the_options_alone(options, around):
    """Other options stay; text that looks like the field is not the field."""
    raw = (around % options).encode()
    changed = asked(raw)
    told = json.loads(options) or {}
    assert json.loads(changed) == {**json.loads(raw), "stream_options": {**told, "include_usage": True}}
    before, after = (part.encode() for part in around.split("%s"))
    assert changed.startswith(before)
    assert changed.endswith(after)


def test_asking_never_makes_a_duplicate():
    """A name written with escapes is still that name: backends refuse, or misread, two of them."""
    changed = asked(b'{"stream\\u005foptions":{"x":1},"a":1}')
    pairs: list[tuple[str, Any]] = json.loads(changed, object_pairs_hook=lambda found: found)
    assert sorted(name for name, _ in pairs) == ["a", "stream_options"]
    assert json.loads(changed)["stream_options"] == {"x": 1, "include_usage": True}


@dataclass(frozen=True)
class Style:
    """How a backend writes its stream."""

    end: bytes = b"\n"
    space: bytes = b" "
    separators: tuple[str, str] = (",", ":")
    before: bytes = b""
    after: bytes = b""

    def event(self, data: bytes) -> bytes:
        return self.before + b"data:" + self.space + data + self.end + self.after + self.end

    def stream(self, documents: list[dict[str, Any]]) -> bytes:
        told = [json.dumps(d, separators=self.separators, ensure_ascii=False).encode() for d in documents]
        return b"".join(self.event(data) for data in [*told, b"[DONE]"])


def chunk(content: str, **more: Any) -> dict[str, Any]:
    return {**BASE, "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}], **more}


def with_null(document: dict[str, Any], place: int) -> dict[str, Any]:
    members = list(document.items())
    members.insert(place, ("usage", None))
    return dict(members)


ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
styles = st.builds(
    Style, ends, st.sampled_from([b"", b" ", b"  "]), st.sampled_from([(",", ":"), (", ", ": "), ("\t,", ":")])
)
contents = st.lists(shapes.texts | st.sampled_from(['"usage":null', "usage", '","usage":null']), min_size=1, max_size=4)


def sieved(cuts: list[bytes]) -> bytes:
    sieve = usage.Filter()
    return b"".join(sieve.feed(data) for data in cuts) + sieve.rest


@given(styles, contents, st.booleans(), st.data())
@example(Style(), ["Hel", "lo"], True, None)
@example(Style(b"\r\n"), ["Hel"], False, None)
@example(Style(b"\r\n"), ["Hel"], True, None)
@example(Style(b"\n", b""), ["Hel"], True, None)
def test_what_leaves_is_what_the_backend_had_sent_unasked(style, texts, nulls, data):
    """Byte for byte, however the backend writes and wherever the stream is cut."""
    documents = [chunk(text) for text in texts]
    place = data.draw(st.integers(0, 5)) if data is not None else 5
    noted = [with_null(d, place) if nulls else d for d in documents]
    sent = style.stream([*noted, {**BASE, "choices": [], "usage": USAGE}])
    cuts = bytewise(sent) if data is None else data.draw(pieces(sent))
    assert sieved(cuts) == style.stream(documents)


@pytest.mark.parametrize(
    "style", [Style(before=b": ping\n"), Style(before=b"id: 7\n"), Style(after=b"id: 7\n"), Style(before=b"event: x\n")]
)
def test_fields_beside_the_data_stay_where_they_are(style):
    """B25: ids, names and comments of an event that only loses its ``usage: null``."""
    sent = style.stream([chunk("a", usage=None)])
    assert sieved([sent]) == style.stream([chunk("a")])


@pytest.mark.parametrize(
    "data",
    [
        b"", b"usage", b'{"usage', b'["usage"]', b'{"a":{"usage":null}}', b'{"choices":[{"usage":null}]}', b"[DONE]",
        b'"usage"',
        json.dumps(chunk("a", usage=USAGE)).encode(), json.dumps(chunk('"usage":null')).encode(), b'{"usage":1}',
        b'{"usage":{}}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("style", [Style(), Style(b"\r\n", b""), Style(before=b": c\nid: 1\n")])
def test_everything_else_passes_untouched(data, style):
    """Usage that a backend gives with a choice it gives unasked; and what is no usage is none."""
    sent = style.event(data) + style.event(b"[DONE]")
    assert sieved([sent]) == sieved(bytewise(sent)) == sent


@given(
    st.lists(st.sampled_from([b"data:", b"\n", b"\r", b'{"a":"usage"}', b'"usage"', b": c", b"\xff", b"x"])).map(
        b"".join
    ),
    st.data(),
)
def test_arbitrary_bytes_pass(stream, data):
    assert sieved(data.draw(pieces(stream))) == stream


def test_an_unfinished_event_is_given_at_the_end():
    """B15: a stream that breaks off reaches the caller to its last byte."""
    sieve = usage.Filter()
    sent = Style().stream([chunk("a")]) + b'data: {"choi'
    assert sieve.feed(sent) + sieve.rest == sent


def test_an_event_leaves_as_soon_as_it_is_complete():
    """B28: nothing is held back to look at what follows."""
    sieve = usage.Filter()
    one = Style().event(json.dumps(chunk("a")).encode())
    assert sieve.feed(one[:-1]) == b""
    assert sieve.feed(one[-1:]) == one


@pytest.mark.parametrize(
    ("kind", "nothing"), [("chat.completion.chunk", {"delta": {}}), ("text_completion", {"text": ""})]
)
def test_what_came_with_the_usage_stays(kind, nothing):
    """B20: timings beside the usage are the caller's, in an event that clients which index choices can read."""
    last = {**BASE, "object": kind, "choices": [], "usage": USAGE, "timings": {"ms": 1.5}}
    [left, done] = [part for part in sieved([Style().stream([last])]).split(b"\n\n") if part]
    assert done == b"data: [DONE]"
    told = json.loads(left.removeprefix(b"data: "))
    assert told == {
        **BASE, "object": kind, "choices": [{"index": 0, **nothing, "finish_reason": None}], "timings": {"ms": 1.5},
    }  # fmt: skip
