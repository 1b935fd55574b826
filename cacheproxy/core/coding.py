"""Content codings (RFC 9110 section 8.4): taken off piece by piece within a limit, put on, and chosen for an answer.

Law: no more than the limit and one piece (32 KiB; for zstd a block of 128 KiB) is ever unpacked, whatever the bytes
say; a body counts as whole only when each of its codings has shown its own end and nothing follows. Work grows with
the bytes given and taken, never with their product. Nothing here outlives the call or the `Decoder` it belongs to, so
any thread may use it.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import brotli  # type: ignore[import-untyped]
import zstandard

_PIECE = 32 * 1024
"""Bytes that a coding gives at once."""
_SLICE = 4 * 1024
"""Bytes that a library is given at once. Each copies what it has not used yet, so small slices keep a body of many
tiny members, or of much from little, from costing its length squared."""
_SLACK = 64 * 1024
"""Bytes by which the packed form between two codings may be larger than the plain form may be."""
_MOST_CODINGS = 2


class BadCoding(Exception):
    """The bytes are not of the coding they claim, or unpack to more than is allowed."""


class TooLarge(BadCoding):
    """The bytes unpack to more than is allowed."""


class Decoder:
    """Unpacks a body piece by piece, to at most `limit` bytes in all. `codings` in the order they were applied.

    Raises `BadCoding` for codings that are not understood.
    """

    def __init__(self, codings: Sequence[bytes], limit: int) -> None:
        if plain_after(codings) is None:
            raise BadCoding("not understood")
        order = _real(codings)[::-1]
        self._steps = [_Step(coding, limit + _SLACK) for coding in order[:-1]]
        self._steps += [_Step(coding, limit) for coding in order[-1:]]
        self._sound = True

    def feed(self, data: bytes) -> bytes:
        """The plain bytes that `data` gives. Raises `BadCoding`, and from then on always."""
        if not self._sound:
            raise BadCoding("already given up")
        self._sound = False
        pieces: Iterable[bytes] = (data,)
        for step in self._steps:
            pieces = step.unpack(pieces)
        plain = b"".join(pieces)
        self._sound = True
        return plain

    @property
    def whole(self) -> bool:
        """Every coding's own end has been seen, and nothing after it."""
        return self._sound and all(step.ended for step in self._steps)


