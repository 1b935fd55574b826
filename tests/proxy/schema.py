"""A small reader of JSON Schema: as much of it as the description of the admin API uses. Says what does not fit, and
makes values that fit or nearly do."""

import random
import re
from typing import Any

KINDS = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list,
    "null": type(None),
}  # fmt: skip
UNDERSTOOD = {
    "type", "properties", "required", "additionalProperties", "items", "minItems", "enum", "const", "anyOf", "oneOf",
    "$ref", "minimum", "maximum", "minLength", "maxLength", "pattern", "minProperties", "maxProperties", "propertyNames",
    "not",
}  # fmt: skip
FITTING = {
    r"^1\.": ["1.0", "1.1"], "^/[!-~]*$": ["/v1/chat/completions", "/v1/embeddings", "/v1/files?x=y"],
    "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}$": ["a", "X-Cache-KB", "Authorization"],
    "^([0-9a-f]{64})?$": ["", "0" * 64, "f" * 64],
}  # fmt: skip
"""Texts by the pattern that they match."""
SAID = {"description", "examples", "default"}


class Schemas:
    """The schemas of a description."""

    def __init__(self, document: dict) -> None:
        self._components = document["components"]["schemas"]

    def resolved(self, schema: dict) -> dict:
        while "$ref" in schema:
            schema = self._components[schema["$ref"].removeprefix("#/components/schemas/")]
        return schema

    def misfit(self, schema: dict, value: Any, at: str = "") -> str | None:
        """Where `value` does not fit, None if it does."""
        schema = self.resolved(schema)
        assert schema.keys() <= UNDERSTOOD | SAID, schema
        for name in ("anyOf", "oneOf"):
            fits = [option for option in schema.get(name, ()) if self.misfit(option, value, at) is None]
            if name in schema and not fits:
                return f"{at}: none of {name}"
        if ("enum" in schema and value not in schema["enum"]) or ("const" in schema and value != schema["const"]):
            return f"{at}: not of the values"
        if "not" in schema and self.misfit(schema["not"], value) is None:
            return f"{at}: what it must not be"
        kinds = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", ())
        if kinds and not any(self._is(kind, value) for kind in kinds):
            return f"{at}: not {kinds}"
        if isinstance(value, dict):
            return self._object(schema, value, at)
        if isinstance(value, list):
            if len(value) < schema.get("minItems", 0):
                return f"{at}: too few"
            found = (self.misfit(schema.get("items", {}), one, f"{at}/{i}") for i, one in enumerate(value))
            return next((one for one in found if one), None)
        return self._scalar(schema, value, at)

    def _is(self, kind: str, value: Any) -> bool:
        return isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))

    def _scalar(self, schema: dict, value: Any, at: str) -> str | None:
        if isinstance(value, str):
            long = len(value) > schema.get("maxLength", len(value))
            if len(value) < schema.get("minLength", 0) or long or not re.search(schema.get("pattern", ""), value):
                return f"{at}: no such text"
        elif isinstance(value, int | float) and not schema.get("minimum", value) <= value <= schema.get(
            "maximum", value
        ):
            return f"{at}: out of bounds"
        return None

    def _object(self, schema: dict, value: dict, at: str) -> str | None:
        members = schema.get("properties", {})
        if missing := set(schema.get("required", ())) - value.keys():
            return f"{at}: {missing} missing"
        more = schema.get("additionalProperties", True)
        if len(value) < schema.get("minProperties", 0) or (more is False and value.keys() - members.keys()):
            return f"{at}: members"
        if len(value) > schema.get("maxProperties", len(value)):
            return f"{at}: too many"
        for name, one in value.items():
            if found := self.misfit(schema.get("propertyNames", {}), name, f"{at}/{name}"):
                return found
            told = members.get(name, more if isinstance(more, dict) else {})
            if found := self.misfit(told, one, f"{at}/{name}"):
                return found
        return None

    def made(self, schema: dict, dice: random.Random, depth: int = 4) -> Any:
        """A value that fits, most of the time."""
        schema = self.resolved(schema)
        for name in ("anyOf", "oneOf"):
            if name in schema:
                return self.made(dice.choice(schema[name]), dice, depth)
        if "enum" in schema or "const" in schema:
            return dice.choice(schema.get("enum", [schema.get("const")]))
        if schema.get("pattern") in FITTING and dice.random() < 0.9:
            return dice.choice(FITTING[schema["pattern"]])
        kind = schema.get("type", "string")
        kind = dice.choice(kind) if isinstance(kind, list) else kind
        if kind == "object":
            members = schema.get("properties", {})
            names = [name for name in members if name in schema.get("required", ()) or dice.random() < 0.4]
            if not names and members and schema.get("minProperties"):
                names = [dice.choice(list(members))]
            made = {name: self.made(members[name], dice, depth - 1) for name in names} if depth else {}
            if isinstance(more := schema.get("additionalProperties"), dict):
                names = schema.get("propertyNames")
                more_names = [self.made(names, dice) if names else text(dice) for _ in range(dice.randrange(3))]
                made |= {name: self.made(more, dice, depth - 1) for name in more_names}
            return made
        if kind == "array":
            length = dice.randrange(schema.get("minItems", 0), 4)
            return [self.made(schema.get("items", {}), dice, depth - 1) for _ in range(length)] if depth else []
        if kind in ("integer", "number"):
            low, high = schema.get("minimum", -100), schema.get("maximum", 10**6)
            return dice.randint(low, high) if kind == "integer" else dice.uniform(low, high)
        return {"boolean": dice.random() < 0.5, "null": None}.get(kind, text(dice, schema.get("minLength", 0)))


JUNK = [None, True, False, 0, -1, 1.5, 2**63, 2**64, 10**400, 1e308, "", " ", "\0", "x" * 3000, [], {}, [[]], {"": {}}, "\U0001f600", "../..", "%00", "'\"<&", "\u202e"]  # fmt: skip


def text(dice: random.Random, least: int = 0) -> str:
    letters = dice.choice(["ab", "a0-_", "aé漢😀", " \t\n\0", "%/?#&=;,@\"'\\{}", "\u202e\ufeff\u0301"])
    return "".join(dice.choice(letters) for _ in range(dice.randrange(least, least + 6)))


def spoiled(value: Any, dice: random.Random) -> Any:
    """`value` with something in it that is likely to be wrong."""
    if isinstance(value, dict) and value and dice.random() < 0.8:
        name = dice.choice(list(value))
        turn = dice.random()
        if turn < 0.2:
            return {n: v for n, v in value.items() if n != name}
        if turn < 0.3:
            return {**value, text(dice): dice.choice(JUNK)}
        return {**value, name: spoiled(value[name], dice)}
    if isinstance(value, list) and value and dice.random() < 0.7:
        at = dice.randrange(len(value))
        return [*value[:at], spoiled(value[at], dice), *value[at + 1 :]]
    return dice.choice(JUNK)
