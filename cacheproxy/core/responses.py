"""The Responses API: which requests may be kept, which answers are complete, and the recorder of its event stream.

An answer is kept only when it is proven complete: the response says ``completed`` of itself and of every item, at
least one item says something or calls a tool of the caller's, the backend ran no tool of its own, and a stream has
ended with ``response.completed``, which carries the whole response. Unlike in a chat the caller may name the answer's
id later (``previous_response_id``), so no id is ever exchanged.

A stream's events are kept as they came, numbers, unknown types and ``obfuscation`` included.
"""

from typing import Any

import orjson

from cacheproxy.core.doubt import of_numbers
from cacheproxy.core.events import DONE, Event, Splitter, split
from cacheproxy.core.model import Answer, Form
from cacheproxy.core.outcome import Reason
from cacheproxy.core.responses_stream import as_events
from cacheproxy.core.tokens import tokens_of

__all__ = [
    "KEPT_ITEMS", "EventRecorder", "as_document", "as_events", "trouble_of_document", "trouble_of_request",
]  # fmt: skip

KEPT_ITEMS = frozenset({"message", "reasoning", "function_call", "custom_tool_call", "compaction"})
"""Items that only say something: the model's words and thoughts, and calls that the caller will run."""

_REFERENCES = ("previous_response_id", "conversation", "prompt")
_ELSEWHERE = frozenset({"item_reference", "mcp_approval_response", "code_interpreter_call", "web_search_call"})
"""Items of a request that stand for what the backend has: an item, a call held back, a container, pages read."""
_RESULT = {"image_generation_call": "result", "file_search_call": "results"}
"""Items whose substance may be left with the backend, by the member that has it otherwise."""
_LABELS = frozenset({"id", "type", "status", "role", "object"})


def trouble_of_request(fields: dict[str, Any]) -> Reason | None:
    """Why the answer to a request with these `fields` may be another one later, or None."""
    background = fields.get("background")
    if any(fields.get(name) is not None for name in _REFERENCES) or not (background is None or background is False):
        return Reason.STATEFUL
    caching = fields.get("prompt_cache_options")
    if isinstance(caching, dict) and caching.get("comparison_response_id") is not None:
        return Reason.STATEFUL
    if _any_tool_refers(fields.get("tools")) or any(map(_refers, _objects(fields.get("input")))):
        return Reason.STATEFUL
    return None


def _refers(item: dict[str, Any]) -> bool:
    """Whether an item of the input stands for something that only the backend has."""
    kind = item.get("type")
    kind = kind if isinstance(kind, str) else ""
    if kind in _ELSEWHERE or _is_bare(item) or _any_tool_refers(item.get("tools")):
        return True
    if kind in _RESULT:
        return not item.get(_RESULT[kind])
    if kind == "reasoning":
        # Thoughts are looked up by id where neither they nor their sealed form come along; a summary is not them.
        return item.get("id") is not None and not (item.get("encrypted_content") or item.get("content"))
    return any(_is_bare(part) for name in ("content", "output") for part in _objects(item.get(name)))


def _is_bare(item: dict[str, Any]) -> bool:
    """Whether an object has an id and nothing else that says anything."""
    return item.get("id") is not None and not any(value for name, value in item.items() if name not in _LABELS)


def _any_tool_refers(tools: Any) -> bool:
    """Whether some tool works in a container that lives on, or by a skill whose text may change."""
    places = [tool.get(n) for tool in _objects(tools) for n in ("container", "environment")]
    return any(
        isinstance(place, str)
        or (isinstance(place, dict) and place.get("container_id") is not None)
        or (isinstance(place, dict) and any("skill_id" in skill for skill in _objects(place.get("skills"))))
        for place in places
    )


def _objects(value: Any) -> list[dict[str, Any]]:
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