class _Step:
    """One coding that is taken off, to at most `limit` bytes."""

    def __init__(self, coding: bytes, limit: int) -> None:
        self._packed = bytearray()
        self._parts = _READERS[coding](self._packed)
        self._left = limit
        self.ended = False

    def unpack(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._packed += piece
            try:
                # An empty piece could only be taken for the end of an empty body.
                yield from self._plain() if piece else ()
            except (zlib.error, brotli.error, zstandard.ZstdError) as error:
                raise BadCoding(str(error)) from None

    def _plain(self) -> Iterator[bytes]:
        for part in self._parts:
            if isinstance(part, bool):
                self.ended = part
                return
            self._left -= len(part)
            if self._left < 0:
                raise TooLarge("larger than allowed")
            if part:
                yield part


# A reader takes what it can off the front of `packed`, without end, and gives the plain bytes piece by piece. In
# between, when it needs more, it gives a bool: True if the body may end here. It raises `BadCoding` or what its library
# raises.
_Reader = Iterator[bytes | bool]


def _read_gzip(packed: bytearray) -> _Reader:
    # A body may have several members (RFC 1952 section 2.2). Their first byte is looked at here because zlib says
    # nothing before it has two.
    ended = False
    while True:
        while not packed:
            yield ended
        if packed[0] != 0x1F:
            raise BadCoding("no member begins here")
        yield from _inflate(packed, zlib.MAX_WBITS + 16)
        ended = True


def _read_deflate(packed: bytearray) -> _Reader:
    # By name the zlib format (RFC 9110 section 8.4.1.2); some servers send it bare. Its first two bytes tell.
    while len(packed) < 2:
        yield False
    framed = packed[0] & 0x0F == 8 and int.from_bytes(packed[:2], "big") % 31 == 0
    yield from _inflate(packed, zlib.MAX_WBITS if framed else -zlib.MAX_WBITS)
    while not packed:
        yield True
    raise BadCoding("bytes after the end")


def _inflate(packed: bytearray, wbits: int) -> _Reader:
    library = zlib.decompressobj(wbits)
    full = False
    while not library.eof:
        # Behind a full piece there may be more, even when all that came is used.
        while not packed and not full:
            yield False
        data = bytes(packed[:_SLICE])
        plain = library.decompress(data, _PIECE)
        del packed[: len(data) - len(library.unconsumed_tail) - len(library.unused_data)]
        full = len(plain) == _PIECE
        yield plain


def _read_brotli(packed: bytearray) -> _Reader:
    # RFC 7932. The library gives up to 32 KiB when told 16; it refuses bytes after the end by itself.
    library = brotli.Decompressor()
    while True:
        data = b""
        if library.can_accept_more_data():
            while not packed:
                # What it was given may be used up while some of what that gives is still inside.
                rest = b"" if library.is_finished() else library.process(b"", output_buffer_limit=_PIECE // 2)
                yield rest or bool(library.is_finished())
            data = bytes(packed[:_SLICE])
            del packed[:_SLICE]
        yield library.process(data, output_buffer_limit=_PIECE // 2)


_FRAME, _SKIPPED = b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18"
"""How a frame begins, and how one without content does after its first byte (0x50 to 0x5f)."""
_LARGEST_BLOCK = 128 * 1024
_WRITTEN = 64 * 1024
"""Bytes of room that the library sets aside for each part, and again when they are full: measured."""
_LARGEST_WINDOW = 8 * 1024 * 1024
"""RFC 9659 section 3: more than this a frame must not need."""


def _read_zstd(packed: bytearray) -> _Reader:
    # RFC 8878. The library cannot be told how much to give, so it is fed part by part: a block gives 128 KiB at most.
    # Only the lengths of the parts are read here; what is in them, and the window they need, is judged by the library.
    library = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
    ended = False
    while True:
        while len(packed) < 8 and _begins_frame(packed):
            yield ended and not packed
        if not _begins_frame(packed[:4]):
            raise BadCoding("no frame begins here")
        if packed[0] == _FRAME[0]:
            yield from _unpack_frame(packed, library.decompressobj(write_size=_WRITTEN))
        else:
            yield from _skip(packed, 8 + int.from_bytes(packed[4:8], "little"))
        ended = True


def _begins_frame(packed: bytearray) -> bool:
    """Whether this is or may become the beginning of a frame. The shortest frame has eight bytes."""
    if packed[:1] and packed[0] >> 4 == 5:
        return _SKIPPED.startswith(packed[1:4])
    return _FRAME.startswith(packed[:4])


def _skip(packed: bytearray, length: int) -> _Reader:
    while length > len(packed):
        length -= len(packed)
        packed.clear()
        yield False
    del packed[:length]


def _unpack_frame(packed: bytearray, library: "zstandard.ZstdDecompressionObj") -> _Reader:
    checksum_bytes = packed[4] & 4
    length = zstandard.frame_header_size(packed[:8])
    last = 0
    while length:
        while len(packed) < length:
            yield False
        yield library.decompress(packed[:length])
        del packed[:length]
        if last:
            length, checksum_bytes = checksum_bytes, 0
            continue
        while len(packed) < 3:
            yield False
        word = int.from_bytes(packed[:3], "little")
        last, kind, size = word & 1, word >> 1 & 3, word >> 3
        if size > _LARGEST_BLOCK:
            raise BadCoding("no block begins here")
        # Of a block of the first type only the byte is there that it repeats.
        length = 3 + (1 if kind == 1 else size)
    if not library.eof:
        raise BadCoding("the frame does not end where it says")


_READERS = {b"gzip": _read_gzip, b"deflate": _read_deflate, b"br": _read_brotli, b"zstd": _read_zstd}
UNDERSTOOD = frozenset({*_READERS, b"x-gzip"})


def plain_after(codings: Sequence[bytes]) -> bool | None:
    """True: no coding. False: codings that `Decoder` understands. None: others, or more than two."""
    real = _real(codings)
    if not real:
        return True
    return False if len(real) <= _MOST_CODINGS and all(c in _READERS for c in real) else None


def _real(codings: Sequence[bytes]) -> list[bytes]:
    """Without those that change nothing, and by the names of today (RFC 9110 section 8.4.1.3)."""
    return [b"gzip" if c == b"x-gzip" else c for c in codings if c != b"identity"]


def unpack(data: bytes, codings: Sequence[bytes], limit: int) -> bytes:
    """The plain form of a whole body; `codings` in the order they were applied.

    Raises `TooLarge` if that is more than `limit` bytes, `BadCoding` if `data` is anything but one whole body of these
    codings.
    """
    if not _real(codings) and len(data) > limit:
        raise TooLarge("larger than allowed")
    decoder = Decoder(codings, limit)
    plain = decoder.feed(data)
    if not decoder.whole:
        raise BadCoding("incomplete")
    return plain


# Levels: measured on answers of 1 to 50 kB, each within twice the time of the fastest one. The time of the gzip header
# is left zero, so that one body has one packed form.
_PACKERS: dict[bytes, Callable[[bytes], bytes]] = {
    b"gzip": lambda data: zlib.compress(data, 1, zlib.MAX_WBITS + 16),
    b"deflate": lambda data: zlib.compress(data, 1),
    b"br": lambda data: brotli.compress(data, quality=1, lgwin=18),
    b"zstd": lambda data: zstandard.ZstdCompressor(level=1).compress(data),
}


def pack(data: bytes, coding: bytes) -> bytes:
    """`data` in `coding`, quickly rather than small. Raises `BadCoding` for one that is not understood."""
    return pack_all(data, (coding,))


def pack_all(data: bytes, codings: Sequence[bytes]) -> bytes:
    """`data` in several codings, applied in this order. Raises `BadCoding` if `Decoder` would not understand them."""
    if plain_after(codings) is None:
        raise BadCoding("not understood")
    for coding in _real(codings):
        data = _PACKERS[coding](data)
    return data


_PREFERRED = (b"zstd", b"br", b"gzip", b"deflate")
_WEIGHT = re.compile(rb"[ \t]*q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")


def choose(accept_encoding_fields: Sequence[bytes]) -> bytes | None:
    """The coding to answer with, by the values of all ``Accept-Encoding`` lines (RFC 9110 section 12.5.3).

    None: the plain form, because the client weighs it higher than every coding of ours, accepts none of them or says
    nothing. Of a coding named twice the first weight counts; one that cannot be read is zero.
    """
    weights: dict[bytes, float] = {}
    for member in b",".join(accept_encoding_fields).lower().split(b","):
        name, mark, parameter = member.strip(b" \t").partition(b";")
        name = name.rstrip(b" \t")
        weight = _WEIGHT.fullmatch(parameter) if mark else None
        value = float(weight[1]) if weight else 0.0 if mark else 1.0
        weights.setdefault(b"gzip" if name == b"x-gzip" else name, value)
    others = weights.get(b"*", 0.0)
    best = max(_PREFERRED, key=lambda coding: weights.get(coding, others))
    weighed = weights.get(best, others)
    return best if weighed > 0 and weighed >= weights.get(b"identity", others) else None
