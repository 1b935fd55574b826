"""The admin calls that show what is stored. An answer's words are shown for one entry at a time, and only where the
configuration allows it."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aiohttp import web

from cacheproxy.core import controls, key
from cacheproxy.core.model import Entry, Form
from cacheproxy.core.removal import Selector
from cacheproxy.engine.catalogue import Catalogue, text_of
from cacheproxy.errors import Trouble
from cacheproxy.http.replies import error_reply, json_reply
from cacheproxy.ports import BadCursor, Clock, Listed

log = logging.getLogger("cacheproxy.http")

SELECTS = ("kb", "tag", "model", "namespace")
KNOWN = (*SELECTS, "q", "limit", "cursor")
USUAL, MOST = 100, 1000
MOST_WORDS, MOST_LETTERS = 20, 1000
LONGEST = 2**18
"""Characters of an answer that are shown."""


class Asked(NamedTuple):
    """What is to be listed."""

    selector: Selector
    words: tuple[str, ...]
    limit: int
    cursor: str


class Bad(NamedTuple):
    """A parameter, and what it must be."""

    name: str
    expected: str


def routes(catalogue: Catalogue, clock: Clock, *, texts: bool) -> Sequence[web.AbstractRouteDef]:
    """``GET /admin/entries`` and ``GET /admin/entries/{id}``. `texts`: whether answers may be shown."""

    async def browse(request: web.Request) -> web.Response:
        asked = read(request)
        if isinstance(asked, Bad):
            return refusal(asked)
        try:
            page = await catalogue.page(asked.selector, asked.words, asked.cursor, asked.limit)
        except BadCursor:
            return refusal(Bad("cursor", "what the page before said"))
        except Trouble as error:
            return _trouble(error)
        now = clock.now()
        return json_reply({"entries": [_row(row, now) for row in page.rows], "cursor": page.cursor or None})

    async def show(request: web.Request) -> web.Response:
        try:
            found = await catalogue.find(request.match_info["id"], whole=texts)
        except Trouble as error:
            return _trouble(error)
        if found is None:
            return error_reply(404, "not_found", "No answer is stored under this id.")
        answer = await asyncio.to_thread(_answer, found.entry) if texts else None
        return json_reply({**_row(found, clock.now()), "answer": answer})

    return [web.get("/admin/entries", browse), web.get("/admin/entries/{id}", show)]


def read(request: web.Request) -> Asked | Bad:
    """The parameters of a list; an empty one counts as left out, but for the namespace, where it means none."""
    given = parameters(request, KNOWN)
    if isinstance(given, Bad):
        return given
    limit = given.get("limit") or str(USUAL)
    if not (limit.isascii() and limit.isdecimal() and len(limit) <= len(str(MOST)) and 1 <= int(limit) <= MOST):
        return Bad("limit", f"a whole number from 1 to {MOST}")
    words = tuple(given.get("q", "").split())
    if len(words) > MOST_WORDS or len(given.get("q", "")) > MOST_LETTERS:
        return Bad("q", f"at most {MOST_WORDS} words of {MOST_LETTERS} characters in all")
    return Asked(selected(given), words, int(limit), given.get("cursor", ""))


def parameters(request: web.Request, known: Sequence[str]) -> dict[str, str] | Bad:
    """Those of the query, each of which must be known and given once."""
    given: dict[str, str] = {}
    for name, value in request.query.items():
        if name not in known:
            return Bad(name[:64], f"left out: known are {', '.join(known)}")
        if name in given:
            return Bad(name, "given once")
        given[name] = value
    return given


def selected(given: Mapping[str, str]) -> Selector:
    """The answers that these parameters mean: of `SELECTS` each."""
    namespace = given.get("namespace")
    return Selector(
        tags=frozenset({given["tag"]}) if given.get("tag") else frozenset(),
        kb=frozenset({given["kb"]}) if given.get("kb") else frozenset(),
        model=given.get("model") or None,
        namespace=None if namespace is None else controls.escaped(namespace),
    )


def _row(row: Listed, now: float) -> dict[str, Any]:
    entry = row.entry
    prompt, completion = entry.answer.tokens
    return {
        "id": key.entry_id(entry.key),
        "endpoint": entry.endpoint.value,
        "model": entry.model,
        "namespace": entry.namespace.replace("\0\0", "\0"),
        "tags": list(entry.tags),
        "kb": [controls.spoken(base)[1] for base in entry.knowledge],
        "prefix": entry.prefix,
        "scope": entry.owner.hex(),
        "credential": entry.credential.hex(),
        "stored_at": entry.stored_at,
        "fresh_until": entry.fresh_until,
        "expires_at": entry.expires_at,
        "state": "fresh" if now < entry.fresh_until else "stale",
        "bytes": row.bytes,
        "took": entry.took,
        "tokens": {"prompt": prompt, "completion": completion},
    }


def _answer(entry: Entry) -> dict[str, Any]:
    text = text_of(entry)
    return {
        "status": entry.answer.status,
        "stream": entry.answer.form is Form.EVENTS,
        "text": text[:LONGEST].encode("utf-8", "replace").decode(),
        "cut": len(text) > LONGEST,
    }


def refusal(bad: Bad) -> web.Response:
    """What is answered to a bad parameter."""
    name = bad.name.encode("utf-8", "replace").decode()
    return error_reply(400, "invalid_request", f"{name} must be {bad.expected}.", name)


def _trouble(error: Trouble) -> web.Response:
    log.warning("what is stored cannot be listed: %s", error)
    reply = error_reply(503, "store_trouble", "The store cannot tell now; ask again.")
    reply.headers["Retry-After"] = "1"
    return reply
