"""What is stored, as the engine sees it: nothing is taken from it, or laid on it, that a removal has felled.

A look gives an entry that stands when it is given; the store may still hold others. Whoever waits before serving it
asks `holds` last, with nothing awaited between that and the serving.
"""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from cacheproxy.core.model import Entry
from cacheproxy.core.outcome import Reason
from cacheproxy.core.past import Ordered, Past, after
from cacheproxy.core.removal import Felled, Order, Removals, Selector
from cacheproxy.engine.gate import Gate
from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock, Epochs, Kept, Listed, Page, Stocked

ATTEMPTS = 5
"""How often an entry is put that removals outrun which do not mean it."""
REMEMBERED = 1000
"""Removals of the past that are remembered in memory."""


_REFUSALS = {Kept.YES: None, Kept.TOO_LARGE: Reason.TOO_LARGE, Kept.TROUBLE: Reason.STORE_TROUBLE}


@dataclass(frozen=True, slots=True)
class Mark:
    """When a look began: the removals that were known, and the time of the monotonic clock."""

    settled: int
    at: float


class Shelf:
    """A guarded store, and the removals that all who share it know."""

    def __init__(
        self, store: Stocked, removals: Removals, epochs: Epochs, clock: Clock, gate: Gate | None = None
    ) -> None:
        self._store = store
        self._removals = removals
        self._epochs = epochs
        self._clock = clock
        self._gate = gate or Gate()

    def __repr__(self) -> str:
        return f"<Shelf {self._store!r} {self._removals!r}>"

    @property
    def epoch(self) -> int:
        """How many removals are known now."""
        return self._removals.epoch

    def mark(self) -> Mark:
        """To be taken before a look."""
        return Mark(self._removals.epoch, self._clock.monotonic())

    async def get(self, key: bytes) -> Entry | Trouble | None:
        """The entry of `key`; why that cannot be told; None if there is none."""
        removals = self._removals
        closings = removals.closings
        entry = await self._store.get(key)
        if not isinstance(entry, Entry):
            return entry
        if entry.knowledge and not self._gate.passes(entry.knowledge):
            return Trouble("the versions of its knowledge bases are not known yet", "version")
        return removals.judge(entry, closings) if removals.open or removals.closings != closings else entry

    async def browse(self, selector: Selector, now: float, cursor: str, most: int, *, whole: bool = False) -> Page:
        """A list of what stands. Raises `BadCursor`, `Trouble`."""
        closings = self._removals.closings
        page = await self._store.browse(selector, now, cursor, most, whole=whole)
        judged = [(row, self._removals.judge(row.entry, closings)) for row in page.rows]
        return Page([Listed(entry, row.bytes) for row, entry in judged if entry is not None], page.cursor)

    async def holds(self, mark: Mark, *entries: Entry) -> bool:
        """Whether `entries`, looked up since `mark`, may still be served, now."""
        if lease := self._epochs.lease:
            asked = self._clock.monotonic()
            if asked - mark.at < lease:
                return True
            try:
                await self._epochs.current()
            except Trouble:
                return False
            if self._clock.monotonic() - asked >= lease:
                return False  # what it told may be as old as that
        removals = self._removals
        return removals.epoch == mark.settled or all(removals.stands(entry, mark.settled) for entry in entries)

    async def is_current(self) -> bool:
        """Know every removal that has been acknowledged so far; False if that cannot be told."""
        return await self.holds(Mark(self._removals.epoch, -math.inf))

    async def acknowledged_since(self, mark: Mark, *, looked: bool) -> float:
        """The moment of the monotonic clock since which removals may have been acknowledged that are not known here;
        infinite if there can be none. `looked`: the look of `mark` came to something."""
        if looked and await self.holds(mark):
            return math.inf
        return self._clock.monotonic() - self._epochs.lease

    def stands(self, entry: Entry | None, epoch: int, arrived: float) -> bool:
        """Whether no removal that is known, and was not when a request came at this epoch and time, means `entry`;
        None: any removal may."""
        since = max(epoch, self._removals.epoch_at(arrived))
        return since == self._removals.epoch or (entry is not None and self._removals.stands(entry, since))

    async def put(self, entry: Entry, epoch: int, arrived: float) -> Reason | None:
        """Keep `entry`, whose request came at this epoch and time; or why not."""
        for _ in range(ATTEMPTS):
            # Some of the removals that were not known here yet may have been before the request all the same.
            if not self._removals.stands(entry, max(epoch, self._removals.epoch_at(arrived))):
                return Reason.PURGED
            known = self._removals.epoch
            kept = await self._store.put(replace(entry, epoch=known), known)
            if kept is not Kept.OUTRUN:
                return _REFUSALS[kept]
        return Reason.STORE_TROUBLE


class Alone:
    """The epochs of a store that this process has for itself. `past`: where removals are remembered longer than the
    process lives; `since`: from when on it remembers them else, in seconds since the epoch."""

    lease = 0.0

    def __init__(
        self, removals: Removals, past: Callable[[], Awaitable[Past]] | None = None, since: float = 0.0
    ) -> None:
        self._removals = removals
        self._remembered = past
        self._past = Past(since)

    async def begin(self, order: Order, now: float) -> Felled:
        number = self._removals.add(order.selector, now)
        felled = Felled(number, order.selector, order.removal, now)
        self._removals.begin(felled)
        if self._remembered is None:
            self._past = after(self._past, [Ordered(now, order.selector, order.removal)], REMEMBERED)
        return felled

    async def claim(self, felled: Felled) -> bool:  # noqa: ARG002 - there is nobody else
        return True

    async def finish(self, felled: Felled) -> None:
        self._removals.finish(felled.number)

    async def current(self) -> None:
        """They are known."""

    async def past(self) -> Past:
        return await self._remembered() if self._remembered is not None else self._past
