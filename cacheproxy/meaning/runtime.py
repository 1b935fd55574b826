"""The embedding model on ONNX Runtime: the vectors of sentence-transformers from the same weights, without torch."""

# mypy: disable-error-code="import-not-found,import-untyped"

from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from cacheproxy.core.model import Unfit
from cacheproxy.errors import Trouble
from cacheproxy.meaning import bert
from cacheproxy.meaning.card import Card
from cacheproxy.meaning.tensors import Tensors
from cacheproxy.meaning.tokens import Piece, Tokens
from cacheproxy.meaning.weights import WEIGHTS

_MODULES = {("Transformer", "Pooling"), ("Transformer", "Pooling", "Normalize")}
_POOLING = {"mean", "cls", "max"}
_ERRORS_ONLY = 3
_SPREAD, _LEEWAY = 2, 8
"""Texts are attended to together if the longest has at most so many times the shortest's tokens, and so many more."""


def can_run(card: Card) -> bool:
    """Whether this is a model that can be run here."""
    return card.modules in _MODULES and card.identity.pooling in _POOLING and bert.is_one(card.config)


class Runtime:
    """The model of `card`, on so many threads. Takes half a second to make. Raises `Trouble`, kind ``damaged``."""

    def __init__(self, card: Card, threads: int) -> None:
        self._pooling = card.identity.pooling
        root = card.files.root
        weights = Tensors(root.joinpath(WEIGHTS))
        self._embeddings = bert.Embeddings(weights, card.config)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = _ERRORS_ONLY
        options.enable_cpu_mem_arena = False  # it keeps what the largest batch took, and is no faster
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                bert.encoder(weights, card.config), options, providers=["CPUExecutionProvider"]
            )
            tokenizer = Tokenizer.from_str(root.joinpath("tokenizer.json").read_text("utf-8"))
        except Trouble:
            raise
        except Exception as error:  # noqa: BLE001 - of two libraries with kinds of their own; the message names places
            raise Trouble(f"the embedding model cannot be loaded: {type(error).__name__}", "damaged") from None
        weights.rest()
        self._tokens = Tokens(tokenizer, card.window, prefix=card.identity.prefix, lower=card.lower)

    def read(self, text: str) -> Piece | Unfit:
        return self._tokens.read(text)

    def vectors(self, pieces: list[Piece]) -> list[NDArray[np.float32]]:
        """A vector for each, of any length."""
        found: dict[int, NDArray[np.float32]] = {}
        for group in groups([len(piece.tokens) for piece in pieces]):
            pooled = self._run([pieces[number].tokens for number in group])
            found |= zip(group, pooled, strict=True)
        return [found[number] for number in range(len(pieces))]

    def _run(self, texts: list[tuple[int, ...]]) -> NDArray[np.float32]:
        lengths = np.array([len(text) for text in texts], np.int64)
        given: dict[str, Any] = {"rows": self._embeddings.rows(texts), **bert.placed(lengths)}
        rows = self._session.run(None, given)[0]
        starts = np.cumsum(lengths) - lengths
        if self._pooling == "cls":
            return np.asarray(rows[starts])
        if self._pooling == "max":
            return np.asarray(np.maximum.reduceat(rows, starts))
        return np.asarray(np.add.reduceat(rows, starts))  # their mean, but for the length


def groups(lengths: list[int]) -> list[list[int]]:
    """The numbers of texts that are attended to together, shortest first."""
    made: list[list[int]] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if made and lengths[number] <= _SPREAD * lengths[made[-1][0]] + _LEEWAY:
            made[-1].append(number)
        else:
            made.append([number])
    return made
