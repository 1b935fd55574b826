"""The words of Redis on the wire (RESP 2 and 3), by hand: so that no client library under test is needed to look at one.

Standard library only; no IO.
"""

_LINES = b"+-:_,#("
_BULKS = b"$=!"
_LISTS = b"*~>%|"


class NotResp(ValueError):
    """These bytes are no RESP."""


class Refused(Exception):
    """The server answered with an error; the message is its text, whose first word names its kind."""

    @property
    def kind(self) -> str:
        return str(self).partition(" ")[0]


def pack(*words: str | bytes | float) -> bytes:
    """A request."""
    encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded)


def end(data: bytes | bytearray, at: int = 0) -> int | None:
    """Where the message that begins at `at` ends; None: not all of it is there. Raises NotResp."""
    owed = 1  # values that still have to come
    while owed:
        line = data.find(b"\r\n", at)
        if at >= len(data):
            return None
        sign, number = data[at], data[at + 1 : line if line >= 0 else at + 1]
        if sign not in _LINES + _BULKS + _LISTS or (line < 0 and sign not in _LINES and len(data) - at > 32):
            raise NotResp(bytes(data[at : at + 20]))
        if line < 0:
            return None
        at, owed = line + 2, owed - 1
        if sign in _LINES:
            continue
        size = _number(number)
        if sign in _BULKS:
            at += size + 2 if size >= 0 else 0
            if at > len(data):
                return None
        else:
            owed += max(size, 0) * (2 if sign in b"%|" else 1) + (sign in b"|")
    return at


def parse(data: bytes | bytearray) -> object:
    """The value of one whole message: bytes, int, float, bool, None, list, dict, or Refused (inside lists too)."""
    return _value(bytes(data), 0)[0]


def _number(text: bytes | bytearray) -> int:
    try:
        return int(text)
    except ValueError:
        raise NotResp(bytes(text[:20])) from None


def _value(data: bytes, at: int) -> tuple[object, int]:
    line = data.index(b"\r\n", at)
    sign, text, at = data[at : at + 1], data[at + 1 : line], line + 2
    if sign in (b"+", b":", b"_", b",", b"#", b"(", b"-"):
        return _simple(sign, text), at
    size = _number(text)
    if size < 0:
        return None, at
    if sign in (b"$", b"=", b"!"):
        body = data[at : at + size]
        return (Refused(body.decode()) if sign == b"!" else body), at + size + 2
    values = []
    for _ in range(size * (2 if sign in (b"%", b"|") else 1)):
        value, at = _value(data, at)
        values.append(value)
    if sign == b"|":  # attributes: about the value that follows
        return _value(data, at)
    return (dict(zip(values[::2], values[1::2], strict=True)) if sign == b"%" else values), at


def _simple(sign: bytes, text: bytes) -> object:
    if sign == b"-":
        return Refused(text.decode())
    if sign in (b":", b"("):
        return int(text)
    if sign == b",":
        return float(text)
    return {b"_": None, b"#": text == b"t"}.get(sign, text)
