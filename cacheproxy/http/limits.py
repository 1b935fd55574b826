"""What an HTTP request must be before anything looks into it, and how an error of ours is written.

aiohttp's parser has refused malformed messages already; here go the forms that it lets through and a proxy must not.
"""

import re

import orjson

from cacheproxy.core import fields as http_fields
from cacheproxy.core.model import Fields
from cacheproxy.errors import AnswerError, InvalidRequest, RateLimited

_FRAMING_LOOKALIKES = frozenset({b"content_length", b"transfer_encoding"})
_BAD_TARGET = re.compile(rb"[^\x21\x22\x24-\x7e]")
"""What no request target may contain; ``#`` too, since some cut it off and some do not (RFC 9112 section 3.2)."""
_HOST = re.compile(rb"(?:\[[0-9A-Za-z:.%_~-]+\]|[0-9A-Za-z._~!$&'()*+,;=%-]*)(?::[0-9]*)?")
"""RFC 9110 section 7.2: a host as a URI has it, and its port; neither user nor path."""


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
    hosts = _values(b"host", names, fields)
    if len(hosts) > 1:
        raise InvalidRequest("More than one Host header.")
    if hosts and not _HOST.fullmatch(hosts[0]):
        raise InvalidRequest("The Host header is no host.")
    codings = [value.strip().lower() for value in _values(b"transfer-encoding", names, fields)]
    if codings and (codings != [b"chunked"] or version == (1, 0) or b"content-length" in names):
        raise InvalidRequest("Transfer-Encoding must be chunked, once, in HTTP/1.1, without a Content-Length.")


def _values(wanted: bytes, names: list[bytes], fields: Fields) -> list[bytes]:
    """The values of the field `wanted`; `names` are those of `fields` in lower case."""
    return [field[1] for name, field in zip(names, fields, strict=True) if name == wanted] if wanted in names else []


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
    fields = error.fields if isinstance(error, RateLimited) else ()
    return text.encode("ascii") + http_fields.render(fields)
