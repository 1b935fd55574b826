"""Events as a stream's entries carry them."""

import json

import pytest

from cacheproxy.core import streamed
from cacheproxy.core.knowledge import BadPublication, Publication

EVENT = {
    "specversion": "1.0", "type": "kb.version.published", "source": "/index", "id": "1", "subject": "handbook",
    "data": {"version": "v2", "sequence": 2, "changed_documents": ["é"]},
}  # fmt: skip
TOLD = Publication("handbook", "v2", frozenset({"é"}), 2, ("/index", "1"))


def test_an_event_is_read_whole_and_in_parts():
    assert streamed.read({b"event": json.dumps(EVENT).encode()}) == TOLD
    parts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in EVENT.items()}
    assert streamed.read({name.encode(): value.encode() for name, value in parts.items()}) == TOLD


def test_an_event_of_another_type_means_nothing():
    assert streamed.read({b"event": json.dumps({**EVENT, "type": "other"}).encode()}) is None


@pytest.mark.parametrize(
    "fields",
    [
        {}, {b"event": b""}, {b"event": b"{"}, {b"event": b"\xff"}, {b"event": b"[]"}, {b"event": b"1"}, {b"\xff": b""},
        {b"a": b"b"}, {b"event": b"{}"}, {b"data": b"{"}, {b"specversion": b"1.0", b"data": b"\xff"},
        {b"event": b"[" * 100_000},
    ],
)  # fmt: skip
def test_what_is_none_is_said_to_be_none(fields):
    assert isinstance(streamed.read(fields), BadPublication)


def test_ids_stand_in_the_order_of_the_stream():
    ids = [b"0-0", b"9-10", b"10-0", b"10-2", b"10-10", b"1796276454838-0"]
    assert sorted(set(ids), key=streamed.place) == ids
    with pytest.raises(ValueError):
        streamed.place(b"x-1")
