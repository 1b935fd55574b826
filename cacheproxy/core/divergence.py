"""Where two heads part, what stands there, which rule would make it equal, and what is equal again behind it. Pure,
total over any texts, and linear: equal stretches are compared as wholes, never searched.

Offsets are in characters, sizes in bytes of UTF-8. Four bytes are taken for one token, which is an estimate.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from cacheproxy.core import texts, toolset
from cacheproxy.core.blocks import Block
from cacheproxy.core.noise import NONCES, nonce_lines
from cacheproxy.core.stretches import after_gap, common, size, token
from cacheproxy.core.volatile import TOOL_NOISE, Kind, is_said, volatile_at

BYTES_PER_TOKEN = 4
STEPS = 8
"""How many stretches that one rule makes equal are followed to tell what it would save."""
_TOOLS = frozenset({"tools", "functions"})
_LINE_END = re.compile(r"\r*+\n")
_REST = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
_NEAR = 64
Pair = tuple[int, int]


def tokens(count: int) -> int:
    """About how many tokens `count` bytes are."""
    return count // BYTES_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two heads part. `pointer`, `offset`: the text in the later one, and the place in it where the stretch
    begins that differs; `rule`: what would make it equal, None if only a pattern of the operator's could; `span`: what
    stands there in the earlier and in the later one; `saves`: bytes behind it that are equal again, up to the next
    place where they differ that the rule would not mend."""

    pointer: str
    offset: int
    kind: Kind
    rule: str | None
    span: tuple[str, str]
    saves: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """`shared`: bytes that are equal from the beginning on; `divergence`: None where all is equal but for what was
    moved to the end."""

    shared: int
    divergence: Divergence | None


def compare(before: Sequence[Block], after: Sequence[Block], names: tuple[str, ...] = NONCES) -> Comparison:
    """Two heads, the later one second. `names`: of lines with nonces."""
    walk = _Walk(before, after, names)
    shared = walk.advance()
    first = walk.gap()
    if first is None:
        return Comparison(shared, None)
    here = walk.block
    saves = 0
    gap: _Gap | None = first
    for _ in range(STEPS):
        if gap is None:
            break
        walk.skip(gap)
        saves += gap.mended + walk.advance()
        gap = walk.further(first.rule) if first.rule is not None else None
    divergence = Divergence(here.pointer, first.starts[1], first.kind, first.rule, first.span, saves)
    return Comparison(shared, divergence)


@dataclass(frozen=True, slots=True)
class _Gap:
    """A stretch that differs, from and to in the earlier and the later text. `rest`: the texts from there on as the
    rule makes them; `mended`: bytes of the stretch itself that it makes equal."""

    kind: Kind
    rule: str | None
    starts: Pair
    ends: Pair
    span: tuple[str, str] = ("", "")
    rest: tuple[str, str] | None = None
    mended: int = 0


class _Walk:
    """Two heads, read side by side."""

    def __init__(self, before: Sequence[Block], after: Sequence[Block], names: tuple[str, ...]) -> None:
        self._heads = before, after
        self._names = names
        self._number = 0
        self._places: Pair = (0, 0)
        self._texts = self._opened()

    def _opened(self) -> tuple[str, str]:
        """The texts of this number; of the last ones without what was moved to their end."""
        found = []
        for head in self._heads:
            text = head[self._number].text if self._number < len(head) else ""
            found.append(text[: texts.moved_from(text)] if self._number == len(head) - 1 else text)
        return found[0], found[1]

    @property
    def block(self) -> Block:
        """The block of the later head, or what the earlier one has where that has ended."""
        head = self._heads[1] if self._number < len(self._heads[1]) else self._heads[0]
        return head[self._number]

    def advance(self) -> int:
        """Go on while both are equal; bytes gone."""
        gone = 0
        while self._number < max(map(len, self._heads)):
            (a, b), (x, y) = self._texts, self._places
            length = common(a, x, b, y)
            gone += size(b, y, y + length)
            self._places = x + length, y + length
            if self._places != (len(a), len(b)) or self._number >= min(map(len, self._heads)):
                break
            self._number += 1
            self._places = 0, 0
            self._texts = self._opened()
        return gone

    def skip(self, gap: _Gap) -> None:
        """Go behind a stretch that differs."""
        self._places = gap.ends
        if gap.rest is not None:
            self._texts = gap.rest

    def gap(self) -> _Gap | None:
        """The stretch that differs here; None at the end of both."""
        if self._number >= max(map(len, self._heads)):
            return None
        path, (a, b), places = self.block.path, self._texts, self._places
        if self._number >= min(map(len, self._heads)):
            return _Gap(Kind.TEXT, None, (0, 0), (len(a), len(b)), (a, b))
        if path[0] in _TOOLS:
            return _tools(a, b, places) or _described(a, b, places) or _unknown(a, b, places)
        plain = _newlines(a, b, places) or _unicode(a, b, places) or _nonces(a, b, places, self._names)
        noise = None if plain else _noise(a, b, places)
        if noise is not None and not is_said(b, noise.starts[1], noise.ends[1]):
            noise = None
        return plain or noise or _unknown(a, b, places)

    def further(self, rule: str) -> _Gap | None:
        """The same, if this rule makes it equal; else None. Whether it is only shown is not asked again: it only adds
        to what is saved."""
        if self._number >= min(map(len, self._heads)):
            return None
        (a, b), places = self._texts, self._places
        match rule:
            case Kind.NEWLINES:
                return _newlines(a, b, places)
            case Kind.UNICODE:
                return _unicode(a, b, places)
            case Kind.NONCES:
                return _nonces(a, b, places, self._names)
            case Kind.TOOLS:
                return _tools(a, b, places) if self.block.path[0] in _TOOLS else None
            case "tool_noise":
                return _described(a, b, places) if self.block.path[0] in _TOOLS else None
            case _:
                return _noise(a, b, places, rule)


