"""Entries in memory: bounded in bytes, least recently used out first, also while they are fresh."""

import heapq

from cachetools import LRUCache

from cacheproxy.core.model import Census, Entry

LARGEST_SHARE = 4
"""An entry larger than this fraction (one over it) of the capacity is not kept: it would empty the rest."""

_SLACK = 1024


class Memory:
    """A store bounded to `capacity` bytes, as `Entry.size` counts them."""

    def __init__(self, capacity: int) -> None:
        self._entries: LRUCache[bytes, Entry] = LRUCache(maxsize=capacity, getsizeof=lambda entry: entry.size)
        self._largest = capacity // LARGEST_SHARE
        self._expiries: list[tuple[float, bytes]] = []

    def __repr__(self) -> str:
        return f"<Memory {len(self._entries)} entries {self._entries.currsize:.0f}/{self._entries.maxsize:.0f} bytes>"

    def peek(self, key: bytes) -> Entry | None:
        """The entry of `key`, without waiting; counts as a use."""
        entry: Entry | None = self._entries.get(key)
        return entry

    def keep(self, entry: Entry) -> bool:
        """Keep `entry`, without waiting; False if it is too large to be kept here."""
        if entry.size > self._largest:
            self._entries.pop(entry.key, None)
            return False
        self._entries[entry.key] = entry
        heapq.heappush(self._expiries, (entry.expires_at, entry.key))
        if len(self._expiries) > 2 * len(self._entries) + _SLACK:
            self._expiries = [(e.expires_at, k) for k, e in self._entries.items()]
            heapq.heapify(self._expiries)
        return True

    async def get(self, key: bytes) -> Entry | None:
        return self.peek(key)

    async def put(self, entry: Entry) -> None:
        self.keep(entry)

    async def sweep(self, now: float) -> int:
        gone = 0
        while self._expiries and self._expiries[0][0] <= now:
            _, key = heapq.heappop(self._expiries)
            # Not `get`: looking must not count as a use. The entry may be a younger one of the same key.
            if key in self._entries and self._entries[key].expires_at <= now:
                del self._entries[key]
                gone += 1
        return gone

    def census(self) -> Census:
        return Census(len(self._entries), int(self._entries.currsize))

    async def close(self) -> None:
        self._entries.clear()
        self._expiries.clear()
