"""Many callers, few computations: texts that come close together are computed together.

A text that comes alone sets off at once. After a batch of several, the next waits for company, from the arrival of its
first text: as long as the last one took to compute, within bounds, so that batches fill as the load grows and nobody
waits when it is gone. What comes during a computation waits for its end and goes together.

The same text is computed once, however many ask for it at the same time. A caller who leaves takes his text out, if he
was the last who wanted it and it has not set off; a batch that fails fails its own callers alone.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cacheproxy.errors import Trouble, place_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cacheproxy.meaning.tokens import Piece
    from cacheproxy.meaning.worker import Worker

log = logging.getLogger("cacheproxy.embedder")

SHORTEST = 0.002
"""Seconds: a shorter wait brings no company."""

Compute = Callable[[list["Piece"]], Sequence["NDArray[np.float32] | Trouble"]]
Found = Callable[[bytes, "NDArray[np.float32]"], None]


@dataclass(eq=False, slots=True)
class _Text:
    """`since`: when it came; `alone`: no other had come for as long as texts may wait; `futures`: one for each who
    wants it."""

    piece: "Piece"
    since: float
    alone: bool
    futures: set["asyncio.Future[NDArray[np.float32]]"] = field(default_factory=set)


class Batches:
    """Computes in `worker`, by `compute`, which gives a vector or a trouble for each text in their order. `found` is
    told every vector, also one whose callers have gone.

    A batch has at most `most` texts, and `most_tokens` tokens unless one text alone has more; `window`: seconds that
    texts wait for company at most, 0 for never.
    """

    def __init__(  # noqa: PLR0913 - what it is told, by name
        self, worker: "Worker", compute: Compute, found: Found, *, most: int, most_tokens: int, window: float
    ) -> None:  # fmt: skip
        self._worker = worker
        self._compute = compute
        self._found = found
        self._most = most
        self._most_tokens = most_tokens
        self._longest = window
        self._waiting: dict[bytes, _Text] = {}
        self._under_way: dict[bytes, _Text] = {}
        self._wake: asyncio.Handle | None = None
        self._window = 0.0
        self._set_off_at = self._last_arrival = float("-inf")
        self._closed = False

    def __repr__(self) -> str:
        return f"<Batches {len(self._waiting)} waiting, {len(self._under_way)} under way>"

    async def ask(self, name: bytes, piece: "Piece") -> "NDArray[np.float32]":
        """The vector of `piece`; who asks for the same `name` has the same. Raises `Trouble`."""
        if self._closed:
            raise Trouble("closed", "closed")
        loop = asyncio.get_running_loop()
        text = self._under_way.get(name) or self._waiting.get(name)
        if text is None:
            now = loop.time()
            text = self._waiting[name] = _Text(piece, now, now - self._last_arrival > self._longest)
            self._last_arrival = now
            if not self._under_way and (self._wake is None or self._is_full()):
                self._plan(loop)
        future: asyncio.Future[NDArray[np.float32]] = loop.create_future()
        text.futures.add(future)
        try:
            return await future
        finally:
            text.futures.discard(future)
            if not text.futures and self._waiting.get(name) is text:
                del self._waiting[name]

    def _is_full(self) -> bool:
        """Whether a batch can have no more than waits already."""
        waiting = self._waiting.values()
        return len(waiting) >= self._most or sum(len(text.piece.tokens) for text in waiting) >= self._most_tokens

    def _plan(self, loop: asyncio.AbstractEventLoop) -> None:
        """Choose when the next batch sets off. At the earliest when what is ready now has been done: others may come
        with it."""
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        if not self._waiting:
            return
        first = next(iter(self._waiting.values()))
        left = first.since + self._window - loop.time()
        if left <= 0 or self._is_full() or first.alone:
            self._wake = loop.call_soon(self._set_off)
        else:
            self._wake = loop.call_later(left, self._set_off)

    def _set_off(self) -> None:
        self._wake = None
        tokens = 0
        for name, text in self._waiting.items():
            tokens += len(text.piece.tokens)
            if self._under_way and (tokens > self._most_tokens or len(self._under_way) >= self._most):
                break
            self._under_way[name] = text
        if not self._under_way:
            return  # all have left
        for name in self._under_way:
            del self._waiting[name]
        self._set_off_at = asyncio.get_running_loop().time()
        pieces = [text.piece for text in self._under_way.values()]
        self._worker.do(lambda: self._compute(pieces)).add_done_callback(self._back)

    def _back(self, done: "asyncio.Future[Sequence[NDArray[np.float32] | Trouble]]") -> None:
        texts, self._under_way = self._under_way, {}
        loop = asyncio.get_running_loop()
        took = loop.time() - self._set_off_at
        self._window = min(max(took, SHORTEST), self._longest) if len(texts) > 1 else 0.0
        results = _results(done, len(texts))
        for (name, text), result in zip(texts.items(), results, strict=True):
            if not isinstance(result, Trouble):
                self._found(name, result)
            for future in text.futures:
                if future.done():
                    continue
                if isinstance(result, Trouble):
                    # One each: an exception that is raised in many places gathers their tracebacks.
                    future.set_exception(Trouble(str(result), result.kind))
                else:
                    future.set_result(result)
        self._plan(loop)

    def close(self) -> None:
        """Who still waits gets `Trouble`."""
        self._closed = True
        if self._wake is not None:
            self._wake.cancel()
        for text in [*self._waiting.values(), *self._under_way.values()]:
            for future in text.futures:
                if not future.done():
                    future.set_exception(Trouble("closed", "closed"))
        self._waiting.clear()


def _results(
    done: "asyncio.Future[Sequence[NDArray[np.float32] | Trouble]]", count: int
) -> "Sequence[NDArray[np.float32] | Trouble]":
    """One for each text."""
    if done.cancelled():
        return [Trouble("closed", "closed")] * count
    if (fault := done.exception()) is not None:
        if isinstance(fault, Trouble):
            return [fault] * count
        log.error("texts could not be embedded: %s", place_of(fault))
        return [Trouble(type(fault).__name__, "fault")] * count
    results = done.result()
    return results if len(results) == count else [Trouble("not one vector for each text", "vector")] * count
