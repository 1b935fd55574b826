"""What the caller wants of the cache: request directives of RFC 9111, our own headers, LiteLLM's body field.

They combine to the strictest: a directive can only take away from what another one allows.
"""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, unquote_to_bytes

from cacheproxy.core.fields import values
from cacheproxy.core.model import Fields

MAX_NAME_BYTES = 16 * 1024
"""Of one name, percent-encoding undone."""
MAX_LIST_BYTES = 64 * 1024
"""Of a list of names as it is written; as much as a line of a head may have."""
MOST_LABELS = 256
"""Names of one kind from one source. With more, nothing is kept: a removal would miss what is left out."""
UNKNOWN_URGENCY = -1
_MEMBER = re.compile(r'(?:"(?:[^"\\]|\\.)*+"|[^,"]|")+')
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
GREATEST = 2.0**31
"""What a number too large counts as (RFC 9111 section 1.2.2)."""
LITELLM_NAMES = frozenset({"ttl", "s-maxage", "s-max-age", "no-cache", "no-store", "namespace", "use-cache"})


@dataclass(frozen=True, slots=True)
class Controls:
    """Seconds where a number is meant. `max_stale` is infinite for a bare ``max-stale``. `priority`: 0 is the most
    urgent, 2 is batch work, None: it says nothing. `semantic`: the least similarity, infinite for none at all.
    `opted_in`: the request has a control that only makes sense with a cache."""

    no_cache: bool = False
    no_store: bool = False
    only_if_cached: bool = False
    max_age: float | None = None
    min_fresh: float | None = None
    max_stale: float | None = None
    stale_if_error: float | None = None
    ttl: float | None = None
    namespace: str = ""
    knowledge: str = ""
    tags: tuple[str, ...] = ()
    priority: int | None = None
    semantic: float | None = None
    opted_in: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class BadControl:
    """A control that cannot be read: which header or field, and what it must be."""

    name: str
    expected: str


@dataclass(slots=True)
class _Draft:
    flags: set[str] = field(default_factory=set)
    numbers: dict[str, float] = field(default_factory=dict)

    def tighten(self, name: str, number: float) -> None:
        self.numbers[name] = min(number, self.numbers.get(name, number))


NONE = Controls()
_NAMES = frozenset({
    b"cache-control", b"pragma", b"x-cache-control", b"x-cache-ttl", b"x-cache-namespace", b"x-cache-tags",
    b"x-cache-kb", b"x-priority", b"priority", b"x-cache-semantic",
})  # fmt: skip
_URGENCY = re.compile(r"(?:^|,)\s*u\s*=\s*([0-7])\s*(?:$|[,;])")
_PRIORITIES = {"P0": 0, "P1": 1, "P2": 2}
_BY_URGENCY = (0, 0, 0, 1, 1, 2, 2, 2)


def read(fields: Fields, body_field: Any = None) -> Controls | BadControl:
    """The controls of a request: its header fields and, where LiteLLM's form is understood, its body field."""
    if body_field is None and not any(n.lower() in _NAMES for n, _ in fields):
        return NONE
    draft = _Draft()
    for name in (b"cache-control", b"x-cache-control"):
        for value in values(fields, name):
            _directives(value.decode("latin-1"), draft)
    if not values(fields, b"cache-control") and b"no-cache" in [v.strip().lower() for v in values(fields, b"pragma")]:
        draft.flags.add("no-cache")  # RFC 9111 section 5.4
    names = _labels(fields)
    if isinstance(names, BadControl):
        return names
    namespace, knowledge, tags = names
    priority = urgency(fields)
    if priority == UNKNOWN_URGENCY:
        return BadControl("X-Priority", "P0, P1 or P2")
    bad = (
        _lifetime(fields, draft)
        or _likeness(fields, draft)
        or (None if body_field is None else _litellm(body_field, draft))
    )
    if bad is not None:
        return bad
    opted_in = bool(namespace or knowledge or tags or draft.numbers or "only-if-cached" in draft.flags or body_field)
    if body_field is not None:
        namespace = "\0\1".join(n for n in (namespace, escaped(body_field.get("namespace") or "")) if n)
    return Controls(
        no_cache="no-cache" in draft.flags,
        no_store="no-store" in draft.flags,
        only_if_cached="only-if-cached" in draft.flags,
        max_age=draft.numbers.get("max-age"),
        min_fresh=draft.numbers.get("min-fresh"),
        max_stale=draft.numbers.get("max-stale"),
        stale_if_error=draft.numbers.get("stale-if-error"),
        ttl=draft.numbers.get("ttl"),
        namespace=namespace,
        knowledge=knowledge,
        tags=decoded(tags),
        priority=priority,
        semantic=draft.numbers.get("semantic"),
        opted_in=opted_in,
    )


def _lifetime(fields: Fields, draft: _Draft) -> BadControl | None:
    for value in values(fields, b"x-cache-ttl"):
        text = value.decode("latin-1").strip()
        if not _SECONDS.fullmatch(text):
            return BadControl("X-Cache-TTL", "a number of seconds, 0 or more")
        draft.tighten("ttl", float(text))
    return None


def _likeness(fields: Fields, draft: _Draft) -> BadControl | None:
    for value in values(fields, b"x-cache-semantic"):
        text = value.decode("latin-1").strip().lower()
        off = text == "off"
        if not off and not (_SECONDS.fullmatch(text) and float(text) <= 1):
            return BadControl("X-Cache-Semantic", "off, or a number from 0 to 1")
        draft.numbers["semantic"] = max(float("inf") if off else float(text), draft.numbers.get("semantic", 0.0))
    return None


