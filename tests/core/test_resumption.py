"""Ids of events: the same however the bytes come, and a stream cut anywhere goes on as if it had not been."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.controls import GREATEST, BadControl
from cacheproxy.core.events import split
from cacheproxy.core.resumption import SHORTEST_BEAT, Numbering, Wish, is_ours, read

IDENTITY = bytes(range(16))
NAME = IDENTITY.hex().encode()
DONE = b"data: [DONE]\n\n"


def wished(*lines: tuple[str, str]) -> Wish | BadControl:
    return read(tuple((name.encode(), value.encode()) for name, value in lines))


def numbered(raw: bytes, after: int = 0, *, step: int | None = None) -> bytes:
    numbering = Numbering(IDENTITY, after)
    step = step or max(1, len(raw))
    return b"".join(numbering.feed(raw[at : at + step]) for at in range(0, len(raw), step)) + numbering.rest


def read_by_a_browser(raw: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """(type, data, last event id) of each event that is dispatched, by the letter of WHATWG HTML, section 9.2.6."""
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    found, kind, data, last = [], b"", [], b""
    lines = re.split(rb"\r\n|\n|\r", raw)[:-1]
    for line in lines:
        if not line:
            if data:
                found.append((kind or b"message", b"\n".join(data), last))
            kind, data = b"", []
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            kind = value
        elif name == b"data":
            data.append(value)
        elif name == b"id" and b"\0" not in value:
            last = value
    return found


STREAMS = {
    "plain": b'data: {"a":1}\n\ndata: {"a":2}\n\n' + DONE,
    "crlf": b'data: {"a":1}\r\n\r\ndata: {"a":2}\r\n\r\ndata: [DONE]\r\n\r\n',
    "cr": b"data: 1\r\rdata: 2\r\rdata: [DONE]\r\r",
    "mixed": b"data: 1\r\n\ndata: 2\n\r\n: c\r\r\ndata: 3\r\n\r" + DONE,
    "comments": b": WORKING\n\n: WORKING\n\ndata: 1\n: inside\n\n:\n\ndata: 2\n\n: late\n\n" + DONE + b": end\n\n",
    "own ids": b"id: 7\ndata: 1\n\nid:8\ndata: 2\n\nid\ndata: 3\n\nidea: x\ndata: 4\n\n" + DONE,
    "mark": b"\xef\xbb\xbfdata: 1\n\ndata: \xef\xbb\xbf2\n\n" + DONE,
    "marked id": b"\xef\xbb\xbfid: 3\ndata: 1\n\n" + DONE,
    "names": b"event: response.created\ndata: {}\n\nevent: ping\n\nretry: 100\n\ndata: a\ndata: b\n\n" + DONE,
    "utf-8": "data: é漢🙂\n\ndata: \u2028\u0085x\n\n".encode() + DONE,
    "empty data": b"data\n\ndata:\n\ndata: \n\n" + DONE,
    "without its end": b"data: 1\n\ndata: 2\n\ndata: thr",
    "nothing": b"",
    "blank": b"\n\n\n\ndata: 1\n\n\n\n\ndata: 2\n\n",
}


@pytest.mark.parametrize("raw", STREAMS.values(), ids=STREAMS)
def test_each_event_gets_the_next_number_and_says_what_it_said(raw):
    out = numbered(raw)
    before, after = read_by_a_browser(raw), read_by_a_browser(out)
    assert [(kind, data) for kind, data, _ in after] == [(kind, data) for kind, data, _ in before]
    ids = [event.field(b"id") for event in split(out) if event.lines]
    assert ids == [NAME + b"-%d" % (number + 1) for number in range(len(ids))]
    for event in split(out):
        assert sum(line.partition(b":")[0] == b"id" for line in event.lines) == bool(event.lines)
        assert event.raw.endswith(b"\n\n") or not event.lines


@pytest.mark.parametrize("raw", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 64])
def test_the_pieces_that_it_comes_in_change_nothing(raw, step):
    assert numbered(raw, step=step) == numbered(raw)


@pytest.mark.parametrize("raw", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("step", [None, 1])
def test_cut_after_every_event_and_gone_on_with_it_is_whole(raw, step):
    """No event twice, none left out, whichever of them was the last that came."""
    events = [event for event in split(numbered(raw)) if event.lines]
    for after in range(len(events) + 1):
        rest = numbered(raw, after, step=step)
        got = [event.raw for event in split(rest) if event.lines]
        assert got == [event.raw for event in events[after:]]
    whole = read_by_a_browser(numbered(raw))
    for after in range(len(events) + 1):
        first = b"".join(event.raw for event in events[:after])
        assert read_by_a_browser(first) + read_by_a_browser(numbered(raw, after)) == whole


@pytest.mark.parametrize("raw", STREAMS.values(), ids=STREAMS)
def test_every_cut_of_the_bytes_loses_nothing(raw):
    """A caller who is cut in the middle of an event has not seen it, and is given it whole."""
    out = numbered(raw)
    whole = read_by_a_browser(out)
    for cut in range(len(out) + 1):
        seen = read_by_a_browser(out[:cut])
        last = seen[-1][2] if seen else b""
        after = int(last.rpartition(b"-")[2]) if last else 0
        assert seen + read_by_a_browser(numbered(raw, after)) == whole


def test_comments_are_not_counted_and_not_repeated():
    """B25: the live stream has them and the stored one has not, and both have the same numbers."""
    raw = STREAMS["comments"]
    stored = b"".join(event.stored for event in split(raw) if event.lines)
    ids = [line for line in numbered(raw).split(b"\n") if line.startswith(b"id: ")]
    assert ids == [line for line in numbered(stored).split(b"\n") if line.startswith(b"id: ")]
    assert b"WORKING" in numbered(raw)
    assert b"WORKING" not in numbered(raw, 1)
    assert b": late" in numbered(raw, 2)


def test_an_unfinished_event_goes_on_only_behind_the_one_that_was_seen():
    assert numbered(b"data: 1\n\ndata: tw", 1) == b"data: tw"
    assert numbered(b"data: 1\n\ndata: tw", 2) == b""


def test_after_more_events_than_there_are_nothing_comes():
    assert numbered(STREAMS["plain"], 999) == b""


pieces = st.sampled_from([
    b"data: x", b"data:", b"id: 9", b"id", b":c", b"event: e", b"retry: 1", b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n",
    b"\xef\xbb\xbf", b"\0", "漢".encode(),
])  # fmt: skip


@given(raw=st.lists(pieces, max_size=30).map(b"".join), cuts=st.lists(st.integers(0, 200), max_size=8), data=st.data())
def test_whatever_the_backend_sends(raw, cuts, data):
    """Any bytes in any pieces: the same ids, the same events, resumed anywhere."""
    marks = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    numbering = Numbering(IDENTITY)
    out = b"".join(numbering.feed(raw[a:b]) for a, b in pairwise(marks)) + numbering.rest
    assert out == numbered(raw)
    whole = read_by_a_browser(out)
    after = data.draw(st.integers(0, len(split(raw)) + 1))
    rest = read_by_a_browser(numbered(raw, after))
    assert rest == [one for one in whole if int(one[2].rpartition(b"-")[2] or 0) > after]


# --- what the request says -------------------------------------------------------------------------------------------


def test_a_request_that_says_nothing():
    assert wished(("Accept", "*/*")) == Wish()


def test_the_last_event_that_was_seen():
    wish = wished(("Last-Event-ID", f" {NAME.decode()}-17 "))
    assert wish == Wish(ids=True, identity=IDENTITY, after=17)
    assert isinstance(wish, Wish)
    assert wish.after_in(IDENTITY) == 17
    assert wish.after_in(bytes(16)) == 0


@pytest.mark.parametrize(
    "value",
    [
        "", "7", "abc", NAME.decode(), NAME.decode() + "-", NAME.decode() + "--1", NAME.decode() + "-1x",
        NAME.decode().upper() + "-1", NAME.decode()[1:] + "-1", "0" + NAME.decode() + "-1",
        NAME.decode() + "-" + "9" * 10, NAME.decode() + "-¹",
    ],
)  # fmt: skip
def test_an_id_that_is_not_ours_starts_anew_with_ids(value):
    """Of a backend, or made up: who sends one can go on after a cut, and wants to."""
    assert wished(("Last-Event-ID", value)) == Wish(ids=True)
    assert not is_ours(value.encode())


def test_ours_is_known():
    assert is_ours(b" " + NAME + b"-1\t")


@pytest.mark.parametrize(
    ("value", "ids"), [("on", True), ("1", True), (" ON ", True), ("off", False), ("0", False)]
)  # fmt: skip
def test_asked_by_header(value, ids):
    assert wished(("X-Cache-Event-Ids", value)) == Wish(ids=ids)


@pytest.mark.parametrize("value", ["", "yes", "true", "2"])
def test_junk_in_the_header_is_told(value):
    found = wished(("x-cache-event-ids", value))
    assert isinstance(found, BadControl)
    assert found.name == "X-Cache-Event-Ids"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("5", 5.0), ("0.25", 0.25), ("0", 0.0), ("0.0", 0.0), ("999999999", 999999999.0), ("0.001", SHORTEST_BEAT)],
)
def test_signs_of_life(value, seconds):
    """Nobody can have a thousand of them a second."""
    assert wished(("X-Cache-Heartbeat", value)) == Wish(heartbeat=seconds)
    assert seconds <= GREATEST


@pytest.mark.parametrize("value", ["", "-1", "1e3", "nan", "inf", "5s", "9" * 10, "5,5", "١"])
def test_junk_for_a_number_of_seconds_is_told(value):
    found = wished(("X-Cache-Heartbeat", value))
    assert isinstance(found, BadControl)
    assert found.name == "X-Cache-Heartbeat"


def test_all_at_once():
    lines = (("X-Cache-Heartbeat", "2"), ("X-Cache-Event-Ids", "off"), ("Last-Event-ID", f"{NAME.decode()}-3"))
    assert wished(*lines) == Wish(ids=True, identity=IDENTITY, after=3, heartbeat=2.0)
