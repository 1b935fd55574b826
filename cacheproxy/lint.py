"""What ``lint-prompt`` reports of a prompt or of several requests, as data and as lines for people.

What is mended is judged by the rules in the configuration's `prefix`; its table `rules`, which goes by request, is not
looked at.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from cacheproxy.core import canonical, prefix
from cacheproxy.core.blocks import Block, head
from cacheproxy.core.divergence import Divergence, compare, tokens
from cacheproxy.core.model import Endpoint
from cacheproxy.core.survey import Finding, line_and_column, place, survey
from cacheproxy.core.texts import MOST_MATCHES, Clock, Ids
from cacheproxy.engine.families import Families
from cacheproxy.errors import ConfigurationError
from cacheproxy.schema import Settings
from cacheproxy.wiring import terms

WIDTH = 100
"""Columns of a line that is shown."""
_BEFORE = 40
_WIDE = frozenset("WF")
_MEANS = {"clock": "move", "ids": "move"}
"""What to set a rule to that is not only on or off."""


@dataclass(frozen=True, slots=True)
class _Request:
    """A request of the file, or its text as the system message of one. `clear`: whether rules apply to it at all."""

    endpoint: Endpoint
    fields: dict[str, Any]
    plain: bytes
    clear: bool = True
    is_text: bool = False


class _Nobody:
    """The journal that keeps nothing."""

    def note(self, *_: object) -> None: ...
    def count(self, *_: object) -> None: ...
    def add(self, *_: object) -> None: ...
    def observe(self, *_: object) -> None: ...


def lint(settings: Settings, data: bytes) -> dict[str, Any]:
    """{ok, requests, findings, divergences, notes}. `ok`: nothing was found that the rules in force do not mend. Raises
    `ConfigurationError` if `data` is nothing that can be looked at."""
    requests = _read(data)
    told = terms.prefix_rules(settings)
    in_force = told if settings.prefix.mode else prefix.NONE
    findings = _findings(settings, requests, in_force, told.nonce_names)
    divergences = _divergences(settings, requests, in_force, told.nonce_names)
    unclear = [number for number, request in enumerate(requests, 1) if not request.clear]
    return {
        "ok": not divergences and all(row["mended"] for row in findings),
        "requests": len(requests),
        "findings": findings,
        "divergences": divergences,
        "notes": [f"request {n} can be read in two ways (a name twice?), so that no rule applies" for n in unclear],
    }


# --- what is read ----------------------------------------------------------------------------------------------------


def _read(data: bytes) -> list[_Request]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the file is not UTF-8 (byte {error.start + 1})") from None
    if not text.strip():
        raise ConfigurationError("the file is empty")
    if not text.lstrip().startswith("{"):
        fields = {"messages": [{"role": "system", "content": text}]}
        return [_Request(Endpoint.CHAT, fields, orjson.dumps(fields), is_text=True)]
    try:
        return [_request(orjson.loads(text), text, 1)]
    except orjson.JSONDecodeError as error:
        lines = text.split("\n")
        if not _is_json(next(line for line in lines if line.strip())):
            where = f"line {error.lineno}, column {error.colno}"
            raise ConfigurationError(f"the file begins with {{ and is not valid JSON ({where})") from None
    return list(_lines(lines))


def _lines(lines: list[str]) -> Iterator[_Request]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            if not _is_json(line):
                raise ConfigurationError(f"line {number} is not valid JSON; requests stand one on a line")
            yield _request(orjson.loads(line), line, number)


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _request(fields: Any, text: str, line: int) -> _Request:
    if isinstance(fields, dict) and isinstance(body := fields.get("body"), dict) and "messages" not in fields:
        fields, text = body, ""  # a line of a batch file
    if not isinstance(fields, dict) or not fields.keys() & {"messages", "input", "instructions"}:
        raise ConfigurationError(f"line {line} is no request: it has no messages, input or instructions")
    endpoint = Endpoint.CHAT if "messages" in fields else Endpoint.RESPONSES
    try:
        head(endpoint, fields)
        plain = text.encode() or orjson.dumps(fields)
    except orjson.JSONEncodeError:
        raise ConfigurationError(f"the request of line {line} is nested too deep") from None
    return _Request(endpoint, fields, plain, canonical.is_clear(plain, fields))


# --- what is found ---------------------------------------------------------------------------------------------------


def _findings(
    settings: Settings, requests: list[_Request], rules: prefix.Rules, names: tuple[str, ...]
) -> list[dict[str, Any]]:
    """A row for each place; a place that several requests have is one, and tells of the first."""
    rows: dict[tuple[str, int, int, str], dict[str, Any]] = {}
    for number, request in enumerate(requests, 1):
        in_force = rules if request.clear else prefix.NONE
        for found in survey(request.endpoint, request.fields, names):
            where = place(found)
            text = found.block.text[found.start : found.end]
            shown, mended = _clean(text[:WIDTH]), _mended(found, in_force)
            known = rows.get((*where, found.kind.value))
            if known is not None:
                known["requests"] += 1
                known["varies"] = bool(known["varies"]) or shown != known["text"]
                known["mended"] = known["mended"] and mended
                continue
            rows[*where, found.kind.value] = {
                "request": number, "requests": 1, "pointer": "" if request.is_text else where[0], "line": where[1],
                "column": where[2], "kind": found.kind.value, "rule": found.rule,
                "setting": _setting(settings, found.rule), "mended": mended, "text": shown, "varies": None,
                "count": found.count, "behind": _size(found.behind),
                "excerpt": _excerpt(found.block.text, found.start, found.end),
            }  # fmt: skip
    return list(rows.values())


def _mended(found: Finding, rules: prefix.Rules) -> bool:
    """Whether a rule that is in force takes it away."""
    in_force: Any = getattr(rules, found.rule)
    if found.rule == "clock":
        done = in_force is Clock.MOVE or (in_force is Clock.COARSEN and not found.is_date)
    else:
        done = in_force is not Ids.OFF if found.rule == "ids" else bool(in_force)
    return done or any(
        match.start() < found.end and found.start < match.end()
        for pattern in rules.patterns
        for match in islice(pattern.regex.finditer(found.block.text), MOST_MATCHES)
    )


def _setting(settings: Settings, rule: str | None) -> str:
    """What to write into the configuration."""
    mode = [] if settings.prefix.mode else ["prefix.mode: on"]
    if rule is None:
        return ", ".join([*mode, "prefix.rules.patterns"])
    now = getattr(settings.prefix.rules, rule)
    if mode and now not in (False, "off"):
        return mode[0]
    return ", ".join([*mode, f"prefix.rules.{rule}: {_MEANS.get(rule, 'on')}"])


def _divergences(
    settings: Settings, requests: list[_Request], rules: prefix.Rules, names: tuple[str, ...]
) -> list[dict[str, Any]]:
    """A row for each place where requests of one family part, as they are forwarded; it tells of the last two."""
    families = Families(_Nobody(), most=len(requests), held=2**62)
    last: dict[str, tuple[int, list[Block]]] = {}
    rows: dict[tuple[str, int, str], dict[str, Any]] = {}
    for number, request in enumerate(requests, 1):
        in_force = rules if request.clear else prefix.NONE
        stable = prefix.stabilise(request.endpoint, request.plain, request.fields, in_force)
        first = head(request.endpoint, stable.fields)
        family = families.sent(b"", canonical.model_of(request.fields), first, ())
        before = last.get(family.id)
        last[family.id] = number, first
        found = compare(before[1], first, names) if before is not None else None
        if before is None or found is None or found.divergence is None:
            continue
        parted = found.divergence
        known = rows.get((parted.pointer, parted.offset, parted.kind.value))
        rows[parted.pointer, parted.offset, parted.kind.value] = {
            "requests": [before[0], number], "seen": known["seen"] + 1 if known else 1, "shared": _size(found.shared),
            **_parted(settings, parted, first),
        }  # fmt: skip
    return list(rows.values())


def _parted(settings: Settings, parted: Divergence, first: list[Block]) -> dict[str, Any]:
    text = next((block.text for block in first if block.pointer == parted.pointer), "")
    line, column = line_and_column(text, parted.offset)
    return {
        "pointer": parted.pointer, "line": line, "column": column, "kind": parted.kind.value, "rule": parted.rule,
        "setting": _setting(settings, parted.rule), "span": [_clean(part[:WIDTH]) for part in parted.span],
        "saves": _size(parted.saves),
        "excerpt": _excerpt(text, parted.offset, parted.offset + max(1, len(parted.span[1]))),
    }  # fmt: skip


def _size(count: int) -> dict[str, int]:
    return {"bytes": count, "tokens": tokens(count)}


# --- what is shown ---------------------------------------------------------------------------------------------------


def _clean(text: str) -> str:
    """`text` without signs that a terminal would obey, each character one character."""
    shown = (sign if sign.isprintable() else "\N{MIDDLE DOT}" for sign in text.replace("\t", " "))
    return "".join(shown).encode("utf-8", "replace").decode()


def _excerpt(text: str, start: int, end: int) -> list[str]:
    """The line of a place, or what stands around it, and marks below it."""
    line = text.rfind("\n", 0, start) + 1
    low = max(line, start - _BEFORE)
    stop = text.find("\n", start)
    high = min(len(text) if stop < 0 else stop, low + WIDTH)
    before, inside = _clean(text[low:start]), _clean(text[start : min(end, high)])
    marks = " " * _columns(before) + "^" * max(1, _columns(inside))
    return [before + inside + _clean(text[min(end, high) : high]), marks]


def _columns(text: str) -> int:
    """How wide a terminal shows it."""
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in _WIDE) for c in text)


def report(told: dict[str, Any], name: str) -> Iterator[str]:
    """What `lint` tells, in lines. `name`: what the file is called."""
    for row in told["findings"]:
        where = name if row["pointer"] == "" else f"{name} request {row['request']} {row['pointer']}"
        times = f" ({row['count']:,} times)" if row["count"] > 1 else ""
        if row["varies"] is False:
            times += f" (the same in all {row['requests']} requests that have it)"
        does = f"mended by prefix.rules.{row['rule']}, which is on" if row["mended"] else f"write {row['setting']}"
        cost = "" if row["mended"] else f"; {_said(row['behind'])} behind it cannot be reused"
        yield f"{where}:{row['line']}:{row['column']}: {row['kind']}{times}: {does}{cost}"
        yield from (f"    {line}" for line in row["excerpt"])
    for row in told["divergences"]:
        first, second = row["requests"]
        could = "could save" if row["rule"] is None else "would save"
        yield (
            f"{name} requests {first} and {second} part at {row['pointer']}:{row['line']}:{row['column']} "
            f"after {_said(row['shared'])}: {row['kind']}; {row['setting']} {could} {_said(row['saves'])}"
        )
        yield from (f"    {line}" for line in row["excerpt"])
    yield from told["notes"]
    found = len(told["findings"]) + len(told["divergences"])
    mended = sum(row["mended"] for row in told["findings"])
    yield f"{found} found, {mended} of them mended by rules that are on" if found else "nothing found"


def _said(told: dict[str, int]) -> str:
    return f"{told['bytes']:,} bytes (about {told['tokens']:,} tokens)"
