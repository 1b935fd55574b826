"""Writes the pages that say what the code says: ``python docs/generate.py``; with ``--check`` only compares.

Generated: docs/reasons.md, docs/configuration.md, docs/metrics.md, and configs/embedded.yaml.
"""
# ruff: noqa: INP001, T201, SLF001 - a script, which prints; the metrics library tells label names no other way

import json
import sys
import textwrap
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

from prometheus_client import Counter, Histogram

from cacheproxy import cli, errors, settings
from cacheproxy.core.likeness import Guard
from cacheproxy.core.model import Endpoint
from cacheproxy.core.outcome import Reason, Source
from cacheproxy.core.prefix import RULES
from cacheproxy.stores.redis_trouble import Kind
from cacheproxy.wiring import House

ROOT = Path(__file__).resolve().parent.parent
NOTE = "Written by `python docs/generate.py`; do not edit."

EXAMPLE = """\
upstreams:
  - http://gpu-1:8000
  - url: http://gpu-2:8000
    weight: 2
exact:
  ttl: 30m
store:
  data_dir: /var/lib/cacheproxy
  memory_bytes: 512MiB
limits:
  idle_timeout: 90s
"""
"""Stands in docs/configuration.md; a test loads it."""


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in line] for line in [heads, *rows]]
    lines = ["| " + " | ".join(line) + " |" for line in cells]
    lines.insert(1, "|" + "---|" * len(cells[0]))
    return "\n".join(lines) + "\n"


# --- reasons ---------------------------------------------------------------------------------------------------------


def reasons() -> str:
    """The page on reasons."""
    return f"""# Reasons

<!-- {NOTE} -->

Whenever an answer does not come from the cache, or is not kept, there is one word for why. The list is closed: the same
word stands in the response header `X-Cache-Reason`, in the `reason` label of the [metrics](metrics.md), in the `detail`
of `Cache-Status`, and here.

{table(("word", "meaning"), ((f"`{r.word}`", r.explanation) for r in Reason))}"""


# --- configuration ---------------------------------------------------------------------------------------------------

