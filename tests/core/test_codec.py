"""What comes out of a store is the entry that went in under this key, or nothing."""

import dataclasses
import hashlib
import json
import pickle
import random
import struct
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import codec
from cacheproxy.core.model import Answer, Endpoint, Entry, Form
from tests.core import shapes

KEY = b"k" * 32
ENTRY = Entry(
    key=KEY, owner=b"o" * 16, credential=b"c" * 16, namespace="näme", endpoint=Endpoint.CHAT, model="m",
    answer=Answer(Form.JSON, "application/json", b'{"id":"a-1"}', True, b'"id":"a-1"', b'"created":1', True, 404, (5, 7), b"\0\1"),
    stored_at=1.5, fresh_until=2.5, expires_at=3.5, took=0.25, asked_at=1.25, tags=("a", "bé"), prefix="f1", epoch=7,
)  # fmt: skip
BLOB = codec.encode(ENTRY)
LARGE = dataclasses.replace(ENTRY, answer=dataclasses.replace(ENTRY.answer, body=b'{"id":"a-1"}' + b" " * 2000))
LARGE_BLOB = codec.encode(LARGE)
MiB = 2**20

lines = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
literals = lines.map(str.encode)
counts = st.integers(0, 2**63)
bodies = st.binary(max_size=100) | st.builds(bytes.__mul__, st.binary(min_size=1, max_size=30), st.integers(20, 300))
seconds = st.floats(-1e12, 1e12)
entries = st.builds(
    Entry,
    key=st.binary(min_size=32, max_size=32), owner=st.binary(max_size=16), credential=st.binary(max_size=16), namespace=shapes.texts,
    endpoint=st.sampled_from(Endpoint), model=shapes.texts,
    answer=st.builds(
        Answer, st.sampled_from(Form), lines, bodies, st.booleans(), literals, literals, st.booleans(),
        st.just(200) | st.integers(400, 499), st.tuples(counts, counts), st.binary(max_size=40),
    ),
    stored_at=seconds, fresh_until=seconds, expires_at=seconds, took=seconds, asked_at=seconds, tags=st.lists(shapes.texts, max_size=3).map(tuple),
    prefix=shapes.texts, epoch=counts,
)  # fmt: skip


@given(entries)
def test_an_entry_comes_back_as_it_went(entry):
    found = codec.decode(codec.encode(entry), entry.key)
    assert found == entry
    assert found.epoch == entry.epoch, "which is not compared above"


@given(entries, st.binary(min_size=32, max_size=32))
def test_another_key_gets_nothing(entry, key):
    if key != entry.key:
        assert codec.decode(codec.encode(entry), key) is None


@pytest.mark.parametrize("blob", [BLOB, LARGE_BLOB], ids=["small", "packed"])
def test_any_changed_bit_gives_nothing(blob):
    """B86: damage is a miss."""
    for i in range(len(blob)):
        for bit in range(8):
            assert codec.decode(blob[:i] + bytes([blob[i] ^ 1 << bit]) + blob[i + 1 :], KEY) is None


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


def facts_of(blob: bytes) -> tuple[dict[str, Any], bytes]:
    """What a blob says, and the form its contents are kept in."""
    size = struct.unpack(">4sI", blob[:8])[1]
    return json.loads(blob[8 : 8 + size]), blob[8 + size : -16]


def forged(contents: bytes | None = None, blob: bytes = BLOB, **facts: Any) -> bytes:
    """An entry of the right frame and checksum with other facts or contents in it."""
    told, kept = facts_of(blob)
    head = json.dumps({**told, **facts}).encode()
    return signed(struct.pack(">4sI", codec.MAGIC, len(head)) + head + (kept if contents is None else contents))


