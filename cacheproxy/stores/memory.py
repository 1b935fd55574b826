"""Entries in memory: bounded in bytes, least recently used out first, also while they are fresh.

What a removal by labels means is known without a look at the entries: see kinds.py. What it strikes out is taken out
later, some at a time.
"""

import asyncio
import heapq
from bisect import insort
from collections import OrderedDict
from collections.abc import Collection, Iterable
from itertools import chain

from cacheproxy.core.key import entry_id
from cacheproxy.core.model import Census, Entry
from cacheproxy.core.removal import Felled, Removal, Selector
from cacheproxy.ports import Kept, Listed, Page
from cacheproxy.stores import pages
from cacheproxy.stores.kinds import MIXED, Kinds, labels

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
        self._kinds = Kinds()
        self._members: dict[int, set[bytes]] = {}
        """Kind -> the keys of its entries."""
        self._ids: dict[str, bytes] = {}
        self._struck: dict[int, list[set[bytes]]] = {}
        """Number of a removal -> keys that it has still to take out."""
        self._reached = 0

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
        self._list(entry)
        while self._bytes > self._capacity:
            self._forgotten(self._entries.popitem(last=False)[1])
        heapq.heappush(self._expiries, (entry.expires_at, entry.key))
        if len(self._expiries) > 2 * len(self._entries) + _SLACK:
            self._expiries = [(e.expires_at, k) for k, e in self._entries.items()]
            heapq.heapify(self._expiries)
        return True

    def drop(self, key: bytes) -> None:
        """Forget the entry of `key`."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._forgotten(entry)

    def _list(self, entry: Entry) -> None:
        its = labels(entry)
        kind = self._kinds.find(its)
        if kind is None:
            kind = self._kinds.next()
            self._kinds.add(kind, its)
        members = self._members.get(kind)
        if members is None:
            members = self._members[kind] = set()
        members.add(entry.key)
        self._ids[entry_id(entry.key)] = entry.key

    def _forgotten(self, entry: Entry) -> None:
        self._bytes -= entry.size
        del self._ids[entry_id(entry.key)]
        kind = self._kinds.find(labels(entry))
        for number in (MIXED,) if kind is None else (kind, MIXED):
            members = self._members.get(number)
            if members is not None:
                members.discard(entry.key)
                if not members:
                    del self._members[number]
                    self._kinds.strike(number)

    async def get(self, key: bytes) -> Entry | None:
        return self.peek(key)

    async def put(self, entry: Entry, epoch: int | None = None) -> Kept:
        if epoch is not None and epoch < self._reached:
            return Kept.OUTRUN
        self.keep(entry)
        return Kept.YES

    def meant(self, selector: Selector, now: float) -> list[Collection[bytes]] | None:
        """The keys of those that are meant and not struck out; None where they would have to be looked at."""
        if selector.entry_ids:
            there = [self._entries[self._ids[name]] for name in selector.entry_ids if name in self._ids]
            return [[entry.key for entry in there if self._is_listed(entry) and selector.means(entry, now)]]
        if not selector.by_labels or (MIXED in self._members and not selector.everything):
            return None
        return [self._members[kind] for kind in self._meant(selector)]

    def _is_listed(self, entry: Entry) -> bool:
        kind = self._kinds.find(labels(entry))
        return any(entry.key in self._members.get(number, ()) for number in (kind, MIXED) if number is not None)

    def _meant(self, selector: Selector) -> list[int]:
        mixed = [MIXED] if selector.everything and MIXED in self._members else []
        return [*self._kinds.meant(selector), *mixed]

    async def count(self, selector: Selector, now: float, also: Collection[bytes] = ()) -> int | None:
        found = self.meant(selector, now)
        return None if found is None else sum(map(len, found)) + sum(key not in self._entries for key in also)

    async def fell(self, felled: Felled, also: Collection[bytes] = ()) -> int | None:
        count = await self.count(felled.selector, felled.now, also)
        self.strike(felled)
        return count

    def strike(self, felled: Felled) -> None:
        """What is meant counts no more, and nothing that was put before is put later."""
        self._reached = max(self._reached, felled.number)
        selector = felled.selector
        if felled.removal is not Removal.HARD or selector.older_than is not None:
            return
        if selector.entry_ids:
            keys = set(chain.from_iterable(self.meant(selector, felled.now) or ()))
            self._struck[felled.number] = [keys]
            for key in keys:
                self.drop(key)
            return
        kinds = self._meant(selector)
        self._struck[felled.number] = [self._members.pop(kind) for kind in kinds]
        for kind in kinds:
            self._kinds.strike(kind)

    async def remove(self, felled: Felled) -> set[bytes]:
        self._reached = max(self._reached, felled.number)
        struck, gone = self._struck.get(felled.number, []), set[bytes]()
        for number, key in enumerate(self._candidates(felled, struck), 1):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
            entry = self._entries.get(key)
            if entry is None or entry.epoch >= felled.number or not felled.selector.means(entry, felled.now):
                continue
            gone.add(key)
            if felled.removal is Removal.HARD:
                self.drop(key)
            else:
                self._entries[key] = entry.past(felled.now)
        self._struck.pop(felled.number, None)
        if felled.removal is Removal.SOFT:
            return gone
        return {key for key in gone.union(*struck) if key not in self._entries}

    def _candidates(self, felled: Felled, struck: list[set[bytes]]) -> Iterable[bytes]:
        """What has been struck out, and what may have come back meanwhile from where it was not."""
        listed = self.meant(felled.selector, felled.now)
        return chain(*map(tuple, struck), *map(tuple, listed)) if listed is not None else self._keys()

    async def settle(self, felled: Felled) -> None:
        """Nothing outlasts this process."""

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
        self._members.clear()
        self._ids.clear()
        self._struck.clear()
        self._kinds = Kinds()
        self._bytes = 0
        self._expiries.clear()
