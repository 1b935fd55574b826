"""What a recorded answer leaves in doubt about its other form, the document or the stream that it amounts to.

Texts that the API names are joined and its lists grow. Of what it does not name only the backend knows whether pieces
are to be joined or the last of them stands: that is certain only where it is said once, or always the same. The rules
here are those by which `assemble` puts a document together; where they do not decide, an answer keeps its one form.
"""

import re
from typing import Any

from cacheproxy.core.events import Event
from cacheproxy.core.model import Endpoint

Document = dict[str, Any]

STREAM_ONLY = frozenset({"obfuscation", "prompt_progress"})
"""Members of a chunk that the document has not."""
TEXTS = frozenset({"content", "refusal", "reasoning_content", "reasoning", "thinking"})
"""Members of a delta that are told in pieces."""
CONSTANT = frozenset({"id", "type", "role", "format", "index"})
"""Members of a delta, and of what is in it, that may be repeated and are no text to be joined."""
INDEXED = frozenset({"tool_calls", "reasoning_details"})
"""Lists of a delta whose items are pieces of the item of their index."""

_OBJECTS = frozenset({"", "chat.completion.chunk", "chat.completion", "text_completion"})
_OF_EACH = frozenset({"id", "created", "object", "choices", "usage", "timings"}) | STREAM_ONLY
_OF_CHATS = frozenset({"index", "delta", "message", "logprobs", "token_ids"})
_OF_TEXTS = frozenset({"index", "text", "logprobs", "token_ids"})
_OF_DETAILS = frozenset({"text", "summary", "data"})
_OF_CALLS = {"function": "arguments", "custom": "input"}
_OTHERWISE_WRITTEN = re.compile(rb"[:,\[\s-][0-9]{19,}\s*[,\]}]")
"""A whole number that may have too many digits to be written again as it is."""


def of_numbers(raw: bytes) -> bool:
    """Whether a number in `raw`, JSON, may not come out as it is when it is written again."""
    return _OTHERWISE_WRITTEN.search(raw) is not None


def of_document(document: Document, endpoint: Endpoint) -> bool:
    """Whether a proven chat completion or completion says something that no stream can."""
    return endpoint is Endpoint.CHAT and any(choice.get("delta") for choice in document["choices"])


def is_nothing(value: Any) -> bool:
    """Whether a value says nothing: it takes away nothing from what was said before."""
    return value is None or (isinstance(value, str | list | dict) and not value)