def _tools(a: str, b: str, places: Pair) -> _Gap | None:
    """The same tools, written in another order."""
    x, y = places
    # In another order every sign is there as often as before, so also the first that differs.
    if len(a) != len(b) or any(a.count(sign) != b.count(sign) for sign in (*a[x : x + 1], *b[y : y + 1], '"', "{")):
        return None
    try:
        one, other = (toolset.written(orjson.loads(text)) for text in (a, b))
    except (ValueError, TypeError, RecursionError):
        return None
    if one is None or one != other:
        return None
    return _Gap(Kind.TOOLS, Kind.TOOLS, places, (len(a), len(b)), mended=size(b, y, len(b)))


def _described(a: str, b: str, places: Pair) -> _Gap | None:
    """Times and ids in the description of a tool, and comments."""
    for name in ("description", "$comment"):
        (s, e), (t, f) = (_string(text, name, place) for text, place in zip((a, b), places, strict=True))
        if s < 0 or t < 0:
            continue
        if name == "$comment":
            return _Gap(Kind.TEXT, TOOL_NOISE, (s, t), (e, f), (a[s:e], b[t:f]))
        raw = a[s:e], b[t:f], a[s : places[0]], b[t : places[1]]
        try:
            one, other, *before = (json.loads(f'"{part}"', strict=False) for part in raw)
        except ValueError:
            return None
        found = _noise(one, other, (len(before[0]), len(before[1])))
        if found is None or not is_said(other, found.starts[1], found.ends[1]):
            return None
        ends = s + _written(one, found.ends[0]), t + _written(other, found.ends[1])
        starts = s + _written(one, found.starts[0]), t + _written(other, found.starts[1])
        return _Gap(found.kind, TOOL_NOISE, starts, ends, found.span)
    return None


def _string(text: str, name: str, at: int) -> Pair:
    """From and to of the value of the member `name` that `at` is in, if it is a text in JSON; else (-1, -1)."""
    opening = f'"{name}":"'
    start = text.rfind(opening, 0, at) + len(opening)
    rest = _REST.match(text, start) if start >= len(opening) else None
    return (start, rest.end()) if rest is not None and start <= at <= rest.end() else (-1, -1)


def _written(text: str, end: int) -> int:
    return len(json.dumps(text[:end], ensure_ascii=False)) - 2


def _newlines(a: str, b: str, places: Pair) -> _Gap | None:
    """CRLF here, LF there."""
    x, y = places
    one, other = _LINE_END.match(a, x), _LINE_END.match(b, y)
    if one is None or other is None:
        return None
    rest = _LINE_END.sub("\n", a[one.end() :]), _LINE_END.sub("\n", b[other.end() :])
    return _Gap(Kind.NEWLINES, Kind.NEWLINES, places, (0, 0), rest=rest, mended=1)


def _unicode(a: str, b: str, places: Pair) -> _Gap | None:
    """The same signs, composed here, decomposed there."""
    if a.isascii() and b.isascii():
        return None
    x, y = places
    back = 0
    while back < min(x, y, _NEAR) and (back == 0 or not a[x - back].isascii()):
        back += 1
    x, y = x - back, y - back
    near = a[x : x + _NEAR], b[y : y + _NEAR]
    composed = [unicodedata.normalize("NFC", text) for text in near]
    if composed == list(near):
        return None
    equal = common(composed[0], 0, composed[1], 0)
    if equal <= len(unicodedata.normalize("NFC", near[0][:back])):
        return None
    rest = unicodedata.normalize("NFC", a[x:]), unicodedata.normalize("NFC", b[y:])
    seen = size(b, y, y + back)
    return _Gap(Kind.UNICODE, Kind.UNICODE, (x, y), (0, 0), rest=rest, mended=-seen)


def _nonces(a: str, b: str, places: Pair, names: tuple[str, ...]) -> _Gap | None:
    """Lines at the very head that have one of these names."""
    one, other = nonce_lines(a, names), nonce_lines(b, names)
    ends = one[-1][1] if one else 0, other[-1][1] if other else 0
    if ends[0] < places[0] or ends[1] < places[1] or ends == places:
        return None
    return _Gap(Kind.NONCES, Kind.NONCES, (0, 0), ends, (a[: ends[0]], b[: ends[1]]))


def _noise(a: str, b: str, places: Pair, only: str | None = None) -> _Gap | None:
    """A time or an id here, another one there. `only`: which of these."""
    one = volatile_at(a, places[0])
    if one is not None and only is not None and one.kind != only:
        return None
    other = volatile_at(b, places[1]) if one is not None else None
    if one is None or other is None or one.kind is not other.kind or (one.end, other.end) == places:
        return None
    back = max(places[0] - one.start, places[1] - other.start)
    starts = max(0, places[0] - back), max(0, places[1] - back)
    ends = one.end, other.end
    return _Gap(one.kind, one.kind, starts, ends, (a[starts[0] : ends[0]], b[starts[1] : ends[1]]))


def _unknown(a: str, b: str, places: Pair) -> _Gap:
    """Anything else: to where both go on alike."""
    (x, y), back = places, token(a, places[0])
    ends = after_gap(a, x, b, y)
    return _Gap(Kind.TEXT, None, (x - back, y - back), ends, (a[x - back : ends[0]], b[y - back : ends[1]]))
