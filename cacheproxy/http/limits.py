"""What an HTTP request must be before anything looks into it, and how an error of ours is written.

aiohttp's parser has refused malformed messages already; here go the forms that it lets through and a proxy must not.
"""

import re

import orjson

from cacheproxy.core.model import Fields
from cacheproxy.errors import AnswerError, InvalidRequest

_FRAMING_LOOKALIKES = frozenset({b"content_length", b"transfer_encoding"})
_BAD_TARGET = re.compile(rb"[\x00-\x20\x7f]")


def check(method: str, version: tuple[int, int], target: bytes, fields: Fields) -> None:
    """Raise `InvalidRequest` for a request that must not be forwarded."""
    if version not in ((1, 0), (1, 1)):
        raise InvalidRequest("Only HTTP/1.0 and HTTP/1.1 are spoken here.")
    if method == "CONNECT" or not (target.startswith(b"/") or (target == b"*" and method == "OPTIONS")):
        raise InvalidRequest("The request target must be a path.")
    if _BAD_TARGET.search(target):
        raise InvalidRequest("The request target contains a character that must be percent-encoded.")
    names = [name.lower() for name, _ in fields]
    if not _FRAMING_LOOKALIKES.isdisjoint(names):
        raise InvalidRequest("Header names that imitate framing are refused.")
    if names.count(b"host") > 1:
        raise InvalidRequest("More than one Host header.")
    codings = [value.strip().lower() for name, value in fields if name.lower() == b"transfer-encoding"]
    if codings and (codings != [b"chunked"] or version == (1, 0) or b"content-length" in names):
        raise InvalidRequest("Transfer-Encoding must be chunked, once, in HTTP/1.1, without a Content-Length.")


def error_body(error: AnswerError) -> bytes:
    """The OpenAI form of an error."""
    return orjson.dumps(
        {"error": {"message": error.message, "type": error.kind, "param": error.param, "code": error.code}}
    )


def error_lines(error: AnswerError) -> bytes:
    """The header lines of an error of ours."""
    text = "Content-Type: application/json\r\nCache-Control: private, no-store\r\nVary: Authorization\r\n"
    if error.retry is not None:
        text += f"x-should-retry: {'true' if error.retry else 'false'}\r\n"
    if error.retry_after is not None:
        text += f"Retry-After: {error.retry_after}\r\n"
    return text.encode("ascii")
