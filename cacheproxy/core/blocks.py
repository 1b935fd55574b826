"""Where a request's texts stand that come before any history: the blocks of its system and developer messages, and
what a chat template writes first. Pure.

Only reads: a body of any make-up has blocks, those parts of it that are not of the API's form have none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from cacheproxy.core.model import Endpoint

Path = tuple[str | int, ...]
"""The way from the top of a body to a place in it: names of members, numbers of elements."""

INSTRUCTING = ("system", "developer")
"""Roles whose messages are the application's own, not a person's or a tool's. No set: a role may be anything."""
_TEXTS = ("text", "input_text")


@dataclass(frozen=True, slots=True)
class Block:
    """A text and where it stands."""

    path: Path
    text: str

    @property
    def pointer(self) -> str:
        """The place as a JSON pointer (RFC 6901)."""
        return pointer(self.path)


def pointer(path: Path) -> str:
    """`path` as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def blocks(endpoint: Endpoint, fields: dict[str, Any]) -> list[Block]:
    """Every text of system and developer messages, in order, wherever in the conversation they stand."""
    return [block for block, _ in _instructing(endpoint, fields)]


def head(endpoint: Endpoint, fields: dict[str, Any]) -> list[Block]:
    """What a backend reads first, in the order in which chat templates write it: the tools, as one JSON text, and
    the system and developer texts that stand before every other message."""
    if endpoint not in (Endpoint.CHAT, Endpoint.RESPONSES):
        return []
    lists = [(name, fields.get(name)) for name in ("tools", "functions")]
    tools = [Block((name,), orjson.dumps(value).decode()) for name, value in lists if isinstance(value, list) and value]
    return [*tools, *(block for block, leads in _instructing(endpoint, fields) if leads)]


def _instructing(endpoint: Endpoint, fields: dict[str, Any]) -> Iterator[tuple[Block, bool]]:
    """The blocks, and whether no other message stands before each."""
    name = {Endpoint.CHAT: "messages", Endpoint.RESPONSES: "input"}.get(endpoint)
    if name is None:
        return
    if endpoint is Endpoint.RESPONSES and isinstance(text := fields.get("instructions"), str):
        yield Block(("instructions",), text), True
    turns = fields.get(name)
    leads = True
    for number, turn in enumerate(turns if isinstance(turns, list) else ()):
        if not (isinstance(turn, dict) and turn.get("role") in INSTRUCTING):
            leads = False
            continue
        content = turn.get("content")
        if isinstance(content, str):
            yield Block((name, number, "content"), content), leads
        for at, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict) and part.get("type") in _TEXTS and isinstance(text := part.get("text"), str):
                yield Block((name, number, "content", at, "text"), text), leads
