"""A JSON string as it is written: parts of what it says exchanged, every other sign kept. Pure.

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


def edit_literal(written: str, edits: Sequence[Edit]) -> str:
    """The literal `written` (with its quotation marks) with `edits` made in what it says."""
    place = _near(written) if len(edits) <= _FEW else None
    place = place or _far(written)
    parts: list[str] = []
    at = 0
    for start, end, new in edits:
        parts += (written[at : place(start)], _inside(new))
        at = place(end)
    return "".join((*parts, written[at:]))


def _near(written: str) -> Callable[[int], int] | None:
    """Where a character with a number stands in `written`, counting backslashes; None where each is not one escape. To
    be asked for growing numbers."""
    if "\\\\" in written or "\\u" in written:
        return None

    last = (0, 1)

    def place(number: int) -> int:
        nonlocal last
        known, start = last
        at, before = start + number - known, -1
        while at != before:  # grows to the place and no further: escapes before it move it on
            at, before = start + number - known + written.count("\\", start, at), at
        last = number, at
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
    if "\r" not in text:
        return text, 0
    if "\r\r\n" in text:
        return _LINE_ENDS.subn("\n", text)
    unix = text.replace("\r\n", "\n")
    return unix, len(text) - len(unix)


def unix_literal(written: str) -> str:
    """The literal `written` with the same done in what it says."""
    if "\\\\" not in written and "\\u000" not in written and "\\r\\r" not in written:
        return written.replace("\\r\\n", "\\n")
    text = orjson.loads(written)
    return edit_literal(written, [(*match.span(), "\n") for match in _LINE_ENDS.finditer(text)])
