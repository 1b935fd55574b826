"""Carries out removals: nothing that is meant is served or stored once one has returned.

Counted first, so that from then on no running request stores what is meant; then taken out of the store. Until that
is done nothing has been promised.
"""

import logging
from dataclasses import dataclass

from cacheproxy.core.removal import Order, Removal, Removals
from cacheproxy.ports import Clock, Journal, Stock

log = logging.getLogger("cacheproxy.purge")


@dataclass(frozen=True, slots=True)
class Purged:
    """What came of an order: entries that were meant, entries that were removed or made stale, and the count of
    removals after it."""

    matched: int
    purged: int
    epoch: int


class Purge:
    """Removes answers from a store."""

    def __init__(self, *, stock: Stock, removals: Removals, journal: Journal, clock: Clock) -> None:
        self._stock = stock
        self._removals = removals
        self._journal = journal
        self._clock = clock

    async def carry_out(self, order: Order) -> Purged:
        """Do what is ordered. Raises `Trouble` if it could not be done to its end: then nothing is certain, and it has
        to be ordered again."""
        now = self._clock.now()
        if order.removal is not Removal.NONE:
            self._removals.add(order.selector, now)
        epoch = self._removals.epoch
        matched = len(await self._stock.remove(order.selector, order.removal, now))
        if order.removal is Removal.NONE:
            return Purged(matched, 0, epoch)
        self._journal.count("purge", order.removal.value)
        self._journal.add("purged", matched)
        log.info("purge number %d (%s): %d answers", epoch, order.removal.value, matched)
        return Purged(matched, matched, epoch)
