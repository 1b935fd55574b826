"""What comes out of a store is the entry that went in under this key, or nothing."""

import hashlib
import json
import pickle
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import codec
from cacheproxy.core.model import Answer, Endpoint, Entry, Form
from tests.core import shapes

KEY = b"k" * 32
ENTRY = Entry(
    key=KEY, owner=b"o" * 16, credential=b"c" * 16, namespace="näme", endpoint=Endpoint.CHAT, model="m",
    answer=Answer(Form.JSON, "application/json", b'{"id":"a-1"}', True, b'"id":"a-1"', b'"created":1'),
    stored_at=1.5, fresh_until=2.5, expires_at=3.5, took=0.25,
)  # fmt: skip
BLOB = codec.encode(ENTRY)

lines = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
literals = lines.map(str.encode)
seconds = st.floats(-1e12, 1e12)
entries = st.builds(
    Entry,
    key=st.binary(min_size=32, max_size=32), owner=st.binary(max_size=16), credential=st.binary(max_size=16), namespace=shapes.texts,
    endpoint=st.sampled_from(Endpoint), model=shapes.texts,
    answer=st.builds(Answer, st.sampled_from(Form), lines, st.binary(max_size=100), st.booleans(), literals, literals, st.booleans()),
    stored_at=seconds, fresh_until=seconds, expires_at=seconds, took=seconds,
)  # fmt: skip


@given(entries)
def test_an_entry_comes_back_as_it_went(entry):
    assert codec.decode(codec.encode(entry), entry.key) == entry


@given(entries, st.binary(min_size=32, max_size=32))
def test_another_key_gets_nothing(entry, key):
    if key != entry.key:
        assert codec.decode(codec.encode(entry), key) is None


def test_any_changed_bit_gives_nothing():
    """B86: damage is a miss."""
    for i in range(len(BLOB)):
        for bit in range(8):
            assert codec.decode(BLOB[:i] + bytes([BLOB[i] ^ 1 << bit]) + BLOB[i + 1 :], KEY) is None


def test_any_cut_or_growth_gives_nothing():
    for i in range(len(BLOB)):
        assert codec.decode(BLOB[:i], KEY) is None
        assert codec.decode(BLOB[i + 1 :], KEY) is None
        assert codec.decode(BLOB[:i] + BLOB[i + 1 :], KEY) is None
        assert codec.decode(BLOB[:i] + b"\0" + BLOB[i:], KEY) is None
    assert codec.decode(BLOB + b"\0", KEY) is codec.decode(BLOB + BLOB, KEY) is None
    assert codec.decode(BLOB, KEY) == ENTRY


@given(st.binary(max_size=120))
def test_arbitrary_bytes_give_nothing(blob):
    assert codec.decode(blob, KEY) is None
    assert codec.decode(signed(blob), KEY) is None
    assert codec.decode(signed(codec.MAGIC + blob), KEY) is None


class Bomb:
    """Runs code when unpickled."""

    went_off = False

    def __reduce__(self):
        return (setattr, (Bomb, "went_off", True))


def test_a_pickle_gives_nothing_and_runs_nothing():
    """B86: also with a right checksum, also inside the frame of an entry."""
    bomb = pickle.dumps(Bomb())
    for blob in (bomb, signed(bomb), signed(struct.pack(">4sI", codec.MAGIC, len(bomb)) + bomb)):
        assert codec.decode(blob, KEY) is None
    assert not Bomb.went_off
    pickle.loads(bomb)
    assert Bomb.went_off, "the bomb is a real one"


def signed(blob: bytes) -> bytes:
    """With the checksum of the format, as somebody with access to the store could make it."""
    return blob + hashlib.blake2b(blob, digest_size=16, person=b"entry").digest()


def forged(body: bytes = ENTRY.answer.body, **facts: Any) -> bytes:
    """An entry of the right frame and checksum with other facts in it."""
    size = struct.unpack(">4sI", BLOB[:8])[1]
    head = json.dumps({**json.loads(BLOB[8 : 8 + size]), **facts}).encode()
    return signed(struct.pack(">4sI", codec.MAGIC, len(head)) + head + body)


def test_the_forgery_is_a_good_one():
    """Without a change it is taken, so that what follows is refused for its content."""
    assert codec.decode(forged(), KEY) == ENTRY


@pytest.mark.parametrize(
    "facts",
    [
        {"content_type": "x\r\nSet-Cookie: a=1"}, {"content_type": "x\nA: b"}, {"content_type": "x\0"},
        {"content_type": "é"},
        {"content_type": None}, {"content_type": 5}, {"content_type": ["x"]}, {"content_type": "x\x7f"},
        {"content_type": "\u2028"},
        {"key": "00" * 32}, {"key": None}, {"key": KEY.hex().upper()}, {"credential": "zz"}, {"credential": None},
        {"form": "yaml"},
        {"form": None}, {"form": []}, {"endpoint": "x"}, {"endpoint": {}}, {"id": "é"}, {"id": None}, {"created": 5},
        {"stored_at": None},
        {"stored_at": "x"}, {"took": []}, {"expires_at": {}},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_facts_of_another_kind_give_nothing(facts):
    """B86: no header can be put in, nothing odd gets further than here."""
    assert codec.decode(forged(**facts), KEY) is None


@pytest.mark.parametrize("name", ["stored_at", "fresh_until", "expires_at", "took"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "Infinity"])
def test_times_without_end_give_nothing(name, value):
    """B86: an entry that cannot expire, or whose age is no number, is none."""
    assert codec.decode(forged(**{name: value}), KEY) is None


@pytest.mark.parametrize("name", list(json.loads(BLOB[8 : 8 + struct.unpack(">4sI", BLOB[:8])[1]])))
def test_every_fact_is_needed(name):
    size = struct.unpack(">4sI", BLOB[:8])[1]
    facts = json.loads(BLOB[8 : 8 + size])
    del facts[name]
    head = json.dumps(facts).encode()
    assert codec.decode(signed(struct.pack(">4sI", codec.MAGIC, len(head)) + head + b"{}"), KEY) is None


@pytest.mark.parametrize(
    "head", [b"[]", b"null", b"5", b'"key"', b"{}", b"", b"!!python/object:x", b"[" * 5000, b'{"key":"\\ud800"}']
)
def test_heads_of_another_kind_give_nothing(head):
    """B86: a YAML tag and a deep literal among them."""
    assert codec.decode(signed(struct.pack(">4sI", codec.MAGIC, len(head)) + head), KEY) is None


@pytest.mark.parametrize("length", [0, 1, 2**31, 2**32 - 1])
def test_a_wrong_length_gives_nothing(length):
    size = struct.unpack(">4sI", BLOB[:8])[1]
    assert codec.decode(signed(struct.pack(">4sI", codec.MAGIC, length) + BLOB[8 : 8 + size] + b"{}"), KEY) is None


def test_another_format_gives_nothing():
    """A later version's entries are not misread."""
    assert codec.decode(signed(b"CPX9" + BLOB[4:-16]), KEY) is None


def test_the_checksum_is_of_this_format():
    """The forgeries above would be taken for damage if they carried another sum."""
    assert signed(BLOB[:-16]) == BLOB
