"""The embedder in this process: texts -> vectors, by a model whose files are on this machine.

Everything that takes long is done in a thread of its own, one batch after the other; what was computed is remembered,
for the scope that asked alone. Nothing heavy is imported before it is loaded.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from cachetools import LRUCache

from cacheproxy.core.model import Identity, Unfit
from cacheproxy.errors import Trouble, place_of
from cacheproxy.meaning import card as cards
from cacheproxy.meaning import weights
from cacheproxy.meaning.batches import Batches
from cacheproxy.meaning.card import Card
from cacheproxy.meaning.tokens import Piece
from cacheproxy.meaning.worker import Worker

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger("cacheproxy.embedder")

MOST, MOST_TOKENS = 32, 512
"""Texts and tokens of a batch. Beyond that a text is no cheaper, only later."""
LOAD_SECONDS = 120.0
"""A model that is not loaded by then is taken not to come."""
_WARM = "How do I change the address of my account?"


class Model(Protocol):
    """What computes. `vectors` is called in one thread alone, `read` in another."""

    def read(self, text: str) -> Piece | Unfit:
        """`text` as the model reads it, or why it cannot."""

    def vectors(self, pieces: list[Piece]) -> "Sequence[NDArray[np.float32]]":
        """A vector for each, of any length but zero."""


class LocalEmbedder:
    """An `Embedder` of the model that `load` gives in the thread, at `warm` or at the first text. What cannot
    be loaded is tried again at the next text."""

    def __init__(
        self, identity: Identity, load: Callable[[], Model], *, window: float = 0.02, memo: int = 4096
    ) -> None:  # fmt: skip
        """`window`: seconds that texts wait for company at most; `memo`: vectors that are remembered."""
        self.identity = identity
        self._load = load
        self._memo: LRUCache[bytes, NDArray[np.float32]] = LRUCache(memo)
        self._worker = Worker("embedder")
        self._batches = Batches(
            self._worker, self._compute, self._remember, most=MOST, most_tokens=MOST_TOKENS, window=window
        )
        self._model: Model | None = None
        self._loading: asyncio.Future[Model] | None = None

    def __repr__(self) -> str:
        return f"<LocalEmbedder {self.identity.name} {len(self._memo)} remembered {self._batches!r}>"

    async def embed(self, text: str, scope: bytes) -> "NDArray[np.float32] | Unfit":
        name = _name(text, scope)
        if (known := self._memo.get(name)) is not None:
            return known
        model = self._model or await self._loaded()
        piece = model.read(text)
        return piece if isinstance(piece, Unfit) else await self._batches.ask(name, piece)

    async def warm(self) -> None:
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                await self._loaded()
        except TimeoutError:
            raise Trouble("the embedding model takes too long to load", "timeout") from None

    async def close(self) -> None:
        self._batches.close()
        self._worker.close()

    async def _loaded(self) -> Model:
        if self._loading is None:
            self._loading = self._worker.do(self._warmed)
            self._loading.add_done_callback(self._settled)
        try:
            return await asyncio.shield(self._loading)
        except Trouble as trouble:
            # One each: an exception that is raised in many places gathers their tracebacks.
            raise Trouble(str(trouble), trouble.kind) from None

    def _settled(self, done: "asyncio.Future[Model]") -> None:
        self._loading = None
        if not done.cancelled() and done.exception() is None:
            self._model = done.result()

    def _remember(self, name: bytes, vector: "NDArray[np.float32]") -> None:
        self._memo[name] = vector

    # --- the worker's thread -----------------------------------------------------------------------------------

    def _warmed(self) -> Model:
        """The model, after it has computed once."""
        try:
            model = self._load()
            piece = model.read(_WARM)
            vectors = [] if isinstance(piece, Unfit) else self._checked(model.vectors([piece]))  # of another language
        except Trouble:
            raise
        except Exception as error:  # noqa: BLE001 - of libraries with kinds of their own
            log.error("the embedding model cannot be loaded: %s", place_of(error))
            raise Trouble(f"the embedding model cannot be loaded: {type(error).__name__}", "fault") from None
        for vector in vectors:
            if isinstance(vector, Trouble):
                raise vector
        return model

    def _compute(self, pieces: list[Piece]) -> "list[NDArray[np.float32] | Trouble]":
        """A vector for each. What reads the same, of whatever scope, is computed once."""
        if self._model is None:
            raise Trouble("the embedding model is not loaded", "closed")
        different = list({piece.tokens: piece for piece in pieces}.values())
        vectors = self._checked(self._model.vectors(different))
        found = dict(zip((piece.tokens for piece in different), vectors, strict=True))
        return [found[piece.tokens] for piece in pieces]

    def _checked(self, vectors: "Sequence[NDArray[np.float32]]") -> "list[NDArray[np.float32] | Trouble]":
        """Each with the length 1 and read-only, since many share it."""
        from cacheproxy.meaning.vectors import unit

        found: list[NDArray[np.float32] | Trouble] = []
        for vector in vectors:
            try:
                one = unit(vector, self.identity.dim)
            except Trouble as trouble:
                found.append(Trouble(str(trouble), "vector"))
                continue
            one.setflags(write=False)
            found.append(one)
        return found


def _name(text: str, scope: bytes) -> bytes:
    """What is remembered is found by this, and no text is kept."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=scope[:64], digest_size=24).digest()


def load(card: Card, threads: int) -> Model:
    """The model of `card`: on ONNX Runtime if that is installed and can run it, else on sentence-transformers. Raises
    `Trouble`."""
    began = time.monotonic()
    model = _made(card, threads)
    taken, way = time.monotonic() - began, type(model).__name__.lower()
    log.info("the embedding model %s (%s) is from %s: %.1f s", card.files.name, way, card.files.origin, taken)
    return model


def _made(card: Card, threads: int) -> Model:
    if find_spec("onnxruntime") and find_spec("tokenizers"):
        from cacheproxy.meaning.runtime import Runtime, can_run

        if can_run(card):
            return Runtime(card, threads)
    if find_spec("sentence_transformers"):
        from cacheproxy.meaning.transformer import Transformer

        return Transformer(card, threads)
    kind = card.config.get("model_type")
    raise Trouble(f"pip install sentence-transformers: without it a model of the kind {kind} cannot be run", "missing")


def open_embedder(  # noqa: PLR0913 - what it is told, by name
    name: str, *, path: str | None = None, download: bool = False, prefix: str = "", threads: int = 1,
    window: float = 0.02, memo: int = 4096,
) -> LocalEmbedder:  # fmt: skip
    """The embedder of the model `name`. Finds its files, which takes a moment, or long if they are to be downloaded,
    and loads nothing. Raises `Trouble`, kinds ``missing`` and ``damaged``, with a message that says what to do."""
    card = cards.read(weights.find(name, path, download=download), prefix)
    return LocalEmbedder(card.identity, lambda: load(card, threads), window=window, memo=memo)
