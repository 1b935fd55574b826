"""What was changed by admin calls, by whom, and what came of it: one JSON line each, to the logger and to a file.

A line has `time` (seconds since the epoch), `who` (a token's fingerprint, or ``loopback``), `peer`, `call`, `about`
(the names in its path), `asked` (what of its body says what is meant), `counts`, `status` and the `code` of an error.
Words of prompts and answers are in no body that is looked at here, nor are tokens.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from aiohttp import web

log = logging.getLogger("cacheproxy.audit")

Write = Callable[[bytes], bool]
"""Takes a line without waiting; False if it is dropped."""

ASKED: Mapping[str, tuple[str, ...]] = {
    "/admin/purge": ("selector", "mode", "dry_run"),
    "/admin/feedback": ("entry_id", "verdict"),
    "/admin/kb/{name}": ("version", "changed_documents", "sequence"),
    "/admin/upstreams/drain": ("url", "draining", "force"),
    "/admin/events": ("id", "source", "type", "subject", "data"),
}
"""What of a call's body says what is meant."""
_DATA = ("version", "changed_documents", "sequence")
MOST = 50
"""Members of a list that are written, and characters of a text four times as many."""
_LARGEST = 2**20
"""Bytes of a body that are looked at."""


class Audit:
    """Writes the lines. `write`: to the file, if there is one."""

    def __init__(self, write: Write | None = None, now: Callable[[], float] = time.time) -> None:
        self._write = write
        self._now = now

    async def note(self, request: web.Request, call: str, who: str, response: web.StreamResponse | None) -> None:
        """`request` has been answered by `response`, None if it broke off; `call`: its route."""
        names = ASKED.get(call.partition(" ")[2], ())
        asked = _asked(await _body(request), names) if names and response is not None else {}
        told = _told(response)
        line = {
            "time": round(self._now(), 3),
            "who": who,
            "peer": request.remote,
            "call": call,
            "about": {name: _short(value) for name, value in request.match_info.items()},
            "asked": asked,
            "counts": {name: n for name, n in told.items() if type(n) is int},
            "status": response.status if response is not None else None,
        }
        error = told.get("error")
        if isinstance(error, dict):
            line["code"] = error.get("code")
        written = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
        log.info("%s", written[:-1].decode())
        if self._write is not None and not self._write(written):
            log.error("a line of the audit log could not be written to its file")


async def _body(request: web.Request) -> bytes:
    """Empty where it could not be read, which the response says."""
    try:
        return await request.read()
    except (web.HTTPException, web.RequestPayloadError, ConnectionError):
        return b""


def _asked(body: bytes, names: tuple[str, ...]) -> dict[str, Any]:
    document = _document(body)
    asked = {name: document[name] for name in names if name in document}
    if isinstance(asked.get("data"), dict):
        asked["data"] = {name: value for name, value in asked["data"].items() if name in _DATA}
    return {name: _short(value) for name, value in asked.items()}


def _told(response: web.StreamResponse | None) -> dict[str, Any]:
    body = response.body if isinstance(response, web.Response) else None
    return _document(body) if isinstance(body, bytes) else {}


def _document(body: bytes) -> dict[str, Any]:
    if len(body) > _LARGEST:
        return {}
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _short(value: Any, depth: int = 3) -> Any:
    """`value`, and no more of it than a line should have."""
    if isinstance(value, str):
        text = value if len(value) <= 4 * MOST else f"{value[: 4 * MOST]}…"
        return text.encode("utf-8", "replace").decode()
    if isinstance(value, list | dict) and not depth:
        return "…"
    if isinstance(value, list):
        more = [f"… {len(value) - MOST} more"] if len(value) > MOST else []
        return [_short(one, depth - 1) for one in value[:MOST]] + more
    if isinstance(value, dict):
        return {_short(name): _short(one, depth - 1) for name, one in list(value.items())[:MOST]}
    return value
