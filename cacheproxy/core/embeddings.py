"""A batch of embeddings -> what each item would have been asked and answered alone, and back.

No vector is ever written anew: one that was read is passed on in the bytes it came in, and one encoding is never
turned into another. What an item's own answer has beyond its vector is the batch's, with the usage shared out.
"""

import json
import re
from binascii import a2b_base64
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import orjson

from cacheproxy.core import splice
from cacheproxy.core.outcome import Reason

MOST_ITEMS = 4096
"""Items that are looked up one by one; a longer batch is one question."""

_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_TOKENS = re.compile(rb"\[[^\[\]]*+\]")
_UNREADABLE = (KeyError, ValueError, RecursionError, orjson.JSONEncodeError)
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to embed: parsed, and in its exact bytes."""

    value: str | list[int]
    raw: bytes

    @property
    def weight(self) -> int:
        """Its part in the usage of a batch: bytes of text or tokens, at least 1."""
        return max(1, len(self.value.encode("utf-8", "replace") if isinstance(self.value, str) else self.value))


def items(raw: bytes, fields: dict[str, Any]) -> list[Item] | None:
    """The items that a body asks for; None if it can only be taken as a whole. `fields` was parsed from `raw`."""
    if fields.get("late_chunking") not in (None, False):
        return None  # each vector depends on the other items
    found = [member for member in splice.walk(raw) if member.is_called(b"input")]
    if len(found) != 1:
        return None
    written = raw[found[0].value : found[0].end]
    value: Any = fields.get("input")
    if isinstance(value, str) or _is_tokens(value):
        return [Item(value, written)]
    if not isinstance(value, list) or len(value) > MOST_ITEMS:
        return None
    if set(map(type, value)) == {str}:
        pieces = _TEXT.findall(written)
    elif value and all(map(_is_tokens, value)):
        pieces = _TOKENS.findall(written, 1)
    else:
        return None
    return list(map(Item, value, pieces)) if len(pieces) == len(value) else None


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and set(map(type, value)) == {int}


def alone(fields: dict[str, Any], item: Item) -> dict[str, Any]:
    """The parsed body that asks for `item` alone, for keying: equal for every way to write the same question."""
    kept = {name: v for name, v in fields.items() if name != "encoding_format" or v not in (None, "float")}
    return {**kept, "input": item.value}


def distinct(items: Sequence[Item]) -> list[int]:
    """For each item the position of the first that equals it. The answer to that one stands for all: composed once
    for each, it counts in the usage as often as the backend would have counted it."""
    first: dict[Any, int] = {}
    values = [item.value if isinstance(item.value, str) else tuple(item.value) for item in items]
    return [first.setdefault(value, position) for position, value in enumerate(values)]


def ask_for(raw: bytes, items: Sequence[Item], wanted: Sequence[int]) -> bytes:
    """The body that asks for the `wanted` items of `raw`, in that order; no other byte differs. Raises IndexError."""
    if list(wanted) == list(range(len(items))):
        return raw
    return splice.replace(raw, b"input", b"[%b]" % b",".join([items[position].raw for position in wanted]))


def trouble_of(document: object, count: int) -> Reason | None:
    """Why a parsed answer is not a complete one for `count` items, or None."""
    if not isinstance(document, dict):
        return Reason.MALFORMED
    if document.get("error") is not None or document.get("object") == "error":
        return Reason.IN_BAND_ERROR
    data = document.get("data")
    if not isinstance(data, list) or not data:
        return Reason.EMPTY if data == [] else Reason.MALFORMED
    if len(data) != count:
        return Reason.UNFINISHED_CHOICE if len(data) < count else Reason.MALFORMED
    seen, shapes = set(), set()
    for position, entry in enumerate(data):
        if not isinstance(entry, dict):
            return Reason.MALFORMED
        if entry.get("error") is not None:
            return Reason.IN_BAND_ERROR
        vector, index = entry.get("embedding"), entry.get("index")
        if vector is None or vector in ("", []):
            return Reason.EMPTY
        seen.add(position if index is None else index if type(index) is int else -1)
        shapes.add(_shape(vector))
    return None if seen == set(range(count)) and len(shapes) == 1 and None not in shapes else Reason.MALFORMED


def _shape(vector: Any) -> tuple[str, int] | None:
    """A vector's encoding and size (numbers, or bytes); None if it is none."""
    try:
        if isinstance(vector, list):
            finite = set(map(type, vector)) <= {int, float} and (isfinite(sum(vector)) or all(map(isfinite, vector)))
            return ("float", len(vector)) if finite else None
        packed = a2b_base64(vector, strict_mode=True)
        # A model that fails gives NaN in all places. Single ones may be another type's or byte order's numbers.
        sound = len(packed) % 4 == 0 and any(map(isfinite, memoryview(packed).cast("f")))
        return ("base64", len(packed)) if sound else None
    except (TypeError, ValueError, OverflowError):
        return None


