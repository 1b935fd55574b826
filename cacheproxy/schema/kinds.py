"""The kinds of values that a configuration has, and how each is read from what people write."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from cacheproxy.core import address, canonical, quantities
from cacheproxy.core.expressions import compiled


def read_duration(value: Any) -> Any:
    return _read(quantities.duration(value))


def read_size(value: Any) -> Any:
    return _read(quantities.size(value))


def _read(found: Any) -> Any:
    if isinstance(found, str):
        raise ValueError(found)
    return found


def read_switch(value: Any) -> Any:
    """YAML reads a bare `on` as true."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


def read_url(value: Any) -> Any:
    if isinstance(value, str):
        _read(wrong if isinstance(wrong := address.read(value), str) else None)
    return value


def _several(value: Any) -> Any:
    """One text is short for a list of it."""
    return [value] if isinstance(value, str) else value


def _pointer(value: Any) -> Any:
    if isinstance(value, str) and canonical.pointer(value) is None:
        raise ValueError("must be a JSON pointer to a member, such as `/metadata/request_id`")
    return value


def _expression(value: Any) -> Any:
    if isinstance(value, str) and isinstance(wrong := compiled(value), str):
        raise ValueError(wrong)
    return value


def read_pace(value: Any) -> Any:
    return float(value) if isinstance(value, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)?", value) else value


def _plain(value: Any) -> Any:
    if isinstance(value, str) and (not value.isprintable() or not value or len(value) > 1024):
        raise ValueError("must be a printable text of at most 1,024 characters")
    return value


Name = Annotated[str, BeforeValidator(_plain)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_several)]
"""A list of texts; one text is short for a list of it."""
Pointer = Annotated[str, BeforeValidator(_pointer)]
Expression = Annotated[str, BeforeValidator(_expression), Field(min_length=1, max_length=4096)]
"""A regular expression of the operator's."""
Switch = Annotated[bool, BeforeValidator(lambda value: {"on": True, "off": False}.get(value, value))]
Duration = Annotated[float, BeforeValidator(read_duration), Field(ge=0, lt=10**9)]
Patience = Annotated[float, BeforeValidator(read_duration), Field(gt=0, lt=10**9)]
"""A duration that must not be 0: everything would fail at once."""
Size = Annotated[int, BeforeValidator(read_size), Field(ge=0)]
Port = Annotated[int, Field(ge=0, le=65_535)]
