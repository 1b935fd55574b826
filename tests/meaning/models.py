"""Embedding models for the suites: the tiny ones that are shipped, and one that does as it is told."""

import json
import threading
from pathlib import Path

import numpy as np

from cacheproxy.core.model import Identity, Unfit
from cacheproxy.meaning.tokens import Piece
from tests.rig import ROOT

MODELS = ROOT / "tests" / "data" / "models"
TINY = ("tiny-bert", "tiny-roberta")
IDENTITY = Identity("told", "1", 4)


def expected(name: str) -> dict:
    """What sentence-transformers gives: `texts`, and their vectors by way of pooling."""
    file = MODELS / f"{name}.json"
    return json.loads((file if file.is_file() else MODELS / name / "expected.json").read_text())


def copy_of(name: str, place: Path) -> Path:
    """The files of a tiny model in a directory that the test may change."""
    root = place / name
    for file in (MODELS / name).rglob("*"):
        if file.is_file():
            copied = root / file.relative_to(MODELS / name)
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_bytes(file.read_bytes())
    return root


class Told:
    """A model: the vector of a text is made of its length and letters, unless `given` says otherwise.

    `batches`: the texts of each call; `gate`: while it is not set no call ends; `given`: in place of what it computes,
    by text; an exception is raised.
    """

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.threads: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.given: dict[str, object] = {}

    def read(self, text: str) -> Piece | Unfit:
        if not text.strip():
            return Unfit.EMPTY
        return Piece(text, tuple(map(ord, text)))

    def vectors(self, pieces: list[Piece]) -> list:
        self.batches.append([piece.text for piece in pieces])
        self.threads.add(threading.current_thread().name)
        assert self.gate.wait(60)
        return [self._vector(piece.text) for piece in pieces]

    def _vector(self, text: str):
        given = self.given.get(text)
        if isinstance(given, BaseException):
            raise given
        return vector_of(text) if given is None else given


def vector_of(text: str) -> np.ndarray:
    """What `Told` computes: not of length 1."""
    return np.array([len(text), ord(text[0]), ord(text[-1]), 5], np.float32)


def unit_of(text: str) -> np.ndarray:
    vector = vector_of(text)
    return vector / np.linalg.norm(vector)
