"""What of a request is the question that others may have asked in other words, and the frame it stands in.

Only the text of the user's last message is the question. All else is the frame, which must be the same to the byte:
system prompt, history, format, model, parameters. What is more than words, or wants more than words, has no question.
"""

from dataclasses import dataclass
from typing import Any

from cacheproxy.core import canonical
from cacheproxy.core.canonical import Ignored
from cacheproxy.core.model import Endpoint
from cacheproxy.core.outcome import Reason

PLACE = "\0question\0"
"""Stands for the question in its frame. No request has a NUL there and means it."""

_TOOLS = ("tools", "functions", "tool_choice", "function_call", "web_search_options", "plugins")
_SHAPED = (
    "logprobs", "top_logprobs", "prompt_logprobs", "audio", "prediction", "suffix", "echo", "grammar", "guided_json",
    "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "json_schema", "regex", "ebnf",
)  # fmt: skip
"""Fields by which an answer has to fit the very words of a question, or says more than words."""


@dataclass(frozen=True, slots=True)
class Question:
    """`text`: the question as it was asked; `frame`: the canonical bytes of all else."""

    text: str
    frame: bytes


def question(endpoint: Endpoint, fields: dict[str, Any], ignored: Ignored = canonical.USUAL) -> Question | Reason:
    """The question of a request with these fields, or why it has none."""
    if endpoint is Endpoint.CHAT:
        turns = fields.get("messages")
    elif endpoint is Endpoint.RESPONSES:
        turns = fields.get("input")
        turns = [{"role": "user", "content": turns}] if isinstance(turns, str) else turns
    else:
        return Reason.NOT_A_QUESTION
    if any(fields.get(name) not in (None, [], False, 0) for name in (*_TOOLS, *_SHAPED)):
        return Reason.NOT_A_QUESTION
    if fields.get("n") not in (None, 1) or _has_schema(fields) or not isinstance(turns, list) or not turns:
        return Reason.NOT_A_QUESTION
    last = turns[-1]
    if not isinstance(last, dict) or last.get("role") != "user" or "tool_calls" in last:
        return Reason.NOT_A_QUESTION
    text = _text(last.get("content"))
    if text is None:
        return Reason.NOT_A_QUESTION
    if not text.strip():
        return Reason.EMPTY_QUESTION
    name = "messages" if endpoint is Endpoint.CHAT else "input"
    framed = {**fields, name: [*turns[:-1], {**last, "content": PLACE}]}
    return Question(text, canonical.reduced(endpoint, framed, ignored))


def _text(content: object) -> str | None:
    """The words of a content that is nothing but words."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and len(content) == 1 and isinstance(part := content[0], dict):
        if part.keys() == {"type", "text"} and part["type"] in ("text", "input_text") and isinstance(part["text"], str):
            return part["text"]
    return None


def _has_schema(fields: dict[str, Any]) -> bool:
    """Whether the answer must fit a schema."""
    text = fields.get("text")
    formats = (fields.get("response_format"), text.get("format") if isinstance(text, dict) else None)
    return any(isinstance(told, dict) and told.get("type", "text") != "text" for told in formats)
