"""What of a prompt decides its replica: which family it is of, and a trail of hashes along what a backend will read.
Pure, bounded in work, and the same in every process.

The trail follows the order of chat templates: the tools, the leading system texts, then the messages. Only equality
matters: two prompts that a backend reads alike may differ here, which costs a cache hit, never an answer.
"""

from hashlib import blake2b
from typing import Any

import orjson

from cacheproxy.core import blocks
from cacheproxy.core.affinity import Route
from cacheproxy.core.model import Endpoint

TEXT_BLOCK, TURN_BLOCK = 2048, 1024
"""Bytes between two hashes: of a text of the head, and of the messages."""
MOST_BYTES = 512 * 1024
"""Where a trail ends at the latest: all that is done for a prompt is bounded by this and by `MOST_HASHES`."""
MOST_HASHES = 256
OPENING = 1024
"""Characters of a system text, or of a first message, that tell its family."""
_PASSING = b"0123456789abcdefABCDEF"
"""What times and most ids are made of. A text without these signs still tells its family."""
_LONG = 16 * 1024
"""Characters of a message that is still written whole."""
_OPAQUE = 4096
"""Characters from which on a text without a space is data: an image, a file."""
_DEEPEST, _WIDEST = 16, 1024
_LEAST = 32
"""Bytes that the smallest value counts for."""
_TURNS = {Endpoint.CHAT: "messages", Endpoint.RESPONSES: "input", Endpoint.COMPLETIONS: "prompt"}


def route(endpoint: Endpoint, fields: dict[str, Any]) -> Route | None:
    """The route of a parsed body; None where there is no prompt to go by."""
    name = _TURNS.get(endpoint)
    if name is None:
        return None
    try:
        head = blocks.head(endpoint, fields)
    except orjson.JSONEncodeError:
        head = []  # tools that nothing can write again
    turns = _turns(endpoint, fields.get(name))
    if not head and not turns:
        return None
    trail = _Trail(_owner(fields))
    for block in head:
        if block.text:
            trail.text(block.text)
    reach = len(trail.chain)
    trail.turns(turns)
    return Route(_home(fields, head, turns), tuple(trail.chain), reach)


def _turns(endpoint: Endpoint, given: Any) -> list[Any]:
    """What is read after the head."""
    if endpoint is Endpoint.COMPLETIONS:
        if isinstance(given, list) and given and not isinstance(given[0], int):
            given = given[0]  # of several prompts the first one speaks for all
        given = _tokens(given) if isinstance(given, list) else given
    if isinstance(given, str):
        return [given] if given else []
    turns = given if isinstance(given, list) else []
    leading = 0
    while leading < len(turns) and isinstance(turn := turns[leading], dict) and turn.get("role") in blocks.INSTRUCTING:
        leading += 1
    return turns[leading : leading + _WIDEST]


