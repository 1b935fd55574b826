"""Where values deep inside a JSON object stand in its bytes. Pure; takes text that a strict parser has accepted."""

from collections.abc import Iterable, Mapping
from typing import Any

from cacheproxy.core.blocks import Path
from cacheproxy.core.splice import blank, is_name, string_end, value_end

Tree = dict[str | int, Any]


def places(raw: bytes, paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """From and to (byte offsets, half-open) of the value at each of `paths`; those that are not there are left out."""
    tree: Tree = {}
    for path in paths:
        node = tree
        for part in path:
            node = node.setdefault(part, {})
    found: dict[Path, tuple[int, int]] = {}
    _look(raw, 0, tree, (), found)
    return found


def _look(raw: bytes, at: int, tree: Tree, path: Path, found: dict[Path, tuple[int, int]]) -> None:
    """Note what of `tree` stands in the container at `at`. Goes no further than to the last that is there."""
    at = blank(raw, at)
    listed = raw[at : at + 1] == b"["
    wanted = {part: below for part, below in tree.items() if isinstance(part, int) == listed}
    number = 0
    at = blank(raw, at + 1)
    while wanted and raw[at : at + 1] not in (b"]", b"}", b""):
        part: str | int | None = number
        if not listed:
            end = string_end(raw, at)
            part = next((p for p in wanted if is_name(raw[at + 1 : end - 1], str(p).encode())), None)
            at = blank(raw, blank(raw, end) + 1)
        if part is not None and part in wanted:
            below = wanted.pop(part)
            if not below:
                found[(*path, part)] = (at, value_end(raw, at))
            elif raw[at : at + 1] in (b"[", b"{"):
                _look(raw, at, below, (*path, part), found)
        if wanted:
            at = blank(raw, value_end(raw, at))
            if raw[at : at + 1] != b",":
                return
            at = blank(raw, at + 1)
            number += 1


def exchanged(raw: bytes, spans: Mapping[tuple[int, int], bytes]) -> bytes:
    """`raw` with other bytes at `spans`, which do not overlap."""
    parts: list[bytes] = []
    at = 0
    for (start, end), new in sorted(spans.items()):
        parts += (raw[at:start], new)
        at = end
    return b"".join((*parts, raw[at:]))
