"""Content codings come off whatever the cuts, within the limit, and only if their own end was seen."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.coding import BadCoding, Decoder, plain_after
from tests.core.shapes import bytewise, pieces

PLAIN = b'{"choices": [{"text": "Hello, \xe6\xbc\xa2"}]}' * 20


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKERS = {b"gzip": gzip.compress, b"x-gzip": gzip.compress, b"deflate": zlib.compress}
STACKS = [[b"gzip"], [b"deflate"], [b"x-gzip"], [b"gzip", b"deflate"], [b"deflate", b"gzip"], [b"gzip", b"gzip"]]


def packed(data: bytes, codings: list[bytes]) -> bytes:
    for coding in codings:
        data = PACKERS[coding](data)
    return data


def unpacked(cuts: list[bytes], codings: list[bytes], limit: int = 2**20) -> tuple[bytes, bool]:
    decoder = Decoder(codings, limit)
    return b"".join([decoder.feed(data) for data in cuts]), decoder.whole


@pytest.mark.parametrize("codings", STACKS)
@given(plain=st.binary(max_size=200), data=st.data())
def test_what_was_packed_comes_back(codings, plain, data):
    """B41: in any cuts, stacked codings taken off in the right order."""
    cuts = data.draw(pieces(packed(plain, codings)))
    assert unpacked([*cuts, b""], codings) == (plain, True)


@pytest.mark.parametrize("plain", [b"", b"K", b"abc", PLAIN, bytes(range(256)) * 40])
def test_bare_deflate_is_understood(plain):
    """Some servers send "deflate" without its frame (RFC 9110 section 8.4.1.2), and networks cut anywhere."""
    raw = bare(plain)
    assert unpacked([raw], [b"deflate"]) == (plain, True)
    assert unpacked([raw[:2], raw[2:]], [b"deflate"]) == (plain, True)
    assert unpacked(bytewise(raw), [b"deflate"]) == (plain, True)


@pytest.mark.parametrize("codings", STACKS)
def test_a_body_that_breaks_off_is_not_whole(codings):
    """B15: its own framing said it was the end; its coding did not."""
    raw = packed(PLAIN, codings)
    for i in range(len(raw)):
        assert unpacked([raw[:i]], codings)[1] is False
    assert unpacked([raw], codings) == (PLAIN, True)


@pytest.mark.parametrize("codings", STACKS)
def test_a_limit_is_a_limit(codings):
    """B78: a small body that unpacks to a large one is given up, whole or in pieces."""
    large = packed(b"\0" * 5_000_000, codings)
    assert len(large) < 10_000
    for cuts in ([large], bytewise(large)):
        with pytest.raises(BadCoding):
            unpacked(cuts, codings, limit=1_000_000)


@pytest.mark.parametrize("coding", PACKERS)
def test_a_limit_is_met_to_the_byte(coding):
    raw = packed(PLAIN, [coding])
    for cuts in ([raw], bytewise(raw)):
        assert unpacked(cuts, [coding], limit=len(PLAIN)) == (PLAIN, True)
        with pytest.raises(BadCoding):
            unpacked(cuts, [coding], limit=len(PLAIN) - 1)


@pytest.mark.parametrize("codings", STACKS)
@pytest.mark.parametrize("junk", [b"x", b"\0", b"\r\n", b"{}" * 10])
def test_bytes_after_the_end_are_refused(codings, junk):
    """What one reader takes for the end another may not."""
    raw = packed(PLAIN, codings)
    for cuts in ([raw + junk], [raw, junk], bytewise(raw + junk)):
        with pytest.raises(BadCoding):
            unpacked(cuts, codings)


@pytest.mark.parametrize("coding", [b"gzip", b"deflate"])
@given(junk=st.binary(min_size=1, max_size=30), data=st.data())
def test_other_bytes_are_refused_or_never_whole(coding, junk, data):
    cuts = data.draw(pieces(b"{" + junk))
    try:
        plain, whole = unpacked(cuts, [coding])
    except BadCoding:
        return
    assert not whole or (coding == b"deflate" and zlib.decompressobj(wbits=-15).decompress(b"{" + junk) == plain)


@pytest.mark.parametrize("coding", [b"gzip", b"deflate"])
def test_damage_is_never_taken_for_the_whole(coding):
    """Checksums of the codings count."""
    raw = packed(PLAIN, [coding])
    for i in range(2, len(raw)):
        broken = raw[:i] + bytes([raw[i] ^ 0x55]) + raw[i + 1 :]
        try:
            told = unpacked([broken], [coding])
        except BadCoding:
            continue
        assert told == (PLAIN, True) or not told[1]


@pytest.mark.parametrize(
    ("codings", "plain"),
    [
        ([], True), ([b"identity"], True), ([b"identity", b"identity"], True), ([b"gzip"], False), ([b"x-gzip"], False),
        ([b"deflate"], False), ([b"gzip", b"gzip"], False), ([b"identity", b"gzip"], False), ([b"br"], False),
        ([b"zstd"], False),
        ([b"gzip", b"br"], False), ([b"gzip", b"lz4"], None), ([b"gzip"] * 3, None), ([b"gzip", b"identity", b"x"], None),
    ],
)  # fmt: skip
def test_which_codings_are_understood(codings, plain):
    """B41: an unknown coding passes as it is and is not kept."""
    assert plain_after(codings) is plain
