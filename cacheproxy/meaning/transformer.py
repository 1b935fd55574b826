"""The embedding model on sentence-transformers and torch: every model that they can load."""

# mypy: disable-error-code="import-not-found,import-untyped"

import os
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from cacheproxy.core.model import Unfit
from cacheproxy.errors import Trouble
from cacheproxy.meaning.card import Card
from cacheproxy.meaning.tokens import Piece, Tokens


class Transformer:
    """The model of `card`, on so many threads (of the whole process). Takes seconds to make. Raises `Trouble`."""

    def __init__(self, card: Card, threads: int) -> None:
        root = card.files.root
        if not isinstance(root, Path):
            raise Trouble(f"sentence-transformers cannot read {card.files.origin}: it is an archive", "damaged")
        torch.set_num_threads(threads)
        try:
            self._model = SentenceTransformer(os.fspath(root), device="cpu", local_files_only=True)
            self._model.default_prompt_name = None  # the card's prefix is that already
            tokenizer = Tokenizer.from_str(root.joinpath("tokenizer.json").read_text("utf-8"))
        except Exception as error:  # noqa: BLE001 - of libraries with kinds of their own; the message names places
            raise Trouble(f"the embedding model cannot be loaded: {type(error).__name__}", "damaged") from None
        self._tokens = Tokens(tokenizer, card.window, prefix=card.identity.prefix, lower=card.lower)

    def read(self, text: str) -> Piece | Unfit:
        return self._tokens.read(text)

    def vectors(self, pieces: list[Piece]) -> list[NDArray[np.float32]]:
        """A vector for each, of any length."""
        found = self._model.encode(
            [piece.text for piece in pieces], batch_size=len(pieces), convert_to_numpy=True, show_progress_bar=False
        )
        return list(np.asarray(found, np.float32))
