"""A backend's body -> an `Answer`, or the reason why it is none.

An answer is made only when it is proven complete: every choice that was asked for is there and finished with
``stop`` or ``tool_calls``, nothing inside is an error, at least one choice says something, and the body's own end
was seen (its framing by the caller of `finish`, the stream's terminal event here).
"""

import re
from collections.abc import Iterable
from typing import Any, Protocol

import orjson

from cacheproxy.core.events import DONE, Event, Splitter
from cacheproxy.core.model import Answer, Ask, Endpoint, Form
from cacheproxy.core.outcome import Reason
from cacheproxy.core.splice import walk

KEPT_FINISHES = frozenset({"stop", "tool_calls"})


class Recorder(Protocol):
    """Takes a body as it passes. `held` is the bytes it keeps, `ended` whether the answer itself is over."""

    held: int
    ended: bool

    def feed(self, data: bytes) -> None:
        """Take the next bytes, content coding removed."""

    def finish(self) -> Answer | Reason:
        """What was recorded, after the framing said that the body is whole."""


def recorder(ask: Ask, content_type: str) -> Recorder:
    """The recorder for the answer to `ask`."""
    return EventRecorder(ask, content_type) if ask.stream else JsonRecorder(ask, content_type)


class JsonRecorder:
    """Records one JSON document."""

    def __init__(self, ask: Ask, content_type: str) -> None:
        self._ask = ask
        self._content_type = content_type
        self._parts: list[bytes] = []
        self.held = 0
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
        if _is_error(document):
            return Reason.IN_BAND_ERROR
        trouble = _document_trouble(self._ask, body, document)
        if trouble is not None:
            return trouble
        has_usage = isinstance(document.get("usage"), dict)
        id_literal, created_literal = literals([body])
        return Answer(Form.JSON, self._content_type, body, has_usage, id_literal, created_literal)


def _is_error(document: dict[str, Any]) -> bool:
    return document.get("error") is not None or document.get("object") == "error"


def _document_trouble(ask: Ask, body: bytes, document: dict[str, Any]) -> Reason | None:
    choices = document.get("choices")
    if not isinstance(choices, list) or _too_deep(body, document):
        return Reason.MALFORMED
    if not choices:
        return Reason.EMPTY
    tally = Tally()
    seen: set[Any] = set()
    for position, choice in enumerate(choices):
        said = _said(ask.endpoint, choice, "message")
        if said is None or not said:
            return Reason.MALFORMED
        index = choice.get("index", position)
        if not tally.note(index, choice.get("finish_reason"), said) or index in seen:
            return Reason.MALFORMED
        seen.add(index)
    return tally.trouble(ask.choices)


_MOST_LEVELS = 200
"""Levels of nesting that can certainly be written again, also inside the object that a stream's event is."""


def _too_deep(raw: bytes, document: dict[str, Any]) -> bool:
    """Whether `document` cannot be written again in another form."""
    if raw.count(b"[") + raw.count(b"{") <= _MOST_LEVELS:
        return False
    levels = 0
    layer: list[Any] = [document]
    while layer and levels <= _MOST_LEVELS:
        levels += 1
        layer = [
            inner
            for outer in layer
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(layer)


def _said(endpoint: Endpoint, choice: Any, name: str) -> dict[str, Any] | None:
    """What a choice or a piece of one says, if it has the shape that its endpoint gives; {} if it says nothing."""
    if not isinstance(choice, dict) or not isinstance(choice.get("logprobs"), dict | None):
        return None
    if endpoint is Endpoint.COMPLETIONS:
        return choice if isinstance(choice.get("text"), str | None) else None
    said = choice.get(name)
    if said is None:
        return {}
    if not isinstance(said, dict) or not isinstance(calls := said.get("tool_calls"), list | None):
        return None
    content = said.get("content")
    if not isinstance(content, str | None) and (name == "delta" or not isinstance(content, list)):
        return None
    return said if all(isinstance(call, dict) for call in calls or ()) else None


class Tally:
    """What is known of the choices of one answer: who finished, and whether anybody said anything."""

    def __init__(self) -> None:
        self._finished: dict[int, bool] = {}
        self._speaks = False
        self._audio = False
        self._other_finish = False

    def note(self, index: Any, finish: Any, said: dict[str, Any]) -> bool:
        """Note a choice's message, delta or text piece, and its finish reason if it has one; False if the index is
        none."""
        if type(index) is not int:
            return False
        self._finished.setdefault(index, False)
        if finish is not None:
            self._finished[index] = True
            self._other_finish |= not isinstance(finish, str) or finish not in KEPT_FINISHES
        self._audio |= bool(said.get("audio"))
        self._speaks |= any(said.get(name) for name in ("content", "text", "tool_calls", "refusal"))
        return True

    @property
    def finished(self) -> bool:
        """Whether every choice seen has finished, and there is one."""
        return bool(self._finished) and all(self._finished.values())

    def trouble(self, wanted: int) -> Reason | None:
        """Why these choices are not a complete answer of `wanted` choices, or None."""
        if not self._finished:
            return Reason.EMPTY
        if len(self._finished) != wanted or not self.finished:
            return Reason.UNFINISHED_CHOICE
        if self._other_finish:
            return Reason.FINISH_REASON
        if self._audio:
            return Reason.AUDIO
        return None if self._speaks else Reason.EMPTY


class EventRecorder:
    """Records a stream of server-sent events, checking each as it passes."""

    def __init__(self, ask: Ask, content_type: str) -> None:
        self._ask = ask
        self._content_type = content_type
        self._splitter = Splitter()
        self._parts: list[bytes] = []
        self._tally = Tally()
        self._trouble: Reason | None = None
        self._has_usage = False
        self._literals: tuple[bytes, bytes] | None = None
        self.held = 0
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
        if data is None:
            return None
        if data.strip() == DONE:
            self.ended = True
            return None
        if event.field(b"event") == b"error":
            return Reason.IN_BAND_ERROR
        return self._check(data)

    def _check(self, data: bytes) -> Reason | None:
        try:
            document = orjson.loads(data)
        except orjson.JSONDecodeError:
            return Reason.MALFORMED
        if not isinstance(document, dict):
            return Reason.MALFORMED
        if _is_error(document):
            return Reason.IN_BAND_ERROR
        self._has_usage |= isinstance(document.get("usage"), dict)
        pair = literals([data])
        if self._literals is None:
            self._literals = pair
        elif self._literals != pair:
            self._literals = (
                self._literals[0] if self._literals[0] == pair[0] else b"",
                self._literals[1] if self._literals[1] == pair[1] else b"",
            )
        choices = document.get("choices")
        if not isinstance(choices, list | None) or _too_deep(data, document):
            return Reason.MALFORMED
        for choice in choices or ():
            said = _said(self._ask.endpoint, choice, "delta")
            if said is None or not self._tally.note(choice.get("index", 0), choice.get("finish_reason"), said):
                return Reason.MALFORMED
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
        return Answer(Form.EVENTS, self._content_type, body, self._has_usage, id_literal, created_literal)


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
