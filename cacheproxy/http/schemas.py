"""The shapes of what admin calls take and give, as JSON Schema (OpenAPI 3.1). Data."""

from typing import Any

from cacheproxy.core.controls import MAX_NAME_BYTES
from cacheproxy.core.knowledge import GREATEST, TYPE
from cacheproxy.core.removal import CONFIRMATION
from cacheproxy.engine.intake import Fate

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NAME: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
PATH: Schema = {"type": "string", "pattern": "^/[!-~]*$", "maxLength": 8192}
CURSOR: Schema = {"type": "string", "pattern": "^([0-9a-f]{64})?$"}
SHARED_CURSOR: Schema = {"type": "string", "pattern": "^([^/]*/[0-9]{1,19})?$"}
YES: Schema = {"type": "boolean"}
ANY: Schema = {"type": "object"}
VERSION: Schema = {"anyOf": [{"type": "string", "minLength": 1, "maxLength": MAX_NAME_BYTES}, {"type": "number"}]}
ID: Schema = {"type": "string", "description": "What `X-Cache-Entry-Id` says.", "examples": ["0" * 32]}
SOME_NAMES: Schema = {"oneOf": [NAME, {"type": "array", "items": NAME, "minItems": 1}]}

FINGERPRINT: Schema = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
SOME_FINGERPRINTS: Schema = {"oneOf": [FINGERPRINT, {"type": "array", "items": FINGERPRINT, "minItems": 1}]}


def ref(name: str) -> Schema:
    """A schema of the list below, by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def maybe(schema: Schema) -> Schema:
    """The same, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def rows(schema: Schema) -> Schema:
    """A list of it."""
    return {"type": "array", "items": schema}


def record(*optional: str, **members: Schema) -> Schema:
    """An object with these members; more may come in later versions."""
    required = [name for name in members if name not in optional]
    return {"type": "object", "properties": members, **({"required": required} if required else {})}


def closed(*optional: str, **members: Schema) -> Schema:
    """An object with these members and no others."""
    return {**record(*optional, **members), "additionalProperties": False}


_ENTRY: dict[str, Schema] = {
    "id": ID, "endpoint": TEXT, "model": TEXT, "namespace": TEXT, "tags": rows(TEXT), "kb": rows(TEXT),
    "prefix": TEXT, "scope": FINGERPRINT, "credential": FINGERPRINT,
    "stored_at": NUMBER, "fresh_until": NUMBER, "expires_at": NUMBER, "state": {"enum": ["fresh", "stale"]},
    "bytes": COUNT, "took": NUMBER, "tokens": record(prompt=COUNT, completion=COUNT),
}  # fmt: skip
_PUBLICATION: dict[str, Schema] = {
    "version": VERSION, "changed_documents": maybe(rows(NAME)),
    "sequence": maybe({"type": "integer", "minimum": 0, "maximum": GREATEST}),
}  # fmt: skip
_EVENT: dict[str, Schema] = {
    "specversion": {"type": "string", "pattern": r"^1\."}, "source": NAME, "id": NAME, "subject": TEXT, "data": {},
}  # fmt: skip
_SELECTOR: dict[str, Schema] = {
    "tags": SOME_NAMES, "kb": SOME_NAMES, "model": TEXT, "namespace": TEXT, "entry_ids": SOME_NAMES,
    "older_than": {"type": "number", "minimum": 0, "maximum": 2**31}, "changed_documents": SOME_NAMES,
    "prefix": SOME_NAMES, "scope": SOME_FINGERPRINTS,
}  # fmt: skip
_MODE: dict[str, Schema] = {"mode": {"enum": ["hard", "soft"]}, "dry_run": YES, "wait": YES}
_ALL = closed(all={"const": True})
_COURSE: dict[str, Schema] = {
    "name": TEXT, "version": TEXT, "course": TEXT, "matched": COUNT, "purged": COUNT, "epoch": maybe(COUNT),
}  # fmt: skip

_FIELD: Schema = {"type": "string", "pattern": "^[ -~]*$"}
_SECONDS: Schema = {"type": "number", "minimum": 0, "exclusiveMaximum": 10**11}
_KNOWN: dict[str, Schema] = {
    "path": maybe({"type": "string", "pattern": '^/[!"$-~]*$'}),
    "headers": maybe({
        "type": "object", "propertyNames": {"pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*$"},
        "additionalProperties": {"anyOf": [_FIELD, rows(_FIELD)]},
    }),
    "time": {"anyOf": [_SECONDS, {"type": "string", "format": "date-time"}, {"type": "null"}]},
    "latency": maybe(_SECONDS), "usage": maybe(record("prompt_tokens", "completion_tokens", prompt_tokens=COUNT,
                                                      completion_tokens=COUNT)),
    "status": maybe({"type": "integer", "minimum": 100, "maximum": 599}),
}  # fmt: skip
_JOB: dict[str, Schema] = {
    "id": TEXT, "kind": TEXT, "state": {"enum": ["queued", "running", "done", "failed"]},
    "progress": {"type": "object", "additionalProperties": COUNT}, "error": maybe(record(code=TEXT, message=TEXT)),
    "created_at": NUMBER, "started_at": maybe(NUMBER), "ended_at": maybe(NUMBER),
}  # fmt: skip

