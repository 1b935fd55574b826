"""The gate before the backend: never more requests at once than it can batch, the urgent ones first.

What order they come in is decided in core/queues.py, without a clock; this is its shell: futures, timers and slots.

Under cancellation: who waits and leaves is out of its queue at once; a slot that was given to somebody who has just left
is given back. State changes only where nothing awaits.
"""

from collections.abc import Callable, Collection
from typing import Any, Protocol

from cacheproxy.core.affinity import Route


class Slot(Protocol):
    """A request's place with a backend. End it in every case; that is idempotent."""

    def end(self) -> None:
        """It is over: the place is free."""


class Places(Protocol):
    """The backends' slots."""

    on_room: Callable[[], None] | None
    """Called when there may be room that was not there: a slot has ended, a backend may take more or is well again."""

    @property
    def slots(self) -> int:
        """How many requests may be under way together now."""

    @property
    def used(self) -> int:
        """How many are."""

    def group(self, model: str) -> int:
        """Which backends may be given a request for `model`: the same number, the same backends."""

    def take(self, group: int, route: Route | None, avoid: Collection[Any] = ()) -> Slot | None:
        """A slot with one of them that has room now, but for those of `avoid`; None if none has. Raises `AnswerError`
        where waiting would not help: none of them is well (`CircuitOpen`, `UpstreamUnreachable`)."""

    def seat(self, route: Route | None, avoid: Collection[Any] = ()) -> Slot:
        """A place for what takes no slot: it is counted as a load, and goes ahead whether there is room or not."""
