"""An `Answer` given back in the form that a request wants, whichever way it was recorded.

The same form is the recorded bytes. The other form is built once from them: nothing that the backend said is left
out or added, except the split into pieces that a stream needs.
"""

import re
from dataclasses import replace
from typing import Any

import orjson

from cacheproxy.core import policy, responses, usage
from cacheproxy.core.assemble import assemble, disassemble
from cacheproxy.core.events import DONE, event, split
from cacheproxy.core.model import Answer, Endpoint, Form
from cacheproxy.core.outcome import Reason
from cacheproxy.core.recording import RENAMED, literals

JSON_TYPE = "application/json"
EVENTS_TYPE = "text/event-stream; charset=utf-8"


def can_give(answer: Answer, endpoint: Endpoint, *, stream: bool, wants_usage: bool) -> bool:
    """Whether `answer` holds what the request wants."""
    return why_not(answer, endpoint, stream=stream, wants_usage=wants_usage) is None


def why_not(answer: Answer, endpoint: Endpoint, *, stream: bool, wants_usage: bool) -> Reason | None:
    """Why `answer` does not hold what the request wants: a stream recorded without usage cannot invent it, and what
    is certain in one form alone is not given in the other. None if it does."""
    if answer.status == 200 and answer.one_form and stream != (answer.form is Form.EVENTS):
        return Reason.ONE_FORM
    if answer.form is Form.JSON or endpoint not in policy.ASKED_FOR_USAGE:
        return None
    return None if answer.has_usage or (stream and not wants_usage) else Reason.USAGE_MISSING


def is_ready(answer: Answer, endpoint: Endpoint, *, stream: bool, wants_usage: bool) -> bool:
    """Whether the recorded bytes are what the request wants as they are."""
    if answer.status != 200:
        return True
    if not stream or answer.form is Form.JSON:
        return not stream and answer.form is Form.JSON
    return wants_usage or not answer.has_usage or endpoint not in policy.ASKED_FOR_USAGE


def render(answer: Answer, endpoint: Endpoint, *, stream: bool, wants_usage: bool) -> Answer:
    """`answer` in the form wanted. The result's body is ready to send, its literals ready to exchange."""
    if is_ready(answer, endpoint, stream=stream, wants_usage=wants_usage):
        return answer
    if not stream:
        return _as_json(answer, endpoint)
    if answer.form is Form.JSON:
        return _as_events(answer, endpoint, wants_usage=wants_usage)
    sieve = usage.Filter()
    body = sieve.feed(answer.body) + sieve.rest
    return replace(answer, body=body, has_usage=False)


def document_of(answer: Answer, endpoint: Endpoint) -> dict[str, Any]:
    """The one JSON document that `answer` is or amounts to."""
    if answer.form is Form.JSON:
        return dict(orjson.loads(answer.body))
    if endpoint is Endpoint.RESPONSES:
        return responses.as_document(answer.body) or {}
    documents = [orjson.loads(e.data) for e in split(answer.body) if e.data is not None and e.data.strip() != DONE]
    return assemble(documents, endpoint)


_PASSING = frozenset({
    "id", "created", "created_at", "completed_at", "usage", "system_fingerprint", "timings", "service_tier",
})  # fmt: skip
"""What two answers that say the same may differ in."""


def same(one: Answer, other: Answer, endpoint: Endpoint) -> bool:
    """Whether two answers say the same: all but their ids, times and counts."""
    return bool(_said(document_of(one, endpoint)) == _said(document_of(other, endpoint)))


def _said(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _said(inner) for name, inner in value.items() if name not in _PASSING}
    return [_said(inner) for inner in value] if isinstance(value, list) else value


def _as_json(answer: Answer, endpoint: Endpoint) -> Answer:
    body = orjson.dumps(document_of(answer, endpoint))
    return _remade(answer, endpoint, Form.JSON, JSON_TYPE, body, [body])


def _as_events(answer: Answer, endpoint: Endpoint, *, wants_usage: bool) -> Answer:
    document = orjson.loads(answer.body)
    if endpoint is Endpoint.RESPONSES:
        return _remade(answer, endpoint, Form.EVENTS, EVENTS_TYPE, b"".join(responses.as_events(document)), [])
    written = [orjson.dumps(chunk) for chunk in disassemble(document, endpoint, with_usage=wants_usage)]
    body = b"".join([*map(event, written), event(DONE)])
    remade = _remade(answer, endpoint, Form.EVENTS, EVENTS_TYPE, body, written)
    return replace(remade, has_usage=wants_usage and answer.has_usage)


def _remade(  # noqa: PLR0913 - what an answer is
    answer: Answer, endpoint: Endpoint, form: Form, content_type: str, body: bytes, documents: list[bytes]
) -> Answer:
    id_literal, created_literal = literals(documents) if endpoint in RENAMED else (b"", b"")
    return replace(
        answer,
        form=form,
        content_type=content_type,
        body=body,
        id_literal=id_literal,
        created_literal=created_literal,
        pace=b"",
    )


_ID_PREFIX = re.compile(rb"(?:[A-Za-z]+[-_])?")


def refresh(answer: Answer, unique: str, now: int) -> bytes:
    """The body with an id and a creation time of its own; `unique` is 32 hexadecimal digits, `now` whole seconds.

    Where they cannot be exchanged safely they stay as recorded.
    """
    body = answer.body
    if answer.id_literal:
        value = answer.id_literal.rindex(b'"', 0, -1) + 1
        prefix = _ID_PREFIX.match(answer.id_literal, value)
        kept = answer.id_literal[: prefix.end() if prefix else value]
        body = body.replace(answer.id_literal, kept + unique.encode() + b'"')
    if answer.created_literal:
        name = answer.created_literal.rstrip(b"0123456789")
        body = body.replace(answer.created_literal, name + b"%d" % now)
    return body
