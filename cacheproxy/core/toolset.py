"""One way to write a set of tools: the same tools, in whichever order a client's maps gave them, are the same bytes.

What has no order by the JSON and JSON Schema specifications gets one: tools by name (equal names stay as they came),
properties by name, other members in the order in which people write them. Arrays keep their order.
"""

from typing import Any

import orjson

_USUAL = (
    "type", "function", "name", "title", "description", "parameters", "input_schema", "strict", "$schema", "$id",
    "$ref", "properties", "required", "additionalProperties", "items", "prefixItems", "enum", "const", "default",
)  # fmt: skip
_RANK = {name: number for number, name in enumerate(_USUAL)}
BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Members of a schema that map names of the author's to schemas."""
DATA = frozenset({"default", "const", "enum", "example", "examples"})
"""Members of a schema that are values, not schemas."""


def written(tools: list[Any]) -> bytes | None:
    """`tools` in the one order, as JSON; None if they are none that could be ordered."""
    if not all(isinstance(tool, dict) for tool in tools):
        return None
    try:
        return orjson.dumps(sorted((_schema(tool) for tool in tools), key=_name))
    except (orjson.JSONEncodeError, RecursionError):
        return None


def _name(tool: dict[str, Any]) -> str:
    """What a tool is called; one that has no name goes by its kind."""
    function = tool.get("function")
    named = function if isinstance(function, dict) else tool
    names = (named.get("name"), tool.get("server_label"), tool.get("type"))
    return next((name for name in names if isinstance(name, str)), "")


def _schema(value: Any) -> Any:
    if isinstance(value, list):
        return [_schema(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {name: _member(name, value[name]) for name in sorted(value, key=_place)}


def _place(name: str) -> tuple[int, str]:
    return _RANK.get(name, len(_RANK)), name


def _member(name: str, value: Any) -> Any:
    if name in BY_NAME and isinstance(value, dict):
        return {inner: _schema(value[inner]) for inner in sorted(value)}
    return _schema(value)