def test_the_forgery_is_a_good_one():
    """Without a change it is taken, so that what follows is refused for its content."""
    assert codec.decode(forged(), KEY) == ENTRY
    assert codec.decode(forged(blob=LARGE_BLOB), KEY) == LARGE


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
        {"owner": "zz"}, {"owner": None}, {"namespace": None}, {"namespace": 5}, {"model": None}, {"model": {}},
        {"tags": None}, {"tags": "ab"}, {"tags": [5]}, {"tags": [None]}, {"tags": {"a": 1}},
        {"status": None}, {"status": "200"}, {"status": 200.0}, {"status": True}, {"status": -1}, {"status": 0},
        {"status": 99}, {"status": 101}, {"status": 204}, {"status": 304}, {"status": 399}, {"status": 500},
        {"status": 2000},
        {"tokens": None}, {"tokens": 5}, {"tokens": []}, {"tokens": [1]}, {"tokens": [1, 2, 3]}, {"tokens": "12"},
        {"tokens": [1, -1]}, {"tokens": [1, 2.0]}, {"tokens": [True, 1]},
        {"lengths": None}, {"lengths": []}, {"lengths": [14]}, {"lengths": [12, 2, 0]}, {"lengths": [12, "2"]},
        {"lengths": [11, 2]}, {"lengths": [13, 2]}, {"lengths": [15, -1]}, {"lengths": [-1, 15]},
        {"lengths": [12.0, 2]}, {"lengths": [12, 2**63]}, {"lengths": [12, 10**30]},
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


@pytest.mark.parametrize("name", list(facts_of(BLOB)[0]))
def test_every_fact_is_needed(name):
    facts, kept = facts_of(BLOB)
    del facts[name]
    head = json.dumps(facts).encode()
    assert codec.decode(signed(struct.pack(">4sI", codec.MAGIC, len(head)) + head + kept), KEY) is None


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


@pytest.mark.parametrize("magic", [b"CPX2", b"CPX4"])
def test_another_format_gives_nothing(magic):
    """Neither an earlier nor a later version's entries are misread."""
    assert codec.decode(signed(magic + BLOB[4:-16]), KEY) is None


def test_the_checksum_is_of_this_format():
    """The forgeries above would be taken for damage if they carried another sum."""
    assert signed(BLOB[:-16]) == BLOB


