"""What the canonical form of a body leaves out or writes otherwise, member by member, and why. Only tells; decides
nothing: the form itself is made in canonical.py."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from cacheproxy.core import canonical
from cacheproxy.core.canonical import Ignored
from cacheproxy.core.model import Endpoint


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between a body and its canonical form. `pointer`: where (RFC 6901); `before` and `after` in JSON,
    None for not there."""

    pointer: str
    before: str | None
    after: str | None
    why: str


def changes(endpoint: Endpoint, fields: dict[str, Any], ignored: Ignored) -> list[Change]:
    """Every difference that makes two bodies with different bytes the same question."""
    form = orjson.loads(canonical.reduced(endpoint, fields, ignored))
    return list(_compared(fields, form, (), ignored))


def _compared(before: Any, after: Any, path: tuple[str, ...], ignored: Ignored) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            here = (*path, name)
            if name in after:
                yield from _compared(value, after[name], here, ignored)
            else:
                yield Change(_pointer(here), _text(value), None, _why(here, value, ignored))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _compared(old, new, (*path, str(number)), ignored)
    elif before != after or type(before) is not type(after):
        why = "a number is written in one way" if type(before) is int else "a single text part is the text that it is"
        if isinstance(before, list) and isinstance(after, list):
            why = "a field that is not part of the key (`exact.volatile_fields`)"
        yield Change(_pointer(path), _text(before), _text(after), why)


def _why(path: tuple[str, ...], value: Any, ignored: Ignored) -> str:
    if len(path) == 1 and path[0] in ignored.names:
        return "does not change what is generated (`exact.ignore_fields`, `exact.volatile_fields`)"
    if len(path) > 1:
        return "a field that is not part of the key (`exact.volatile_fields`)"
    return "null is the default, as if it were absent" if value is None else "is the default, as if it were absent"


def _pointer(path: tuple[str, ...]) -> str:
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path)


def _text(value: Any) -> str:
    return orjson.dumps(value).decode("utf-8", "replace")
