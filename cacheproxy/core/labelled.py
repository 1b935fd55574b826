"""Pairs of questions of which somebody has said whether one answer serves both, as JSON lines. Pure.

Two kinds of line: a pair (`a`, `b`, `same`), and one of the near-miss log (`asked`, `stored`, `similarity`, `reason`),
to which a person has added `same`. Other fields are passed over. A line that is neither is an error with its number.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

OBJECTIONS = ("unlike", "verifier", "barred", "padded")
"""The reasons of a near miss that no threshold would have made a hit."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions, and whether one answer serves both. `kind`: what it is a case of, empty if nothing says so."""

    a: str
    b: str
    same: bool
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Miss:
    """A near miss. `same`: what a person said of it, None if nobody has."""

    similarity: float
    reason: str
    same: bool | None

    @property
    def passes(self) -> bool:
        """Whether nothing but its similarity kept it from being served."""
        return self.reason.partition(":")[0] not in OBJECTIONS


def pairs(data: bytes) -> list[Pair]:
    """The pairs of a file. Raises `ValueError` with the number of the line that is none."""
    found = []
    for number, fields in _lines(data):
        a, b = (_of(fields, name, str, number, "text") for name in ("a", "b"))
        kind = fields.get("kind")
        same = _of(fields, "same", bool, number, "true or false")
        found.append(Pair(a, b, same, kind if isinstance(kind, str) else ""))
    return found


def misses(data: bytes) -> list[Miss]:
    """The near misses of a log. Raises `ValueError` with the number of the line that is none."""
    found = []
    for number, fields in _lines(data):
        similarity = _of(fields, "similarity", (int, float), number, "a number")
        if not -1 <= similarity <= 1:
            raise ValueError(f"line {number}: `similarity` must be between -1 and 1")
        same = None if fields.get("same") is None else _of(fields, "same", bool, number, "true or false")
        found.append(Miss(float(similarity), _of(fields, "reason", str, number, "text"), same))
    return found


def _of(fields: dict[str, Any], name: str, kind: type | tuple[type, ...], number: int, wanted: str) -> Any:
    if name not in fields:
        raise ValueError(f"line {number}: `{name}` is missing")
    value = fields[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"line {number}: `{name}` must be {wanted}")
    return value


def _lines(data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"line {data[: error.start].count(10) + 1}: not UTF-8") from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                fields = json.loads(line)
            except (ValueError, RecursionError):
                raise ValueError(f"line {number}: not valid JSON") from None
            if not isinstance(fields, dict):
                raise ValueError(f"line {number}: not a JSON object")
            yield number, fields
