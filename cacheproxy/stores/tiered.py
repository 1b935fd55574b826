"""Memory in front of a slower store: found in memory at once, else read through and kept."""

from collections.abc import Collection
from itertools import chain

from cacheproxy.core.model import Census, Entry
from cacheproxy.core.removal import Felled, Selector
from cacheproxy.errors import Trouble
from cacheproxy.ports import Kept, Page, Stocked
from cacheproxy.stores import pages
from cacheproxy.stores.memory import Memory


class Tiered:
    """The embedded default: `front` answers without waiting, `back` survives restarts."""

    def __init__(self, front: Memory, back: Stocked) -> None:
        self._front = front
        self._back = back
        self._reading: dict[bytes, object] = {}

    def __repr__(self) -> str:
        return f"<Tiered {self._front!r} over {self._back!r}>"

    async def get(self, key: bytes) -> Entry | Trouble | None:
        entry = self._front.peek(key)
        if entry is not None:
            return entry
        ticket = self._reading[key] = object()
        try:
            found = await self._back.get(key)
            if self._reading.get(key) is ticket:
                if isinstance(found, Entry):
                    self._front.keep(found)
                return found
        finally:
            if self._reading.get(key) is ticket:
                del self._reading[key]
        # Something was put, or read, while the slower store was asked: what came back may be older than that.
        return self._front.peek(key) or await self._back.get(key)

    async def put(self, entry: Entry, epoch: int | None = None) -> Kept:
        self._reading.pop(entry.key, None)
        self._front.keep(entry)
        kept = await self._back.put(entry, epoch)
        if self._front.peek(entry.key) is not entry:
            return kept
        if kept is Kept.OUTRUN:
            self._front.drop(entry.key)
            return kept
        return Kept.YES

    async def count(self, selector: Selector, now: float, also: Collection[bytes] = ()) -> int | None:
        """What is in both counts once."""
        front = self._front.meant(selector, now)
        if front is None:
            return None
        return await self._back.count(selector, now, [*also, *chain.from_iterable(front)])

    async def fell(self, felled: Felled, also: Collection[bytes] = ()) -> int | None:
        front = self._front.meant(felled.selector, felled.now)
        keys = [*also, *chain.from_iterable(front or ())]
        self._front.strike(felled)
        count = await self._back.fell(felled, keys)
        return None if front is None else count

    async def remove(self, felled: Felled) -> set[bytes]:
        try:
            meant = await self._back.remove(felled)
        finally:
            # What is being read from the slower store may be from before; it must not be kept in front.
            self._reading.clear()
            front = await self._front.remove(felled)
        return meant | front

    async def settle(self, felled: Felled) -> None:
        await self._back.settle(felled)

    async def browse(self, selector: Selector, now: float, cursor: str, most: int, *, whole: bool = False) -> Page:
        """Both list by key: one list of the two, as far as both have come."""
        tiers = (self._back, self._front)
        found = [await tier.browse(selector, now, cursor, most, whole=whole) for tier in tiers]
        end = min((pages.place(page.cursor) for page in found if page.cursor), default=None)
        return pages.page((row for page in found for row in page.rows), end, most)

    async def sweep(self, now: float) -> int:
        return await self._front.sweep(now) + await self._back.sweep(now)

    def census(self) -> Census:
        """The slower store's, which has everything but what it is about to write."""
        front, back = self._front.census(), self._back.census()
        return Census(max(front.entries, back.entries), max(front.bytes, back.bytes))

    async def close(self) -> None:
        await self._front.close()
        await self._back.close()
