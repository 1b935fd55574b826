"""What a request asks of the backend, by the rules of docs/concepts.md: slow, obvious, and without the code under test.

`body` gives what a body asks, one normal form for each thing asked (several for a batch of embeddings); `head` what
else tells two requests apart. Equal forms: the same question. `Unkeyable`: it cannot be told without risk.
"""

import json
import math
from typing import Any
from urllib.parse import unquote

from cacheproxy.core.model import Endpoint

BOOKKEEPING = {"user", "metadata", "store", "safety_identifier", "prompt_cache_key"}
TRANSPORT = {"stream", "stream_options"}
NULL_IS_DEFAULT = {
    "audio", "best_of", "echo", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
    "max_completion_tokens", "max_tokens", "modalities", "n", "parallel_tool_calls", "prediction", "presence_penalty",
    "reasoning_effort", "response_format", "seed", "service_tier", "stop", "suffix", "temperature", "tool_choice",
    "tools", "top_k", "top_logprobs", "top_p", "verbosity", "web_search_options",
}  # fmt: skip
NULL_IS_DEFAULT_IN_RESPONSES = {
    "context_management", "conversation", "include", "instructions", "max_output_tokens", "max_tool_calls", "metadata",
    "moderation", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_retention", "reasoning",
    "safety_identifier", "service_tier", "temperature", "top_p",
}  # fmt: skip
NUMBERS = {
    "temperature", "top_p", "min_p", "typical_p", "frequency_penalty", "presence_penalty", "repetition_penalty",
}  # fmt: skip
STREAMED = {Endpoint.CHAT, Endpoint.COMPLETIONS, Endpoint.RESPONSES}


class Unkeyable(Exception):
    """Backends may differ in how they read this."""


