"""The one place that forgives: a deadline and a breaker around a port, so that trouble there costs at most a miss."""

import asyncio
from typing import cast

from cacheproxy.core.model import Census, Entry
from cacheproxy.core.removal import Removal, Selector
from cacheproxy.engine.breaker import Breaker
from cacheproxy.errors import Trouble
from cacheproxy.ports import Epochs, Journal, Kept, Stocked


class GuardedStore:
    """A `Store` that never raises and never takes longer than `deadline` seconds to answer; removals excepted."""

    def __init__(self, store: Stocked, name: str, deadline: float, journal: Journal) -> None:
        self._store = store
        self.reads = Breaker(f"{name} (read)", deadline, journal)
        self.writes = Breaker(f"{name} (write)", deadline, journal)

    def __repr__(self) -> str:
        return f"<GuardedStore {self._store!r} {self.reads!r} {self.writes!r}>"

    async def get(self, key: bytes) -> Entry | Trouble | None:
        return cast("Entry | Trouble | None", await self.reads.call(lambda: self._store.get(key)))

    async def put(self, entry: Entry, epoch: int | None = None) -> Kept:
        if not self.reads.closed:
            return Kept.TROUBLE  # a caller who has waited for a look that failed is not to wait for this too
        kept = await self.writes.call(lambda: self._store.put(entry, epoch))
        return Kept.TROUBLE if isinstance(kept, Trouble) else cast("Kept", kept)

    async def sweep(self, now: float) -> int:
        try:
            return await self._store.sweep(now)
        except Trouble:
            return 0

    async def remove(self, selector: Selector, removal: Removal, now: float) -> set[bytes]:
        """Not forgiven: what could not be removed must not be reported as gone. Raises `Trouble`."""
        return await self._store.remove(selector, removal, now)

    def census(self) -> Census:
        return self._store.census()

    async def close(self) -> None:
        await asyncio.gather(self.reads.close(), self.writes.close())
        await self._store.close()


class GuardedEpochs:
    """`Epochs` whose `current` takes no longer than `deadline` seconds. Nothing is forgiven: what cannot be told must
    not be taken for current."""

    def __init__(self, epochs: Epochs, name: str, deadline: float, journal: Journal) -> None:
        self._epochs = epochs
        self.lease = epochs.lease
        self.breaker = Breaker(f"{name} (epochs)", deadline, journal)

    async def begin(self, selector: Selector, now: float) -> int:
        return await self._epochs.begin(selector, now)

    async def finish(self, number: int, *, carried_out: bool) -> None:
        await self._epochs.finish(number, carried_out=carried_out)

    async def current(self) -> None:
        found = await self.breaker.call(self._epochs.current)
        if isinstance(found, Trouble):
            raise found

    async def close(self) -> None:
        """End what is being tried."""
        await self.breaker.close()
