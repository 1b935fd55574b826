"""Bodies of several gzip members or zstd frames, and what a zstd frame may ask for."""

import gzip
import random
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.coding import BadCoding, Decoder, TooLarge, unpack
from tests.core.shapes import bytewise, pieces

MiB = 2**20
SKIPPED = b"\x50\x2a\x4d\x18\3\0\0\0abc"
EMPTY_SKIPPED = b"\x5f\x2a\x4d\x18\0\0\0\0"


def feed(cuts: list[bytes], coding: bytes, limit: int = 64 * MiB) -> tuple[bytes, bool]:
    decoder = Decoder([coding], limit)
    return b"".join([decoder.feed(data) for data in cuts]), decoder.whole


def framed(data: bytes, level: int, *, size: bool, checksum: bool) -> bytes:
    return zstandard.ZstdCompressor(level=level, write_content_size=size, write_checksum=checksum).compress(data)


@given(plains=st.lists(st.binary(max_size=60), min_size=1, max_size=5), data=st.data())
def test_gzip_members_follow_each_other(plains, data):
    """RFC 1952 section 2.2, wherever the network cuts."""
    raw = b"".join(map(gzip.compress, plains))
    assert feed(data.draw(pieces(raw)), b"gzip") == (b"".join(plains), True)
    assert feed(bytewise(raw), b"gzip") == (b"".join(plains), True)
    assert feed([raw[:-1]], b"gzip")[1] is False


frames = st.one_of(
    st.just((b"", SKIPPED)),
    st.just((b"", EMPTY_SKIPPED)),
    st.builds(
        lambda data, level, size, checksum: (data, framed(data, level, size=size, checksum=checksum)),
        st.binary(max_size=60), st.sampled_from([-5, 1, 3, 19]), st.booleans(), st.booleans(),
    ),
)  # fmt: skip


@given(parts=st.lists(frames, min_size=1, max_size=5), data=st.data())
def test_zstd_frames_follow_each_other(parts, data):
    """RFC 8878 section 3, those to be skipped among them."""
    plain, raw = (b"".join(column) for column in zip(*parts, strict=True))
    assert feed(data.draw(pieces(raw)), b"zstd") == (plain, True)
    assert feed(bytewise(raw), b"zstd") == (plain, True)
    assert feed([raw[:-1]], b"zstd")[1] is False


@pytest.mark.parametrize("second", ["deflate", "gzip"])
def test_only_gzip_has_members(second):
    more = {"deflate": zlib.compress, "gzip": gzip.compress}[second](b"b")
    raw = zlib.compress(b"a") + more
    for cuts in ([raw], bytewise(raw), [raw[: -len(more)], more]):
        with pytest.raises(BadCoding):
            feed(cuts, b"deflate")


@pytest.mark.parametrize(
    ("coding", "junk"),
    [
        (b"gzip", b"\x1f\x8c"), (b"gzip", b"\x1e"), (b"gzip", b"\0" * 512), (b"zstd", b"\x28\xb5\x2f\xfe"),
        (b"zstd", b"\x28\xb6"), (b"zstd", b"\x50\x2a\x4e"), (b"zstd", b"\x60"), (b"zstd", b"\x4f"), (b"zstd", b"\0"),
    ],
)  # fmt: skip
def test_what_follows_an_end_is_a_beginning_or_refused(coding, junk):
    """As soon as it cannot become one."""
    raw = {b"gzip": gzip.compress, b"zstd": zstandard.compress}[coding](b"abc")
    for cuts in ([raw + junk], [raw, junk], bytewise(raw + junk)):
        with pytest.raises(BadCoding):
            feed(cuts, coding)


@pytest.mark.parametrize(
    ("coding", "half"), [(b"gzip", b"\x1f"), (b"gzip", b"\x1f\x8b"), (b"zstd", b"\x28\xb5\x2f"), (b"zstd", b"\x50"), (b"zstd", SKIPPED[:-1])]
)  # fmt: skip
def test_a_beginning_without_its_end_is_not_whole(coding, half):
    raw = {b"gzip": gzip.compress, b"zstd": zstandard.compress}[coding](b"abc")
    for cuts in ([raw + half], [raw, half], bytewise(raw + half)):
        assert feed(cuts, coding) == (b"abc", False)


MIXED = random.Random(1).randbytes(200_000) + b"a" * 700_000 + b"".join(b"%d," % n for n in range(100_000))
"""Raw, repeated and packed blocks, each kind several times."""


@pytest.mark.parametrize("level", [-10, 1, 3, 9, 19])
@pytest.mark.parametrize("checksum", [False, True])
def test_large_bodies_of_every_kind_of_block_come_back(level, checksum):
    """No byte stays behind in the library, whatever the cuts."""
    raw = framed(MIXED, level, size=False, checksum=checksum)
    for step in (len(raw), 100_000, 8192, 1009):
        decoder = Decoder([b"zstd"], len(MIXED))
        plain = b"".join([decoder.feed(raw[i : i + step]) for i in range(0, len(raw), step)])
        assert decoder.whole
        assert plain == MIXED


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br"])
def test_large_bodies_come_back(coding):
    raw = {b"gzip": gzip.compress, b"deflate": zlib.compress, b"br": lambda d: brotli.compress(d, quality=5)}[coding](
        MIXED
    )
    for step in (len(raw), 100_000, 8192, 1009):
        decoder = Decoder([coding], len(MIXED))
        plain = b"".join([decoder.feed(raw[i : i + step]) for i in range(0, len(raw), step)])
        assert decoder.whole
        assert plain == MIXED


