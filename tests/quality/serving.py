"""What serves, at the settings that are the default: embedder, guards, verifier, threshold. Nothing of it is a copy."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cacheproxy.core.likeness import Guard
from cacheproxy.core.model import Unfit
from cacheproxy.meaning import tuning
from cacheproxy.meaning.embedder import LocalEmbedder, open_embedder
from cacheproxy.meaning.tuning import Judge
from cacheproxy.meaning.verifier import Classifier
from cacheproxy.schema.matching import MatchingSettings
from cacheproxy.wiring.opinions import LEAST
from tests.parts import embedder as part
from tests.parts import place

DEFAULTS = MatchingSettings()
CACHE = place.PARTS / "quality"


def embedder(threads: int = 2) -> LocalEmbedder:
    return open_embedder(DEFAULTS.model, path=str(part.install()), threads=threads)


def bare() -> Judge:
    """Nothing but the similarity counts."""
    return Judge(frozenset())


def default(least: float | None = LEAST) -> Judge:
    """`least`: the probability that the verifier has to give; None: it is not asked."""
    guards = frozenset(Guard(name) for name in DEFAULTS.guards)
    return Judge(guards) if least is None else Judge(guards, Classifier(), least)


async def matrix(model: LocalEmbedder, texts: Sequence[str], cache: Path | None = CACHE) -> NDArray[np.float32]:
    """A row for each text; of zeros if the embedder refuses it. What was computed once is read from `cache`."""
    digest = hashlib.blake2b(repr((model.identity, list(texts))).encode(), digest_size=16).hexdigest()
    file = None if cache is None else cache / f"{digest}.npy"
    if file is not None and file.exists():
        return np.load(file)
    known = await tuning.vectors(model, texts)
    none = np.zeros(model.identity.dim, np.float32)
    rows = np.stack([none if isinstance(known[text], Unfit) else known[text] for text in texts])
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, rows)
    return rows
