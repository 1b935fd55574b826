"""Every name of the configuration with its type, default and meaning, read off the models."""

import re
from typing import Any, get_args

from pydantic import BaseModel, BeforeValidator

from cacheproxy.core.affinity import Policy
from cacheproxy.core.extraction import Into
from cacheproxy.core.prefix import Clock, Ids, Unit
from cacheproxy.core.rules import Mode, Reach, Share
from cacheproxy.core.texts import Action
from cacheproxy.schema.kinds import read_duration, read_pace, read_size
from cacheproxy.schema.settings import Settings
from cacheproxy.schema.upstreams import read_slots


def names() -> dict[str, tuple[str, Any, str]]:
    """Every configuration name: (type, default, meaning), in order. Members of a list have ``[]`` in their name."""
    return dict(_names(Settings, ""))


def _names(model: type[BaseModel], prefix: str) -> Any:
    for name, field in model.model_fields.items():
        dotted, outer = f"{prefix}{name}", field.annotation
        member = _model_in(outer)
        if isinstance(outer, type) and issubclass(outer, BaseModel):
            yield from _names(outer, f"{dotted}.")
        elif member is not None:
            yield dotted, ("list", None, field.description or "")
            yield from _names(member, f"{dotted}[].")
        else:
            default = None if field.is_required() or field.default_factory is not None else field.default
            yield dotted, (_kind(field), default, field.description or "")


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a list is of."""
    for argument in get_args(annotation):
        if isinstance(argument, type) and issubclass(argument, BaseModel):
            return argument
        if (found := _model_in(argument)) is not None:
            return found
    return None


def _kind(field: Any) -> str:
    marks = [*field.metadata, *(m for a in get_args(field.annotation) for m in getattr(a, "__metadata__", ()))]
    validators = [m.func for m in marks if isinstance(m, BeforeValidator)]
    text = str(field.annotation)
    for reader, words in _READERS.items():
        if reader in validators:
            return words
    for listed in (Mode, Reach, Share, Clock, Unit, Ids, Action, Policy, Into):
        if listed.__name__ in text:
            return " or ".join(f"`{word.value}`" for word in listed)
    if "Literal" in text:
        return " or ".join(f"`{value}`" for value in re.findall(r"'([^']*)'", text))
    return next((words for mark, words in _MARKS if mark in text), "number")


_READERS: dict[Any, str] = {
    read_duration: "duration", read_size: "size", read_pace: "`instant`, `recorded` or a number",
    read_slots: "number, `auto`, `realtime` or `batch`",
}  # fmt: skip
_MARKS = (
    ("tuple", "list of texts"), ("dict", "mapping"), ("bool", "true or false"), ("SecretStr", "secret text"),
    ("str", "text"),
)  # fmt: skip
