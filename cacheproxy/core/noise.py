"""What is of one request only and says nothing to a model: header-like lines that agents put before their
instructions, and comments, times and ids in descriptions of tools. Pure."""

import re
from functools import lru_cache
from typing import Any

from cacheproxy.core.idents import idents
from cacheproxy.core.literal import Edit, edit_text
from cacheproxy.core.moments import moments
from cacheproxy.core.toolset import BY_NAME, DATA

NONCES = (
    "x-anthropic-billing-header", "x-request-id", "x-client-request-id", "x-correlation-id", "x-session-id",
    "x-trace-id", "traceparent",
)  # fmt: skip
"""Names of lines, ``name: value`` at the very head of a system text, that developers' tools are known to put there."""
ROUNDS = 6
LONGEST = 2**14
"""Characters of a description that is searched."""


@lru_cache(maxsize=64)
def _line(names: tuple[str, ...]) -> re.Pattern[str]:
    """A line of one of these names; ``*`` in a name is for any letters, digits, ``-``, ``_`` and ``.``."""
    alternatives = "|".join(re.escape(name).replace(r"\*", r"[\w.-]*") for name in names)
    return re.compile(rf"(?:{alternatives})[ \t]*+:([^\r\n]*+)(?:\r?\n)?+", re.IGNORECASE | re.ASCII)


def nonce_lines(text: str, names: tuple[str, ...]) -> list[tuple[int, int]]:
    """The lines at the very head of `text` that have one of these names, each with its line end."""
    spans: list[tuple[int, int]] = []
    at = 0
    while names and (found := _line(names).match(text, at)):
        spans.append(found.span())
        at = found.end()
    return spans


def nonces(text: str, names: tuple[str, ...]) -> list[Edit]:
    """Take such lines out. A text of nothing else keeps the last one's name: backends refuse empty texts."""
    spans = nonce_lines(text, names)
    if not spans:
        return []
    end = spans[-1][1]
    if end < len(text):
        return [(0, end, "")]
    last = _line(names).match(text, spans[-1][0])
    edits = [(0, spans[-1][0], ""), (last.start(1), end, "")] if last is not None else []
    return [(start, stop, new) for start, stop, new in edits if start < stop]


def without(tools: list[Any]) -> list[Any]:
    """`tools` without comments of their schemas, and without times and ids in their descriptions."""
    try:
        return [_quiet(tool) for tool in tools]
    except RecursionError:
        return tools


def _quiet(value: Any) -> Any:
    if isinstance(value, list):
        return [_quiet(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {name: _member(name, inner) for name, inner in value.items() if name != "$comment"}


def _member(name: str, value: Any) -> Any:
    if name in DATA:
        return value
    if name == "description" and isinstance(value, str):
        return _told(value)
    if name in BY_NAME and isinstance(value, dict):
        return {inner: _quiet(schema) for inner, schema in value.items()}
    return _quiet(value)


def _told(text: str) -> str:
    if len(text) > LONGEST:
        return text
    quiet = text
    for _ in range(ROUNDS):
        spans = sorted({*((m.start, m.end) for m in moments(quiet)), *idents(quiet)})
        if not spans:
            return quiet
        free = [span for i, span in enumerate(spans) if i == 0 or span[0] >= spans[i - 1][1]]
        quiet = edit_text(quiet, [(start, end, "") for start, end in free])
    return text
