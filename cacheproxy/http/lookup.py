"""The admin call that tells what would become of a request, and why. It asks no backend and changes nothing.

What is asked about is the body as it would be sent, with its path in ``?path=`` and its header fields as
``X-Lookup-<name>``; or a JSON object ``{path, headers, body}``, whose `body` is JSON, or a text that has it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from aiohttp import web

from cacheproxy.core import splice
from cacheproxy.engine.lookup import Lookup, Question
from cacheproxy.errors import AnswerError
from cacheproxy.http.replies import error_reply, json_reply

USUAL = "/v1/chat/completions"
JSON_TYPE = "application/json"
KNOWN = frozenset({"path", "headers", "body"})
MOST_HEADERS = 100
LONGEST = 8192
"""Characters of a path, or of a header's value."""
_MARK = "x-lookup-"
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_PATH = re.compile(r"/[\x21-\x7e]*")


class Bad(NamedTuple):
    """What is wrong, and what it must be."""

    name: str
    expected: str


def routes(lookup: Lookup, *, texts: bool) -> Sequence[web.AbstractRouteDef]:
    """``POST /admin/lookup``. `texts`: whether words of earlier questions may be shown."""

    async def look(request: web.Request) -> web.Response:
        asked = read(await request.read(), request.query, request.headers)
        if isinstance(asked, Bad):
            return error_reply(400, "invalid_request", f"{asked.name} must be {asked.expected}.", asked.name)
        try:
            return json_reply(await lookup.look(asked, texts=texts))
        except AnswerError as error:
            return error_reply(error.status, error.code, error.message, error.param)

    return [web.post("/admin/lookup", look)]


def read(body: bytes, query: Mapping[str, str], headers: Mapping[str, str]) -> Question | Bad:
    """The request that is asked about."""
    if unknown := set(query) - {"path"}:
        return Bad(_plain(min(unknown)), "left out: known is path")
    path = query.get("path", USUAL)
    if not _is_path(path):
        return Bad("path", "a path such as /v1/chat/completions")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        if headers.get("Content-Type", "").partition(";")[0].strip().lower() == JSON_TYPE and not _is_json(body):
            return Bad("body", "JSON, as its Content-Type says")
        document = None
    if isinstance(document, dict) and "body" in document and document.keys() <= KNOWN:
        raw, given = _inner(body, document["body"]), document.get("headers")
        return _question(document.get("path", path), {} if given is None else given, raw)
    sent = {name[len(_MARK) :]: value for name, value in headers.items() if name.lower().startswith(_MARK)}
    return _question(path, sent, body)


def _is_json(body: bytes) -> bool:
    """By the grammar alone: what is JSON and cannot be kept is worth a question."""
    try:
        json.loads(body)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _inner(outer: bytes, inner: Any) -> bytes:
    """The bytes of the member `body`, as they stand in the object; of a text, what it says."""
    if isinstance(inner, str):
        return inner.encode()
    *_, last = (member for member in splice.walk(outer) if member.is_called(b"body"))
    return outer[last.value : last.end]


def _is_path(path: Any) -> bool:
    return isinstance(path, str) and len(path) <= LONGEST and _PATH.fullmatch(path) is not None


def _question(path: Any, headers: Any, body: bytes) -> Question | Bad:
    if not _is_path(path):
        return Bad("path", "a path such as /v1/chat/completions")
    if not isinstance(headers, dict) or len(headers) > MOST_HEADERS:
        return Bad("headers", f"an object with {MOST_HEADERS} texts at most")
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            return Bad("headers", "named as header fields are")
        if not isinstance(value, str) or len(value) > LONGEST or not _VALUE.fullmatch(value):
            return Bad(f"headers.{name}", "a text without control characters")
    lines = ((name.encode(), value.strip().encode("utf-8", "surrogateescape")) for name, value in headers.items())
    return Question(path.encode(), tuple(lines), body)


def _plain(name: str) -> str:
    return name[:64].encode("utf-8", "replace").decode()
