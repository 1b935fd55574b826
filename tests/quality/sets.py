"""The labelled sets by which answers by meaning are measured: those of the repository, and any in their form."""

import json
from dataclasses import dataclass
from pathlib import Path

from cacheproxy.core import labelled
from cacheproxy.core.labelled import Pair
from tests.rig import ROOT

DATA = ROOT / "tests" / "data"
PAIRS = (
    "likeness/adversarial.jsonl", "likeness/own.jsonl", "likeness/more.jsonl", "quality/gptcache_mock.jsonl",
    "quality/pawsx.jsonl",
)  # fmt: skip
STREAMS = ("quality/banking77.jsonl", "quality/clinc150.jsonl")
NO_INTENT = "oos"
"""The intent of texts of which nothing is known, so that nobody can say which of them are the same question."""


@dataclass(frozen=True)
class Pairs:
    """`similarities`: as they are written in the file; None if they are not."""

    name: str
    pairs: list[Pair]
    similarities: list[float | None] | None


@dataclass(frozen=True)
class Stream:
    """Texts in no order; those with the same intent have one answer."""

    name: str
    texts: list[str]
    intents: list[str]


def shipped() -> list[Pairs | Stream]:
    return [read(DATA / name) for name in (*PAIRS, *STREAMS) if (DATA / name).exists()]


def read(path: Path) -> Pairs | Stream:
    """A file of either form. Raises `ValueError` with the line that is wrong."""
    data = path.read_bytes()
    rows = [json.loads(line) for line in data.split(b"\n") if line.strip()]
    if rows and isinstance(rows[0], dict) and "intent" in rows[0]:
        for number, row in enumerate(rows, 1):
            if not isinstance(row.get("text"), str) or not isinstance(row.get("intent"), str):
                raise ValueError(f"line {number}: `text` and `intent` must be text")
        rows = [row for row in rows if row["intent"] != NO_INTENT]
        return Stream(path.stem, [row["text"] for row in rows], [row["intent"] for row in rows])
    pairs = labelled.pairs(data)
    known = all("similarity" in row for row in rows)
    return Pairs(path.stem, pairs, [row["similarity"] for row in rows] if known else None)