_FIELDS: Schema = {
    "type": "object", "maxProperties": 100, "propertyNames": {"pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}$"},
    "additionalProperties": {"type": "string", "maxLength": 8192, "pattern": r"^[^\x00-\x08\x0a-\x1f\x7f]*$"},
}  # fmt: skip

_IMPORTED = (
    "lines", *(fate.value for fate in Fate), "questions_known", "questions_kept", "questions_embedded",
    "questions_left_out",
)  # fmt: skip

SCHEMAS: dict[str, Schema] = {
    "Error": record(error=record(message=TEXT, type=TEXT, param=maybe(TEXT), code=TEXT)),
    "Purged": record(matched=maybe(COUNT), purged=maybe(COUNT), epoch=COUNT),
    "Selector": {
        **closed(*_SELECTOR, **_SELECTOR),
        "minProperties": 1,
        "description": "Answers for which all of it holds; of a list any one.",
    },
    "Order": {
        "anyOf": [
            closed("mode", "dry_run", "wait", "confirm", selector=ref("Selector"), confirm={}, **_MODE),
            closed("mode", "dry_run", "wait", selector=_ALL, confirm={"const": CONFIRMATION}, **_MODE),
            closed("mode", "wait", "confirm", selector=_ALL, confirm={}, **{**_MODE, "dry_run": {"const": True}}),
        ]
    },
    "Version": closed("changed_documents", "sequence", **_PUBLICATION),
    "Published": record("name", "version", "matched", "purged", "epoch", **_COURSE),
    "Event": {
        "anyOf": [
            record(
                type={"const": TYPE},
                **{**_EVENT, "subject": NAME, "data": record("changed_documents", "sequence", **_PUBLICATION)},
            ),
            record("subject", "data", type={**NAME, "not": {"const": TYPE}}, **{**_EVENT, "subject": {}}),
        ],
        "description": "A CloudEvent; one of another type is taken and ignored.",
    },
    "Draining": {
        "anyOf": [
            closed("force", url={**NAME, "description": "As in the configuration."}, draining=YES, force=YES),
            closed("force", draining={"const": False}, force=YES),
        ]
    },
    "Imported": record(
        complete=YES, **dict.fromkeys(_IMPORTED, COUNT), known_since=maybe(NUMBER),
        bad_lines=rows(record(line=COUNT, why=TEXT)),
    ),
    "Judgement": closed(
        "request", entry_id=NAME, verdict={"enum": ["right", "wrong"]}, request=maybe(ANY)
    ),
    "Heeded": record(entry_id=TEXT, verdict=TEXT, removed=COUNT, barred=COUNT, lifted=COUNT),
    "Entry": record(**_ENTRY),
    "ShownEntry": record(
        **_ENTRY, answer=maybe(record(status={"type": "integer"}, stream=YES, text=TEXT, cut=YES))
    ),
    "Line": {
        "anyOf": [
            record(*_KNOWN, body=ANY, **_KNOWN),
            {**record(model={}), "not": {"required": ["body"]}},
        ],
        "description": "A request of a line: its body alone, or with what is known of it (docs/replay.md).",
    },
    "Job": record(**_JOB),
    "ShownJob": record(**_JOB, result=maybe(ANY)),
    "Question": {
        "anyOf": [
            closed("path", "headers", path=PATH, headers=maybe(_FIELDS), body={}),
            {"not": closed("path", "headers", path={}, headers={}, body={})},
        ],
        "description": "A request; or its body alone, with `?path=` and `X-Lookup-<name>` header fields.",
    },
    "Neighbour": record(
        "question", entry_id=ID, similarity=maybe(NUMBER), rank_by_meaning=maybe(COUNT), rank_by_words=maybe(COUNT),
        verdict=TEXT, question=TEXT,
        guards=rows(record("detail", guard=TEXT, on=YES, objects=YES, reason=maybe(TEXT), detail=TEXT)),
    ),
    "Looked": record(
        "model", "namespace", "kb", endpoint=maybe(TEXT), model=TEXT, namespace=TEXT, kb=rows(TEXT),
        would={"enum": ["exact", "semantic", "backend"]}, entry_id=maybe(ID), reason=maybe(TEXT), why=maybe(TEXT),
        exact=rows(record("age", "ttl", entry_id=ID, serves=YES, reason=maybe(TEXT), age=COUNT,
                          ttl={"type": "integer"})),
        semantic=maybe(record("threshold", "neighbours", serves=YES, reason=maybe(TEXT), why=maybe(TEXT),
                              threshold=NUMBER, neighbours=rows(ref("Neighbour")))),
    ),
}  # fmt: skip
"""By name."""
