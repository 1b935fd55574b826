"""The choices of an answer: whether all that were asked for are there, finished, and at least one says something."""

from typing import Any

from cacheproxy.core.model import Ask, Endpoint
from cacheproxy.core.outcome import Reason

KEPT_FINISHES = frozenset({"stop", "tool_calls"})


def document_trouble(ask: Ask, body: bytes, document: dict[str, Any]) -> Reason | None:
    """Why a chat completion or completion is not complete, or None. `body`: its bytes."""
    choices = document.get("choices")
    if not isinstance(choices, list) or too_deep(body, document):
        return Reason.MALFORMED
    if not choices:
        return Reason.EMPTY
    tally = Tally()
    seen: set[Any] = set()
    for position, choice in enumerate(choices):
        said = said_by(ask.endpoint, choice, "message")
        if said is None or not said:
            return Reason.MALFORMED
        index = choice.get("index", position)
        if not tally.note(index, choice.get("finish_reason"), said) or index in seen:
            return Reason.MALFORMED
        seen.add(index)
    return tally.trouble(ask.choices)


_MOST_LEVELS = 200
"""Levels of nesting that can certainly be written again, also inside the object that a stream's event is."""


def too_deep(raw: bytes, document: dict[str, Any]) -> bool:
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


def said_by(endpoint: Endpoint, choice: Any, name: str) -> dict[str, Any] | None:
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
