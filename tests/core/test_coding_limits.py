"""What is packed small and unpacks large is given up before it takes room."""

import functools
import gzip
import itertools
import random
import tracemalloc
import zlib

import brotli
import pytest
import zstandard

from cacheproxy.core.coding import Decoder, TooLarge, unpack
from tests.core.shapes import bytewise

KiB, MiB = 2**10, 2**20
ZEROS = b"\0" * 10 * MiB
PACKERS = {
    b"gzip": gzip.compress, b"deflate": zlib.compress, b"br": lambda data: brotli.compress(data, quality=5),
    b"zstd": zstandard.compress,
}  # fmt: skip
STACKS = [[c] for c in PACKERS] + [list(pair) for pair in itertools.product(PACKERS, PACKERS)]


def packed(data: bytes, codings: list[bytes]) -> bytes:
    for coding in codings:
        data = PACKERS[coding](data)
    return data


@functools.cache
def bomb_of(*codings: bytes) -> bytes:
    return packed(ZEROS, list(codings))


def peak(call) -> int:
    """Bytes that Python held at most while `call` raised `TooLarge`."""
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codings", STACKS)
def test_a_bomb_is_given_up_within_its_limit(codings):
    """B78: 10 MiB from little, 1 MiB allowed. Above it: one piece, twice while it moves."""
    bomb = bomb_of(*codings)
    assert len(bomb) < 11_000
    assert peak(lambda: unpack(bomb, codings, MiB)) < MiB + 256 * KiB


@pytest.mark.parametrize("codings", STACKS)
def test_a_bomb_that_comes_in_pieces_is_given_up_too(codings):
    """B78: the limit is for all pieces together."""
    decoder, given = Decoder(codings, MiB), 0
    with pytest.raises(TooLarge):
        for data in bytewise(bomb_of(*codings)):
            given += len(decoder.feed(data))
    assert given <= MiB
    assert not decoder.whole


@pytest.mark.parametrize("coding", PACKERS)
def test_a_bomb_with_no_room_at_all_takes_none(coding):
    """Nothing is allowed: what is unpacked is one piece."""
    bomb = bomb_of(coding)
    assert peak(lambda: unpack(bomb, [coding], 0)) < 256 * KiB


# Much that holds nothing: 3 MiB of each, and whole.
HOLLOW = {
    b"gzip": gzip.compress(b"", mtime=0) * (3 * MiB // 20),
    b"deflate": b"\0\0\0\xff\xff" * (3 * MiB // 5) + b"\1\0\0\xff\xff",
    b"zstd": b"\x50\x2a\x4d\x18" + (3 * MiB).to_bytes(4, "little") + ZEROS[: 3 * MiB],
}


@pytest.mark.parametrize("inner", HOLLOW)
def test_what_lies_between_two_codings_is_bounded_too(inner):
    """Or a little would cost the time of much, without ever coming to the limit of the plain form."""
    bomb = gzip.compress(HOLLOW[inner])
    assert len(bomb) < 20_000
    assert unpack(bomb, [inner, b"gzip"], 3 * MiB) == b""
    assert peak(lambda: unpack(bomb, [inner, b"gzip"], MiB)) < 256 * KiB


@pytest.mark.parametrize("codings", STACKS)
@pytest.mark.parametrize("size", [0, 1, 1000, 200_000])
def test_a_limit_is_met_to_the_byte(codings, size):
    """Also by bytes that cannot be packed, whose packed form is larger than they are."""
    plain = random.Random(size).randbytes(size)
    raw = packed(plain, codings)
    assert unpack(raw, codings, size) == plain
    if size:
        with pytest.raises(TooLarge):
            unpack(raw, codings, size - 1)
