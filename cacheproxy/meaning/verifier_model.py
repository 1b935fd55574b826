"""A verifier that is a model: a `CrossEncoder` of sentence-transformers, which reads both questions together, or one
for natural language inference, by whose lights each of the two must follow from the other.

It is asked both ways round, and the worse answer counts. What is too long for it is not known to be the same: a text is
never cut. It works in a thread of its own; nothing heavy is imported before it is loaded.
"""

# mypy: disable-error-code="import-not-found,import-untyped"

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cacheproxy.errors import Trouble, place_of
from cacheproxy.meaning.worker import Worker

log = logging.getLogger("cacheproxy.verifier")

LOAD_SECONDS = 120.0
"""A model that is not loaded by then is taken not to come."""
_USUAL = 512
"""Tokens that a model reads that does not say how many."""
_WARM = ("How do I change my address?", "How can I change my address?")
_SAME = ("entail", "duplicate", "paraphrase", "equivalent", "same", "yes")
"""How the label of two texts that say the same begins."""

Pair = tuple[str, str]


class Scorer(Protocol):
    """What computes, in the thread."""

    def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """For each pair the probability that they say the same, or that the second follows from the first; 0 for one
        that is too long."""


class ModelVerifier:
    """A `Verifier` of the model that `load` gives in the thread, at `warm` or at the first question. What cannot be
    loaded is tried again at the next."""

    def __init__(self, name: str, load: Callable[[], Scorer]) -> None:
        self.name = name
        self._load = load
        self._scorer: Scorer | None = None
        self._worker = Worker("verifier")

    def __repr__(self) -> str:
        return f"<ModelVerifier {self.name} {self._worker!r}>"

    async def agreement(self, asked: str, stored: str, similarity: float) -> float:
        del similarity  # the model has read the words
        return await self._worker.do(lambda: self._agreement(asked, stored))

    async def warm(self) -> None:
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                await self._worker.do(lambda: self._agreement(*_WARM))
        except TimeoutError:
            raise Trouble("the verifier takes too long to load", "timeout") from None

    async def close(self) -> None:
        self._worker.close()

    # --- the worker's thread -----------------------------------------------------------------------------------

    def _agreement(self, asked: str, stored: str) -> float:
        try:
            if self._scorer is None:
                self._scorer = self._load()
            scores = self._scorer.scores([(asked, stored), (stored, asked)])
        except Trouble:
            raise
        except Exception as error:  # noqa: BLE001 - of libraries with kinds of their own; the message may name texts
            log.error("the verifier failed: %s", place_of(error))
            raise Trouble(f"the verifier failed: {type(error).__name__}", "fault") from None
        if len(scores) != 2 or not all(0.0 <= score <= 1.0 for score in scores):
            raise Trouble("the verifier gave what is no probability", "damaged")
        return min(scores)


def open_verifier(name: str, *, download: bool = False) -> ModelVerifier:
    """The verifier of the model `name`: on the Hugging Face hub, or a directory. Loads nothing."""
    return ModelVerifier(name, lambda: CrossScorer(name, download=download))


class CrossScorer:
    """A cross-encoder. Takes seconds to make. Raises `Trouble`, kinds ``missing`` and ``damaged``."""

    def __init__(self, name: str, *, download: bool) -> None:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError:
            raise Trouble("the verifier needs: pip install 'cacheproxy[transformers]'", "missing") from None
        try:
            self._model: Any = CrossEncoder(name, device="cpu", local_files_only=not download)
        except Exception as error:  # noqa: BLE001 - of libraries with kinds of their own
            raise Trouble(
                f"the model {name} of the verifier cannot be loaded: {type(error).__name__}", "missing"
            ) from None
        self._same = _place(self._model.config)
        told = getattr(self._model, "max_seq_length", None) or getattr(self._model, "max_length", None)
        self._longest = int(told or _USUAL)

    def scores(self, pairs: Sequence[Pair]) -> list[float]:
        lengths = [len(self._model.tokenizer(one, other, truncation=False)["input_ids"]) for one, other in pairs]
        if max(lengths) > self._longest:
            return [0.0] * len(pairs)
        found = self._model.predict(list(pairs), activation_fn=_as_it_is, show_progress_bar=False)
        return [self._probability(row) for row in found.reshape(len(pairs), -1).tolist()]

    def _probability(self, logits: list[float]) -> float:
        """Of the label for "the same"; a model that says one number alone says its logit."""
        if len(logits) == 1:
            logits = [0.0, logits[0]]
        top = max(logits)
        shares = [math.exp(logit - top) for logit in logits]
        return shares[self._same] / sum(shares)


def _as_it_is(logits: Any) -> Any:
    return logits


def _place(config: Any) -> int:
    """Which of a model's numbers stands for two texts that say the same; of one alone, the second of two."""
    labels = {int(place): str(label).lower() for place, label in config.id2label.items()}
    if len(labels) == 1:
        return 1
    found = [place for place, label in labels.items() if label.startswith(_SAME)]
    if len(found) != 1:
        raise Trouble(f"the verifier's labels say not which is for the same: {', '.join(labels.values())}", "damaged")
    return found[0]