def split(body: bytes, weights: Sequence[int], *, checked: bool = False) -> list[bytes] | Reason:
    """The answers that the items of a batch would have had alone, in the order of the items, or why it has none.

    `weights` are the items'; `checked`: `trouble_of` found none in the document that `body` is, for as many items.
    """
    try:
        trouble = None if checked else trouble_of(orjson.loads(body), len(weights))
        if trouble is not None or len(weights) == 1:
            return trouble or [body]
        answer = _read(body)
        usages = [orjson.dumps(share) for share in _shared(answer.usage, [max(1, weight) for weight in weights])]
    except _UNREADABLE:
        return Reason.MALFORMED
    entries = {entry.index: entry for entry in answer.entries}
    if entries.keys() != set(range(len(weights))):
        return Reason.MALFORMED
    return [answer.filled([entries[i]], usage) for i, usage in enumerate(usages)]


def compose(singles: Sequence[bytes]) -> bytes | None:
    """The answer to a batch from those to its items, in the order asked; None if they are not of one kind.

    `singles` are answers in which `trouble_of` found none for one item.
    """
    try:
        answers = [_read(single) for single in singles]
        kinds = {(answer.model, type(answer.usage), *[entry.shape for entry in answer.entries]) for answer in answers}
        usage = orjson.dumps(_summed([answer.usage for answer in answers]))
    except _UNREADABLE:
        return None
    if len(kinds) != 1 or len(answers[0].entries) != 1:
        return None
    return answers[0].filled([answer.entries[0] for answer in answers], usage)


def _outlined(raw: bytes) -> tuple[bytes, Callable[[int, int], bytes]]:
    """A document without what stands in its long strings and its lists of plain values: JSON of the same structure,
    small enough to be walked whatever the length of the vectors. And what gives the bytes that a stretch stands for."""
    cuts, shifts, parts, kept = [0], [0], [], 0
    for start, end in _insides(raw):
        parts.append(raw[kept:start])
        kept = end
        cuts.append(start - shifts[-1])
        shifts.append(shifts[-1] + end - start)

    def original(start: int, end: int) -> bytes:
        first, last = (at + shifts[bisect_right(cuts, at) - 1] for at in (start, end))
        return raw[first:last]

    return b"".join([*parts, raw[kept:]]), original


def _insides(raw: bytes) -> Iterator[tuple[int, int]]:
    """What an outline leaves out, in order."""
    at = 0
    while at < len(raw):
        quote = raw.find(b'"', at)
        quote = len(raw) if quote < 0 else quote
        while (end := raw.find(b"]", at, quote)) >= 0:
            if start := raw.rfind(b"[", at, end) + 1:
                yield start, end
            at = end + 1
        at = raw.find(b'"', quote + 1)
        if raw.find(b"\\", quote, at) >= 0 and (string := _TEXT.match(raw, quote)):
            at = string.end() - 1
        elif at - quote > 64:
            yield quote + 1, at
        elif at < 0:
            return
        at += 1


