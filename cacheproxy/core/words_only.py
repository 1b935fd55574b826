"""Whether an answer is nothing but words that were said to their end."""

from typing import Any

from cacheproxy.core import replay
from cacheproxy.core.model import Answer, Endpoint


def is_words_only(answer: Answer, endpoint: Endpoint) -> bool:
    """Whether a proven `answer` may stand for a question that is asked in other words: one choice, finished by itself,
    text alone, no tool call, not refused."""
    if answer.status != 200:
        return False
    document = replay.document_of(answer, endpoint)
    if endpoint is Endpoint.CHAT:
        choices = document.get("choices")
        return isinstance(choices, list) and len(choices) == 1 and _is_said(choices[0])
    if endpoint is Endpoint.RESPONSES:
        said = document.get("output")
        return document.get("status") == "completed" and isinstance(said, list) and all(map(_is_turn, said))
    return False


def _is_said(choice: Any) -> bool:
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict) or choice.get("finish_reason") != "stop":
        return False
    more = any(message.get(name) for name in ("tool_calls", "function_call", "refusal", "audio"))
    return not more and isinstance(message.get("content"), str) and bool(message["content"].strip())


def _is_turn(item: Any) -> bool:
    if not isinstance(item, dict) or item.get("type") not in ("message", "reasoning"):
        return False
    parts = item.get("content")
    return item["type"] == "reasoning" or (
        isinstance(parts, list) and all(isinstance(part, dict) and part.get("type") == "output_text" for part in parts)
    )
