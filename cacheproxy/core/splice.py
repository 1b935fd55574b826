"""Where the members of a JSON object stand in its bytes, so that one can be changed and every other byte kept.

Takes text that a strict parser has accepted already; for anything else the result is unspecified but the
functions still end.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[^,\]}\s]*")
_MARK = re.compile(rb'["\[\]{}]')
_SPACE = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Member:
    """One member of the object: its name as written, without quotes; offsets of it, its value, and the value's end."""

    name: bytes
    start: int
    value: int
    end: int

    def is_called(self, name: bytes) -> bool:
        """Whether its name is `name` (UTF-8), also written with escapes."""
        return is_name(self.name, name)


def is_name(written: bytes, name: bytes) -> bool:
    """Whether `written`, the inside of a string, says `name` (UTF-8)."""
    if b"\\" not in written:
        return written == name
    try:
        return bool(json.loads(b'"' + written + b'"') == name.decode())
    except ValueError:
        return False


def blank(raw: bytes, at: int) -> int:
    """The first place from `at` on where no white space stands."""
    while raw[at : at + 1] and raw[at] in _SPACE:
        at += 1
    return at


def string_end(raw: bytes, at: int) -> int:
    """The end of the string that starts at `at`: after the first quotation mark that an even number of backslashes
    stands before."""
    end = raw.find(b'"', at + 1)
    while end > 0:
        back = end
        while raw[back - 1] == 0x5C:
            back -= 1
        if (end - back) % 2 == 0:
            return end + 1
        end = raw.find(b'"', end + 1)
    return len(raw)


def value_end(raw: bytes, at: int) -> int:
    """The end of the value that starts at `at`."""
    first = raw[at : at + 1]
    if first == b'"':
        return string_end(raw, at)
    if first not in (b"[", b"{"):
        found = _SCALAR.match(raw, at)
        return found.end() if found else len(raw)
    depth = 0
    while mark := _MARK.search(raw, at):
        at = mark.end()
        if mark.group() == b'"':
            at = string_end(raw, mark.start())
            continue
        depth += 1 if mark.group() in b"[{" else -1
        if depth == 0:
            return at
    return len(raw)


def walk(raw: bytes) -> Iterator[Member]:
    """The members of the JSON object `raw`, in order."""
    at = blank(raw, 0)
    if raw[at : at + 1] != b"{":
        return
    at = blank(raw, at + 1)
    while name := _STRING.match(raw, at):
        colon = blank(raw, name.end())
        value = blank(raw, colon + 1)
        end = value_end(raw, value)
        yield Member(name.group()[1:-1], name.start(), value, end)
        at = blank(raw, end)
        if raw[at : at + 1] != b",":
            break
        at = blank(raw, at + 1)


def members(raw: bytes) -> list[Member]:
    """All members of the JSON object `raw`."""
    return list(walk(raw))


def remove(raw: bytes, name: bytes) -> bytes:
    """`raw` without its member `name` and the one comma that goes with it."""
    all_members = members(raw)
    for i, member in enumerate(all_members):
        if not member.is_called(name):
            continue
        if i + 1 < len(all_members):
            return raw[: member.start] + raw[all_members[i + 1].start :]
        if i > 0:
            return raw[: all_members[i - 1].end] + raw[member.end :]
        return raw[: member.start] + raw[member.end :]
    return raw


def replace(raw: bytes, name: bytes, value: bytes) -> bytes:
    """`raw` with the value of its member `name` replaced by `value`, or with the member put first if absent."""
    all_members = members(raw)
    for member in all_members:
        if member.is_called(name):
            return raw[: member.value] + value + raw[member.end :]
    brace = blank(raw, 0) + 1
    comma = b"," if all_members else b""
    return raw[:brace] + b'"' + name + b'":' + value + comma + raw[brace:]
