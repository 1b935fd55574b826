"""Layer 1: what a backend reads first, made the same from call to call, so that its own KV prefix cache hits. Pure.

Only tools, and system and developer texts, are ever changed, and of them only the spans that a rule in force names;
every other byte of the body stays as it came. Rules are applied until nothing changes any more, so that applying them
to their own result changes nothing; where that would not end, nothing is changed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

import orjson

from cacheproxy.core import noise, texts, toolset
from cacheproxy.core.blocks import Block, Path, blocks, pointer
from cacheproxy.core.literal import Edit, edit_literal, edit_text, unix_literal, unix_text
from cacheproxy.core.model import Endpoint
from cacheproxy.core.noise import NONCES, nonce_lines
from cacheproxy.core.places import exchanged, places
from cacheproxy.core.texts import Clock, Ids, Pattern, Search, Tail, Unit, moved_from

__all__ = ["NONCES", "RULES", "Change", "Clock", "Ids", "Rules", "Stable", "Unit", "nonce_lines", "stabilise"]

PREFIXED = frozenset({Endpoint.CHAT, Endpoint.RESPONSES})
"""The operations whose requests have instructions and tools apart from the rest."""
ROUNDS = 6
"""How often rules are applied to what they made of a text before they are taken to never end."""
MOST_CLEAN = 4096
_CLEAN: set[tuple["Rules", int, int]] = set()
"""Hashes and lengths of texts in which rules find nothing, as they do in what they have made: such texts come again and
again, since that is what the rules are for. One taken for another would only stay as it is."""


class RuleName(StrEnum):
    """The rules, in the order in which they are applied."""

    TOOLS = "tools"
    TOOL_NOISE = "tool_noise"
    NEWLINES = "newlines"
    UNICODE = "unicode"
    NONCES = "nonces"
    CLOCK = "clock"
    IDS = "ids"
    PATTERNS = "patterns"


RULES = tuple(rule.value for rule in RuleName)


@dataclass(frozen=True, slots=True)
class Rules:
    """Which rules are in force. `nonce_names`: names of lines at the head of a system text that are of one request
    only; `unit`: what `clock` coarsens to."""

    tools: bool = True
    tool_noise: bool = False
    newlines: bool = True
    unicode: bool = True
    nonces: bool = True
    clock: Clock = Clock.OFF
    unit: Unit = Unit.DAY
    ids: Ids = Ids.OFF
    patterns: tuple[Pattern, ...] = ()
    nonce_names: tuple[str, ...] = NONCES

    @property
    def search(self) -> Search:
        """What is searched for in system texts."""
        return Search(self.clock, self.unit, self.ids, self.patterns)


NONE = Rules(tools=False, newlines=False, unicode=False, nonces=False)
"""No rule at all: nothing is changed."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that a rule changed: the place as a JSON pointer, what stood there, what stands there now, and how
    often that is so."""

    rule: str
    pointer: str
    before: str
    after: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Stable:
    """A body with the rules applied: its bytes, its parsed fields, and what was changed."""

    plain: bytes
    fields: dict[str, Any]
    changes: tuple[Change, ...] = ()


@dataclass(slots=True)
class _Draft:
    """A block being changed: `stages` are what is to be done to its literal, one after the other."""

    block: Block
    text: str
    stages: list[Callable[[str], str]] = field(default_factory=list)

    def make(self, edits: list[Edit]) -> None:
        self.stages.append(partial(edit_literal, edits=edits))
        self.text = edit_text(self.text, edits)

    def unify_line_ends(self) -> int:
        """CRLF is LF; how many there were."""
        self.text, count = unix_text(self.text)
        if count:
            self.stages.append(unix_literal)
        return count


_Notes = Counter[tuple[str, str, str, str]]


def stabilise(endpoint: Endpoint, plain: bytes, fields: dict[str, Any], rules: Rules) -> Stable:
    """The body with `rules` applied. `fields`: what `plain` says, without ambiguity; neither is modified."""
    if endpoint not in PREFIXED or rules == NONE:
        return Stable(plain, fields)
    notes: _Notes = Counter()
    tools = _tools(plain, fields, rules, notes)
    drafts = [draft for draft in _texts(endpoint, fields, rules, notes) if draft.stages]
    if not tools and not drafts:
        return Stable(plain, fields)
    spans = places(plain, [*tools, *(draft.block.path for draft in drafts)])
    new = {spans[path]: written for path, written in tools.items()}
    for path, written in tools.items():
        fields = _with(fields, path, orjson.loads(written))
    for draft in drafts:
        start, end = span = spans[draft.block.path]
        literal = plain[start:end].decode()
        for stage in draft.stages:
            literal = stage(literal)
        new[span] = literal.encode()
        fields = _with(fields, draft.block.path, draft.text)
    changes = [Change(*what, count) for what, count in notes.items()]
    return Stable(exchanged(plain, new), fields, tuple(changes))


def _with(value: Any, path: Path, new: Any) -> Any:
    """`value` with `new` at `path`; what is not on the way is shared."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = _with(value[path[0]], path[1:], new)
    return copy


