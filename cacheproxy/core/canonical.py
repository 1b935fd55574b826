"""Request bytes -> what is asked. Two bodies have one canonical form if and only if the backend is asked the same.

Unknown fields are kept; only the documented deny-list is left out, and only here: the forwarded body is another
object and is not touched by this module.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

import orjson

from cacheproxy.core.model import STREAMED, Endpoint
from cacheproxy.core.outcome import Reason

IGNORED = frozenset({
    "stream", "stream_options", "user", "metadata", "store", "safety_identifier", "prompt_cache_key",
})  # fmt: skip
"""Top-level fields that do not change what is generated: transport and bookkeeping. The configuration may differ."""


TRANSPORT = frozenset({"stream", "stream_options"})
"""Of these, what an answer's form is chosen by, where it has two; elsewhere a backend may mean anything by them."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """What of a body is left out of its key: names at its top, and places deeper inside as paths of names.

    In a path, ``*`` stands for every element of a list, a number for one.
    """

    names: frozenset[str] = IGNORED
    paths: tuple[tuple[str, ...], ...] = ()


USUAL = Ignored()

NULL_IS_ABSENT = frozenset({
    "audio", "best_of", "echo", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
    "max_completion_tokens", "max_tokens", "modalities", "n", "parallel_tool_calls", "prediction",
    "presence_penalty", "reasoning_effort", "response_format", "seed", "service_tier", "stop", "suffix",
    "temperature", "tool_choice", "tools", "top_k", "top_logprobs", "top_p", "verbosity", "web_search_options",
})  # fmt: skip
"""Optional fields of the API for which it says that null is the default, as if absent. Never read as 0."""

ECHOED = frozenset({"user", "metadata", "store", "safety_identifier", "prompt_cache_key"})
"""Bookkeeping that an answer of the Responses API repeats, so that it is part of that key: one caller's user must not
be told to another."""

_RESPONSES_NULL_IS_ABSENT = frozenset({
    "context_management", "conversation", "include", "instructions", "max_output_tokens", "max_tool_calls", "metadata",
    "moderation", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_retention", "reasoning",
    "safety_identifier", "service_tier", "temperature", "top_p",
})  # fmt: skip
"""The same for the Responses API. Some backends read null otherwise than absence in fields that are not here."""

NUMBERS = frozenset({
    "temperature", "top_p", "min_p", "typical_p", "frequency_penalty", "presence_penalty", "repetition_penalty",
})  # fmt: skip
"""Fields of type ``number`` (not ``integer``): 0 and 0.0 are one value. Everywhere else 1 and 1.0 differ."""

_EXPONENTS = (b"e+", *(b"e%d" % digit for digit in range(1, 10)))
"""What the number of an integer beyond 64 bits has when it is written again, in whichever style."""

_DEFAULTS: dict[str, object] = {"n": 1}
"""Fields whose written default equals their absence on every backend."""


@dataclass(frozen=True, slots=True)
class Body:
    """A parsed request body. `trouble` names why it must not be keyed; None means it may be."""

    fields: dict[str, Any]
    trouble: Reason | None = None


def read(raw: bytes) -> Body | None:
    """Parse a request body strictly. None: not JSON at all."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _second_opinion(raw)
    if not isinstance(value, dict):
        return Body({}, Reason.UNKEYABLE)
    trouble = None
    stream = value.get("stream")
    if stream is not None and not isinstance(stream, bool):
        trouble = Reason.UNKEYABLE
    elif isinstance(options := value.get("stream_options"), dict) and options.get("continuous_usage_stats"):
        trouble = Reason.STREAM_OPTIONS
    return Body(value, trouble)


def _second_opinion(raw: bytes) -> Body | None:
    """What the fast parser refuses may still be legal, or be what lenient backends take: forwarded, never keyed."""
    try:
        value = json.loads(raw, parse_int=len)  # only whether it is legal counts; integers may have any length
    except RecursionError:
        return Body({}, Reason.UNKEYABLE)
    except ValueError:
        return None
    return Body(value if isinstance(value, dict) else {}, Reason.UNKEYABLE)


def form(endpoint: Endpoint, raw: bytes, fields: dict[str, Any], ignored: Ignored = USUAL) -> bytes | None:
    """The canonical bytes of a parsed body, or None where they would not tell two requests apart."""
    return reduced(endpoint, fields, ignored) if is_clear(raw, fields) else None


def is_clear(raw: bytes, fields: dict[str, Any]) -> bool:
    """Whether `fields` is all that `raw` says: the parser keeps the last of equal names and turns integers beyond
    64 bits into floating point numbers, and both show only in the bytes."""
    try:
        whole = orjson.dumps(fields)
    except orjson.JSONEncodeError:
        return False  # nested deeper than can be written
    if _quotes(raw) != _quotes(whole):
        return False
    return not (any(mark in whole for mark in _EXPONENTS) and _has_huge_integer(raw))