class Doubt:
    """Watches the chunks of one stream. `found`: whether the document that they amount to is in doubt."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.found = False
        self._endpoint = endpoint
        self._told: Document = {}
        self._choices: dict[int, _Choice] = {}
        self._counted: frozenset[str] = frozenset()
        self._usage_is_early = False

    def note(self, event: Event, data: bytes, chunk: Document) -> None:
        """Take a chunk of the right shape; `event` is what brought it, `data` its bytes."""
        if self.found:
            return
        named = event.field(b"event") if len(event.lines) > 1 else None
        self.found = (
            named not in (None, b"", b"message")
            or not _is_chunk(chunk.get("object"))
            or of_numbers(data)
            or _differs(self._told, chunk, _OF_EACH)
            or not all(self._note_choice(piece) for piece in chunk.get("choices") or ())
        )
        if isinstance(usage := chunk.get("usage"), dict) and usage:
            # What came later counts; not if it leaves out what came before.
            self.found |= not self._counted <= usage.keys()
            self._counted, self._usage_is_early = frozenset(usage), False

    def _note_choice(self, piece: Document) -> bool:
        self._usage_is_early |= piece.get("finish_reason") is not None
        index = piece.get("index", 0)
        if (choice := self._choices.get(index)) is None:
            choice = self._choices[index] = _Choice()
        return choice.take(piece, self._endpoint)

    def remains(self, written: int) -> bool:
        """Whether the document is in doubt, now that the stream is over. `written`: the tokens that its usage counts.

        It also is if the counts came before the end, or if just the token that ended each choice was not weighed
        (llama.cpp: it is in the document).
        """
        weighed = sum(choice.weighed for choice in self._choices.values())
        unweighed_ends = 0 < weighed == written - len(self._choices)
        return self.found or unweighed_ends or (bool(self._counted) and self._usage_is_early)


class _Choice:
    """What one choice has said. `weighed`: how many of its tokens came with their probability."""

    def __init__(self) -> None:
        self._told: Document = {}
        self._said: Document = {}
        self.weighed = 0
        self._weighed: Document = {}
        self._place: float = 0
        self._calls: dict[int, Document] = {}
        self._whole_calls: list[Any] = []
        self._details: dict[int, Document] = {}
        self._cited: list[Any] = []

    def take(self, piece: Document, endpoint: Endpoint) -> bool:
        """Whether what was said so far and `piece` have one meaning together."""
        is_chat = endpoint is Endpoint.CHAT
        if _differs(self._told, piece, _OF_CHATS if is_chat else _OF_TEXTS):
            return False
        fits = self._take_logprobs(piece.get("logprobs") or {})
        return fits and (not is_chat or self._take_delta(piece.get("delta") or {}))

    def _take_logprobs(self, logprobs: Document) -> bool:
        for name, value in logprobs.items():
            if isinstance(value, list):
                # Places in a text count on from chunk to chunk, or begin again in each: then they are not the text's.
                places = [self._place, *value] if name == "text_offset" else []
                if not all(isinstance(at, int | float) for at in places) or places != sorted(places):
                    return False
                self._place = places[-1] if places else self._place
                self.weighed += len(value) if name == "content" else 0
            elif not _once(self._weighed, name, value):
                return False
        return True

    def _take_delta(self, delta: Document) -> bool:
        for name, value in delta.items():
            if is_nothing(value) or (name in TEXTS and isinstance(value, str) and _is_text(self._said, name)):
                continue
            if name == "tool_calls":
                fits = all(self._take_call(call) for call in value)
            elif name == "reasoning_details" and _are_pieces(value):
                fits = name not in self._said and all(self._take_detail(detail) for detail in value)
            elif name == "annotations" and isinstance(value, list):
                fits = not any(item in self._cited for item in value)
                self._cited += value
            else:
                fits = _once(self._said, name, value) and not (name in INDEXED and self._details)
            if not fits:
                return False
        return True

    def _take_call(self, call: Document) -> bool:
        index = _index(call)
        if index is None:
            # Without an index it is a call of its own, unless a later piece is one without an id.
            fits = not self._calls and (not self._whole_calls or bool(call.get("id")))
            fits = fits and call.get("id") not in self._whole_calls
            self._whole_calls.append(call.get("id"))
            return fits
        known = self._calls.setdefault(index, {})
        if self._whole_calls:
            return False
        for name, value in call.items():
            if name in _OF_CALLS and isinstance(value, dict):
                inner = known.setdefault(name, {})
                if not isinstance(inner, dict):
                    return False
                fits = _names_fit(inner, value.get("name"), again=bool(call.get("id")))
                fits = fits and _pieces_fit(inner, value, frozenset({_OF_CALLS[name]}), but="name")
            else:
                fits = _once(known, name, value)
            if not fits:
                return False
        return True

    def _take_detail(self, detail: Document) -> bool:
        index = detail["index"]
        if index not in self._details and any(known > index for known in self._details):
            return False
        return _pieces_fit(self._details.setdefault(index, {}), detail, _OF_DETAILS)


def _index(item: Any) -> int | None:
    index = item.get("index") if isinstance(item, dict) else None
    return index if type(index) is int else None


def _are_pieces(value: Any) -> bool:
    return isinstance(value, list) and all(_index(item) is not None for item in value)


def _is_chunk(kind: Any) -> bool:
    return kind is None or (isinstance(kind, str) and kind in _OBJECTS)


def _differs(told: Document, members: Document, free: frozenset[str]) -> bool:
    """Whether one of the `members` that should be the same in every chunk is not."""
    for name, value in members.items():
        if name not in free and not is_nothing(value) and told.setdefault(name, value) != value:
            return True
    return False


def _once(said: Document, name: str, value: Any) -> bool:
    """Whether a member nobody names is said for the first time, or is the same number or constant again."""
    if is_nothing(value):
        return True
    if name not in said:
        said[name] = value
        return True
    again: bool = said[name] == value
    return again and (name in CONSTANT or not isinstance(value, str | list | dict))


def _is_text(said: Document, name: str) -> bool:
    return isinstance(said.setdefault(name, ""), str)


def _pieces_fit(said: Document, piece: Document, texts: frozenset[str], but: str = "") -> bool:
    for name, value in piece.items():
        if name == but or (name in texts and isinstance(value, str) and _is_text(said, name)):
            continue
        if not _once(said, name, value):
            return False
    return True


def _names_fit(known: Document, name: Any, *, again: bool) -> bool:
    """Whether it is clear what a call is to, with another piece of its name. `again`: the call's id came with it."""
    if is_nothing(name):
        return True
    old = known.get("name")
    known["name"] = name if old is None else old + name if isinstance(old, str) and isinstance(name, str) else old
    if old is None:
        return True
    if again:
        known["name"] = old
        return bool(name == old)
    return isinstance(name, str) and isinstance(old, str) and not name.startswith(old)
