"""The pairs that the classifier learns from: written by hand, of public sets, and made (made_pairs.py); and how alike
their vectors are."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cacheproxy.meaning.embedder import open_embedder
from tests.quality.made_pairs import made
from tests.rig import ROOT

OWN = ROOT / "tests" / "data" / "likeness"
SEED, MADE = 1, 700
FLOOR = 0.85
"""Similarity below which pairs are not learnt from; those written by hand are, whatever theirs."""
_ONE_ANSWER = (
    "what_is_your_name are_you_a_bot meaning_of_life who_made_you how_old_are_you where_are_you_from what_can_i_ask_you "
    "pto_request_status payday w2 taxes direct_deposit rollover_401k credit_score improve_credit_score routing "
    "pin_change report_lost_card replacement_card_duration rewards_balance redeem_rewards freeze_account order_checks "
    "do_you_have_pets who_do_you_work_for what_are_your_hobbies oil_change_how jump_start damaged_card expiration_date "
    "report_fraud application_status"
)
ONE_ANSWER = frozenset(_ONE_ANSWER.split())
"""Intents of the clinc set whose questions ask for one thing, whatever else is in them."""


@dataclass(frozen=True)
class Labelled:
    a: str
    b: str
    same: bool
    source: str
    kind: str
    similarity: float = 0.0


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


async def embedded(texts: list[str], model: Path) -> dict[str, np.ndarray]:
    embedder = open_embedder("all-MiniLM-L6-v2", path=str(model))
    await embedder.warm()
    found = {}
    try:
        for at in range(0, len(texts), 256):
            some = texts[at : at + 256]
            vectors = await asyncio.gather(*(embedder.embed(text, b"train") for text in some))
            found |= {text: v for text, v in zip(some, vectors, strict=True) if isinstance(v, np.ndarray)}
    finally:
        await embedder.close()
    return found


class Vectors:
    """Texts -> vectors, remembered in a file if there is one."""

    def __init__(self, model: Path, file: Path | None) -> None:
        self._model, self._file = model, file
        self._known: dict[str, np.ndarray] = {}
        if file is not None and file.exists():
            kept = np.load(file)
            texts = kept["texts"].tobytes().decode("utf-8").split("\0")
            self._known = dict(zip(texts, kept["vectors"], strict=True))

    def learn(self, texts: set[str]) -> None:
        new = sorted(texts - self._known.keys(), key=lambda text: (len(text), text))
        if not new:
            return
        self._known |= asyncio.run(embedded(new, self._model))
        if self._file is not None and self._known:
            names = np.frombuffer("\0".join(self._known).encode("utf-8"), np.uint8)
            np.savez(self._file, texts=names, vectors=np.stack(list(self._known.values())))

    def get(self, text: str) -> np.ndarray | None:
        return self._known.get(text)


def pairs_of(rows: list[dict], source: str, vectors: Vectors) -> list[Labelled]:
    vectors.learn({row[side] for row in rows if row.get("similarity") is None for side in "ab"})
    found = []
    for row in rows:
        near = row.get("similarity")
        if near is None:
            a, b = vectors.get(row["a"]), vectors.get(row["b"])
            near = None if a is None or b is None else float(a @ b)
        if near is not None and (near >= FLOOR or "similarity" in row):
            found.append(Labelled(row["a"], row["b"], bool(row["same"]), source, row.get("kind") or "", near))
    return found


def intents_of(rows: list[dict], source: str, vectors: Vectors, single: frozenset[str] | None) -> list[Labelled]:
    """Pairs of near texts: the same if their intent is; of intents with many answers only those that are not."""
    rows = [row for row in rows if row["intent"] != "oos"]
    vectors.learn({row["text"] for row in rows})
    rows = [row for row in rows if vectors.get(row["text"]) is not None]
    if not rows:
        return []
    table = np.stack([vectors.get(row["text"]) for row in rows])
    near = np.triu(table @ table.T, 1)
    found = []
    for i, j in zip(*np.where(near >= FLOOR), strict=True):
        one, other = rows[i], rows[j]
        same = one["intent"] == other["intent"]
        if not (same and single is not None and one["intent"] not in single):
            found.append(Labelled(one["text"], other["text"], same, source, one["intent"], float(near[i, j])))
    return found


def collect(data: Path, vectors: Vectors) -> list[Labelled]:
    found = []
    for name in ("own", "adversarial", "more"):
        found += pairs_of(lines(OWN / f"{name}.jsonl"), name, vectors)
    for name, file in (("gptcache", "gptcache_mock"), ("pawsx", "pawsx_en")):
        found += pairs_of(lines(data / f"{file}.jsonl"), name, vectors)
    banking, clinc = (lines(data / f"{file}_test_intents.jsonl") for file in ("banking77", "clinc150"))
    banking = banking or lines(OWN / "banking_texts.jsonl")
    found += intents_of(banking, "banking", vectors, None)
    found += intents_of(clinc, "clinc", vectors, ONE_ANSWER)
    texts = [row["text"] for row in (*banking, *clinc) if row["intent"] != "oos"]
    rows = [{"a": a, "b": b, "same": same, "kind": kind} for a, b, same, kind in made(texts, MADE, SEED)]
    return found + pairs_of(rows, "made", vectors)
