"""What the three endpoints that stream are asked, and what a backend says to it."""

import json
from dataclasses import dataclass
from typing import Any

from tests.fakes.backend import completion, text_completion
from tests.flights.stage import DONE, telling
from tests.rig import BODY, CHAT

WORDS = ["Hello", ", 世界", " 🙂", "\n\n", "data: [DONE]\n\n", " end."]
TEXT = "".join(WORDS)


@dataclass(frozen=True)
class Form:
    """A request, and the events, or the document, that answer it."""

    path: str
    body: dict[str, Any]
    events: tuple[bytes, ...]
    document: dict[str, Any]

    @property
    def whole(self) -> bytes:
        return b"".join(self.events)


def _texts() -> tuple[bytes, ...]:
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m"}
    said = [{"text": word, "index": 0, "logprobs": None, "finish_reason": None} for word in WORDS]
    said.append({"text": "", "index": 0, "logprobs": None, "finish_reason": "stop"})
    return (*(b"data: " + json.dumps({**head, "choices": [one]}).encode() + b"\n\n" for one in said), DONE)


_PART = {"type": "output_text", "text": TEXT, "annotations": []}
_ITEM = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [_PART]}
RESPONSE = {
    "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "error": None,
    "incomplete_details": None, "model": "m", "output": [_ITEM],
    "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
}  # fmt: skip


def _responses() -> tuple[bytes, ...]:
    begun = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
    opened = {**_ITEM, "status": "in_progress", "content": []}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    told: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": opened},
        {"type": "response.content_part.added", **place, "part": {**_PART, "text": ""}},
        *({"type": "response.output_text.delta", **place, "delta": word} for word in WORDS),
        {"type": "response.output_text.done", **place, "text": TEXT},
        {"type": "response.content_part.done", **place, "part": _PART},
        {"type": "response.output_item.done", "output_index": 0, "item": _ITEM},
        {"type": "response.completed", "response": RESPONSE},
    ]
    numbered = [{**one, "sequence_number": number} for number, one in enumerate(told)]
    return tuple(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in numbered)


FORMS = {
    "chat": Form(CHAT, BODY, tuple(telling(WORDS)), completion(TEXT)),
    "completions": Form("/v1/completions", {"model": "m", "prompt": "Say hello."}, _texts(), text_completion(TEXT)),
    "responses": Form("/v1/responses", {"model": "m", "input": "Say hello."}, _responses(), RESPONSE),
}
