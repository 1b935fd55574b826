"""Every call of the admin listener, once: what it takes and gives, and whether it changes anything. From this
table come the description that is served, and what a token is good for that may only read."""

from dataclasses import dataclass, field
from typing import Any

from cacheproxy.engine.warming import MOST_AT_ONCE, USUAL_AT_ONCE
from cacheproxy.http import entries, prefixes
from cacheproxy.http.schemas import (
    ANY,
    COUNT,
    CURSOR,
    NAME,
    PATH,
    SCHEMAS,
    SHARED_CURSOR,
    TEXT,
    YES,
    Schema,
    maybe,
    record,
    ref,
    rows,
)

JSON, LINES, PLAIN = "application/json", "application/x-ndjson", "text/plain"


@dataclass(frozen=True, slots=True)
class Call:
    """`replies`: by status, of those that are no errors; `given`: parameters of the query; `body`: what it takes,
    `also` of other kinds; `lines`: it takes lines of NDJSON; `errors`: statuses that any call may have are left out;
    `open`: for everybody. Whatever the method says, `reads`: changes nothing; `full`: is not for a token that may only
    read."""

    does: str
    replies: dict[int, Schema]
    given: dict[str, Schema] = field(default_factory=dict)
    body: Schema | None = None
    errors: tuple[int, ...] = ()
    kind: str = JSON
    also: dict[str, Schema] = field(default_factory=dict)
    open: bool = False
    reads: bool = False
    full: bool = False
    lines: bool = False


def _whole(most: int, usual: int) -> Schema:
    return {"type": "integer", "minimum": 1, "maximum": most, "default": usual}


_KB = record(name=TEXT, version=TEXT, sequence=maybe({"type": ["integer", "string"]}), settled=YES)
_SOME_KB: Schema = {**TEXT, "description": "A knowledge base: in every version, or `name@version`."}
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
    ("POST", "/admin/upstreams/drain"): Call(
        "Give a backend nothing new, or again what comes; what runs there goes on. Without `url`: all are given "
        "something again.", {200: record(upstreams=rows(ANY))}, body=ref("Draining"), errors=(400, 404, 409, 413),
    ),
    ("POST", "/admin/drain"): Call("Stop as at SIGTERM.", {202: record(draining=YES)}),
    ("GET", "/admin/entries"): Call(
        "What is stored, without the answers' words. A page may have fewer than `limit`, or somewhat more; `cursor` "
        "leads to the next.", {200: record(entries=rows(ref("Entry")), cursor=maybe(TEXT))},
        given={
            "kb": _SOME_KB, "tag": TEXT,
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
        body=ref("Question"), errors=(400, 413, 415), reads=True,
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
    ("POST", "/admin/warm"): Call(
        "Have requests asked, a line each, so that their answers are there: with the lowest priority, within a budget, "
        "and again only what is not fresh. Answers are kept for the credential that a line has in its headers, or that "
        "the call says in `X-Warm-Authorization` (any header: `X-Warm-<name>`).", {202: ref("Job")},
        given={
            "budget_requests": {**COUNT, "description": "Most requests that reach the backend."},
            "budget_tokens": {**COUNT, "description": "Stop once the backend counted so many."},
            "budget_seconds": {**COUNT, "description": "Begin none later than that."},
            "concurrency": _whole(MOST_AT_ONCE, USUAL_AT_ONCE),
            "anonymous": {"enum": ["yes", "no"], "description": "Ask without credential where none is given."},
        },
        body=ref("Line"), also={LINES: ref("Line")}, errors=(400, 413, 503),
    ),
    ("POST", "/admin/replay"): Call(
        "What logged requests, a line each, would have hit; no backend is asked.", {202: ref("Job")},
        given={"semantic": {"enum": ["on", "off"], "description": "Answers by meaning too."}},
        body=ref("Line"), also={LINES: ref("Line")}, errors=(400, 413, 503), reads=True,
    ),
    ("GET", "/admin/jobs"): Call("Long work, the newest first.", {200: record(jobs=rows(ref("Job")))}),
    ("GET", "/admin/jobs/{id}"): Call(
        "How far a job is, and what came of it; so for a deferred request.", {200: ref("ShownJob")}, errors=(404, 503)
    ),
    ("DELETE", "/admin/jobs/{id}"): Call(
        "End a job now, or forget one that has ended.", {200: ref("ShownJob")}, errors=(404, 503)
    ),
    ("GET", "/admin/export"): Call(
        "All answers that are stored, or those that are meant, with their questions: lines that an import takes.",
        {200: TEXT}, given={"kb": _SOME_KB, "tag": TEXT, "model": TEXT, "namespace": TEXT}, kind=LINES, full=True,
        errors=(400, 503),
    ),
    ("POST", "/admin/import"): Call(
        "Take the lines of an export. Nothing comes back that was purged since.", {200: ref("Imported")}, lines=True,
        given={
            "force": {"enum": ["yes", "no"], "description": "What is older than the record of removals was not purged."}
        },
        errors=(400, 409, 503),
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
    if call is not None and call.full:
        return False
    return method in ("GET", "HEAD") or (call is not None and call.reads)


def describe(version: str, *, shared: bool = False) -> dict[str, Any]:
    """All calls, as OpenAPI 3.1. `shared`: what is stored is in Redis, whose cursors are others."""
    paths: dict[str, dict[str, Any]] = {}
    for (method, path), call in CALLS.items():
        paths.setdefault(path, {})[method.lower()] = _operation(method, path, call, SHARED_CURSOR if shared else CURSOR)
    return {
        "openapi": "3.1.0",
        "info": {"title": "cacheproxy admin API", "version": version},
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(method: str, path: str, call: Call, cursor: Schema) -> dict[str, Any]:
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
        {"name": name, "in": "query", "required": False, "schema": cursor if schema is CURSOR else schema}
        for name, schema in call.given.items()
    ]
    if parameters:
        operation["parameters"] = parameters
    if call.body is not None:
        content = {kind: {"schema": schema} for kind, schema in {JSON: call.body, **call.also}.items()}
        operation["requestBody"] = {"required": True, "content": content}
    if call.lines:
        operation["requestBody"] = {"required": True, "content": {LINES: {"schema": TEXT}}}
    return operation


def _responses(call: Call) -> dict[str, Any]:
    said = {
        str(status): {"description": call.does, "content": {call.kind: {"schema": schema}}}
        for status, schema in call.replies.items()
    }
    error = {"description": "Refused, or failed.", "content": {JSON: {"schema": ref("Error")}}}
    usual = () if call.open else (401, 403, 429)
    return {**said, **{str(status): error for status in (*usual, *call.errors) if str(status) not in said}}
