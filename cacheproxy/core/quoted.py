"""Where a text shows something instead of saying it: code, logs, quotations, examples, documents. Pure.

What is found too much costs a missed saving, what is found too little changes what a prompt means: in doubt it is
shown. Every pattern is linear: it stops where its next attempt starts, repeats possessively, or looks at a bounded
piece. A line's own marks (quotes, inline code, a log line's stamp) are read only where somebody asks about that line.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TypeVar

from cacheproxy.core import logged

Span = tuple[int, int]
"""A half-open place in a text, in characters."""
Found = TypeVar("Found")

_USUAL = 2**16
"""Characters of a text whose regions are remembered for who asks next."""
_FENCE = re.compile("`{3,}+|~{3,}+")
_FENCED_LINE = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]{1,8})?")
_INDENTED = re.compile(r"\n[ \t\r]*+\n(?=(?: {4}| {0,3}\t)[ \t]*+[^ \t\r\n])")
_HEAD = re.compile(r"[ \t]*+(?:(?:[-*+•]|\d{1,9}[.)]|[a-zA-Z][.)])[ \t]+)?")
_QUOTED = re.compile(r"\n[ \t]*+>[^\n]*+")
_TICKS = re.compile(r"`(?:`*+)")
_STRAIGHT = re.compile('"')
_OPENERS = "\u201c\u201d\u201e\u2018\u201a\u2039\u203a«»「『"
_CLOSERS = ("\u201d", "\u201d", "\u201c\u201d", "\u2019", "\u2018\u2019", "\u203a", "\u2039", "»", "«", "」", "』")
_TYPOGRAPHIC = re.compile(
    "|".join(f"{o}[^{o}{closers}\n]*+[{closers}]" for o, closers in zip(_OPENERS, _CLOSERS, strict=True))
)
_ELEMENT = re.compile(
    r"<(/?)(logs?|code|pre|samp|examples?|samples?|documents?|quote|blockquote|q|transcript|snippet|output|stdout|stderr)"
    r"(?:[ \t\r\n][^<>]{0,400}+)?>",
    re.IGNORECASE,
)
_EXAMPLE = "xamp"  # of what is searched for, as much as is quick to find
_EXAMPLE_HEADING = re.compile(r"(#{1,6})[ \t]+(?:[^ \t]{1,40}+[ \t]++){0,3}\W{0,3}[eE]xamp\Z")
_HEADING = re.compile(r"\n(#{1,6})[ \t]")
_ANNOUNCED = re.compile(
    r"(?:(?:\be\.\s?g\.|\bz\.\s?B\.|\bfor (?:example|instance)\b|\bexamples?(?: [0-9]{1,2})?(?=[ \t]{0,2}[:(](?![0-9]))"
    r"|\bexamples? (?:is|are|of|include)\b|\bsuch as\b)(?:[^\n.;!?)]|\.(?=\w))*+"
    r"|\b(?:like|as in|form|format(?:ted)?)(?: (?:as|is|like|of))?[ \t:=(]{1,3}(?:in )?)"
    r"(?<!\n)(?:[ \t\r]*+\n[ \t\r]*+(?:[-*+][ \t]+)?)?\Z",
    re.IGNORECASE,
)


def regions(text: str) -> list[Span]:
    """Everything shown in `text`: sorted, disjoint, never touching each other."""
    return _merged([*_blocks(text, len(text)), *_of_lines(text, 0, len(text))])


def outside(text: str, found: list[Found], place: Callable[[Found], Span]) -> list[Found]:
    """Those of `found`, sorted by where `place` says they stand in `text`, that no region touches.

    The same as asking `regions`, but reads only the lines that matter.
    """
    if not found:
        return []
    large = _large(text) if len(text) <= _USUAL else _merged(_blocks(text, place(found[-1])[1]))
    small: list[Span] = []
    line_end = -1
    kept = []
    for one in found:
        start, end = place(one)
        if touches(large, start, end):
            continue
        if start > line_end:
            line_end = _line_end(text, end)
            small = _merged(_of_lines(text, text.rfind("\n", 0, start) + 1, line_end))
        if not touches(small, start, end):
            kept.append(one)
    return kept


@lru_cache(maxsize=4)
def _large(text: str) -> list[Span]:
    """Regions of many lines; whoever looks for something in a text asks for them."""
    return _merged(_blocks(text, len(text)))


def touches(shown: list[Span], start: int, end: int) -> bool:
    """Whether one of the regions shares a character with this place."""
    at = bisect_left(shown, (end, end)) - 1
    return at >= 0 and shown[at][1] > start


def announced(text: str, start: int) -> bool:
    """Whether the words before `start` say that an example follows: ``e.g.``, ``such as``, ``in the format``."""
    return _ANNOUNCED.search(text, max(0, start - 80), start) is not None


def _merged(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > start:
            joined.append((start, end))
    return joined


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _blocks(text: str, limit: int) -> list[Span]:
    """Regions of many lines; those that begin in a line after `limit` may be missing, one before it never is."""
    limit = _line_end(text, limit)
    fenced = list(_fenced(text, limit))
    return [*fenced, *_indented(text, limit), *_elements(text, limit), *_examples(text, limit, fenced)]


def _fenced(text: str, limit: int) -> Iterator[Span]:
    """Fenced code: from the fence to the end of the line that closes it; an open one reaches to the end."""
    marks = sorted([*_fences(text, "`", limit), *_fences(text, "~", limit)], key=re.Match.start)
    opened = None
    for mark in marks:
        start, end = mark.span()
        line = text[max(0, start - 64) : start].rpartition("\n")
        if not (line[1] or start <= 64) or not _FENCED_LINE.fullmatch(line[2]):
            continue
        line_end = _line_end(text, end)
        if opened is None:
            if text[start] == "~" or text.find("`", end, line_end) < 0:
                opened = mark
        elif text[start] == text[opened.start()] and end - start >= opened.end() - opened.start():
            if not line[2].strip() and (end == line_end or text[end:line_end].isspace()):
                yield opened.start(), line_end
                opened = None
    if opened is not None:
        yield opened.start(), len(text)


def _fences(text: str, sign: str, limit: int) -> Iterator[re.Match[str]]:
    at = text.find(sign * 3, 0, limit) if sign in text else -1
    while at >= 0:
        mark = _FENCE.match(text, at)
        if mark:
            yield mark
        at = text.find(sign * 3, mark.end() if mark else at + 3, limit)


def _indented(text: str, limit: int) -> Iterator[Span]:
    """Code that stands four columns deeper than the text before it, after a blank line. So paragraphs of list items
    and texts that are indented as a whole are none."""
    at = 0
    if "    " not in text and "\t" not in text:
        return
    while (blank := _INDENTED.search(text, at, limit)) is not None:
        at = blank.end()
        deep = _depth_of_code(text, blank.start())
        if deep is not None and _is_deep(text, at, deep):
            start, at = at, _deep_end(text, at, deep)
            yield start, at
        at -= 1


def _depth_of_code(text: str, end: int) -> int | None:
    """The column where code begins after the paragraph that ends before `end`; None if there is no paragraph."""
    first = max(0, end - 256)
    before = text[first:end].rstrip()
    if not before:
        return None
    last = first + len(before)
    line = text.rfind("\n", 0, last) + 1
    head = _HEAD.match(text, line, min(last, line + 256))
    return len(head.group().expandtabs(4)) + 4 if head else 4


def _is_deep(text: str, line: int, deep: int) -> bool:
    return text[line : line + deep].expandtabs(4).startswith(" " * deep)


def _deep_end(text: str, line: int, deep: int) -> int:
    """Where the lines from `line` on end that are blank or begin `deep` columns in."""
    while line < len(text):
        end = _line_end(text, line)
        if not (_is_deep(text, line, deep) or text[line:end].isspace() or line == end):
            break
        line = min(end + 1, len(text))
    return line


def _elements(text: str, limit: int) -> Iterator[Span]:
    """Elements that hold code, logs, documents; tags that nothing closes are only spoken of."""
    if text.find("<", 0, limit) < 0:
        return
    opened: dict[str, list[int]] = {}
    for tag in _ELEMENT.finditer(text):
        starts = opened.setdefault(tag[2].lower(), [])
        if not tag[1]:
            starts.append(tag.start())
        elif starts:
            yield starts.pop(), tag.end()


def _examples(text: str, limit: int, fenced: list[Span]) -> Iterator[Span]:
    """Sections whose Markdown heading calls them examples, to the next heading that is not below theirs."""
    word = text.find(_EXAMPLE, 0, limit)
    while word >= 0:
        at = word + len(_EXAMPLE)
        line = text[max(0, word - 64) : word].rpartition("\n")
        heading = _EXAMPLE_HEADING.match(line[2] + _EXAMPLE) if line[1] or word <= 64 else None
        if heading and text.startswith("le", at):
            at = _section_end(text, at, len(heading[1]), fenced)
            yield word - len(line[2]), at
        word = text.find(_EXAMPLE, at, limit)


def _section_end(text: str, at: int, level: int, fenced: list[Span]) -> int:
    for heading in _HEADING.finditer(text, at):
        if len(heading[1]) <= level and not touches(fenced, heading.start(1), heading.end(1)):
            return heading.start()
    return len(text)


def _of_lines(text: str, start: int, end: int) -> Iterable[Span]:
    """Regions within the lines from `start` to `end`, their bounds: quoted lines, logs, inline code, quotes."""
    first = text[start : start + 256].lstrip(" \t")
    if first.startswith(">"):
        yield start, _line_end(text, start)
    for line in _QUOTED.finditer(text, start, end):
        yield line.start() + 1, line.end()
    yield from logged.lines(text, start, end)
    code = list(_code(text, start, end))
    yield from code
    yield from _straight(text, start, end, code)
    if any(text.find(opener, start, end) >= 0 for opener in _OPENERS):
        for quote in _TYPOGRAPHIC.finditer(text, start, end):
            yield quote.span()


def _code(text: str, start: int, end: int) -> Iterator[Span]:
    """Inline code: from a run of backticks to the next one of its length on the line."""
    line: list[Span] = []
    last = start
    for ticks in _TICKS.finditer(text, start, end):
        if line and text.find("\n", last, ticks.start()) >= 0:
            yield from _paired(line)
            line = []
        line.append(ticks.span())
        last = ticks.end()
    yield from _paired(line)


def _paired(runs: list[Span]) -> Iterator[Span]:
    following: dict[int, int] = {}
    closers: list[int | None] = [None] * len(runs)
    for at in range(len(runs) - 1, -1, -1):
        length = runs[at][1] - runs[at][0]
        closers[at] = following.get(length)
        following[length] = at
    at = 0
    while at < len(runs):
        closer = closers[at]
        if closer is not None:
            yield runs[at][0], runs[closer][1]
            at = closer
        at += 1


def _straight(text: str, start: int, end: int, code: list[Span]) -> Iterator[Span]:
    """From every first to every second straight quote of a line, those in inline code not counted."""
    opened = -1
    for quote in _STRAIGHT.finditer(text, start, end):
        at = quote.start()
        if code and touches(code, at, at + 1):
            continue
        if opened >= 0 and text.find("\n", opened, at) < 0:
            yield opened, at + 1
            opened = -1
        else:
            opened = at