def parse(raw: bytes) -> Any:
    """Strict JSON: `ValueError` if it is none, `Unkeyable` if it is legal and means different things to readers."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise Unkeyable("a name twice")
        return dict(pairs)

    def integer(text: str) -> int:
        if not -(2**63) <= int(text) < 2**64:
            raise Unkeyable("an integer beyond 64 bits")
        return int(text)

    def real(text: str) -> float:
        if math.isinf(float(text)):
            raise Unkeyable("a number without end")
        return float(text)

    def constant(text: str) -> Any:
        raise Unkeyable(text)

    return json.loads(
        raw.decode(), object_pairs_hook=members, parse_int=integer, parse_float=real, parse_constant=constant
    )


def typed(value: Any) -> Any:
    """A value that equals another only if both say the same: 1, 1.0, "1" and true are four."""
    match value:
        case dict():
            return ("object", frozenset((typed(name), typed(inner)) for name, inner in value.items()))
        case list():
            return ("array", tuple(typed(inner) for inner in value))
        case str():
            if any("\ud800" <= letter <= "\udfff" for letter in value):
                raise Unkeyable("half a character")
            return ("text", value)
        case _:
            return (type(value).__name__, repr(value))


def body(endpoint: Endpoint, raw: bytes) -> list[Any]:
    """What is asked: one form for each thing. Raises `ValueError`, `Unkeyable`."""
    fields = parse(raw)
    typed(fields)
    if not isinstance(fields, dict):
        raise Unkeyable("no object")
    if type(fields.get("stream")) not in (bool, type(None)):
        raise Unkeyable("whether it streams cannot be told")
    told = {name: value for name, value in fields.items() if not _is_left_out(endpoint, name, value)}
    for name in NUMBERS & told.keys():
        told[name] = float(told[name]) if type(told[name]) is int else told[name]
    if endpoint is Endpoint.CHAT and isinstance(told.get("messages"), list):
        told["messages"] = [_spoken(message, "text", ()) for message in told["messages"]]
    if endpoint is Endpoint.RESPONSES and isinstance(told.get("input"), list):
        turns = [_spoken(turn, "input_text", ("user", "system", "developer")) for turn in told["input"]]
        told["input"] = _bare_turn(turns)
    if endpoint is not Endpoint.EMBEDDINGS:
        return [typed(told)]
    if told.get("encoding_format", "float") in (None, "float"):
        told.pop("encoding_format", None)
    return [typed({**told, "input": item}) for item in _items(told)]


def _is_left_out(endpoint: Endpoint, name: str, value: Any) -> bool:
    if name in TRANSPORT:
        return endpoint in STREAMED
    if endpoint is Endpoint.RESPONSES:
        # What is told back in the answer is part of the question.
        return (value is None and name in NULL_IS_DEFAULT_IN_RESPONSES) or (name == "n" and _is_one(value))
    return name in BOOKKEEPING or (value is None and name in NULL_IS_DEFAULT) or (name == "n" and _is_one(value))


def _is_one(value: Any) -> bool:
    return type(value) is int and value == 1


def _spoken(message: Any, kind: str, roles: tuple[str, ...]) -> Any:
    """A message whose content is one text part says that text. `roles`: only theirs, and of no type; () for all."""
    if not isinstance(message, dict) or (roles and (message.get("role") not in roles or "type" in message)):
        return message
    match message.get("content"):
        case [{"type": str(said), "text": str(text), **rest}] if said == kind and not rest:
            return {**message, "content": text}
    return message


def _bare_turn(turns: list[Any]) -> Any:
    match turns:
        case [{"role": "user", "content": str(text), **rest}] if not rest:
            return text
    return turns


def _items(told: dict[str, Any]) -> list[Any]:
    """Each text, or each list of tokens, of an embeddings request."""
    if told.get("late_chunking") not in (None, False):
        raise Unkeyable("each vector depends on the others")
    given = told.get("input")
    if isinstance(given, str) or _are_tokens(given):
        return [given]
    if isinstance(given, list) and given:
        if all(isinstance(item, str) for item in given) or all(map(_are_tokens, given)):
            return given
    raise Unkeyable("no list of things to embed")


def _are_tokens(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(token) is int for token in value)


CREDENTIALS = ("authorization", "api-key", "x-api-key", "openai-organization", "openai-project")
SILENT = {
    "accept", "accept-encoding", "accept-charset", "user-agent", "cache-control", "pragma", "priority", "prefer",
    "content-type", "date", "via", "origin", "referer", "from", "dnt", "traceparent", "tracestate", "baggage", "b3",
    "x-request-id", "x-correlation-id", "request-id", "x-client-request-id", "idempotency-key", "forwarded",
    "x-real-ip", "host", "content-length", "x-cache-control", "x-cache-ttl", "x-cache-tags", "x-cache-semantic",
    "x-priority", "connection", "te", "keep-alive", "proxy-authorization", "x-cache-namespace", "x-cache-kb",
}  # fmt: skip
SILENT_FAMILIES = ("x-stainless-", "x-forwarded-", "sec-fetch-", "sec-ch-", "x-b3-", "x-datadog-")
BALANCERS = ("__cf_bm", "AWSALB", "GCLB", "ARRAffinity")


def head(lines: list[tuple[str, str]]) -> Any:
    """What the header lines add to the question: who asks, in which cache, of which knowledge, and every other line.

    The order of lines of different names tells nothing; that of lines of one name does.
    """
    lower = [(name.lower(), value) for name, value in lines]
    nominated = {part.strip().lower() for name, value in lower if name == "connection" for part in value.split(",")}
    who = [(name, value) for name in CREDENTIALS for n, value in lower if n == name]
    namespace = unquote(", ".join(value for name, value in lower if name == "x-cache-namespace").strip())
    bases = {
        tuple(map(unquote, base.strip().split("@", 1)))
        for name, value in lower if name == "x-cache-kb" for base in value.split(",") if base.strip()
    }  # fmt: skip
    others: dict[str, list[str]] = {}
    for name, value in lower:
        if name in SILENT or name in CREDENTIALS or name in nominated or name.startswith(SILENT_FAMILIES):
            continue
        if name == "accept-language" and value == "*":
            continue
        if name == "cookie":
            cookies = [c.strip() for c in value.split(";")]
            telling = "; ".join(c for c in cookies if c and not c.startswith(BALANCERS))
            others.setdefault(name, []).extend([telling] if telling else [])
            continue
        others.setdefault(name, []).append(value)
    return who, namespace, bases, {name: values for name, values in others.items() if values}