@dataclass(frozen=True, slots=True)
class _Entry:
    """One member of an answer's `data`: the bytes around its index, which item it is of, and its vector's bytes."""

    before: bytes
    after: bytes
    index: int
    vector: bytes

    @property
    def shape(self) -> tuple[str, int]:
        """Encoding and size, comparable with those of others."""
        return (
            ("base64", len(orjson.loads(self.vector)))
            if self.vector[:1] == b'"'
            else ("float", self.vector.count(b","))
        )


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer in its parts: `frame` is the bytes around the values of `holes`, which are `data` and maybe `usage`."""

    frame: list[bytes]
    holes: list[bytes]
    usage: Any
    model: bytes
    entries: list[_Entry]

    def filled(self, entries: Sequence[_Entry], usage: bytes) -> bytes:
        """The whole document with other values in the holes; `entries` are numbered in this order."""
        data = b",".join([b"%b%d%b" % (entry.before, i, entry.after) for i, entry in enumerate(entries)])
        values = [b"[%b]" % data if hole == b"data" else usage for hole in self.holes]
        return b"".join(part for pair in zip(self.frame, [*values, b""], strict=True) for part in pair)


def _read(raw: bytes) -> _Answer:
    """The parts of an answer. Raises one of `_UNREADABLE` if it lacks one, or names one twice."""
    text, original = _outlined(raw)
    top = _named(text, b"data", b"usage", b"model")
    values = {name: original(member.value, member.end) for name, member in top.items() if name != b"data"}
    holes = sorted(top.keys() - {b"model"}, key=lambda name: top[name].value)
    edges = [0, *(edge for hole in holes for edge in (top[hole].value, top[hole].end)), len(text)]
    frame = [original(*pair) for pair in zip(edges[::2], edges[1::2], strict=True)]
    spans = _spans(text, top[b"data"].value, top[b"data"].end)
    entries = [_entry(original(*span), position) for position, span in enumerate(spans)]
    return _Answer(frame, holes, orjson.loads(values.get(b"usage", b"null")), values.get(b"model", b""), entries)


def _named(raw: bytes, *names: bytes) -> dict[bytes, splice.Member]:
    """The members of the object `raw` with these names. Raises ValueError if one of them is there twice."""
    found: dict[bytes, splice.Member] = {}
    for member in splice.walk(raw):
        for name in names:
            if member.is_called(name) and found.setdefault(name, member) is not member:
                raise ValueError("a name is there twice")
    return found


def _spans(raw: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the objects in the list ``raw[start:end]`` stand. Raises ValueError, RecursionError."""
    text = raw[start:end].decode("latin-1")  # a character a byte; only the structure counts
    at = 0
    while (first := text.find("{", at)) >= 0:
        at = _decode(text, first)[1]
        yield start + first, start + at


def _entry(raw: bytes, position: int) -> _Entry:
    """An entry in its parts; one without an index gets a place for it. Raises one of `_UNREADABLE`."""
    text, original = _outlined(raw)
    named = _named(text, b"index", b"embedding")
    vector = original(named[b"embedding"].value, named[b"embedding"].end)
    if (index := named.get(b"index")) is None:
        return _Entry(b'{"index":', b"," + raw[1:], position, vector)
    before, written, after = original(0, index.value), text[index.value : index.end], original(index.end, len(text))
    return _Entry(before, after, position if written == b"null" else int(written), vector)


def _shared(value: Any, weights: Sequence[int]) -> list[Any]:
    """`value`, of a usage, for each of those who share it. What is no amount is everyone's as it is."""
    if type(value) is int:
        return _portions(value, weights)
    if type(value) is float:
        total = sum(weights)
        return [value * (weight / total) for weight in weights]
    if isinstance(value, dict):
        columns = [_shared(v, weights) for v in value.values()]
        rows = zip(*columns, strict=True) if columns else [()] * len(weights)
        return [dict(zip(value, row, strict=True)) for row in rows]
    return [value] * len(weights)


def _portions(whole: int, weights: Sequence[int]) -> list[int]:
    """`whole` in proportion to `weights` by largest remainder: none is 0 if there is enough, and they sum to it."""
    rest, left = abs(whole), sum(weights)
    portions = [0] * len(weights)
    order = sorted(range(len(weights)), key=weights.__getitem__)
    while rest >= len(order) > 1 and rest * weights[order[0]] < left:
        light = order.pop(0)
        portions[light] = 1
        rest, left = rest - 1, left - weights[light]
    for position in order:
        portions[position] = rest * weights[position] // left
    order.sort(key=lambda position: (-(rest * weights[position] % left), position))
    for position in order[: rest - sum(portions[position] for position in order)]:
        portions[position] += 1
    return portions if whole >= 0 else [-portion for portion in portions]


def _summed(values: Sequence[Any]) -> Any:
    """What `values`, of several usages, are together. What is no amount is as the first has it."""
    told = [value for value in values if value is not None]
    kinds = set(map(type, told))
    if told and kinds <= {int, float}:
        return sum(told)
    if kinds == {dict}:
        names = dict.fromkeys(name for value in told for name in value)
        return {name: _summed([v[name] for v in told if name in v]) for name in names}
    return told[0] if told else None
