"""Event streams in every legal writing, with what each of their events says: mixed line ends, comments, other fields,
data in several lines, a byte order mark; and the places where it hurts most to cut them."""

import json
import random
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from cacheproxy.core.model import Endpoint
from tests.core import shapes

ENDS = (b"\n", b"\r\n", b"\r")
BOM = b"\xef\xbb\xbf"
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


@dataclass
class Block:
    """One block as it stands in the stream. `lines`: its fields, comments left out; none for a comment alone.
    `document`: what its data says, None for the terminal event."""

    raw: bytes
    lines: tuple[bytes, ...]
    document: Any = None

    @property
    def stored(self) -> bytes:
        return b"\n".join(self.lines) + b"\n\n" if self.lines else b""


@dataclass
class Writer:
    """Writes streams; which of the ways, the dice say. `plain`: one line of data in each event."""

    dice: random.Random
    plain: bool = False
    blocks: list[Block] = field(default_factory=list)

    def stream(self, documents: list[Any], *, done: bool = True) -> "Writer":
        for document in documents:
            self._maybe_comment()
            self._event(self._layout(document), document)
        if done:
            self._event([b"[DONE]"], None)
        self._maybe_comment()
        if self.dice.random() < 0.3:
            self.blocks[0].raw = BOM + self.blocks[0].raw
        return self

    @property
    def raw(self) -> bytes:
        return b"".join(block.raw for block in self.blocks)

    @property
    def stored(self) -> bytes:
        return b"".join(block.stored for block in self.blocks)

    def _layout(self, document: Any) -> list[bytes]:
        ascii_only = self.dice.random() < 0.3
        if self.plain or self.dice.random() < 0.6:
            separators = self.dice.choice([(",", ":"), (", ", ": "), ("\t,", " : ")])
            return [json.dumps(document, ensure_ascii=ascii_only, separators=separators).encode()]
        return json.dumps(document, ensure_ascii=ascii_only, indent=self.dice.choice([0, 1, 3])).encode().split(b"\n")

    def _event(self, data: list[bytes], document: Any) -> None:
        fields = [b"data:" + self.dice.choice([b"", b" "]) + line for line in data]
        for other in (
            b"id: 7",
            b"id",
            b"retry: 1000",
            b"event: message",
            b"x-unknown:y",
            b": ping",
            b":",
            b":: data: {",
        ):
            if self.dice.random() < 0.1:
                fields.insert(self.dice.randint(0, len(fields)), other)
        self._block(fields, document)

    def _maybe_comment(self) -> None:
        if self.dice.random() < 0.15:
            self._block([b": keep-alive", *[b":"] * self.dice.randrange(2)], None)

    def _block(self, lines: list[bytes], document: Any) -> None:
        raw, end = b"", b"\n"
        for line in lines:
            end = self.dice.choice(ENDS)
            raw += line + end
        blank = self.dice.choice(ENDS if end != b"\r" else ENDS[1:])  # CR and LF would be one line end
        told = tuple(line for line in lines if not line.startswith(b":"))
        self.blocks.append(Block(raw + blank, told, document))


def cut(raw: bytes, dice: random.Random, most: int = 300) -> list[bytes]:
    """`raw` in at most `most` pieces, cut above all inside characters, line ends, field names and the mark."""
    nasty = [
        at for at in range(1, len(raw))
        if 0x80 <= raw[at] < 0xC0 or raw[at - 1] in b"\r\n" or raw[at] in b"\r\n" or raw[at - 1 : at + 1] in (b"da", b"a:")
    ] if len(raw) < 100_000 else _nasty_few(raw, dice, most)  # fmt: skip
    places = set(dice.sample(nasty, min(len(nasty), dice.randint(0, most - 10))))
    places |= {dice.randint(0, len(raw)) for _ in range(dice.randrange(10))}
    edges = [0, *sorted(places), len(raw)]
    return [raw[a:b] for a, b in pairwise(edges)]


def _nasty_few(raw: bytes, dice: random.Random, most: int) -> list[int]:
    """The same for large streams: places near random ones."""
    found = []
    for _ in range(most):
        at = dice.randint(1, len(raw) - 1)
        mark = min((i for i in (raw.find(m, at) for m in (b"\r", b"\n", b"\x80", b"\xa9")) if i > 0), default=at)
        found += [at, mark, min(mark + 1, len(raw) - 1)]
    return sorted({at for at in found if 0 < at < len(raw)})


def _chat(dice: random.Random, texts: list[str], choices: int) -> list[Any]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m"}
    told = [
        {**head, "choices": [{"index": dice.randrange(choices), "delta": {"content": text}, "finish_reason": None}]}
        for text in texts
    ]
    told += [{**head, "choices": [{"index": i, "delta": {}, "finish_reason": "stop"}]} for i in range(choices)]
    return told


def _text(dice: random.Random, texts: list[str], choices: int) -> list[Any]:
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1700000000, "model": "m"}
    told = [
        {**head, "choices": [{"index": dice.randrange(choices), "text": text, "finish_reason": None}]} for text in texts
    ]
    told += [{**head, "choices": [{"index": i, "text": "", "finish_reason": "stop"}]} for i in range(choices)]
    return told


def _responses(dice: random.Random, texts: list[str], choices: int) -> list[Any]:
    del choices
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "".join(texts), "annotations": []}],
    }  # fmt: skip
    whole = {
        "id": "resp_1", "object": "response", "status": "completed", "error": None, "model": "m", "output": [message],
        "usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
    }  # fmt: skip
    deltas = [
        {"type": "response.output_text.delta", "delta": text, "sequence_number": dice.randrange(9)} for text in texts
    ]
    return [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}, *deltas,
        {"type": "response.completed", "response": whole},
    ]  # fmt: skip


KINDS = {Endpoint.CHAT: _chat, Endpoint.COMPLETIONS: _text, Endpoint.RESPONSES: _responses}
spoken = st.lists(
    shapes.texts | st.sampled_from(["data: ", "\r\n\r\n", "\n\ndata: [DONE]\n\n", "[DONE]", "\ufeff"]), max_size=5
)


def documents(endpoint: Endpoint, dice: random.Random, texts: list[str], choices: int = 1) -> list[Any]:
    """The documents of a complete stream that says `texts`, and something beside them."""
    return KINDS[endpoint](dice, ["Hello", *texts, "é漢😀"], choices)


def usage_of(endpoint: Endpoint) -> dict[str, Any]:
    """The document of a usage event."""
    kind = "text_completion" if endpoint is Endpoint.COMPLETIONS else "chat.completion.chunk"
    return {"id": "chatcmpl-1", "object": kind, "created": 1700000000, "model": "m", "choices": [], "usage": USAGE}
