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
        if document.get("error") is not None:
            return Reason.IN_BAND_ERROR
        trouble = _document_trouble(self._ask, document)
        if trouble is not None:
            return trouble
        has_usage = isinstance(document.get("usage"), dict)
        id_literal, created_literal = literals([(body, document)])
        return Answer(Form.JSON, self._content_type, body, has_usage, id_literal, created_literal)


def _document_trouble(ask: Ask, document: dict[str, Any]) -> Reason | None:
    choices = document.get("choices")
    if not isinstance(choices, list) or not all(isinstance(c, dict) for c in choices):
        return Reason.MALFORMED
    if not choices:
        return Reason.EMPTY
    tally = Tally()
    for position, choice in enumerate(choices):
        index = choice.get("index", position)
        said = choice.get("message") if ask.endpoint is Endpoint.CHAT else choice
        if not isinstance(said, dict) or not isinstance(index, int):
            return Reason.MALFORMED
        tally.note(index, choice.get("finish_reason"), said)
    return tally.trouble(ask.choices)


class Tally:
    """What is known of the choices of one answer: who finished, and whether anybody said anything."""

    def __init__(self) -> None:
        self._finished: dict[int, bool] = {}
        self._speaks = False
        self._audio = False
        self._other_finish = False

    def note(self, index: int, finish: Any, said: dict[str, Any]) -> None:
        """Note a choice's message, delta or text piece, and its finish reason if it has one."""
        self._finished.setdefault(index, False)
        if finish is not None:
            self._finished[index] = True
            self._other_finish |= not isinstance(finish, str) or finish not in KEPT_FINISHES
        self._audio |= bool(said.get("audio"))
        self._speaks |= any(said.get(name) for name in ("content", "text", "tool_calls", "refusal"))

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
        if self._trouble is None:
            for event in self._splitter.feed(data):
                self._take(event)

    def _take(self, event: Event) -> None:
        if not event.lines:
            return
        data = event.data
        if self.ended:
            if data is not None:
                self._trouble = Reason.MALFORMED
            return
        self._parts.append(event.stored)
        if data is None:
            return
        if data.strip() == DONE:
            self.ended = True
            return
        if event.field(b"event") == b"error":
            self._trouble = Reason.IN_BAND_ERROR
            return
        self._trouble = self._check(data)

    def _check(self, data: bytes) -> Reason | None:
        try:
            document = orjson.loads(data)
        except orjson.JSONDecodeError:
            return Reason.MALFORMED
        if not isinstance(document, dict):
            return Reason.MALFORMED
        if document.get("error") is not None:
            return Reason.IN_BAND_ERROR
        self._has_usage |= isinstance(document.get("usage"), dict)
        pair = literals([(data, document)])
        if self._literals is None:
            self._literals = pair
        elif self._literals != pair:
            self._literals = (
                self._literals[0] if self._literals[0] == pair[0] else b"",
                self._literals[1] if self._literals[1] == pair[1] else b"",
            )
        choices = document.get("choices")
        if choices is not None and not isinstance(choices, list):
            return Reason.MALFORMED
        for choice in choices or ():
            if not isinstance(choice, dict):
                return Reason.MALFORMED
            said = choice.get("delta") if self._ask.endpoint is Endpoint.CHAT else choice
            index = choice.get("index", 0)
            if not isinstance(index, int):
                return Reason.MALFORMED
            self._tally.note(index, choice.get("finish_reason"), said if isinstance(said, dict) else {})
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


_ID = re.compile(rb'"id"\s*:\s*"([A-Za-z0-9_.:/+=-]+)"')
_CREATED = re.compile(rb'"created"\s*:\s*([0-9]+)')


def literals(documents: Iterable[tuple[bytes, dict[str, Any]]]) -> tuple[bytes, bytes]:
    """The bytes that state the id and the time in every one of `documents` (bytes, parsed), for exchanging them.

    Empty where they stand in more or fewer places than exactly once at the top of each document. Inside a text the
    quotation marks would be escaped, so an unescaped literal cannot be part of what a model said.
    """
    id_literal: bytes | None = None
    created_literal: bytes | None = None
    for raw, document in documents:
        found_id = _literal(_ID, raw, document.get("id"))
        found_created = _literal(_CREATED, raw, document.get("created"))
        id_literal = found_id if id_literal in (None, found_id) else b""
        created_literal = found_created if created_literal in (None, found_created) else b""
    return id_literal or b"", created_literal or b""


def _literal(pattern: re.Pattern[bytes], raw: bytes, value: Any) -> bytes:
    if not isinstance(value, (str, int)):
        return b""
    wanted = str(value).encode()
    for found in pattern.finditer(raw):
        if found.group(1) == wanted:
            literal = found.group()
            return literal if raw.count(literal) == 1 else b""
    return b""
