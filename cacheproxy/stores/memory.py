"""Entries in memory: bounded in bytes, least recently used out first, also while they are fresh."""

import asyncio
import heapq
from bisect import insort
from collections import OrderedDict

from cacheproxy.core.model import Census, Entry
from cacheproxy.core.removal import Removal, Selector
from cacheproxy.ports import Kept, Listed, Page
from cacheproxy.stores import pages

LARGEST_SHARE = 4
"""An entry larger than this fraction (one over it) of the capacity is not kept: it would empty the rest."""

AT_ONCE = 500
"""Entries that a removal looks at in one turn of the loop."""

_SLACK = 1024


class Memory:
    """A store bounded to `capacity` bytes, as `Entry.size` counts them."""

    def __init__(self, capacity: int) -> None:
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()
        self._bytes = 0
        self._capacity = capacity
        self._largest = capacity // LARGEST_SHARE
        self._expiries: list[tuple[float, bytes]] = []

    def __repr__(self) -> str:
        return f"<Memory {len(self._entries)} entries {self._bytes}/{self._capacity} bytes>"

    def peek(self, key: bytes) -> Entry | None:
        """The entry of `key`, without waiting; counts as a use."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def keep(self, entry: Entry) -> bool:
        """Keep `entry`, without waiting; False if it is too large to be kept here."""
        self.drop(entry.key)
        if entry.size > self._largest:
            return False
        self._entries[entry.key] = entry
        self._bytes += entry.size
        while self._bytes > self._capacity:
            self._bytes -= self._entries.popitem(last=False)[1].size
        heapq.heappush(self._expiries, (entry.expires_at, entry.key))
        if len(self._expiries) > 2 * len(self._entries) + _SLACK:
            self._expiries = [(e.expires_at, k) for k, e in self._entries.items()]
            heapq.heapify(self._expiries)
        return True

    def drop(self, key: bytes) -> None:
        """Forget the entry of `key`."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size

    async def get(self, key: bytes) -> Entry | None:
        return self.peek(key)

    async def put(self, entry: Entry, epoch: int | None = None) -> Kept:  # noqa: ARG002 - nothing can come between
        self.keep(entry)
        return Kept.YES

    async def remove(self, selector: Selector, removal: Removal, now: float) -> set[bytes]:
        meant: set[bytes] = set()
        for number, key in enumerate(self._keys(), 1):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
            entry = self._entries.get(key)
            if entry is None or not selector.means(entry, now):
                continue
            meant.add(key)
            if removal is Removal.HARD:
                self.drop(key)
            elif removal is Removal.SOFT:
                self._entries[key] = entry.past(now)
        return meant

    async def browse(self, selector: Selector, now: float, cursor: str, most: int, *, whole: bool = False) -> Page:  # noqa: ARG002 - they are whole
        """By key. It may take long, since nothing is kept in that order; others go on meanwhile."""
        after, first = pages.place(cursor), list[bytes]()
        for number, key in enumerate(self._keys(), 1):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
            if key <= after or (len(first) == most and key > first[-1]):
                continue
            entry = self._entries.get(key)
            if entry is not None and selector.means(entry, now):
                insort(first, key)
                del first[most:]
        there = [self._entries[key] for key in first if key in self._entries]
        return pages.page(
            [Listed(entry, entry.size) for entry in there], first[-1] if len(first) == most else None, most
        )

    def _keys(self) -> list[bytes]:
        """All there are now. As of a plain dict: of a million that takes some milliseconds, in their order a second."""
        return list(dict.keys(self._entries))

    async def sweep(self, now: float) -> int:
        gone = 0
        while self._expiries and self._expiries[0][0] <= now:
            _, key = heapq.heappop(self._expiries)
            entry = self._entries.get(key)  # it may be a younger one of the same key
            if entry is not None and entry.expires_at <= now:
                self.drop(key)
                gone += 1
        return gone

    def census(self) -> Census:
        return Census(len(self._entries), self._bytes)

    async def close(self) -> None:
        self._entries.clear()
        self._bytes = 0
        self._expiries.clear()
