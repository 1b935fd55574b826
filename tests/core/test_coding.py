"""Content codings come off whatever the cuts, within the limit, and only if their own end was seen."""

import gzip
import itertools
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.coding import UNDERSTOOD, BadCoding, Decoder, TooLarge, pack, pack_all, plain_after, unpack
from tests.core.shapes import bytewise, pieces

PLAIN = b'{"choices": [{"text": "Hello, \xe6\xbc\xa2"}]}' * 20


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def checked(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=5, write_checksum=True).compress(data)


# The real libraries, not ours: what other programs send.
PACKERS = {
    b"gzip": gzip.compress, b"x-gzip": gzip.compress, b"deflate": zlib.compress, b"br": brotli.compress,
    b"zstd": checked,
}  # fmt: skip
CODINGS = [b"gzip", b"deflate", b"br", b"zstd"]
STACKS = [[b"gzip"], [b"x-gzip"], [b"deflate"], [b"br"], [b"zstd"], *map(list, itertools.product(CODINGS, CODINGS))]
CHECKED = [b"gzip", b"deflate", b"zstd"]


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
        with pytest.raises(BadCoding):
            unpack(raw[:i], codings, 2**20)
    assert unpacked([raw], codings) == (PLAIN, True)
    decoder = Decoder(codings, 2**20)
    for data in bytewise(raw):
        assert not decoder.whole
        decoder.feed(data)
    assert decoder.whole


@pytest.mark.parametrize("codings", STACKS)
@pytest.mark.parametrize("junk", [b"x", b"\0", b"\r\n", b"{}" * 10])
def test_bytes_after_the_end_are_refused(codings, junk):
    """What one reader takes for the end another may not."""
    raw = packed(PLAIN, codings)
    for cuts in ([raw + junk], [raw, junk], bytewise(raw + junk)):
        with pytest.raises(BadCoding):
            unpacked(cuts, codings)
    with pytest.raises(BadCoding):
        unpack(raw + junk, codings, 2**20)


# Formats without a mark at their beginning may be met by chance; then the libraries must say the same.
REFERENCES = {b"deflate": lambda data: zlib.decompress(data, -15), b"br": brotli.decompress}


@pytest.mark.parametrize("coding", CODINGS)
@given(junk=st.binary(min_size=1, max_size=30), data=st.data())
def test_other_bytes_are_refused_or_never_whole(coding, junk, data):
    cuts = data.draw(pieces(b"{" + junk))
    try:
        plain, whole = unpacked(cuts, [coding])
    except BadCoding:
        return
    assert not whole or plain == REFERENCES[coding](b"{" + junk)


@pytest.mark.parametrize("coding", CHECKED)
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
    if plain is None:
        for refused in (lambda: Decoder(codings, 99), lambda: unpack(b"", codings, 99), lambda: pack_all(b"", codings)):
            with pytest.raises(BadCoding):
                refused()


def test_the_set_of_what_is_understood_is_what_decodes():
    assert {c for c in [*PACKERS, b"compress", b"rot13", b""] if plain_after([c]) is False} == UNDERSTOOD


@given(plain=st.binary(max_size=300), codings=st.sampled_from(STACKS))
def test_what_we_pack_others_unpack(plain, codings):
    """And what we unpack whole is what was packed."""
    theirs = pack_all(plain, codings)
    assert unpack(theirs, codings, len(plain)) == plain
    for coding in reversed(codings):
        theirs = THEIRS[coding](theirs)
    assert theirs == plain
    assert unpack(packed(plain, codings), codings, len(plain)) == plain


THEIRS = {
    b"gzip": gzip.decompress, b"x-gzip": gzip.decompress, b"deflate": zlib.decompress, b"br": brotli.decompress,
    b"zstd": zstandard.ZstdDecompressor().decompress,
}  # fmt: skip


@pytest.mark.parametrize("coding", PACKERS)
def test_packing_makes_less_of_it_and_always_the_same(coding):
    one = pack(PLAIN, coding)
    assert len(one) < len(PLAIN) / 5
    assert pack(PLAIN, coding) == one
    if coding in (b"gzip", b"x-gzip"):
        assert one[4:8] == b"\0" * 4, "no time in it"


@pytest.mark.parametrize("coding", [b"rot13", b"", b"GZIP"])
def test_packing_into_what_is_not_understood_is_refused(coding):
    with pytest.raises(BadCoding):
        pack(b"x", coding)


def test_without_a_coding_the_bytes_stay():
    for codings in ([], [b"identity"]):
        assert unpack(PLAIN, codings, len(PLAIN)) == PLAIN == pack_all(PLAIN, codings)
        assert unpacked([b"a", b"b"], codings) == (b"ab", True)
        with pytest.raises(TooLarge):
            unpack(PLAIN, codings, len(PLAIN) - 1)


@pytest.mark.parametrize("codings", STACKS)
def test_no_bytes_are_not_a_body(codings):
    """Each coding has something to say even of nothing."""
    assert unpacked([], codings) == unpacked([b""], codings) == unpacked([b"", b""], codings) == (b"", False)
    with pytest.raises(BadCoding):
        unpack(b"", codings, 99)
    assert unpack(packed(b"", codings), codings, 0) == b""


@pytest.mark.parametrize(("said", "is_"), list(itertools.permutations(CODINGS, 2)))
def test_another_coding_than_was_said_is_refused(said, is_):
    """At once, or because it has no end: a gzip header's time may look like the beginning of something else."""
    raw = PACKERS[is_](PLAIN)
    with pytest.raises(BadCoding):
        unpack(raw, [said], 2**20)
    for cuts in ([raw], bytewise(raw)):
        try:
            _, whole = unpacked(cuts, [said])
        except BadCoding:
            whole = False
        assert not whole


@pytest.mark.parametrize("coding", CODINGS)
def test_what_was_given_up_stays_given_up(coding):
    """A caller that goes on after an error is not told that the rest is whole."""
    for bad in (b"junk junk junk", PACKERS[coding](PLAIN) + b"x"):
        decoder = Decoder([coding], 2**20)
        with pytest.raises(BadCoding):
            decoder.feed(bad)
        assert not decoder.whole
        for more in (PACKERS[coding](PLAIN), b""):
            with pytest.raises(BadCoding):
                decoder.feed(more)
            assert not decoder.whole


@pytest.mark.parametrize("coding", CODINGS)
def test_what_is_flushed_comes_out_at_once(coding):
    """A stream's event is not held back until the next one comes."""
    flush = {
        b"gzip": zlib.compressobj(wbits=31), b"deflate": zlib.compressobj(), b"zstd": zstandard.ZstdCompressor().compressobj(),
    }  # fmt: skip
    if coding == b"br":
        packer = brotli.Compressor()
        send = lambda data: packer.process(data) + packer.flush()  # noqa: E731
    elif coding == b"zstd":
        packer = flush[coding]
        send = lambda data: packer.compress(data) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)  # noqa: E731
    else:
        packer = flush[coding]
        send = lambda data: packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)  # noqa: E731
    decoder = Decoder([coding], 2**20)
    for n in range(50):
        event = b"data: %d\n\n" % n
        assert decoder.feed(send(event)) == event
        assert not decoder.whole
    decoder.feed(packer.finish() if coding == b"br" else packer.flush())
    assert decoder.whole