_DURATIONS = (("d", 86_400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0))
_SIZES = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def human(kind: str, value: Any) -> str:
    """A default as one would write it in a file."""
    if value is None:
        return ""
    if kind == "duration":
        units = [f"{value / length:g}{unit}" for unit, length in _DURATIONS if value and value % length == 0]
        return units[0] if units else f"{value * 1000:g}ms" if value else "0"
    if kind == "size":
        units = [f"{value // length}{unit}" for unit, length in _SIZES if value and value % length == 0]
        return units[0] if units else str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return json.dumps(list(value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _variable(name: str) -> str:
    """The environment variable of a name; the fields of a backend are given inside that of the list."""
    return settings.PREFIX + name.partition("[]")[0].upper().replace(".", "__")


def _groups() -> Iterable[tuple[str, list[tuple[str, tuple[str, Any, str]]]]]:
    """The names by their first part, in order."""
    for group, members in groupby(settings.names().items(), lambda item: item[0].partition(".")[0].removesuffix("[]")):
        yield group, list(members)


def _sections() -> str:
    heads = ("name", "type", "default", "environment variable", "meaning")
    sections = []
    for group, members in _groups():
        rows = [
            (
                f"`{name}`",
                kind,
                f"`{human(kind, default)}`" if default is not None else "",
                f"`{_variable(name)}`",
                text,
            )
            for name, (kind, default, text) in members
        ]
        sections.append(f"## {group}\n\n{table(heads, rows)}")
    return "\n".join(sections)


def configuration() -> str:
    """The page on configuration."""
    flags = table(
        ("flag", "name"), ((f"`--{flag.replace('_', '-')}`", f"`{name}`") for flag, name in cli._FLAGS.items())
    )
    return f"""# Configuration

<!-- {NOTE} -->

Only a backend has to be named: `cacheproxy serve --upstream http://127.0.0.1:8000`. Everything else has a default.

Values come from four places; the later one wins: the defaults, a YAML file (`--config FILE`), the environment, flags.
An environment variable is `{settings.PREFIX}` and the name in capitals, with `__` for each dot. An unknown name is an
error that tells the nearest known one. What Kubernetes sets in every pod for a Service called `cacheproxy`
(`CACHEPROXY_PORT=tcp://…`) is no configuration and is ignored. `cacheproxy check` prints every value in force and where
it comes from, with secrets masked, and refuses values that contradict each other.

- **Durations** are numbers of seconds, or a number with a unit: `250ms`, `30s`, `5m`, `1h`, `7d`. Not negative.
- **Sizes** are numbers of bytes, or a number with a unit: `64KiB`, `64MiB`, `1GiB` (powers of 1024), `64KB`, `64MB`,
  `1GB` (powers of 1000). Not negative.
- **`upstreams`** in the environment is one URL, several with commas between them, or a JSON list:
  `CACHEPROXY_UPSTREAMS='[{{"url": "http://gpu-1:8000", "weight": 2}}]'`.

```yaml
{EXAMPLE}```

`configs/minimal.yaml` has what must be said, `configs/embedded.yaml` every name with its default.

## Flags

{flags}
{_sections()}"""


def embedded() -> str:
    """The example file with every name at its default."""
    lines = [
        "# Every name with its default: nothing else to start, answers in memory and in one file.",
        f"# {NOTE} What it means at length: docs/configuration.md.",
    ]
    for group, members in _groups():
        if group != "upstreams" and members[0][0] == group:
            lines += ["", *_comment(members[0][1][2], ""), f"# {group}: []"]
            continue
        lines += ["", f"{group}:"]
        lines += _backend(members) if group == "upstreams" else _members(group, members)
    return "\n".join(lines) + "\n"


def _comment(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(" ".join(text.split()), 118, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def _backend(members: list[tuple[str, tuple[str, Any, str]]]) -> list[str]:
    lines = []
    for position, (name, (kind, default, meaning)) in enumerate(members[1:]):
        value = "http://127.0.0.1:8000" if default is None else human(kind, default)
        lines += _comment(meaning) if not position else _comment(meaning, "    ")
        lines.append(f"  {' ' if position else '-'} {name.partition('.')[2]}: {value}")
    return lines


def _members(group: str, members: list[tuple[str, tuple[str, Any, str]]]) -> list[str]:
    lines = []
    for name, (kind, default, meaning) in members:
        if "[]" in name:
            continue
        value = human(kind, default)
        shown = f'"{value}"' if value in ("on", "off") else value
        lines += _comment(meaning)
        lines.append(f"  {'# ' if default is None else ''}{name.removeprefix(group + '.')}: {shown}".rstrip())
    return lines


# --- metrics ---------------------------------------------------------------------------------------------------------


def _codes(kind: type[errors.AnswerError]) -> set[str]:
    return {kind.code}.union(*(_codes(inner) for inner in kind.__subclasses__()))


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


LABELS = {
    "source": "Where the answer came from, as in `X-Cache`: " + _listed(s.value for s in Source) + ".",
    "reason": "A word of the [reasons](reasons.md), or empty for a hit.",
    "endpoint": _listed(e.value for e in Endpoint) + ", or empty for every other path.",
    "code": "The `code` of an error of ours: " + _listed(sorted(_codes(errors.AnswerError))) + ".",
    "kind": "Of tokens: `prompt` or `completion`; of trouble what it was, of any part `fault`, of Redis: "
    + _listed(Kind)
    + "; of running answers that replicas share: `lost`, `gone`, `too_large`.",
    "verdict": "Of a sample: `agree`, `differ`, `unknown`, or `skipped` if there was no time or budget for it; of "
    "feedback: `wrong` or `right`.",
    "opinion": "`agreed`, `disagreed` or `trouble`.",
    "said": "`same`, `different`, `unclear`, or `refused` by the backend.",
    "priority": "`P0`, `P1` or `P2`.",
    "direction": "Of thresholds: `up` or `down`.",
    "course": "What followed: of versions `published`, `unchanged`, `repeated`, `outdated`; of deferred requests "
    "`taken` or `no_room`, then `done` or `failed`, or each time that one goes on waiting `refused`, `again` (the "
    "backend failed), `released` (the proxy stops), `lost` (another one asks it).",
    "result": "Of a comparison: `same` or `different`; of a refresh: `kept` or `failed`; of a backend that could not "
    "be connected to: `retried` on another one, or `denied` by `health.retry_budget`.",
    "mode": "Of a purge: `hard` or `soft`.",
    "family": "An opaque id of a scope's and model's system prompt, for the first 20 that are seen, else `other`.",
    "stabilised": "`yes` if a rule of the prefix layer changed what was forwarded, else `no`.",
    "rule": "Of the prefix layer: " + _listed(RULES) + "; `text` if none would mend it.",
    "guard": _listed(Guard) + ".",
    "step": "What became of it: `read` (given as it came), `look` (the stored answer, in the other form), `again` (the "
    "one who generated failed), `alone` (not to be shared), `resumed`, `twin` and `other_twin` (`flight.semantic`).",
    "origin": "`live` (asked for this caller), `coalesced` (for another one) or `hit` (stored).",
    "role": "`led` for the others, or `followed` from another replica.",
    "part": "The part that failed, and whether reading or writing, such as `cache file (read)`.",
}
"""A label that has no line here cannot be documented, so it cannot be added without one."""


def _kind(collector: Any) -> tuple[str, str]:
    """The type of a metric and its name as it is exposed."""
    if isinstance(collector, Counter):
        return "counter", f"`{collector._name}_total`"
    if isinstance(collector, Histogram):
        return "histogram", f"`{collector._name}` (`_bucket`, `_sum`, `_count`)"
    return "gauge", f"`{collector._name}`"


def metrics() -> str:
    """The page on metrics."""
    values = {"upstreams": ["http://127.0.0.1:8000"], "store.data_dir": "none"}
    house = House(settings.resolve(values, None, {}).settings)
    collectors = {c for c in house.telemetry.registry._collector_to_names if hasattr(c, "_labelnames")}
    rows, used = [], set()
    for collector in sorted(collectors, key=lambda c: c._name):
        kind, name = _kind(collector)
        used.update(collector._labelnames)
        rows.append((name, kind, _listed(collector._labelnames), collector._documentation))
    labels = table(("label", "values"), ((f"`{name}`", LABELS[name]) for name in sorted(used)))
    return f"""# Metrics

<!-- {NOTE} -->

`GET /metrics` on the admin listener, in the Prometheus text format. Every label takes its values from a closed list,
`family` from a bounded one: nothing that a request says (a model, a path, a user) ever becomes one.

{table(("name", "type", "labels", "meaning"), rows)}
{labels}
Beside these there are the usual `process_*` and `python_info` of the process itself.
"""


PAGES: dict[str, Callable[[], str]] = {
    "docs/reasons.md": reasons,
    "docs/configuration.md": configuration,
    "docs/metrics.md": metrics,
    "configs/embedded.yaml": embedded,
}


def main(arguments: list[str]) -> int:
    """Write the pages, or compare; 1 if a page differs."""
    if arguments not in ([], ["--check"]):
        print("usage: python docs/generate.py [--check]", file=sys.stderr)
        return 2
    different = 0
    for name, page in PAGES.items():
        path, text = ROOT / name, page()
        if path.exists() and path.read_text("utf-8") == text:
            continue
        different = 1
        print(f"{name} differs: run python docs/generate.py" if arguments else f"{name} written")
        if not arguments:
            path.write_text(text, "utf-8")
    return different if arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
