"""Content codings of bodies that pass: gzip and deflate are understood, others are not and then nothing is kept."""

import zlib
from collections.abc import Sequence


class BadCoding(Exception):
    """The bytes are not of the coding they claim, or unpack to more than is allowed."""


class Decoder:
    """Unpacks a body piece by piece, to at most `limit` bytes in all. `codings` in the order they were applied."""

    def __init__(self, codings: Sequence[bytes], limit: int) -> None:
        self._steps = [_Step(coding) for coding in reversed(codings)]
        self._left = limit

    def feed(self, data: bytes) -> bytes:
        """The plain bytes that `data` gives. Raises `BadCoding`."""
        for step in self._steps:
            data = step.feed(data, self._left)
        self._left -= len(data)
        return data

    @property
    def whole(self) -> bool:
        """Every coding's own end has been seen."""
        return all(step.ended for step in self._steps)


_GZIP = b"\x1f\x8b"


class _Step:
    def __init__(self, coding: bytes) -> None:
        # "deflate" is meant to be the zlib format (RFC 9110 section 8.4.1.2); some servers send it bare. Its first
        # two bytes tell.
        self._head: bytes | None = b"" if coding == b"deflate" else None
        self._inflate = zlib.decompressobj(wbits=31)

    def feed(self, data: bytes, limit: int) -> bytes:
        if self._head is not None:
            data = self._head + data
            if len(data) < 2:
                self._head = data
                return b""
            is_zlib = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._inflate = zlib.decompressobj(wbits=15 if is_zlib else -15)
            self._head = None
        if not data:
            return b""
        try:
            plain = self._inflate.decompress(data, limit + 1)
            while self._inflate.eof and self._inflate.unused_data.startswith(_GZIP) and len(plain) <= limit:
                # A gzip body may have several members (RFC 1952 section 2.2).
                rest = self._inflate.unused_data
                self._inflate = zlib.decompressobj(wbits=31)
                plain += self._inflate.decompress(rest, limit + 1 - len(plain))
        except zlib.error as error:
            raise BadCoding(str(error)) from None
        if len(plain) > limit or self._inflate.unused_data:
            raise BadCoding("larger than allowed" if len(plain) > limit else "bytes after the end")
        return plain

    @property
    def ended(self) -> bool:
        return self._inflate.eof


UNDERSTOOD = frozenset({b"gzip", b"x-gzip", b"deflate"})


def plain_after(codings: Sequence[bytes]) -> bool | None:
    """True: no coding. False: codings that `Decoder` understands. None: others."""
    real = [c for c in codings if c != b"identity"]
    if not real:
        return True
    return False if len(real) <= 2 and all(c in UNDERSTOOD for c in real) else None
