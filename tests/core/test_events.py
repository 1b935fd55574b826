"""Event streams cut anywhere give the same events, which are those of the standard, and no byte is lost."""

import re
import time
from collections import deque
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cacheproxy.core.events import DONE, Event, Splitter, event, split
from tests.core.shapes import bytewise, pieces

ENDS = (b"\n", b"\r\n", b"\r")
PIECES = [
    b"data: ", b"data:", b"data", b"data:  x", b"id: 7", b": c", b":", b" ", b"event: error", b"[DONE]", b"x", b"\0",
    b"\xff", b"\xef\xbb\xbf", "é".encode(), "漢".encode(), "😀".encode(), "\u2028".encode(), "\x85".encode(), b"\x0b",
]  # fmt: skip
streams = st.lists(st.sampled_from([*PIECES, *ENDS * 4]), max_size=30).map(b"".join)


@dataclass
class Expected:
    """An event by the standard's own algorithm."""

    lines: tuple[bytes, ...]
    data: bytes | None
    name: bytes | None


def reference(stream: bytes) -> list[Expected]:
    """The complete events that have fields, found byte by byte as the standard tells it (HTML, section 9.2.6)."""
    text = stream.removeprefix(b"\xef\xbb\xbf")
    found, block, line, at = [], [], bytearray(), 0
    while at < len(text):
        if text[at] not in b"\r\n":
            line.append(text[at])
            at += 1
            continue
        at += 2 if text[at : at + 2] == b"\r\n" else 1
        if line:
            block.append(bytes(line))
        elif block:
            found.append(dispatched(block))
            block = []
        line.clear()
    return [e for e in found if e.lines]


def dispatched(block: list[bytes]) -> Expected:
    lines = tuple(line for line in block if not line.startswith(b":"))
    data, name = None, None
    for line in lines:
        field, colon, value = line.partition(b":")
        value = value.removeprefix(b" ") if colon else b""
        if field == b"data":
            data = value if data is None else data + b"\n" + value
        elif field == b"event":
            name = value
    return Expected(lines, data, name)


def fed(cuts: list[bytes]) -> tuple[list[Event], bytes]:
    splitter = Splitter()
    found = [e for piece in cuts for e in splitter.feed(piece)]
    return found, splitter.rest


def told(found: list[Event]) -> list[Expected]:
    return [Expected(e.lines, e.data, e.field(b"event")) for e in found if e.lines]


@given(streams)
@example(b"\ndata: a\n\n")
@example(b"data: a\n\r\ndata: b\r\r\n")
@example(b"data: a\n\n\ndata: b\n\n")
def test_a_whole_stream_gives_the_events_of_the_standard(stream):
    """B25: comments are no data, and a block of comments alone is no event."""
    assert told(split(stream)) == reference(stream)


@given(streams, st.data())
@example(b"data: a\r\n\r\ndata: b\r\n\r\n", None)
def test_cuts_change_no_event(stream, data):
    """B23: inside a character, between CR and LF, after every byte."""
    cuts = bytewise(stream) if data is None else data.draw(pieces(stream))
    assert told(fed(cuts)[0]) == reference(stream)


@given(streams, st.data())
@example(b"data: a\r\n\r\ndata: b\r\n\r\n", None)
def test_no_byte_is_lost_or_made(stream, data):
    """What is passed on event by event is the stream, whatever the cuts."""
    cuts = bytewise(stream) if data is None else data.draw(pieces(stream))
    found, rest = fed(cuts)
    assert b"".join(e.raw for e in found) + rest == stream


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("space", [b"", b" "])
def test_an_event_is_out_as_soon_as_its_blank_line_is_in(end, space):
    """B28: no event waits for the next one."""
    splitter = Splitter()
    assert splitter.feed(b"data:" + space + b"one") == splitter.feed(end) == []
    assert [e.data for e in splitter.feed(end[:1])] == [b"one"]
    assert splitter.feed(end[1:]) == []
    assert splitter.feed(b"data:" + space + DONE + end) == []
    assert [e.data for e in splitter.feed(end)] == [DONE]