def _directives(text: str, draft: _Draft) -> None:
    """Read directives into `draft`. Unknown ones are ignored; a number that is none counts as 0, the strictest
    (RFC 9111 section 4.2.1)."""
    for member in _MEMBER.findall(text):
        name, equals, argument = (part.strip() for part in member.partition("="))
        argument = argument.strip('"')
        name = name.lower()
        number = min(float(argument), GREATEST) if _SECONDS.fullmatch(argument) else 0.0
        if name in ("no-cache", "no-store", "only-if-cached"):
            draft.flags.add(name)
        elif name in ("max-age", "s-maxage"):
            draft.tighten("max-age", number)
        elif name == "min-fresh":
            draft.numbers["min-fresh"] = max(number, draft.numbers.get("min-fresh", 0.0))
        elif name == "stale-if-error":
            draft.tighten(name, number)
        elif name == "max-stale":
            draft.tighten("max-stale", number if equals else float("inf"))


def _labels(fields: Fields) -> tuple[str, str, str] | BadControl:
    """The namespace, and the canonical lists of knowledge bases and tags."""
    told = _name(b", ".join(values(fields, b"x-cache-namespace")))
    if told is None:
        return BadControl("X-Cache-Namespace", f"percent-encoded UTF-8 of at most {MAX_NAME_BYTES} bytes")
    lists: list[str] = []
    for header, shown in ((b"x-cache-kb", "X-Cache-KB"), (b"x-cache-tags", "X-Cache-Tags")):
        names = _names(b",".join(values(fields, header)))
        if names is None:
            return BadControl(
                shown, f"at most {MOST_LABELS} names of percent-encoded UTF-8, {MAX_LIST_BYTES} bytes in all"
            )
        lists.append(names)
    return escaped(told), lists[0], lists[1]


def urgency(fields: Fields) -> int | None:
    """Our own header, else RFC 9218's; the last of either. None: nothing; `UNKNOWN_URGENCY`: our own says something
    else."""
    own = values(fields, b"x-priority")
    if own:
        return _PRIORITIES.get(own[-1].decode("latin-1").strip().upper(), UNKNOWN_URGENCY)
    found = _URGENCY.search(b",".join(values(fields, b"priority")).decode("latin-1"))
    return _BY_URGENCY[int(found.group(1))] if found else None


def _name(value: bytes) -> str | None:
    raw = unquote_to_bytes(value.strip())
    if len(raw) > MAX_NAME_BYTES:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def escaped(namespace: str) -> str:
    """So that no namespace spells out two that are nested."""
    return namespace.replace("\0", "\0\0")


def _names(value: bytes) -> str | None:
    """A comma-separated list of names in one canonical text: sorted, each once, percent-encoded in one way. None if it
    cannot be read, or is beyond the bounds."""
    if not value:
        return ""
    if len(value) > MAX_LIST_BYTES:
        return None
    parts = {part.strip() for part in value.split(b",") if part.strip()}
    if len(parts) > MOST_LABELS:
        return None
    # What parts names is ASCII: a list that is no UTF-8 has a name that is none.
    if any(_name(part) is None for part in ((value,) if len(value) <= MAX_NAME_BYTES else parts)):
        return None
    return ",".join(sorted({_written(part) for part in parts}))


def _written(name: bytes) -> str:
    """A name, and its version if it has one, percent-encoded as far as they need it."""
    return "@".join(quote(unquote_to_bytes(part), safe="") for part in name.split(b"@", 1))


def bases(value: bytes) -> tuple[str, ...] | None:
    """The knowledge bases in a backend's list of them, in the canonical form; None if they cannot all be read, or are
    beyond the bounds."""
    names = _names(value)
    if names is None:
        return None
    return tuple(names.split(",")) if names else ()


def joined(names: str, more: tuple[str, ...]) -> str:
    """A canonical list with the names of the configuration added."""
    added = {"@".join(quote(part, safe="") for part in name.split("@", 1)) for name in more}
    return ",".join(sorted({*names.split(","), *added} - {""}))


def decoded(names: str) -> tuple[str, ...]:
    """The names of a canonical list, percent-encoding undone."""
    return tuple(unquote_to_bytes(part.encode("latin-1")).decode() for part in names.split(",")) if names else ()


def spoken(canonical: str) -> tuple[str, str]:
    """A knowledge base of a canonical list as it may be named: without its version, and with it if it has one."""
    name, at, version = (unquote(part) for part in canonical.partition("@"))
    return name, name + at + version


def labels(value: bytes) -> tuple[str, ...] | None:
    """The labels in a backend's list of them; None as in `bases`."""
    names = _names(value)
    return None if names is None else decoded(names)


def understands(body_field: Any) -> bool:
    """Whether a body's field ``cache`` is LiteLLM's form: an object of its names only."""
    return isinstance(body_field, dict) and body_field.keys() <= LITELLM_NAMES


def _litellm(body_field: dict[str, Any], draft: _Draft) -> BadControl | None:
    if body_field.get("use-cache") is False:
        draft.flags.add("no-store")
    for name in ("no-cache", "no-store"):
        if body_field.get(name) not in (None, True, False):
            return BadControl(f"cache.{name}", "true or false")
        if body_field.get(name):
            draft.flags.add(name)
    for name, meaning in (("ttl", "ttl"), ("s-maxage", "max-age"), ("s-max-age", "max-age")):
        number = body_field.get(name)
        if number is None:
            continue
        if type(number) not in (int, float) or not 0 <= number <= GREATEST:
            return BadControl(f"cache.{name}", "a number of seconds, 0 or more")
        draft.tighten(meaning, float(number))
    namespace = body_field.get("namespace")
    if namespace is not None and (
        not isinstance(namespace, str)
        or len(namespace.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES
        or any("\ud800" <= letter <= "\udfff" for letter in namespace)
    ):
        return BadControl("cache.namespace", f"a text of at most {MAX_NAME_BYTES} bytes")
    return None
