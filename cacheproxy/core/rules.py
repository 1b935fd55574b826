"""The operator's table of rules: which requests a row is for, and what it settles for them. Pure.

Rows are read from top to bottom; for each setting the first matching row that says something about it wins, and what
no row says is the configuration's. Knowledge bases, tags and places of names of all matching rows are added up.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import translate
from typing import Any

from cacheproxy.core.extraction import Place
from cacheproxy.core.model import Fields


class Mode(StrEnum):
    """What the exact layer does for a request."""

    ON = "on"
    OFF = "off"
    OPT_IN = "opt-in"  # only for requests that ask for it
    READ_ONLY = "read-only"  # serves, keeps nothing
    WRITE_ONLY = "write-only"  # keeps, serves nothing
    SHADOW = "shadow"  # looks, compares and counts; keeps, serves nothing


class Opinion(StrEnum):
    """What gives a second opinion on two questions."""

    OFF = "off"
    CLASSIFIER = "classifier"
    CROSS_ENCODER = "cross-encoder"
    JUDGE = "judge"


class Reach(StrEnum):
    """What the semantic layer does for a request."""

    ON = "on"
    OFF = "off"
    OPT_IN = "opt-in"  # only for requests that ask for it
    SHADOW = "shadow"  # looks and counts; serves nothing


class Share(StrEnum):
    """With whom a caller shares answers."""

    CREDENTIAL = "credential"
    TENANT = "tenant"  # with the other credentials of its key group
    SHARED = "shared"  # with everybody whom the backend accepts


Globs = tuple[re.Pattern[str], ...]


def globs(patterns: Sequence[str]) -> Globs:
    """Compiled shell patterns (``*``, ``?``, ``[…]``), case-sensitive."""
    return tuple(re.compile(translate(pattern)) for pattern in patterns)


def _any(patterns: Globs, text: str) -> bool:
    return any(pattern.match(text) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class Facts:
    """What rules can look at. `path`: without the query; `tags`: those the request carries."""

    path: str
    model: str
    fields: Fields
    tags: tuple[str, ...]
    key_group: str
    service_tier: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Match:
    """Every part that is not empty must match. Within a part one of its patterns does; of the header fields, all."""

    path: Globs = ()
    model: Globs = ()
    header: tuple[tuple[bytes, re.Pattern[str]], ...] = ()
    tag: Globs = ()
    key_group: Globs = ()
    service_tier: Globs = ()
    metadata: tuple[tuple[str, re.Pattern[str]], ...] = ()

    def takes(self, facts: Facts) -> bool:
        """Whether a request with these facts is meant."""
        if self.path and not _any(self.path, facts.path):
            return False
        if self.model and not _any(self.model, facts.model):
            return False
        if self.key_group and not _any(self.key_group, facts.key_group):
            return False
        if self.service_tier and not _any(self.service_tier, facts.service_tier):
            return False
        if not all(_said(facts.metadata.get(name), pattern) for name, pattern in self.metadata):
            return False
        if self.tag and not any(_any(self.tag, tag) for tag in facts.tags):
            return False
        return all(_has(facts.fields, name, pattern) for name, pattern in self.header)


def _said(value: Any, pattern: re.Pattern[str]) -> bool:
    return isinstance(value, str) and pattern.match(value) is not None


def _has(fields: Fields, name: bytes, pattern: re.Pattern[str]) -> bool:
    return any(n.lower() == name and pattern.match(v.decode("latin-1")) for n, v in fields)


@dataclass(frozen=True, slots=True)
class Settled:
    """What holds for one request. None: the rules say nothing. Seconds; `priority` is the best it may have (0 to 2)."""

    exact: Mode | None = None
    semantic: bool | None = None
    ttl: float | None = None
    threshold: float | None = None
    shed_threshold: float | None = None
    keywords: float | None = None
    verifier: bool | None = None
    priority: int | None = None
    defer: bool | None = None
    scope: Share | None = None
    variants: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    kb: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    prefix: tuple[tuple[str, object], ...] = ()
    """Names of rules of the prefix layer and what they are set to."""
    extract: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table."""

    match: Match
    settles: Settled


_FIRST_WINS = (
    "exact",
    "semantic",
    "ttl",
    "threshold",
    "shed_threshold",
    "keywords",
    "verifier",
    "priority",
    "defer",
    "scope",
    "variants",
    "requests_per_minute",
    "tokens_per_minute",
)
NOTHING = Settled()


def settle(rules: Sequence[Rule], facts: Facts) -> tuple[Settled, tuple[int, ...]]:
    """What the table says of a request, and which rows (from 1) matched."""
    hits = tuple(number for number, rule in enumerate(rules, 1) if rule.match.takes(facts))
    if not hits:
        return NOTHING, ()
    rows = [rules[number - 1].settles for number in hits]
    told: dict[str, Any] = {
        name: next((v for row in rows if (v := getattr(row, name)) is not None), None) for name in _FIRST_WINS
    }
    for name in ("kb", "tags"):
        told[name] = tuple(sorted({v for row in rows for v in getattr(row, name)}))
    told["extract"] = tuple(place for row in rows for place in row.extract)
    prefix: dict[str, object] = {}
    for row in reversed(rows):
        prefix.update(row.prefix)
    return Settled(**told, prefix=tuple(prefix.items())), hits