@given(streams.filter(reference), streams)
@example(b"data\n\n", b"x")
@example(b"data: \rdata: \n\n", b"")
@example(b"id: 1\n\xef\xbb\xbfdata: x\ndata: y\n\n", b"new")
@example(b"id: 1\n\n\xef\xbb\xbfdata: x\ndata: y\ndata: z\n\n", b"new")
@example(b"\xef\xbb\xbf\xef\xbb\xbfdata: x\ndata: y\n\n", b"new")
def test_with_data_changes_the_data_alone(stream, new):
    """Other fields keep their values and order; the data is read back as it was given. A byte-order mark is one where
    the stream begins, and part of a name anywhere else."""
    payload = re.sub(rb"\r\n?", b"\n", new)
    for i, each in enumerate(split(stream)):
        if each.data is not None:
            before = b"\n" if i else b""  # where it stood: at the start of the stream, or not
            [again] = [e for e in split(before + each.with_data(payload)) if e.lines]
            assert again.data == payload
            others = [line for line in each.lines if line.partition(b":")[0] != b"data"]
            assert [line for line in again.lines if line.partition(b":")[0] != b"data"] == others


@given(streams)
@example(b": c\n\n\xef\xbb\xbfdata: x\ndata: y\n\n")
@example(b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\n")
def test_the_stored_form_is_the_same_events_without_comments(stream):
    """B25: comments never enter what is stored. Without them another event may be the first of the stream, where a name
    that begins like a byte-order mark would be taken for one."""
    found = [e for e in split(stream) if e.lines]
    again = split(b"".join(e.stored for e in found))
    assert [e.lines for e in again] == [e.lines for e in found]


@given(st.binary(max_size=20).filter(lambda data: b"\n" not in data and b"\r" not in data))
def test_an_event_of_one_line_is_read_back(data):
    assert [e.data for e in split(event(data))] == [data]


@pytest.mark.parametrize(
    ("block", "data"),
    [
        (b"data", b""), (b"data:", b""), (b"data: ", b""), (b"data:  x", b" x"), (b"data:x\ndata\ndata: y", b"x\n\ny"),
        (b"Data: x", None), (b" data: x", None), (b"data : x", None), (b"id: 1", None), (b"data:a:b", b"a:b"),
    ],
)  # fmt: skip
def test_data_of_odd_lines(block, data):
    [found] = split(block + b"\n\n")
    assert found.data == data


def test_the_last_of_repeated_fields_counts():
    [found] = split(b"id: 1\nevent\nid: 2\ndata: x\n\n")
    assert (found.field(b"id"), found.field(b"event"), found.field(b"retry")) == (b"2", b"", None)


def test_one_line_of_data_is_exchanged_and_no_other_byte():
    marked = b"\xef\xbb\xbf: c\rid:1\r\ndata:x\n\xef\xbb\xbfdata: y\n\n"
    [found] = split(marked)
    assert found.with_data(b"new") == marked.replace(b"data:x", b"data:new")


def test_a_byte_order_mark_counts_only_at_the_start():
    found = split(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n")
    assert [e.data for e in found] == [b"a", None]


MEBIBYTE = 2**20
LONG_LINE = b"data: " + b"x" * (5 * MEBIBYTE) + b"\r\n\r\n"
MANY_LINES = (b"data: " + b"y" * 1000 + b"\n: c\n") * 2500 + b"\n"


@pytest.mark.parametrize(
    ("stream", "lines", "events"),
    [(LONG_LINE, (b"x" * (5 * MEBIBYTE),), 1), (MANY_LINES * 2, (b"y" * 1000,) * 2500, 2)],
    ids=["one line", "many lines"],
)
def test_large_events(stream, lines, events):
    """Events of several MiB, in pieces of any size."""
    for step in (10**9, 65_536, 1021):
        found, rest = fed([stream[i : i + step] for i in range(0, len(stream), step)])
        assert [e.data for e in found] == [b"\n".join(lines)] * events
        assert rest == b""


def test_five_mebibytes_byte_by_byte_cost_linear_time():
    """B62: were each byte to look at what is held again, this would take hours."""
    splitter = Splitter()
    began = time.process_time()
    feeds = (splitter.feed(LONG_LINE[i : i + 1]) for i in range(len(LONG_LINE)))
    found = deque(feeds, maxlen=2)
    assert sum(len(events) for events in found) == 1
    assert time.process_time() - began < 60
