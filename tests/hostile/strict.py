"""A strict reading of HTTP/1.1 (RFC 9112) that shares nothing with the code under test.

What is not exactly of the grammar is an error: whatever this reads, every other hop reads in the same way.
"""

import re
from dataclasses import dataclass

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_TEXT = rb"[\t\x20-\x7e\x80-\xff]*"
_REQUEST_LINE = re.compile(rb"(" + _TOKEN + rb") ([\x21\x22\x24-\x7e\x80-\xff]+) HTTP/1\.1")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-9]\d\d) (" + _TEXT + rb")")
_FIELD = re.compile(rb"(" + _TOKEN + rb"):[ \t]*(|[\x21-\x7e\x80-\xff](?:" + _TEXT + rb"[\x21-\x7e\x80-\xff])?)[ \t]*")
_SIZE = re.compile(rb"[0-9a-fA-F]{1,15}")


class NotStrict(Exception):
    """The bytes are not of the grammar."""


class Unfinished(Exception):
    """The bytes end before the message does."""


@dataclass(frozen=True)
class Message:
    """One message. `first`: method and target of a request; status and phrase of an answer."""

    first: tuple[bytes, bytes]
    fields: tuple[tuple[bytes, bytes], ...]
    body: bytes

    def all(self, name: bytes) -> list[bytes]:
        return [v for n, v in self.fields if n.lower() == name]


def request(data: bytes) -> tuple[Message, bytes]:
    """The request that `data` begins with, and the bytes behind it. Raises `NotStrict`, `Unfinished`."""
    first, fields, rest = _head(data, _REQUEST_LINE)
    if len([n for n, _ in fields if n.lower() == b"host"]) != 1:
        raise NotStrict("not exactly one Host")
    length, chunked = _framing(fields)
    body, rest = _chunks(rest) if chunked else _bytes(rest, length or 0)
    return Message(first, fields, body), rest


def answer(data: bytes, *, method: bytes = b"GET") -> tuple[Message, bytes]:
    """The final answer to a `method` that `data`, which ends where the connection did, begins with, and what is
    behind it; interim answers are passed over. Raises `NotStrict`, `Unfinished`."""
    status = b"100"
    while status.startswith(b"1") and status != b"101":
        first, fields, data = _head(data, _STATUS_LINE)
        status = first[0]
        length, chunked = _framing(fields)
        if status.startswith(b"1") and (chunked or length is not None):
            raise NotStrict("an interim answer with a body")
    if method == b"HEAD" or status in (b"101", b"204", b"304"):
        body = b""
    elif chunked:
        body, data = _chunks(data)
    elif length is not None:
        body, data = _bytes(data, length)
    else:
        body, data = data, b""
    return Message(first, fields, body), data


def answers(data: bytes, methods: list[bytes]) -> list[Message]:
    """Every answer on a connection whose requests had `methods`; more answers count as those to a GET."""
    found: list[Message] = []
    while data:
        message, data = answer(data, method=methods[len(found)] if len(found) < len(methods) else b"GET")
        found.append(message)
    return found


def _head(data: bytes, line: re.Pattern[bytes]) -> tuple[tuple[bytes, bytes], tuple[tuple[bytes, bytes], ...], bytes]:
    head, mark, rest = data.partition(b"\r\n\r\n")
    if not mark:
        raise Unfinished("no head")
    first, *lines = head.split(b"\r\n")
    start = line.fullmatch(first)
    matches = [(text, _FIELD.fullmatch(text)) for text in lines]
    bad = [first] if start is None else [text for text, match in matches if match is None]
    if start is None or bad:
        raise NotStrict(repr(bad[0]))
    return (start[1], start[2]), tuple((m[1], m[2]) for _, m in matches if m), rest


def _framing(fields: tuple[tuple[bytes, bytes], ...]) -> tuple[int | None, bool]:
    lengths = [v for n, v in fields if n.lower() == b"content-length"]
    codings = [v for n, v in fields if n.lower() == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise NotStrict("framed more than once")
    if codings and codings[0].lower() != b"chunked":
        raise NotStrict("an unknown transfer coding")
    if lengths and re.fullmatch(rb"\d{1,18}", lengths[0]) is None:
        raise NotStrict("a length that is no number")
    return int(lengths[0]) if lengths else None, bool(codings)


def _bytes(data: bytes, length: int) -> tuple[bytes, bytes]:
    if len(data) < length:
        raise Unfinished("a body that is too short")
    return data[:length], data[length:]


def _chunks(data: bytes) -> tuple[bytes, bytes]:
    """A chunked body; extensions and trailers are allowed by the RFC and not here."""
    body = b""
    while True:
        size, mark, data = data.partition(b"\r\n")
        if not mark:
            raise Unfinished("no chunk size")
        if _SIZE.fullmatch(size) is None:
            raise NotStrict(f"a chunk size {size!r}")
        part, data = _bytes(data, int(size, 16))
        end, data = _bytes(data, 2)
        if end != b"\r\n":
            raise NotStrict("a chunk without its end")
        if not part:
            return body, data
        body += part