_STATUS = {"completed": None, "incomplete": Reason.FINISH_REASON, "failed": Reason.IN_BAND_ERROR}
_SPOKEN = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text", "summary_text": "text"}
_HEARD = frozenset({"output_text", "refusal"})
_AUDIO = frozenset({"audio", "output_audio"})
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}


def trouble_of_document(document: dict[str, Any], most_tokens: int | None = None) -> Reason | None:
    """Why a response is not proven complete and fit to be kept, or None.

    `most_tokens`: the request's ``max_output_tokens``. Some backends say ``completed`` of what that limit cut.
    """
    if document.get("error") is not None or document.get("object") == "error":
        return Reason.IN_BAND_ERROR
    if document.get("object", "response") != "response" or not _can_be_written(document):
        return Reason.MALFORMED
    status = document.get("status")
    trouble = Reason.UNFINISHED_CHOICE if status is None else _status_trouble(status)
    if trouble is None and document.get("incomplete_details") is not None:
        trouble = Reason.FINISH_REASON
    if trouble is None and (document.get("previous_response_id") or document.get("conversation")):
        trouble = Reason.STATEFUL
    return trouble or _usage_trouble(document, most_tokens) or _output_trouble(document.get("output"))


def _status_trouble(status: Any) -> Reason | None:
    return _STATUS.get(status, Reason.UNFINISHED_CHOICE) if isinstance(status, str) else Reason.MALFORMED


def _can_be_written(document: dict[str, Any]) -> bool:
    """Whether `document` can be written again, also inside the object that a stream's event is."""
    try:
        orjson.dumps([document])
    except orjson.JSONEncodeError:
        return False
    return True


def _usage_trouble(document: dict[str, Any], most_tokens: int | None) -> Reason | None:
    """What the counts tell that the items do not: the limit was reached, or a tool's output was read."""
    usage = document.get("usage")
    details = usage.get("output_tokens_details") if isinstance(usage, dict) else None
    if isinstance(details, dict) and details.get("tool_output_tokens"):
        return Reason.SIDE_EFFECTS
    written = tokens_of(usage)[1]
    limits = [limit for limit in (most_tokens, document.get("max_output_tokens")) if type(limit) is int]
    return Reason.FINISH_REASON if any(0 < limit <= written for limit in limits) else None


def _output_trouble(output: Any) -> Reason | None:
    if not isinstance(output, list) or not all(isinstance(item, dict) for item in output):
        return Reason.MALFORMED
    for item in output:
        trouble = _item_trouble(item)
        if trouble is not None:
            return trouble
    return None if any(map(_speaks, output)) else Reason.EMPTY


def _item_trouble(item: dict[str, Any]) -> Reason | None:
    kind = item.get("type")
    if not isinstance(kind, str):
        return Reason.MALFORMED
    if kind not in KEPT_ITEMS:
        return Reason.SIDE_EFFECTS
    trouble = None if item.get("status") is None else _status_trouble(item["status"])
    if trouble is not None:
        return trouble
    if kind in _CALLS:
        return None if isinstance(item.get(_CALLS[kind]), str) else Reason.MALFORMED
    if kind == "message":
        return _parts_trouble(item.get("content"))
    if kind == "reasoning":
        return _parts_trouble(item.get("summary") or []) or _parts_trouble(item.get("content") or [])
    return None


def _parts_trouble(parts: Any) -> Reason | None:
    """Why a list of parts is not one whose text can be told in pieces, or must not be kept."""
    if not isinstance(parts, list):
        return Reason.MALFORMED
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str) or (kind in _SPOKEN and not isinstance(part.get(_SPOKEN[kind]), str)):
            return Reason.MALFORMED
        if kind in _AUDIO:
            return Reason.AUDIO
        if not all(isinstance(part.get(name), list | None) for name in ("annotations", "logprobs")):
            return Reason.MALFORMED
    return None


def _speaks(item: dict[str, Any]) -> bool:
    """Whether an item without trouble says something to the caller, or calls a tool of theirs."""
    if item["type"] != "message":
        return item["type"] in _CALLS
    return any(part["type"] in _HEARD and part[_SPOKEN[part["type"]]] for part in item["content"])


