"""Requests as lines, one JSON object each: a request's body, or an envelope with the body and what is known of it.

An envelope has `body` (an object, or its JSON as a text), and may have `path`, `headers`, `time` (seconds since the
epoch, or ISO 8601), `latency` (seconds), `usage` (`prompt_tokens`, `completion_tokens`) and `status`; what else it has
is passed over. Why a line is no request is said without a word of it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from cacheproxy.core.model import Fields

CHAT = "/v1/chat/completions"
_PATH = re.compile('/[!"$-~]*')


@dataclass(frozen=True, slots=True)
class Line:
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

    @property
    def fields(self) -> Fields:
        """Its header lines, as whoever reads them on the wire has them."""
        return tuple((name.encode(), value.strip().encode()) for name, value in self.headers)


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no request, and why not."""

    number: int
    why: str


def lines(told: Iterable[bytes]) -> Iterator[Line | BadLine]:
    """What each line is; empty ones count, and are passed over."""
    for number, line in enumerate(told, 1):
        if stripped := line.strip():
            yield read(number, stripped)


def read(number: int, line: bytes) -> Line | BadLine:
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
        return Line(number, CHAT, (), line)
    try:
        return Line(
            number, _path(told), _headers(told), _body(told), _time(told), _number(told, "latency"), _tokens(told),
            _status(told),
        )  # fmt: skip
    except ValueError as error:
        return BadLine(number, str(error))


def _path(told: dict[str, Any]) -> str:
    path = told.get("path") or CHAT
    if not isinstance(path, str) or not _PATH.fullmatch(path):
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
    names = ("prompt_tokens", "completion_tokens")
    prompt, completion = (_whole(usage.get(name, 0)) if isinstance(usage, dict) else None for name in names)
    if prompt is None or completion is None or min(prompt, completion) < 0:
        raise ValueError("`usage` does not have the numbers `prompt_tokens`, `completion_tokens`")
    return prompt, completion


def _status(told: dict[str, Any]) -> int:
    if told.get("status") is None:
        return 200
    status = _whole(told["status"])
    if status is None or not 100 <= status <= 599:
        raise ValueError("`status` is not the status of an answer")
    return status


def _whole(value: object) -> int | None:
    """A whole number, which JSON may write with a point."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
