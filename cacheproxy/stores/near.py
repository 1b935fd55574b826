"""Copies of what a far store gave, for a short time: a trade of strictness for speed, off unless it is asked for.

A copy is served while it is younger than `max_age`, and while no removal that is known here means it. A removal by
another replica is known when it calls it out, or when any lookup reads the count; at the latest the copy's age ends it.
Copies live no longer than what they are of: an entry carries its own absolute times.
"""

from collections.abc import Collection
from typing import NamedTuple

from cachetools import TTLCache

from cacheproxy.core.model import Census, Entry
from cacheproxy.core.removal import Felled, Removals, Selector
from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock, Kept, Page, Stocked

LARGEST_SHARE = 4
"""A copy larger than this fraction (one over it) of the capacity is not kept: it would empty the rest."""


class _Copy(NamedTuple):
    entry: Entry
    epoch: int


class Near:
    """A store in front of `far`, with copies of at most `capacity` bytes and `max_age` seconds."""

    def __init__(self, far: Stocked, removals: Removals, clock: Clock, *, capacity: int, max_age: float) -> None:
        self._far = far
        self._removals = removals
        self._reading: dict[bytes, object] = {}
        self._largest = capacity // LARGEST_SHARE
        self._copies: TTLCache[bytes, _Copy] = TTLCache(
            capacity, max_age, timer=clock.monotonic, getsizeof=lambda copy: copy.entry.size
        )

    def __repr__(self) -> str:
        return f"<Near {len(self._copies)} copies of {self._far!r}>"

    async def get(self, key: bytes) -> Entry | Trouble | None:
        copy = self._copies.get(key)
        if copy is not None:
            if self._removals.stands(copy.entry, copy.epoch):
                return copy.entry
            self._copies.pop(key, None)
        epoch = self._removals.epoch
        ticket = self._reading[key] = object()
        try:
            found = await self._far.get(key)
            # If something was put meanwhile, what came back may be from before.
            if isinstance(found, Entry) and self._reading.get(key) is ticket:
                self._keep(found, epoch)
            return found
        finally:
            if self._reading.get(key) is ticket:
                del self._reading[key]

    async def put(self, entry: Entry, epoch: int | None = None) -> Kept:
        self._copies.pop(entry.key, None)
        known = self._removals.epoch
        kept = await self._far.put(entry, epoch)
        self._copies.pop(entry.key, None)
        self._reading.pop(entry.key, None)
        if kept is Kept.YES:
            self._keep(entry, known)
        return kept

    def _keep(self, entry: Entry, epoch: int) -> None:
        if entry.size <= self._largest:
            self._copies[entry.key] = _Copy(entry, epoch)

    async def count(self, selector: Selector, now: float, also: Collection[bytes] = ()) -> int | None:
        return await self._far.count(selector, now, also)

    async def fell(self, felled: Felled, also: Collection[bytes] = ()) -> int | None:
        return await self._far.fell(felled, also)

    async def remove(self, felled: Felled) -> set[bytes]:
        meant = await self._far.remove(felled)
        for key in meant:
            self._copies.pop(key, None)
        return meant

    async def settle(self, felled: Felled) -> None:
        await self._far.settle(felled)

    async def browse(self, selector: Selector, now: float, cursor: str, most: int, *, whole: bool = False) -> Page:
        return await self._far.browse(selector, now, cursor, most, whole=whole)

    async def sweep(self, now: float) -> int:
        self._copies.expire()
        return await self._far.sweep(now)

    def census(self) -> Census:
        return self._far.census()

    async def close(self) -> None:
        self._copies.clear()
        await self._far.close()
