"""A backend's body -> an `Answer`, or the reason why it is none.

An answer is made only when it is proven complete: every choice that was asked for is there and finished with
``stop`` or ``tool_calls``, nothing inside is an error, at least one choice says something, and the body's own end
was seen (its framing by the caller of `finish`, the stream's terminal event here).
"""

import re
from collections.abc import Iterable
from typing import Any, Protocol

import orjson

from cacheproxy.core import choices, doubt, embeddings, rankings, responses
from cacheproxy.core.choices import Tally, said_by, too_deep
from cacheproxy.core.doubt import Doubt
from cacheproxy.core.events import DONE, Event, Splitter
from cacheproxy.core.model import STREAMED, Answer, Ask, Endpoint, Form
from cacheproxy.core.outcome import Reason
from cacheproxy.core.splice import walk
from cacheproxy.core.tokens import tokens_of


class Recorder(Protocol):
    """Takes a body as it passes. `held` is the bytes it keeps, `events` how many events it keeps, `ended` whether the
    answer itself is over."""

    held: int
    events: int
    ended: bool

    def feed(self, data: bytes) -> None:
        """Take the next bytes, content coding removed."""

    def finish(self) -> Answer | Reason:
        """What was recorded, after the framing said that the body is whole."""


def recorder(ask: Ask, content_type: str, status: int = 200) -> Recorder:
    """The recorder for the answer to `ask` with `status`."""
    if status != 200 or not ask.stream:
        return JsonRecorder(ask, content_type, status)
    if ask.endpoint is Endpoint.RESPONSES:
        return responses.EventRecorder(content_type, ask.most_tokens)
    return EventRecorder(ask, content_type)


class JsonRecorder:
    """Records one JSON document."""

    def __init__(self, ask: Ask, content_type: str, status: int = 200) -> None:
        self._ask = ask
        self._content_type = content_type
        self._status = status
        self._parts: list[bytes] = []
        self.held = 0
        self.events = 0
        self.ended = False

    def feed(self, data: bytes) -> None:
        self._parts.append(data)
        self.held += len(data)

    def finish(self) -> Answer | Reason:
        body = b"".join(self._parts)
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError:
            return Reason.MALFORMED
        if not isinstance(document, dict):
            return Reason.MALFORMED
        if self._status != 200:
            return Answer(Form.JSON, self._content_type, body, has_usage=False, status=self._status)
        if _is_error(document):
            return Reason.IN_BAND_ERROR
        trouble = _document_trouble(self._ask, body, document)
        return trouble or json_answer(self._ask.endpoint, self._content_type, body, document)


def json_answer(endpoint: Endpoint, content_type: str, body: bytes, document: dict[str, Any]) -> Answer:
    """The answer that a proven document, `body` in bytes, is."""
    usage = document.get("usage")
    id_literal, created_literal = literals([body]) if endpoint in RENAMED else (b"", b"")
    one_form = endpoint in STREAMED and (doubt.of_numbers(body) or doubt.of_document(document, endpoint))
    return Answer(
        Form.JSON, content_type, body, isinstance(usage, dict), id_literal, created_literal, tokens=tokens_of(usage),
        one_form=one_form,
    )  # fmt: skip


RENAMED = frozenset({Endpoint.CHAT, Endpoint.COMPLETIONS, Endpoint.EMBEDDINGS, Endpoint.RERANK, Endpoint.SCORE})
"""Endpoints whose answers have an id that nobody refers to afterwards."""


def _is_error(document: dict[str, Any]) -> bool:
    return document.get("error") is not None or document.get("object") == "error"


def _document_trouble(ask: Ask, body: bytes, document: dict[str, Any]) -> Reason | None:
    match ask.endpoint:
        case Endpoint.CHAT | Endpoint.COMPLETIONS:
            return choices.document_trouble(ask, body, document)
        case Endpoint.RESPONSES:
            return responses.trouble_of_document(document, ask.most_tokens)
        case Endpoint.EMBEDDINGS:
            return embeddings.trouble_of(document, ask.choices)
        case Endpoint.MODELS:
            return None if isinstance(document.get("data", document.get("models")), list) else Reason.MALFORMED
        case _:
            return rankings.trouble_of(ask.endpoint, document, ask.given)


