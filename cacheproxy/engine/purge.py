"""Carries out removals: nothing that is meant is served or stored once one has returned.

Counted first, so that from then on no running request stores what is meant; then taken out of the store. Until that
is done nothing has been promised.
"""

import logging
from dataclasses import dataclass

from cacheproxy.core.removal import Order, Removal, Removals
from cacheproxy.engine.guard import GuardedIndex
from cacheproxy.ports import Clock, Epochs, Journal, Stock

log = logging.getLogger("cacheproxy.purge")


@dataclass(frozen=True, slots=True)
class Purged:
    """What came of an order: entries that were meant, entries that were removed or made stale, and the number of this
    removal, for a dry run of the last that is known."""

    matched: int
    purged: int
    epoch: int


class Purge:
    """Removes answers from a store."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self,
        *,
        stock: Stock,
        removals: Removals,
        epochs: Epochs,
        journal: Journal,
        clock: Clock,
        index: GuardedIndex | None = None,
    ) -> None:
        self._stock = stock
        self._removals = removals
        self._epochs = epochs
        self._index = index
        self._journal = journal
        self._clock = clock

    async def carry_out(self, order: Order) -> Purged:
        """Do what is ordered. Raises `Trouble` if it could not be done to its end: then nothing is certain, and it has
        to be ordered again."""
        now = self._clock.now()
        if order.removal is Removal.NONE:
            matched = await self._stock.remove(order.selector, order.removal, now)
            return Purged(len(matched), 0, self._removals.epoch)
        number = await self._epochs.begin(order.selector, now)
        removed = None
        try:
            removed = await self._stock.remove(order.selector, order.removal, now)
            if self._index is not None and order.removal is Removal.HARD:
                await self._index.remove(removed)
        finally:
            await self._epochs.finish(number, carried_out=removed is not None)
        self._journal.count("purge", order.removal.value)
        self._journal.add("purged", len(removed))
        log.info("purge number %d (%s): %d answers", number, order.removal.value, len(removed))
        return Purged(len(removed), len(removed), number)