def _tokens(given: list[Any]) -> str:
    """Token ids as a text."""
    ids = (token for token in given[: MOST_BYTES // 4] if isinstance(token, int))
    return " ".join(str(token % 2**64) for token in ids)


def _owner(fields: dict[str, Any]) -> bytes:
    """What no two prompts share anything across: the model, and the salt that a backend keeps its cache apart by."""
    return b"\xff".join(_utf8(v) if isinstance(v := fields.get(n), str) else b"" for n in ("model", "cache_salt"))


def _home(fields: dict[str, Any], head: list[blocks.Block], turns: list[Any]) -> bytes:
    tools = [_tool_name(tool) for block in head if len(block.path) == 1 for tool in _listed(fields, block.path[0])]
    system = "\n".join(block.text[: 2 * OPENING] for block in head if block.path[0] not in ("tools", "functions"))
    # Times and ids are taken out before the cut, which their length would move.
    lasting = _utf8(system[: 2 * OPENING]).translate(None, _PASSING)[:OPENING]
    opening = lasting or _utf8(_first_text(turns)[:OPENING])
    parts = [_owner(fields), *(_utf8(name) for name in sorted(tools)), opening]
    return blake2b(b"\xff".join(parts), digest_size=16).digest()


def _listed(fields: dict[str, Any], name: str | int) -> list[Any]:
    value = fields.get(str(name))
    return value[:MOST_HASHES] if isinstance(value, list) else []


def _tool_name(tool: Any) -> str:
    inner = tool.get("function", tool) if isinstance(tool, dict) else None
    name = (inner.get("name") or inner.get("type")) if isinstance(inner, dict) else None
    return name if isinstance(name, str) else ""


def _first_text(turns: list[Any]) -> str:
    content = turns[0].get("content") if turns and isinstance(turns[0], dict) else turns[0] if turns else None
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, dict) else part for part in content[:MOST_HASHES])
        return "\n".join(part[:OPENING] for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class _Trail:
    """Hashes along a prompt. Each is of everything up to its place, one for every so many bytes of a text: one that
    goes on where another ended shares its blocks."""

    def __init__(self, owner: bytes) -> None:
        self.chain: list[int] = []
        self._hash = blake2b(owner, digest_size=8)
        self._left = MOST_BYTES

    @property
    def full(self) -> bool:
        return self._left <= 0 or len(self.chain) >= MOST_HASHES

    def text(self, text: str) -> None:
        """The next text, whole."""
        self._text(text)
        self._mark()

    def turns(self, turns: list[Any]) -> None:
        """The next messages, as one JSON text where none of them is too large to be written whole."""
        light: list[Any] = []
        held = 0
        for turn in turns:
            size = _size(turn)
            if size is None:
                self._written(light)
                self._say(turn, 0)
                self._mark()
                light, held = [], 0
            else:
                light.append(turn)
                held += size
            if self.full or held > self._left:
                break
        self._written(light)

    def _written(self, turns: list[Any]) -> None:
        if not turns or self.full:
            return
        try:
            self._feed(orjson.dumps(turns, option=orjson.OPT_SORT_KEYS)[:-1], TURN_BLOCK)
        except orjson.JSONEncodeError:
            self._say(turns, 0)

    def _mark(self) -> None:
        if len(self.chain) < MOST_HASHES:
            self.chain.append(int.from_bytes(self._hash.copy().digest()))

    def _feed(self, data: bytes, block: int = TEXT_BLOCK) -> None:
        for start in range(0, len(data), block):
            if self.full:
                return
            piece = data[start : start + block]
            self._hash.update(piece)
            self._left -= max(len(piece), _LEAST)
            if len(piece) == block:
                self._mark()

    def _text(self, text: str) -> None:
        if len(text) > _OPAQUE and _is_opaque(text):
            text = f"{text[:OPENING]} {len(text)} {text[-OPENING:]}"
        self._feed(_utf8(text[: max(self._left, 0)]))
        self._hash.update(b"\xff")

    def _say(self, value: Any, depth: int) -> None:
        """What is too large, or of too strange a make-up, to be written whole."""
        if self.full:
            return
        if isinstance(value, str):
            self._text(value)
        elif isinstance(value, dict | list) and depth < _DEEPEST and len(value) < _WIDEST:
            self._feed(b"\xfe" if isinstance(value, dict) else b"\xfc")
            for part in sorted(value) if isinstance(value, dict) else value:
                self._say(part, depth + 1)
                if isinstance(value, dict):
                    self._say(value[part], depth + 1)
            self._feed(b"\xfd")
        elif isinstance(value, int):
            self._feed((value % 2**64).to_bytes(8))
        else:
            self._feed(repr(value).encode() if isinstance(value, float | None) else b"\xfb")


def _size(turn: Any) -> int | None:
    """Characters of a message's text; None if it is long, or not of text alone."""
    if not isinstance(turn, dict):
        return None
    content = turn.get("content")
    if content is None:
        content = turn.get("output", "")
    if isinstance(content, list) and len(content) < _WIDEST:
        texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
        content = "".join(texts) if len(texts) == len(content) else None
    return len(content) if isinstance(content, str) and len(content) <= _LONG else None


def _is_opaque(text: str) -> bool:
    start = text[:OPENING]
    return start.isascii() and not any(mark in start for mark in " \n\t")