def windowed(log: int, data: bytes = b"abc" * 5000) -> bytes:
    """A frame that needs a window of 2**log bytes, as it says."""
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=log)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    raw = packer.compress(data) + packer.flush()
    assert zstandard.get_frame_parameters(raw).window_size == 2**log
    return raw


@pytest.mark.parametrize(("log", "taken"), [(10, True), (20, True), (23, True), (24, False), (27, False), (30, False)])
def test_a_frame_that_needs_a_large_window_is_refused(log, taken):
    """RFC 9659: 8 MiB and no more, at its head and not when it has been filled."""
    raw = windowed(log)
    if taken:
        assert feed([raw], b"zstd") == feed(bytewise(raw), b"zstd") == (b"abc" * 5000, True)
        return
    with pytest.raises(BadCoding):
        feed([raw], b"zstd")
    with pytest.raises(BadCoding):
        feed(bytewise(raw[:18]), b"zstd")


@pytest.mark.parametrize(("size", "taken"), [(8 * MiB, True), (8 * MiB + 1, False)])
def test_a_frame_in_one_segment_needs_its_size_as_window(size, taken):
    raw = zstandard.ZstdCompressor(level=22).compress(b"a" * size)
    assert zstandard.get_frame_parameters(raw).window_size == size
    if taken:
        assert feed([raw], b"zstd") == (b"a" * size, True)
    else:
        with pytest.raises(BadCoding):
            feed([raw], b"zstd")


def block(kind: int, size: int, body: bytes, *, last: bool) -> bytes:
    return (size << 3 | kind << 1 | last).to_bytes(3, "little") + body


HEAD = b"\x28\xb5\x2f\xfd\0\x58"
END = block(0, 0, b"", last=True)


def test_frames_by_hand_are_good_ones():
    """So that what follows is refused for what is wrong with it."""
    assert feed([HEAD + END], b"zstd") == (b"", True)
    assert feed([HEAD + block(0, 2, b"ab", last=False) + block(1, 3, b"c", last=True)], b"zstd") == (b"abccc", True)
    assert feed([HEAD + block(1, 128 * 1024, b"c", last=False) + END], b"zstd") == (b"c" * 128 * 1024, True)


BAD_FRAMES = {
    "a block of the kind to come": HEAD + block(3, 5, b"abcde", last=False) + END,
    "a block that is too large": HEAD + block(0, 128 * 1024 + 1, b"a" * (128 * 1024 + 1), last=True),
    "a repeated block that is too large": HEAD + block(1, 2**21 - 1, b"a", last=True),
    "a block larger than the window": HEAD[:5] + b"\0" + block(1, 1025, b"a", last=True),
    "a packed block of junk": HEAD + block(2, 9, b"\xff" * 9, last=True),
    "a bit to come in the head": HEAD[:4] + b"\x08" + HEAD[5:] + END,
    "a dictionary": HEAD[:4] + b"\x01\x58\x05" + END,
    "a dictionary with a long name": HEAD[:4] + b"\x03\x58\x05\0\0\x01" + END,
    "another size than it says": HEAD[:4] + b"\x20\x05" + block(0, 2, b"ab", last=True),
    "a wrong checksum": HEAD[:4] + b"\x04\x58" + END + b"abcd",
    "a frame of the past": b"\x27\xb5\x2f\xfd" + HEAD[4:] + END,
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_bad_frames_are_refused(name):
    for cuts in ([BAD_FRAMES[name]], bytewise(BAD_FRAMES[name])):
        with pytest.raises(BadCoding):
            feed(cuts, b"zstd")


def test_what_is_skipped_is_not_held_and_not_counted():
    """A frame without content may be of any length."""
    decoder = Decoder([b"zstd"], 3)
    assert decoder.feed(b"\x51\x2a\x4d\x18" + (50 * MiB).to_bytes(4, "little")) == b""
    for _ in range(50):
        assert decoder.feed(b"x" * MiB) == b""
        assert len(decoder._steps[0]._packed) == 0
    assert decoder.whole
    assert decoder.feed(zstandard.compress(b"abc")) == b"abc"
    assert decoder.whole


@pytest.mark.parametrize(
    ("coding", "unit"),
    [(b"gzip", gzip.compress(b"a", mtime=0)), (b"zstd", zstandard.compress(b"a")), (b"zstd", HEAD + END)],
    ids=["gzip", "zstd", "zstd of nothing"],
)
def test_a_flood_of_small_parts_costs_no_more_than_its_length(coding, unit):
    """Twenty thousand of them, at once; squared that would be minutes."""
    assert len(unpack(unit * 20_000, [coding], 20_000)) in (0, 20_000)
    with pytest.raises(TooLarge):
        unpack(gzip.compress(b"a") * 20_000, [b"gzip"], 19_999)