def _tools(plain: bytes, fields: dict[str, Any], rules: Rules, notes: _Notes) -> dict[Path, bytes]:
    """The lists of tools that are to be written otherwise, and how."""
    found: dict[Path, bytes] = {}
    for name in ("tools", "functions"):
        tools = fields.get(name)
        if not isinstance(tools, list) or not tools:
            continue
        before = orjson.dumps(tools)
        written = before
        if rules.tool_noise and (quiet := noise.without(tools)) != tools:
            written = orjson.dumps(quiet)
            notes[RuleName.TOOL_NOISE, pointer((name,)), before.decode(), written.decode()] += 1
            tools = quiet
        if rules.tools and (one := toolset.written(tools)) is not None and (one != written or one not in plain):
            notes[RuleName.TOOLS, pointer((name,)), written.decode(), one.decode()] += 1
            written = one
        elif written is before:
            continue
        found[(name,)] = written
    return found


def _texts(endpoint: Endpoint, fields: dict[str, Any], rules: Rules, notes: _Notes) -> list[_Draft]:
    """The texts with what is to be changed in them."""
    drafts = [_Draft(block, block.text) for block in blocks(endpoint, fields)]
    if not drafts:
        return []
    made: _Notes = Counter()
    for _ in range(ROUNDS):
        if not _round(drafts, rules, made):
            notes.update(made)
            return drafts
    # Only a pattern of the operator's whose result matches it again gets here.
    return _texts(endpoint, fields, replace(rules, patterns=()), notes) if rules.patterns else []


def _round(drafts: Sequence[_Draft], rules: Rules, made: _Notes) -> bool:
    """Apply every rule once; whether anything changed."""
    tail = Tail(drafts[-1].text)
    changed = False
    for draft in drafts:
        # What was moved to the end is not searched, and is short.
        end = moved_from(draft.text)
        name = rules, hash(draft.text[:end]), end
        if name in _CLEAN and not _tidied(draft.text[end:], rules) and not (tail.notes and draft is drafts[-1]):
            continue
        if _changed(draft, rules, tail, made, last=draft is drafts[-1]):
            changed = True
            continue
        if len(_CLEAN) >= MOST_CLEAN:
            _CLEAN.clear()
        _CLEAN.add(name)
    return changed


def _tidied(text: str, rules: Rules) -> bool:
    """Whether line ends or Unicode forms are to be changed in `text`."""
    return (rules.newlines and "\r\n" in text) or (rules.unicode and bool(texts.composed(text)))


def _changed(draft: _Draft, rules: Rules, tail: Tail, made: _Notes, *, last: bool) -> bool:
    """Apply every rule to one text; whether it changed. The `last` one takes in what was moved out of all of them."""
    place, before = draft.block.pointer, len(draft.stages)
    if rules.newlines and (count := draft.unify_line_ends()):
        made[RuleName.NEWLINES, place, "\r\n", "\n"] += count
    if rules.unicode and (edits := texts.composed(draft.text)):
        made.update([(RuleName.UNICODE, place, draft.text[start:end], new) for start, end, new in edits])
        draft.make(edits)
    text = draft.text
    edits = noise.nonces(text, rules.nonce_names) if rules.nonces else []
    made.update([(RuleName.NONCES, place, text[start:end], new) for start, end, new in edits])
    begin = edits[-1][1] if edits else 0
    for one in texts.search(text[begin : moved_from(text)], rules.search):
        start, end = begin + one.start, begin + one.end
        value = text[start:end]
        new = one.new if one.new is not None else tail.move(one.rule, one.kind, value)
        made[one.rule, place, value, new] += 1
        edits.append((start, end, new))
    if last and tail.notes:
        made.update([(rule, place, "", line) for rule, line in tail.notes])
        edits.append((len(text), len(text), tail.addition))
    if edits:
        draft.make(edits)
    return len(draft.stages) > before
