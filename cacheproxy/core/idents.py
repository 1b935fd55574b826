"""The identifiers that a text says: those that name one request, session or moment and nothing a model could use. Pure.

One byte a character stands for the text while candidates are looked for, so that the searches run in C; every
candidate is then judged on the text itself, within a bounded window.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from cacheproxy.core import quoted
from cacheproxy.core.chunks import KEPT, REMEMBERED, chunks

Span = tuple[int, int]

_LONGEST = 256
"""No labelled value is longer, in characters."""
_KINDS = bytes(
    ord("a") if chr(byte).isascii() and chr(byte).isalnum() else ord("-") if byte in b"-_" else ord(" ")
    for byte in range(256)
)
"""Letters and digits become ``a``, ``-`` and ``_`` become ``-``, the rest a space."""
_LOWERED = bytes(ord("-") if byte == ord("_") else ord(chr(byte).lower()) if byte < 128 else 63 for byte in range(256))
"""Small letters, ``-`` for ``_``, ``?`` for what is not ASCII."""
_RUN = re.compile(rb"a*+")
_SET_OFF = re.compile(rb"-(?:[0-9a-f]{12}|(?=[a-z]*+[0-9])[a-z0-9]{8})")
_EPOCH_LIKE = re.compile(rb"1[0-9]{9}")
_LABEL_LIKE = re.compile(rb"id[\"'`*-]{0,3}[ \t]{0,2}(?:[:=#>(]|is\b)")
_SESSION_LIKE = re.compile(rb"session[\"'`*-]{0,3}[ \t]{0,2}[:=#]")

_START, _END = r"(?<![\w.+/\\@$%&~-])", r"(?![\w/\\@%-]|[.:+~]\w)"
_HEX = "[0-9a-fA-F]"
_FIVE = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_UUID = re.compile(rf"{_START}(?i:urn:uuid:)?(?P<open>\{{)?{_FIVE}(?(open)\}}){_END}")
_TRACEPARENT = re.compile(rf"{_START}[0-9a-f]{{2}}-[0-9a-f]{{32}}-[0-9a-f]{{16}}-[0-9a-f]{{2}}{_END}")
_SIZES = "|".join(f"{_HEX}{{{size}}}" for size in (32, 40, 56, 64, 96, 128))
_DIGEST = re.compile(rf"{_START}(?=[a-fA-F]*+[0-9])(?=[0-9]*+[a-fA-F])(?:{_SIZES}){_END}")
_ULID = re.compile(rf"{_START}(?=[0-9]*+[A-Za-z])(?:[0-7][0-9A-HJKMNP-TV-Z]{{25}}|[0-7][0-9a-hjkmnp-tv-z]{{25}}){_END}")
_PREFIX = re.compile(
    rf"{_START}(?:(?:req|sess|run|trace|cmpl|chatcmpl)[_-]|(?:msg|thread|resp|conv|toolu)_)\Z", re.IGNORECASE
)
_BODY = re.compile(rf"(?:{_FIVE}|(?=[A-Za-z]*+[0-9])[A-Za-z0-9]{{8,64}}+(?:[-_][A-Za-z0-9]{{1,64}}+){{0,8}}+){_END}")
_EPOCH = re.compile(
    r"(?<![\w.,+/\\@$€£¥%&~#-])(?!1(?:0{9}|234567890))(?:1[0-9]{9}(?:\.[0-9]{3,9})?+|1[0-9]{12}|1[0-9]{15})"
    r"(?![\w/\\@%$€£¥-]|[.,:+~]\w|[ \t](?:bytes|tokens|characters|users|people|items|dollars|euros|USD|EUR)\b)"
)
_TELEPHONE = re.compile(
    r"(?:\+[0-9]{1,4}[ \t]|\b(?:tel|telephone|phone|fax|mobile|cell|call|dial|whatsapp|hotline|sms)\b[^\n0-9]{0,16})\Z",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?<![^\W_])(?:user[ _-]?)?(?:request|req|session|sess|trace|conversation|conv|correlation|span|run|thread|message"
    r"|msg|chat|transaction|invocation|interaction|execution|completion|response)[ _-]?(?:uu|gu)?\Z",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[ \t'*(<\[]{0,4}(?P<value>[A-Za-z0-9][A-Za-z0-9_+/=.:@~-]{0,255}+)", re.ASCII)
_DESCRIPTION = re.compile(
    r"v[0-9]+|(?:uuid|guid|ulid)(?:-?v?[0-9])?|sha-?[0-9]+|md5|base-?[0-9]+|rfc-?[0-9]+|u?int-?[0-9]+|utf-?[0-9]+"
    r"|[0-9]+-(?:char|digit|bit|byte|hex|letter|symbol).*",
    re.IGNORECASE,
)
_RANDOM = re.compile(r"(?:[a-f]{8,}|[A-F]{8,}|(?=.{8})(?:[^a-z]*+[a-z]++[A-Z]){3}.*|.{7,}=)")
_ADDRESS = re.compile(r"://\S*+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z")


def idents(text: str) -> list[Span]:
    """The places of the identifiers in `text` (half-open, in characters), sorted and disjoint.

    Those that `quoted` says are only shown, and those within an address (``scheme://…``) are left out.
    """
    apart: list[Span] = []
    for at, chunk in chunks(text):
        for first, last in _remembered(chunk) if len(chunk) <= KEPT else _said(chunk):
            start, end = at + first, at + last
            if (not apart or start >= apart[-1][1]) and not quoted.announced(text, start):
                apart.append((start, end))
    return quoted.outside(text, apart, lambda span: span)


def _said(chunk: str) -> list[Span]:
    """The identifiers in whole lines, also those that are only shown, and overlapping ones, but none within an address.
    What one is is decided by its line alone."""
    bytewise = chunk.encode("latin-1", "replace")
    kinds, lowered = bytewise.translate(_KINDS), bytewise.translate(_LOWERED)
    found = [*_long(chunk, kinds), *_set_off(chunk, lowered), *_epochs(chunk, bytewise), *_labelled(chunk, lowered)]
    if not found:
        return []
    addresses = list(_addresses(chunk))
    outside = [span for span in found if not quoted.touches(addresses, *span)]
    return sorted(outside, key=lambda span: (span[0], -span[1]))


_remembered = lru_cache(REMEMBERED)(_said)


def _long(text: str, kinds: bytes) -> Iterator[Span]:
    """Digests, ULIDs and trace parents: they have at least 26 letters and digits in a row."""
    at = kinds.find(b"a" * 26)
    while at >= 0:
        end = _RUN.match(kinds, at)
        found = _TRACEPARENT.match(text, max(0, at - 3)) or _DIGEST.match(text, at) or _ULID.match(text, at)
        if found:
            yield found.span()
        at = kinds.find(b"a" * 26, end.end() if end else at + 26)


def _set_off(text: str, lowered: bytes) -> Iterator[Span]:
    """UUIDs and prefixed identifiers: a ``-`` or ``_`` sets off eight letters or digits, or twelve hex digits."""
    for sign in _SET_OFF.finditer(lowered):
        at = sign.start()
        prefix = _PREFIX.search(text, max(0, at - 10), at + 1)
        body = _BODY.match(text, at + 1) if prefix else None
        if prefix and body:
            yield prefix.start(), body.end()
        elif at >= 23 and lowered[at - 5] == lowered[at - 10] == ord("-"):
            found = _uuid(text, at - 23)
            if found:
                yield found.span()


def _uuid(text: str, digits: int) -> re.Match[str] | None:
    """The UUID whose hex digits begin at `digits`, with what it is wrapped in."""
    for wrapped in (10, 9, 1, 0):
        found = _UUID.match(text, digits - wrapped) if digits >= wrapped else None
        if found and found.end() >= digits + 36:
            return found
    return None


def _epochs(text: str, bytewise: bytes) -> Iterator[Span]:
    """Seconds (also with a long fraction), milliseconds and microseconds since 1970, of the years 2001 to 2033."""
    for digits in _EPOCH_LIKE.finditer(bytewise):
        start = digits.start()
        found = _EPOCH.match(text, start)
        if found and not _TELEPHONE.search(text, max(0, start - 32), start):
            yield found.span()


def _labelled(text: str, lowered: bytes) -> Iterator[Span]:
    """Values that a label before them calls an identifier: of a request, session, trace, conversation and so on."""
    for label in _LABEL_LIKE.finditer(lowered):
        if _LABEL.search(text, max(0, label.start() - 32), label.start()):
            yield from _value(text, label.end())
    if b"session" in lowered:
        for label in _SESSION_LIKE.finditer(lowered):
            for start, end in _value(text, label.end()):
                value = text[start:end]
                if end - start >= 6 and any(sign.isalpha() for sign in value) and any(sign.isdigit() for sign in value):
                    yield start, end


def _value(text: str, at: int) -> Iterator[Span]:
    """The value at `at` if it looks like an identifier."""
    found = _VALUE.match(text, at)
    if not found or len(found["value"]) == _LONGEST:
        return
    value = found["value"].rstrip("_+/.:@~-")
    end = found.start("value") + len(value)
    if text[end : end + 1].isalnum() or text[end : end + 1] == "_" or _DESCRIPTION.fullmatch(value):
        return
    if _RANDOM.fullmatch(value) or any(sign in "0123456789" for sign in value):
        yield found.start("value"), end


def _addresses(text: str) -> Iterator[Span]:
    """Every ``scheme://…`` up to white space."""
    for rest in _ADDRESS.finditer(text):
        scheme = _SCHEME.search(text, max(0, rest.start() - 32), rest.start())
        yield scheme.start() if scheme else rest.start(), rest.end()