class EventRecorder:
    """Records a stream of server-sent events, checking each as it passes."""

    def __init__(self, ask: Ask, content_type: str) -> None:
        self._ask = ask
        self._content_type = content_type
        self._splitter = Splitter()
        self._parts: list[bytes] = []
        self._tally = Tally()
        self._doubt = Doubt(ask.endpoint)
        self._trouble: Reason | None = None
        self._has_usage = False
        self._tokens = (0, 0)
        self._literals: tuple[bytes, bytes] | None = None
        self.held = 0
        self.events = 0
        self.ended = False

    def feed(self, data: bytes) -> None:
        self.held += len(data)
        if self._trouble is not None:
            return
        for event in self._splitter.feed(data):
            trouble = self._take(event)
            if trouble is not None:
                self._trouble = trouble
                return

    def _take(self, event: Event) -> Reason | None:
        if not event.lines:
            return None
        data = event.data
        if self.ended:
            return None if data is None else Reason.MALFORMED
        self._parts.append(event.stored)
        self.events += 1
        if data is None:
            return None
        if data.strip() == DONE:
            self.ended = True
            return None
        if event.field(b"event") == b"error":
            return Reason.IN_BAND_ERROR
        return self._check(event, data)

    def _check(self, event: Event, data: bytes) -> Reason | None:
        try:
            document = orjson.loads(data)
        except orjson.JSONDecodeError:
            return Reason.MALFORMED
        if not isinstance(document, dict):
            return Reason.MALFORMED
        if _is_error(document):
            return Reason.IN_BAND_ERROR
        if isinstance(usage := document.get("usage"), dict) and usage:
            self._has_usage = True
            self._tokens = tokens_of(usage)
        pair = literals([data])
        if self._literals is None:
            self._literals = pair
        elif self._literals != pair:
            self._literals = (
                self._literals[0] if self._literals[0] == pair[0] else b"",
                self._literals[1] if self._literals[1] == pair[1] else b"",
            )
        pieces = document.get("choices")
        if not isinstance(pieces, list | None) or too_deep(data, document):
            return Reason.MALFORMED
        for choice in pieces or ():
            said = said_by(self._ask.endpoint, choice, "delta")
            if said is None or not self._tally.note(choice.get("index", 0), choice.get("finish_reason"), said):
                return Reason.MALFORMED
        self._doubt.note(event, data, document)
        return None

    def finish(self) -> Answer | Reason:
        if self._trouble is not None:
            return self._trouble
        trouble = self._tally.trouble(self._ask.choices)
        if trouble is not None:
            return trouble
        if not self.ended or self._splitter.rest.strip():
            return Reason.NO_TERMINAL_EVENT
        id_literal, created_literal = self._literals or (b"", b"")
        body = b"".join(self._parts)
        return Answer(
            Form.EVENTS, self._content_type, body, self._has_usage, id_literal, created_literal, tokens=self._tokens,
            one_form=self._doubt.remains(self._tokens[1]),
        )  # fmt: skip


_PLAIN_ID = re.compile(rb'"[A-Za-z0-9_.:/+=-]+"')


def literals(documents: Iterable[bytes]) -> tuple[bytes, bytes]:
    """The bytes that state the id and the time in every one of `documents` (JSON objects), for exchanging them.

    Empty where they do not stand, in the same bytes, exactly once in each document and there at its top.
    """
    id_literal: bytes | None = None
    created_literal: bytes | None = None
    for raw in documents:
        id_here = created_here = b""
        for member in walk(raw):
            literal = raw[member.start : member.end]
            if member.is_called(b"id"):
                id_here = _once(raw, literal) if _PLAIN_ID.fullmatch(raw, member.value, member.end) else b""
            elif member.is_called(b"created"):
                created_here = _once(raw, literal) if raw[member.value : member.end].isdigit() else b""
        id_literal = id_here if id_literal in (None, id_here) else b""
        created_literal = created_here if created_literal in (None, created_here) else b""
    return id_literal or b"", created_literal or b""


def _once(raw: bytes, literal: bytes) -> bytes:
    return literal if raw.count(literal) == 1 else b""