@pytest.mark.parametrize("length", [0, 1, 1022, 1023, 1024, 100_000])
@pytest.mark.parametrize("pace", [b"", b"\1\2"])
def test_contents_of_any_length_come_back(length, pace):
    """Up to 1 KiB in all they are kept as they are, from there on packed."""
    answer = dataclasses.replace(ENTRY.answer, body=b"ab" * (length // 2) + b"a" * (length % 2), pace=pace)
    entry = dataclasses.replace(ENTRY, answer=answer)
    blob = codec.encode(entry)
    assert codec.decode(blob, KEY) == entry
    kept = facts_of(blob)[1]
    if length + len(pace) <= 1024:
        assert kept == answer.body + pace
    else:
        assert len(kept) < 100
        assert zstandard.ZstdDecompressor().decompress(kept) == answer.body + pace
        assert zstandard.frame_content_size(kept) == length + len(pace)


def test_what_cannot_be_packed_comes_back():
    body = random.Random(5).randbytes(300_000)
    entry = dataclasses.replace(ENTRY, answer=dataclasses.replace(ENTRY.answer, body=body))
    assert codec.decode(codec.encode(entry), KEY) == entry


def test_more_than_is_ever_unpacked_is_kept_as_it_is():
    """An answer above 64 MiB comes back too; no frame can."""
    entry = dataclasses.replace(ENTRY, answer=dataclasses.replace(ENTRY.answer, body=b"x" * (64 * MiB), pace=b"p"))
    blob = codec.encode(entry)
    assert codec.decode(blob, KEY) == entry
    assert len(blob) > 64 * MiB
    del entry, blob
    packed = zstandard.compress(b"x" * (64 * MiB + 1))
    assert codec.decode(forged(packed, lengths=[64 * MiB + 1, 0]), KEY) is None


def frame(stated: int | None, data: bytes, level: int = 3) -> bytes:
    """A zstd frame of `data` that states another size, or none."""
    one = zstandard.ZstdCompressor(level=level, write_content_size=False).compress(data)
    if stated is None:
        return one
    assert one[4] == 0, "no size, no checksum, a window byte"
    return one[:4] + b"\xc0" + one[5:6] + stated.to_bytes(8, "little") + one[6:]


def test_the_forged_frame_is_a_good_one():
    assert codec.decode(forged(frame(5000, b"x" * 5000), lengths=[4999, 1]), KEY) is not None


FORGED_FRAMES = {
    "more in it than it states": (frame(5000, b"x" * 5001), 5000),
    "a bomb behind a small number": (frame(5000, b"x" * 100_000_000), 5000),
    "less in it than it states": (frame(5000, b"x" * 4999), 5000),
    "states nothing": (frame(None, b"x" * 5000), 5000),
    "states another number than the facts": (frame(6000, b"x" * 6000), 5000),
    "states more than there can be": (frame(2**64 - 3, b"x" * 5000), 2**64 - 3),
    "states more than is allowed": (frame(2**40, b"x" * 5000), 2**40),
    "a bomb that says so": (zstandard.compress(b"x" * 100_000_000), 100_000_000),
    "something behind it": (frame(5000, b"x" * 5000) + b"x", 5000),
    "a frame behind it": (frame(5000, b"x" * 5000) + zstandard.compress(b""), 5000),
    "two halves": (zstandard.compress(b"x" * 2500) * 2, 5000),
    "a frame to skip first": (b"\x50\x2a\x4d\x18\0\0\0\0" + frame(5000, b"x" * 5000), 5000),
    "breaks off": (frame(5000, b"x" * 5000)[:-1], 5000),
    "not packed at all": (b"x" * 5000, 5000),
    "nothing": (b"", 5000),
    "packed although it is small": (frame(500, b"x" * 500), 500),
    "another coding": (b"\x1f\x8b" + b"\0" * 30, 5000),
    "needs a dictionary": (b"\x28\xb5\x2f\xfd\x63\x05\0\0\0\x88\x12" + frame(None, b"x" * 5000)[6:], 0x1288 + 256),
}


@pytest.mark.parametrize("name", FORGED_FRAMES)
def test_a_forged_frame_gives_nothing_and_takes_no_room(name):
    """B86: whoever writes into the store cannot make us unpack more than an answer may have."""
    contents, total = FORGED_FRAMES[name]
    blob = forged(contents, lengths=[total, 0])
    tracemalloc.start()
    try:
        assert codec.decode(blob, KEY) is None
        assert tracemalloc.get_traced_memory()[1] < MiB
    finally:
        tracemalloc.stop()


def test_a_frame_that_states_the_most_takes_no_more():
    """B86: it is given what it states, which is within the limit, and gives nothing."""
    blob = forged(frame(64 * MiB, b"x" * 100_000_000), lengths=[64 * MiB, 0])
    tracemalloc.start()
    try:
        assert codec.decode(blob, KEY) is None
        assert tracemalloc.get_traced_memory()[1] < 65 * MiB
    finally:
        tracemalloc.stop()


def test_a_damaged_frame_gives_nothing_or_what_it_says():
    """B86: any byte of it may be another; no exception gets out."""
    kept = facts_of(LARGE_BLOB)[1]
    for i in range(len(kept)):
        for value in range(256):
            entry = codec.decode(forged(kept[:i] + bytes([value]) + kept[i + 1 :], blob=LARGE_BLOB), KEY)
            assert entry is None or len(entry.answer.body) == len(LARGE.answer.body)


def test_threads_do_not_disturb_each_other():
    """Stores encode and decode in their threads and on the loop, at the same moment."""
    entries = [
        dataclasses.replace(ENTRY, answer=dataclasses.replace(ENTRY.answer, body=random.Random(n).randbytes(500) * 400))
        for n in range(4)
    ]

    def pass_through(entry):
        return all(codec.decode(codec.encode(entry), KEY) == entry for _ in range(50))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(pass_through, entries))
