"""Everything in one request's instructions and tools that is likely to make its prefix another one than that of the
next: where it stands, which rule mends it, and how much stands behind it. Pure; takes any fields, changes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from cacheproxy.core import texts, toolset
from cacheproxy.core.blocks import Block, Path, blocks, head, pointer
from cacheproxy.core.idents import idents
from cacheproxy.core.model import Endpoint
from cacheproxy.core.moments import moments
from cacheproxy.core.noise import NONCES
from cacheproxy.core.stretches import size
from cacheproxy.core.volatile import TOOL_NOISE, Kind, volatile

_LISTS = ("tools", "functions")


@dataclass(frozen=True, slots=True)
class Finding:
    """A place (half-open, in characters of `block`'s text), and what stands there. `rule`: what mends it; `count`: how
    often it is so in this text, from this place on; `behind`: bytes from there on to the end of the head, or of the
    text where that is no part of the head; `is_date`: a day without a time, which is not made coarser."""

    block: Block
    start: int
    end: int
    kind: Kind
    rule: str
    behind: int
    count: int = 1
    is_date: bool = False


def survey(endpoint: Endpoint, fields: dict[str, Any], names: tuple[str, ...] = NONCES) -> list[Finding]:
    """All of it, in the order in which a backend reads it. `names`: of lines with nonces. Raises `JSONEncodeError` if
    the tools are nested deeper than can be written."""
    leading = head(endpoint, fields)
    behind: dict[Path, int] = {}
    rest = 0
    for block in reversed(leading):
        behind[block.path] = rest
        rest += size(block.text, 0, len(block.text))
    found = [one for block in leading if block.path[0] in _LISTS for one in _tools(fields, block, behind[block.path])]
    for block in blocks(endpoint, fields):
        found += _text(block, behind.get(block.path, 0), names)
    return found


def _text(block: Block, behind: int, names: tuple[str, ...]) -> list[Finding]:
    text = block.text

    def found(start: int, end: int, kind: Kind, count: int = 1, *, is_date: bool = False) -> Finding:
        return Finding(block, start, end, kind, kind.value, behind + size(text, end, len(text)), count, is_date)

    rows = [found(one.start, one.end, one.kind, is_date=one.is_date) for one in volatile(text, names)]
    if count := text.count("\r\n"):
        end = text.index("\r\n") + 2
        rows.append(found(end - 2, end, Kind.NEWLINES, count))
    if edits := texts.composed(text):
        rows.append(found(edits[0][0], edits[0][1], Kind.UNICODE, len(edits)))
    return sorted(rows, key=lambda one: one.start)


def _tools(fields: dict[str, Any], block: Block, behind: int) -> Iterator[Finding]:
    """Another order than the one order, and noise in descriptions."""
    tools = fields[str(block.path[0])]
    written = toolset.written(tools)
    if written is not None and written != block.text.encode():
        length = size(block.text, 0, len(block.text))
        yield Finding(block, 0, len(block.text), Kind.TOOLS, Kind.TOOLS, length + behind)
    left = behind
    rows: list[tuple[int, Any, int]] = []
    for number in range(len(tools) - 1, -1, -1):
        rows.append((number, tools[number], left))
        left += len(orjson.dumps(tools[number])) + 1
    for number, tool, rest in reversed(rows):
        yield from _noise(tool, (*block.path, number), rest)


def _noise(value: Any, path: Path, behind: int) -> Iterator[Finding]:
    """Times and ids in descriptions. `behind`: bytes behind the tool that they are part of."""
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _noise(inner, (*path, number), behind)
    elif isinstance(value, dict):
        for name, inner in value.items():
            here = Block((*path, name), inner if isinstance(inner, str) else "")
            if name == "description" and here.text:
                spans = [(m.start, m.end, Kind.CLOCK) for m in moments(here.text)]
                for start, end, kind in sorted([*spans, *((*span, Kind.IDS) for span in idents(here.text))]):
                    yield Finding(here, start, end, kind, TOOL_NOISE, behind)
            elif name not in toolset.DATA:
                yield from _noise(inner, here.path, behind)


def place(finding: Finding) -> tuple[str, int, int]:
    """The pointer of its text, and the line and column in it, counted from 1."""
    text = finding.block.text
    return pointer(finding.block.path), *line_and_column(text, finding.start)


def line_and_column(text: str, at: int) -> tuple[int, int]:
    """Counted from 1; lines end at LF."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
