"""The admin calls that tell of new versions of knowledge bases. What returns 200 has been carried out to its end."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import orjson
from aiohttp import web

from cacheproxy.core import knowledge
from cacheproxy.core.knowledge import BadPublication, Known, Publication
from cacheproxy.engine.knowledge import Knowledge
from cacheproxy.errors import Trouble
from cacheproxy.http.replies import error_reply, json_reply

log = logging.getLogger("cacheproxy.http")

_SEVERAL = "application/cloudevents-batch+json"
MOST_EVENTS = 1000
IGNORED = {"course": "ignored"}
"""What is said of an event of another type."""


def routes(known: Knowledge) -> Sequence[web.AbstractRouteDef]:
    """``PUT /admin/kb/{name}``, ``GET /admin/kb`` and ``POST /admin/events``."""

    async def put(request: web.Request) -> web.Response:
        document = _read(await request.read())
        if isinstance(document, web.Response):
            return document
        told = knowledge.read_put(request.match_info["name"], document)
        if isinstance(told, BadPublication):
            return _bad(told)
        done = await _publish(known, told)
        return _trouble() if done is None else json_reply(done)

    async def get(_: web.Request) -> web.Response:
        try:
            versions = await known.versions()
        except Trouble as error:
            log.warning("the versions of knowledge bases cannot be told: %s", error)
            return _trouble()
        return json_reply({"kb": [_row(name, one) for name, one in sorted(versions.items())]})

    async def events(request: web.Request) -> web.Response:
        document = _read(await request.read())
        if isinstance(document, web.Response):
            return document
        given = _events(request, document)
        if given is None:
            return error_reply(
                400, "invalid_request", f"body must be a CloudEvent, or a list of {MOST_EVENTS} at most."
            )
        done = await _all(known, given)
        if isinstance(done, web.Response):
            return done
        return json_reply({"events": done} if _kind(request) == _SEVERAL else done[0])

    return [web.put("/admin/kb/{name:(?s:.+)}", put), web.get("/admin/kb", get), web.post("/admin/events", events)]


def _read(body: bytes) -> Any:
    """The JSON of a body, or what is answered to one that has none."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return error_reply(400, "invalid_json", "The request body is not valid JSON.")


def _row(name: str, one: Known) -> dict[str, Any]:
    told = {"name": name, "version": one.version, "sequence": one.sequence}
    return {**told, "published_at": one.published_at, "settled": one.settled}


async def _all(known: Knowledge, events: list[Mapping[str, object]]) -> list[dict[str, Any]] | web.Response:
    """What came of each event, or what is answered where one of them is none, or could not be carried out."""
    read = [knowledge.read_event(event) for event in events]
    results: list[dict[str, Any]] = []
    for bad in read:
        if isinstance(bad, BadPublication):
            return _bad(bad)
    for told in read:
        done = await _publish(known, told) if isinstance(told, Publication) else IGNORED
        if done is None:
            return _trouble()
        results.append(done)
    return results


async def _publish(known: Knowledge, told: Publication) -> dict[str, Any] | None:
    """None if it could not be done to its end."""
    try:
        done = await known.publish(told)
    except Trouble as error:
        log.warning("a new version of a knowledge base was not carried out to its end: %s", error)
        return None
    counts = {"matched": 0, "purged": 0, "epoch": None}
    if done.purged is not None:
        counts = {"matched": done.purged.matched, "purged": done.purged.purged, "epoch": done.purged.epoch}
    return {"name": told.name, "version": done.version, "course": done.course.value, **counts}


def _kind(request: web.Request) -> str:
    return request.content_type.lower()


def _events(request: web.Request, document: Any) -> list[Mapping[str, object]] | None:
    """The events of a request: structured, several at once, or one whose attributes are header fields."""
    if _kind(request) == _SEVERAL:
        several = isinstance(document, list) and all(isinstance(event, dict) for event in document)
        return document if several and len(document) <= MOST_EVENTS else None
    if "ce-type" in request.headers:
        marked = ((name.lower(), value) for name, value in request.headers.items())
        told = {name.removeprefix("ce-"): unquote(value) for name, value in marked if name.startswith("ce-")}
        return [{**told, "data": document}]
    return [document] if isinstance(document, dict) else None


def _bad(told: BadPublication) -> web.Response:
    return error_reply(400, "invalid_request", f"{told.name} must be {told.expected}.", told.name)


def _trouble() -> web.Response:
    reply = error_reply(503, "store_trouble", "The version is not in force everywhere yet; tell it again.")
    reply.headers["Retry-After"] = "1"
    return reply
