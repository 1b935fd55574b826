"""A JSON string in its bytes: parts of what it says exchanged, every other byte kept as it was written. Pure.

Takes literals that a strict parser has accepted.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate

import orjson

Edit = tuple[int, int, str]
"""From, to (offsets in the text, half-open), and what to say there instead. In order, not overlapping."""

_ESCAPE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.", re.DOTALL)
"""What stands for one character."""
_FEW = 12


_LINE_ENDS = re.compile(r"\r++\n")
"""A line end; several CR before the LF are what becomes of a text file that is translated twice."""


def edit_text(text: str, edits: Sequence[Edit]) -> str:
    """`text` with `edits` made."""
    parts: list[str] = []
    at = 0
    for start, end, new in edits:
        parts += (text[at:start], new)
        at = end
    return "".join((*parts, text[at:]))


def edit_literal(literal: bytes, edits: Sequence[Edit]) -> bytes:
    """`literal` (with its quotation marks) with `edits` made in what it says."""
    written = literal.decode()
    place = _near(written) if len(edits) <= _FEW else None
    place = place or _far(written)
    parts: list[str] = []
    at = 0
    for start, end, new in edits:
        parts += (written[at : place(start)], _inside(new))
        at = place(end)
    return "".join((*parts, written[at:])).encode()


def _near(written: str) -> Callable[[int], int] | None:
    """Where a character with a number stands in `written`, counting backslashes; None where each is not one escape."""
    if "\\\\" in written or "\\u" in written:
        return None

    def place(number: int) -> int:
        at, before = 1 + number, -1
        while at != before:  # grows to the place and no further: escapes before it move it on
            at, before = 1 + number + written.count("\\", 1, at), at
        return at

    return place


def _far(written: str) -> Callable[[int], int]:
    """The same for any literal and many places: every escape is looked at once."""
    spans = [match.span() for match in _ESCAPE.finditer(written)] if "\\" in written else []
    more = [0, *accumulate(end - start - 1 for start, end in spans)]  # characters written beyond those said, so far
    said = [start - 1 - before for (start, _), before in zip(spans, more, strict=False)]
    return lambda number: 1 + number + more[bisect_left(said, number)]


def _inside(text: str) -> str:
    return orjson.dumps(text)[1:-1].decode()


def unix_text(text: str) -> tuple[str, int]:
    """`text` with LF for every line end; how many there were that were not."""
    if "\r\r\n" in text:
        return _LINE_ENDS.subn("\n", text)
    count = text.count("\r\n")
    return (text.replace("\r\n", "\n"), count) if count else (text, 0)


def unix_literal(literal: bytes) -> bytes:
    """`literal` with the same done in what it says."""
    if not any(mark in literal for mark in (b"\\u000", b"\\\\", b"\\r\\r")):
        return literal.replace(b"\\r\\n", b"\\n")
    text = orjson.loads(literal)
    return edit_literal(literal, [(*match.span(), "\n") for match in _LINE_ENDS.finditer(text)])