def reduced(endpoint: Endpoint, fields: dict[str, Any], ignored: Ignored = USUAL) -> bytes:
    """The canonical bytes of fields that are known to tell two requests apart."""
    kept: dict[str, Any] = {}
    responses = endpoint is Endpoint.RESPONSES
    left_out = ignored.names - ECHOED if responses else ignored.names
    if endpoint not in STREAMED:
        left_out -= TRANSPORT
    null_is_absent = _RESPONSES_NULL_IS_ABSENT if responses else NULL_IS_ABSENT
    for name, value in fields.items():
        if name in left_out or (value is None and name in null_is_absent):
            continue
        if name in _DEFAULTS and value == _DEFAULTS[name] and type(value) is type(_DEFAULTS[name]):
            continue
        kept[name] = float(value) if name in NUMBERS and type(value) is int else value
    if endpoint is Endpoint.CHAT and isinstance(kept.get("messages"), list):
        kept["messages"] = [_message(m) for m in kept["messages"]]
    if responses and "input" in kept:
        kept["input"] = _turns(kept.get("input"))
    for path in ignored.paths:
        kept = _without(kept, path)
    return orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)


def _turns(value: Any) -> Any:
    """The input of a Responses request: one bare turn of the user is the text that it says."""
    if not isinstance(value, list):
        return value
    turns = [_turn(turn) for turn in value]
    if len(turns) == 1 and isinstance(turns[0], dict) and turns[0].keys() == {"role", "content"}:
        if turns[0]["role"] == "user" and isinstance(turns[0]["content"], str):
            return turns[0]["content"]
    return turns


def _turn(turn: Any) -> Any:
    if isinstance(turn, dict) and turn.get("role") in ("user", "system", "developer") and "type" not in turn:
        content = turn.get("content")
        if isinstance(content, list) and len(content) == 1 and isinstance(part := content[0], dict):
            if part.keys() == {"type", "text"} and part["type"] == "input_text" and isinstance(part["text"], str):
                return {**turn, "content": part["text"]}
    return turn


def _without(value: Any, path: tuple[str, ...]) -> Any:
    """`value` without what stands at `path` (RFC 6901, unescaped); the same object where nothing does."""
    name, *deeper = path
    if isinstance(value, dict) and name in value:
        if not deeper:
            return {n: v for n, v in value.items() if n != name}
        return {**value, name: _without(value[name], tuple(deeper))}
    if isinstance(value, list):
        if name == "*":
            return [_without(v, tuple(deeper)) for v in value] if deeper else []
        if name.isascii() and name.isdigit() and len(name) < 10 and int(name) < len(value):
            at = int(name)
            inner = [_without(value[at], tuple(deeper))] if deeper else []
            return [*value[:at], *inner, *value[at + 1 :]]
    return value


def pointer(text: str) -> tuple[str, ...] | None:
    """The path of a JSON pointer (RFC 6901); None if it is none or points at the whole."""
    if not text.startswith("/") or re.search(r"~(?![01])", text):
        return None
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))


def _message(message: Any) -> Any:
    """A message with a content of one bare text part written as the string it is."""
    if isinstance(message, dict) and isinstance(content := message.get("content"), list) and len(content) == 1:
        part = content[0]
        if isinstance(part, dict) and part.keys() == {"type", "text"} and part["type"] == "text":
            if isinstance(part["text"], str):
                return {**message, "content": part["text"]}
    return message


def _quotes(raw: bytes) -> int:
    """How many quotation marks delimit strings in `raw`: escaped ones do not count.

    Two for every string, so a member that the parser dropped as a duplicate shows as a difference.
    """
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return raw.count(b'"')


def _has_huge_integer(raw: bytes) -> bool:
    """Whether some integer in `raw` is beyond 64 bits."""
    found = False

    def note(text: str) -> int:
        nonlocal found
        # 19 digits or fewer always fit; the length is looked at first since a number may have millions of digits.
        if len(text) > 21 or (len(text) > 18 and not -(2**63) <= int(text) < 2**64):
            found = True
        return 0

    try:
        json.loads(raw, parse_int=note)
    except (ValueError, RecursionError):
        return True
    return found


def model_of(fields: dict[str, Any]) -> str:
    """The model asked for, or an empty text."""
    model = fields.get("model")
    return model if isinstance(model, str) else ""


def choices_of(fields: dict[str, Any], endpoint: Endpoint) -> int:
    """How many choices the answer must have: `n`, times the prompts of a completion that gives several."""
    n = fields.get("n")
    count = n if type(n) is int and n > 0 else 1
    prompt = fields.get("prompt")
    if endpoint is Endpoint.COMPLETIONS and isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
        count *= len(prompt)
    return count


def most_tokens_of(fields: dict[str, Any], endpoint: Endpoint) -> int | None:
    """The limit on an answer of the Responses API, which not every backend says to have cut it."""
    most = fields.get("max_output_tokens")
    return most if endpoint is Endpoint.RESPONSES and type(most) is int else None


def wants_usage(fields: dict[str, Any]) -> bool:
    """Whether a streamed answer must end with its token usage."""
    options = fields.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True
