"""A removal as the line that tells others of it, and a later process: what is meant, what becomes of it, and when it
was ordered."""

from dataclasses import dataclass
from typing import Any

import orjson

from cacheproxy.core.removal import Removal, Selector

_SETS = ("tags", "kb", "entry_ids", "prefix", "scope")
_READ_SETS = (*_SETS, "changed_documents")


@dataclass(frozen=True, slots=True)
class Notice:
    """A removal that was ordered at `now`, in seconds since the epoch."""

    selector: Selector
    now: float
    removal: Removal = Removal.HARD


def encode(notice: Notice) -> bytes:
    """The line, one JSON object."""
    selector = notice.selector
    told: dict[str, Any] = {name: sorted(named) for name in _SETS if (named := getattr(selector, name))}
    if selector.changed_documents is not None:
        told["changed_documents"] = sorted(selector.changed_documents)
    for name in ("model", "namespace", "older_than"):
        if (value := getattr(selector, name)) is not None:
            told[name] = value
    rest = {"everything": selector.everything, "now": notice.now, "mode": notice.removal.value}
    return orjson.dumps({"selector": told, **rest})


def decode(line: bytes) -> Notice | None:
    """What a line says; None if it cannot be read, or says what this version does not know."""
    try:
        told = orjson.loads(line)
        now, everything, removal = told.pop("now"), told.pop("everything"), Removal(told.pop("mode"))
        values = dict(told.pop("selector"))
        sets = {name: _names(values.pop(name)) for name in _READ_SETS if name in values}
        texts = {name: _text(values.pop(name)) for name in ("model", "namespace") if name in values}
        age = _number(values.pop("older_than")) if "older_than" in values else None
        if told or values or type(everything) is not bool:
            return None
        return Notice(Selector(**sets, **texts, older_than=age, everything=everything), _number(now), removal)  # type: ignore[arg-type] # each was read as its field's type
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _names(value: object) -> frozenset[str]:
    if not isinstance(value, list):
        raise TypeError(value)
    return frozenset(map(_text, value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(value: object) -> float:
    if type(value) not in (int, float):
        raise TypeError(value)
    return float(value)  # type: ignore[arg-type] # just looked at