_ENDINGS = {
    "response.failed": Reason.IN_BAND_ERROR, "error": Reason.IN_BAND_ERROR, "response.incomplete": Reason.FINISH_REASON,
}  # fmt: skip


class EventRecorder:
    """Records the event stream of a response, checking each event as it passes.

    `held`: bytes it was fed; `events`: how many events it keeps; `ended`: the terminal event has been seen.
    `most_tokens`: the request's ``max_output_tokens``.
    """

    def __init__(self, content_type: str, most_tokens: int | None = None) -> None:
        self._content_type = content_type
        self._most_tokens = most_tokens
        self._splitter = Splitter()
        self._parts: list[bytes] = []
        self._trouble: Reason | None = None
        self._usage: Any = None
        self._closed = False
        self.held = 0
        self.events = 0
        self.ended = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes, content coding removed."""
        self.held += len(data)
        if self._trouble is not None:
            return
        for event in self._splitter.feed(data):
            self._trouble = self._take(event)
            if self._trouble is not None:
                self._parts.clear()
                return

    def _take(self, event: Event) -> Reason | None:
        data = event.data
        done = data is not None and data.strip() == DONE
        if not event.lines or (self.ended and data is None):
            return None
        if self._closed or (self.ended and not done):
            return Reason.MALFORMED
        if done and not self.ended:
            return Reason.NO_TERMINAL_EVENT
        self._closed = done
        self._parts.append(event.stored)
        self.events += 1
        return None if data is None or done else self._check(event, data)

    def _check(self, event: Event, data: bytes) -> Reason | None:
        if event.field(b"event") == b"error":
            return Reason.IN_BAND_ERROR
        try:
            document = orjson.loads(data)
        except orjson.JSONDecodeError:
            return Reason.MALFORMED
        if not isinstance(document, dict):
            return Reason.MALFORMED
        if document.get("error") is not None or document.get("object") == "error":
            return Reason.IN_BAND_ERROR
        kind = _kind(event, document)
        item = document.get("item")
        if kind in _ENDINGS:
            return _ENDINGS[kind]
        if isinstance(item, dict) and isinstance(item.get("type"), str) and item["type"] not in KEPT_ITEMS:
            return Reason.SIDE_EFFECTS
        return self._end(document.get("response")) if kind == _COMPLETED else None

    def _end(self, response: Any) -> Reason | None:
        if not isinstance(response, dict):
            return Reason.MALFORMED
        self.ended = True
        self._usage = response.get("usage")
        return trouble_of_document(response, self._most_tokens)

    def finish(self) -> Answer | Reason:
        """What was recorded, after the framing said that the body is whole."""
        if self._trouble is not None:
            return self._trouble
        if not self.ended or self._splitter.rest.strip():
            return Reason.NO_TERMINAL_EVENT
        body = b"".join(self._parts)
        usage = self._usage
        return Answer(
            Form.EVENTS, self._content_type, body, isinstance(usage, dict), tokens=tokens_of(usage),
            one_form=of_numbers(body),
        )  # fmt: skip


_COMPLETED = "response.completed"


def _kind(event: Event, document: dict[str, Any]) -> str:
    """The type of an event: as its document says, else as the stream calls it."""
    kind = document.get("type")
    return kind if isinstance(kind, str) else (event.field(b"event") or b"").decode("utf-8", "replace")


def as_document(body: bytes) -> dict[str, Any] | None:
    """The response that a recorded stream amounts to; None if the stream is not complete."""
    for event in reversed(split(body)):
        data = event.data
        if data is None or data.strip() == DONE:
            continue
        try:
            document = orjson.loads(data)
        except orjson.JSONDecodeError:
            return None
        response = document.get("response") if isinstance(document, dict) else None
        return response if isinstance(response, dict) and _kind(event, document) == _COMPLETED else None
    return None
