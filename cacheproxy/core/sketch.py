"""Which prompts are of one family, although anything in them may vary: a clock at the front, a name, a document that
was looked up. Pure, bounded in work, total over any text.

A sketch is a few small sets of numbers, each a sentence (or a few words) without the signs of times and ids. Prompts
are alike if one of the sets has enough in common: the opening and the closing find prompts that have something long
and different in them, the sample finds those in which little things vary, the words those that have few sentences.
"""

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from cacheproxy.core.blocks import Block
from cacheproxy.core.stretches import equal_at_ends

LIKE = 1 / 3
"""From which likeness on two prompts are of one family."""
MOSTLY = 2 / 3
MOST_BYTES = 64 * 1024
"""What of a prompt's texts, and of its tools, is looked at: so much, of its beginning and of its end."""
OPENING = 8
CLOSING = 16
SAMPLE = 8
WORDS = 512
_END = MOST_BYTES // 8
_LEAST = 6
"""Bytes from which on a sentence says anything."""
_PASSING = b"0123456789abcdefABCDEF"
"""What times and most ids are made of."""
_TOLD = re.compile(rb'"(?:name|description|server_label)":"([^"]*+)')
"""What tells tools apart, in whichever order they and their members are written."""
_BREAKS = bytes.maketrans(b".?!\r", b"\n\n\n\n")
_FULL_STOP = "\u3002".encode()
_TOOLS = frozenset({"tools", "functions"})


@dataclass(frozen=True, slots=True)
class Sketch:
    """Numbers that stand for sentences: the first, the last, a sample of all; or for short runs of words."""

    opening: frozenset[int]
    closing: frozenset[int]
    sample: frozenset[int]
    words: frozenset[int]

    @property
    def members(self) -> frozenset[int]:
        """Every number in it. Sketches that have none in common are not alike."""
        return self.opening | self.closing | self.sample | self.words


def sketch(head: Sequence[Block]) -> Sketch:
    """The sketch of a head: of its texts, and of its tools where the texts are short."""
    said = _masked(block.text for block in head if block.path[0] not in _TOOLS)
    sentences = _hashes(_sentences(said))
    words: frozenset[int] = frozenset()
    if len(sentences) < SAMPLE:
        listed = _bounded(block.text for block in head if block.path[0] in _TOOLS)
        sentences = [*_hashes(part.translate(None, _PASSING) for part in _TOLD.findall(listed)), *sentences]
        words = _runs(_words(said) or _words(listed))
    return Sketch(
        frozenset(sentences[:OPENING]), frozenset(sentences[-CLOSING:]), frozenset(nsmallest(SAMPLE, set(sentences))),
        words,
    )  # fmt: skip


def likeness(one: Sketch, other: Sketch) -> float:
    """From 0 to 1. Closings have to agree more: many prompts end in the same notes on where they are used."""
    return max(
        _share(one.opening, other.opening), _share(one.sample, other.sample), _share(one.words, other.words),
        _share(one.closing, other.closing) * 2 / 3,
    )  # fmt: skip


def is_mostly(one: Sequence[Block], other: Sequence[Block]) -> bool:
    """Whether two heads are alike at first sight: most of their texts is equal at both ends."""
    pairs = [(a.text, b.text) for a, b in zip(_said(one), _said(other), strict=False)]
    longer = max(sum(len(block.text) for block in _said(head)) for head in (one, other))
    return 0 < longer * MOSTLY <= sum(equal_at_ends(a, b) for a, b in pairs)


def _said(head: Sequence[Block]) -> Sequence[Block]:
    return [block for block in head if block.path[0] not in _TOOLS] or head


def _share(one: frozenset[int], other: frozenset[int]) -> float:
    return len(one & other) / max(len(one), len(other), 1)


def _bounded(texts: Iterable[str]) -> bytes:
    parts = [text if len(text) <= MOST_BYTES else text[: MOST_BYTES - _END] + text[-_END:] for text in texts]
    data = "\n".join(parts).encode("utf-8", "surrogatepass")
    return data if len(data) <= MOST_BYTES else data[: MOST_BYTES - _END] + data[-_END:]


def _masked(texts: Iterable[str]) -> bytes:
    """One sentence a line, without passing signs."""
    data = _bounded(texts).translate(_BREAKS, _PASSING)
    return data if data.isascii() else data.replace(_FULL_STOP, b"\n")


def _sentences(data: bytes) -> list[bytes]:
    return [part for part in data.split(b"\n") if len(part) >= _LEAST]


def _hashes(parts: Iterable[bytes]) -> list[int]:
    return list(map(zlib.crc32, parts))


def _words(data: bytes) -> list[bytes]:
    """All words, or the first and the last of many."""
    words = data.split(None, WORDS)
    return words if len(words) <= WORDS else [*words[: WORDS // 2], *data.rsplit(None, WORDS // 2)[1:]]


def _runs(words: list[bytes]) -> frozenset[int]:
    """Every three words that stand together; a text of fewer is one run."""
    codes = _hashes(words)
    if len(codes) < 3:
        return frozenset(codes or [0])
    return frozenset((a * 31 + b) * 31 + c for a, b, c in zip(codes, codes[1:], codes[2:], strict=False))
