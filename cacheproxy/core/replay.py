"""An `Answer` given back in the form that a request wants, whichever way it was recorded.

The same form is the recorded bytes. The other form is built once from them: nothing that the backend said is left
out or added, except the split into pieces that a stream needs.
"""

import re
from dataclasses import replace

import orjson

from cacheproxy.core import usage
from cacheproxy.core.assemble import assemble, disassemble
from cacheproxy.core.events import DONE, event, split
from cacheproxy.core.model import Answer, Endpoint, Form
from cacheproxy.core.recording import literals

JSON_TYPE = "application/json"
EVENTS_TYPE = "text/event-stream; charset=utf-8"


def can_give(answer: Answer, *, stream: bool, wants_usage: bool) -> bool:
    """Whether `answer` holds what the request wants: a stream recorded without usage cannot invent it."""
    return answer.has_usage or answer.form is Form.JSON or (stream and not wants_usage)


def is_ready(answer: Answer, *, stream: bool, wants_usage: bool) -> bool:
    """Whether the recorded bytes are what the request wants as they are."""
    if not stream or answer.form is Form.JSON:
        return not stream and answer.form is Form.JSON
    return wants_usage or not answer.has_usage


def render(answer: Answer, endpoint: Endpoint, *, stream: bool, wants_usage: bool) -> Answer:
    """`answer` in the form wanted. The result's body is ready to send, its literals ready to exchange."""
    if is_ready(answer, stream=stream, wants_usage=wants_usage):
        return answer
    if not stream:
        return _as_json(answer, endpoint)
    if answer.form is Form.JSON:
        return _as_events(answer, endpoint, wants_usage=wants_usage)
    sieve = usage.Filter()
    body = sieve.feed(answer.body) + sieve.rest
    return replace(answer, body=body, has_usage=False)


def _as_json(answer: Answer, endpoint: Endpoint) -> Answer:
    documents = [orjson.loads(e.data) for e in split(answer.body) if e.data is not None and e.data.strip() != DONE]
    document = assemble(documents, endpoint)
    body = orjson.dumps(document)
    return _remade(answer, Form.JSON, JSON_TYPE, body, [body])


def _as_events(answer: Answer, endpoint: Endpoint, *, wants_usage: bool) -> Answer:
    documents = disassemble(orjson.loads(answer.body), endpoint, with_usage=wants_usage)
    written = [orjson.dumps(document) for document in documents]
    body = b"".join([*map(event, written), event(DONE)])
    remade = _remade(answer, Form.EVENTS, EVENTS_TYPE, body, written)
    return replace(remade, has_usage=wants_usage and answer.has_usage)


def _remade(answer: Answer, form: Form, content_type: str, body: bytes, documents: list[bytes]) -> Answer:
    id_literal, created_literal = literals(documents)
    return replace(
        answer,
        form=form,
        content_type=content_type,
        body=body,
        id_literal=id_literal,
        created_literal=created_literal,
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
