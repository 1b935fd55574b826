"""Carries out removals: nothing that is meant is served or stored once one has been acknowledged.

Counted first, so that from then on no running request stores what is meant, and what is stored is judged when it is
taken out; then remembered, so that this holds after a crash; then acknowledged. What is meant is taken out of the store
in the background. When that fails it is tried again, and everything is judged until it has been done.
"""

import asyncio
import logging
from dataclasses import dataclass

from cacheproxy.core.removal import Felled, Order, Removal, Removals, Selector
from cacheproxy.engine.guard import GuardedIndex
from cacheproxy.errors import Trouble, place_of
from cacheproxy.ports import Clock, Epochs, Journal, Stock

log = logging.getLogger("cacheproxy.purge")

MOST = 32
"""Removals that are under way at once: with so many everything that is looked up has to be compared."""
PAGE = 1000


@dataclass(frozen=True, slots=True)
class Purged:
    """What came of an order: entries that were meant, entries that are removed or made stale (both None if nobody was
    to wait until they can be counted), and the number of this removal, for a dry run of the last that is known."""

    matched: int | None
    purged: int | None
    epoch: int


@dataclass(frozen=True, slots=True)
class _Begun:
    """A removal that is in force; how many entries it means, None if that is not known yet; what takes them out."""

    number: int
    matched: int | None
    sweep: "asyncio.Task[int]"


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
        self._sweeps: dict[tuple[bytes, int], asyncio.Task[int]] = {}
        self._begins: set[asyncio.Task[_Begun]] = set()

    def __repr__(self) -> str:
        return f"<Purge {self.under_way} under way>"

    @property
    def under_way(self) -> int:
        """How many removals have not left the store yet, as far as this process takes them out."""
        return len(self._sweeps)

    async def carry_out(self, order: Order) -> Purged:
        """Do what is ordered. Raises `Trouble` if nothing was promised: then it has to be ordered again."""
        if order.removal is Removal.NONE:
            return Purged(await self._count(order.selector), 0, self._removals.epoch)
        # Whoever leaves does not stop it half way.
        begins = asyncio.get_running_loop().create_task(self._begin(order))
        self._begins.add(begins)
        begins.add_done_callback(self._begins.discard)
        begins.add_done_callback(_seen)
        begun = await asyncio.shield(begins)
        matched = begun.matched
        if order.wait or (order.wait is None and matched is None):
            gone = await asyncio.shield(begun.sweep)
            matched = gone if matched is None else matched
        return Purged(matched, matched, begun.number)

    async def resume(self) -> None:
        """Go on with what was left undone: by an earlier process, by a replica that is gone, or in trouble. Never
        raises."""
        for felled in [*self._removals.open.values()]:
            try:
                if _name(felled) not in self._sweeps and await self._epochs.claim(felled):
                    self._start(felled)
            except Trouble as error:
                log.warning("a purge cannot be finished now: %s", error)
                return

    async def close(self) -> None:
        """End what is under way; what is not done is remembered where anything is."""
        tasks = [*self._begins, *self._sweeps.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _begin(self, order: Order) -> _Begun:
        await self._room()
        felled = await self._epochs.begin(order, self._clock.now())
        self._journal.count("purge", order.removal.value)
        try:
            matched = await self._stock.fell(felled)
        finally:
            sweep = self._start(felled)
        log.info("purge number %d (%s) is in force", felled.number, order.removal.value)
        return _Begun(felled.number, matched, sweep)

    async def _room(self) -> None:
        """Wait until fewer are under way. Raises `Trouble` if none of them gets on."""
        while len(self._removals.open) >= MOST:
            if not self._sweeps:
                await self.resume()
            if not self._sweeps:
                raise Trouble("too many purges wait for what they mean to be removed")
            await asyncio.wait([*self._sweeps.values()], return_when=asyncio.FIRST_COMPLETED)

    def _start(self, felled: Felled) -> "asyncio.Task[int]":
        task = self._sweeps.get(_name(felled))
        if task is None:
            task = self._sweeps[_name(felled)] = asyncio.get_running_loop().create_task(self._sweep(felled))
            task.add_done_callback(_seen)
        return task

    async def _sweep(self, felled: Felled) -> int:
        """Take out what is meant; how many went."""
        try:
            gone = await self._stock.remove(felled)
            if self._index is not None and felled.removal is Removal.HARD:
                await self._index.remove(gone)
            await self._stock.settle(felled)
            await self._epochs.finish(felled)
        except Trouble as error:
            log.warning("what purge number %d means is not removed yet, and not served: %s", felled.number, error)
            raise
        finally:
            del self._sweeps[_name(felled)]
        self._journal.add("purged", len(gone))
        log.info("purge number %d: %d answers have left the store", felled.number, len(gone))
        return len(gone)

    async def _count(self, selector: Selector) -> int:
        """How many are meant, by a look at all if need be."""
        now = self._clock.now()
        counted = await self._stock.count(selector, now)
        if counted is not None:
            return counted
        keys, cursor = set[bytes](), ""
        while True:
            closings = self._removals.closings
            page = await self._stock.browse(selector, now, cursor, PAGE)
            keys |= {row.entry.key for row in page.rows if self._removals.judge(row.entry, closings) is not None}
            cursor = page.cursor
            if not cursor:
                return len(keys)


def _name(felled: Felled) -> tuple[bytes, int]:
    return felled.era, felled.number


def _seen(task: "asyncio.Task[_Begun] | asyncio.Task[int]") -> None:
    """Also if nobody waits for it any more: what is no trouble is a fault of ours."""
    if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, Trouble):
        log.error("a purge failed inside the proxy: %s", place_of(error))
