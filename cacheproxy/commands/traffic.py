"""Requests in a file, one JSON object a line: a request's body, or an envelope with the body and what is known of it.

An envelope has `body` (an object, or its JSON as a text), and may have `path`, `headers`, `time` (seconds since the
epoch, or ISO 8601), `latency` (seconds), `usage` (`prompt_tokens`, `completion_tokens`) and `status`; what else it has
is passed over.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from cacheproxy.errors import ConfigurationError

CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of line `number`. `time`: seconds since the epoch; `latency`: seconds; `tokens`: prompt, completion;
    each None if the line does not say. `status`: of the answer it got."""

    number: int
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    time: float | None = None
    latency: float | None = None
    tokens: tuple[int, int] | None = None
    status: int = 200


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no request, and why not."""

    number: int
    why: str


def requests(file: str) -> Iterator[Asked | BadLine]:
    """What each line of `file` is (`-`: standard input); empty lines are passed over. Raises `ConfigurationError`."""
    try:
        stream = sys.stdin.buffer if file == "-" else Path(file).open("rb")  # noqa: SIM115 - closed below
        with stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield read(number, line.strip())
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}") from None


def read(number: int, line: bytes) -> Asked | BadLine:
    """What one line is."""
    try:
        told = orjson.loads(line)
    except ValueError:
        return BadLine(number, "is not valid JSON")
    if not isinstance(told, dict):
        return BadLine(number, "is not a JSON object")
    if "body" not in told:
        if "model" not in told:
            return BadLine(number, "has neither `body` nor `model`")
        return Asked(number, CHAT, (), line)
    try:
        return Asked(
            number, _path(told), _headers(told), _body(told), _time(told), _number(told, "latency"), _tokens(told),
            _status(told),
        )  # fmt: skip
    except ValueError as error:
        return BadLine(number, str(error))


def _path(told: dict[str, Any]) -> str:
    path = told.get("path") or CHAT
    if not isinstance(path, str) or not path.startswith("/") or not path.isascii() or not path.isprintable():
        raise ValueError("`path` is not the path of a request")
    return path


def _headers(told: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    given = {} if told.get("headers") is None else told["headers"]
    if not isinstance(given, dict):
        raise ValueError("`headers` is not an object")
    pairs = [(name, one) for name, value in given.items() for one in (value if isinstance(value, list) else [value])]
    if not all(isinstance(value, str) and value.isprintable() and _is_token(name) for name, value in pairs):
        raise ValueError("`headers` has something that is no header")
    return tuple(pairs)


def _is_token(name: str) -> bool:
    return bool(name) and name.isascii() and name.replace("-", "").replace("_", "").isalnum()


def _body(told: dict[str, Any]) -> bytes:
    body = told["body"]
    if isinstance(body, str):
        try:
            if isinstance(orjson.loads(body), dict):
                return body.encode()
        except ValueError:
            pass
    if not isinstance(body, dict):
        raise ValueError("`body` is not a JSON object")
    return orjson.dumps(body)


def _time(told: dict[str, Any]) -> float | None:
    value = told.get("time")
    if not isinstance(value, str):
        return _number(told, "time")
    try:
        return datetime.fromisoformat(value).timestamp()
    except ValueError:
        raise ValueError("`time` is neither seconds nor ISO 8601") from None


def _number(told: dict[str, Any], name: str) -> float | None:
    value = told.get(name)
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value < 10**11:
        raise ValueError(f"`{name}` is not a number of seconds")
    return float(value)


def _tokens(told: dict[str, Any]) -> tuple[int, int] | None:
    usage = told.get("usage")
    if usage is None:
        return None
    counts = [usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens")] if isinstance(usage, dict) else []
    if len(counts) != 2 or not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError("`usage` does not have the numbers `prompt_tokens`, `completion_tokens`")
    return counts[0], counts[1]


def _status(told: dict[str, Any]) -> int:
    status = told.get("status")
    if status is None:
        return 200
    if type(status) is not int or not 100 <= status <= 599:
        raise ValueError("`status` is not the status of an answer")
    return status
