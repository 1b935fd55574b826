"""Every call of the admin listener, once: what it takes and gives, and whether it changes anything. From this
table come the description that is served, and what a token is good for that may only read."""

from dataclasses import dataclass, field
from typing import Any

from cacheproxy.http import entries, prefixes
from cacheproxy.http.schemas import ANY, CURSOR, NAME, PATH, SCHEMAS, TEXT, YES, Schema, maybe, record, ref, rows

JSON, LINES, PLAIN = "application/json", "application/x-ndjson", "text/plain"


@dataclass(frozen=True, slots=True)
class Call:
    """`replies`: by status, of those that are no errors; `given`: parameters of the query; `body`: what it takes,
    `also` of other kinds; `errors`: statuses that any call may have are left out; `open`: for everybody."""

    does: str
    replies: dict[int, Schema]
    given: dict[str, Schema] = field(default_factory=dict)
    body: Schema | None = None
    errors: tuple[int, ...] = ()
    kind: str = JSON
    also: dict[str, Schema] = field(default_factory=dict)
    open: bool = False
    reads: bool = False


def _whole(most: int, usual: int) -> Schema:
    return {"type": "integer", "minimum": 1, "maximum": most, "default": usual}


_KB = record(name=TEXT, version=TEXT, sequence=maybe({"type": ["integer", "string"]}), settled=YES)
_EVENTS = {
    "application/cloudevents+json": ref("Event"), "application/cloudevents-batch+json": rows(ref("Event")),
}  # fmt: skip
_PUBLISHED: Schema = {"anyOf": [ref("Published"), record(events=rows(ref("Published")))]}

CALLS: dict[tuple[str, str], Call] = {
    ("GET", "/livez"): Call("Whether the process lives.", {200: TEXT}, kind=PLAIN, open=True),
    ("GET", "/readyz"): Call("Whether it takes new work.", {200: TEXT, 503: TEXT}, kind=PLAIN, open=True),
    ("GET", "/metrics"): Call("Metrics in the Prometheus text format.", {200: TEXT}, kind=PLAIN, open=True),
    ("GET", "/admin/stats"): Call("Counts of all that happened.", {200: ANY}),
    ("GET", "/admin/config"): Call("The configuration, secrets masked.", {200: ANY}),
    ("GET", "/admin/openapi.json"): Call("This description.", {200: ANY}),
    ("GET", "/admin/prefixes"): Call(
        "What is known of the beginnings of prompts.", {200: record(families=rows(ANY), total=ANY)},
        given={"limit": _whole(prefixes.MOST, prefixes.USUAL)}, errors=(400,),
    ),
    ("POST", "/admin/drain"): Call("Stop as at SIGTERM.", {202: record(draining=YES)}),
    ("GET", "/admin/entries"): Call(
        "What is stored, without the answers' words. A page may have fewer than `limit`, or somewhat more; `cursor` "
        "leads to the next.", {200: record(entries=rows(ref("Entry")), cursor=maybe(TEXT))},
        given={
            "kb": {**TEXT, "description": "A knowledge base: in every version, or `name@version`."}, "tag": TEXT,
            "model": TEXT, "namespace": TEXT,
            "q": {**TEXT, "maxLength": entries.MOST_LETTERS, "description": "Words, all of which the answer has."},
            "limit": _whole(entries.MOST, entries.USUAL), "cursor": CURSOR,
        },
        errors=(400, 503),
    ),
    ("GET", "/admin/entries/{id}"): Call("One answer.", {200: ref("ShownEntry")}, errors=(404, 503)),
    ("DELETE", "/admin/entries/{id}"): Call("Remove one answer.", {200: ref("Purged")}, errors=(404, 503)),
    ("POST", "/admin/lookup"): Call(
        "What a request would hit, and why or why not; no backend is asked and nothing changed.", {200: ref("Looked")},
        given={"path": {**PATH, "description": "Of the request, where the body is that of the request itself."}},
        body={"anyOf": [ref("Question"), ANY]}, errors=(400, 413, 415), reads=True,
    ),
    ("POST", "/admin/purge"): Call(
        "Remove answers (hard), or end their lifetime (soft). Done, everywhere, when it returns.",
        {200: ref("Purged")}, body=ref("Order"), errors=(400, 413, 503),
    ),
    ("GET", "/admin/kb"): Call("Current versions of knowledge bases.", {200: record(kb=rows(_KB))}, errors=(503,)),
    ("PUT", "/admin/kb/{name}"): Call(
        "A knowledge base has a new version. In force, everywhere, when it returns.", {200: ref("Published")},
        body=ref("Version"), errors=(400, 413, 503),
    ),
    ("POST", "/admin/events"): Call(
        "The same as CloudEvents 1.0: structured, binary, or a batch.", {200: _PUBLISHED}, body=ref("Event"),
        also=_EVENTS, errors=(400, 413, 503),
    ),
    ("POST", "/admin/feedback"): Call(
        "Say that an answer was wrong or right.", {200: ref("Heeded")}, body=ref("Judgement"),
        errors=(400, 404, 413, 503),
    ),
}  # fmt: skip
"""By method and path. The page and its parts are no calls."""


def may_read(method: str, path: str) -> bool:
    """Whether a token that may only read is good for this. What is no call changes nothing if its method does not."""
    call = CALLS.get((method, path))
    return method in ("GET", "HEAD") or (call is not None and call.reads)


def describe(version: str) -> dict[str, Any]:
    """All calls, as OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for (method, path), call in CALLS.items():
        paths.setdefault(path, {})[method.lower()] = _operation(method, path, call)
    return {
        "openapi": "3.1.0",
        "info": {"title": "cacheproxy admin API", "version": version},
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(method: str, path: str, call: Call) -> dict[str, Any]:
    parts = [part.strip("{}") for part in path.strip("/").split("/")]
    operation: dict[str, Any] = {
        "operationId": "_".join([method.lower(), *parts]).replace(".", "_"),
        "summary": call.does,
        "security": [] if call.open else [{"token": []}],
        "responses": _responses(call),
    }
    parameters = [
        {"name": part.strip("{}"), "in": "path", "required": True, "schema": NAME}
        for part in path.split("/")
        if part.startswith("{")
    ]
    parameters += [
        {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in call.given.items()
    ]
    if parameters:
        operation["parameters"] = parameters
    if call.body is not None:
        content = {kind: {"schema": schema} for kind, schema in {JSON: call.body, **call.also}.items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _responses(call: Call) -> dict[str, Any]:
    said = {
        str(status): {"description": call.does, "content": {call.kind: {"schema": schema}}}
        for status, schema in call.replies.items()
    }
    error = {"description": "Refused, or failed.", "content": {JSON: {"schema": ref("Error")}}}
    usual = () if call.open else (401, 403, 429)
    return {**said, **{str(status): error for status in (*usual, *call.errors) if str(status) not in said}}
