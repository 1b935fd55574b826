"""The one place that forgives: a deadline and a breaker around a port, so that trouble there costs at most a miss.

Whatever a part raises is trouble: a fault of ours in it, or of a library that it uses, is logged once and costs no
more than a server that is down. Removals alone are not forgiven.
"""

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cacheproxy.core.model import Census, Entry, Near, Row, Unfit
from cacheproxy.core.past import Past
from cacheproxy.core.removal import Felled, Order, Selector
from cacheproxy.engine.breaker import FAULT, Breaker, Faults
from cacheproxy.errors import Trouble
from cacheproxy.ports import Embedder, Epochs, Journal, Kept, Page, Questions, Stocked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


T = TypeVar("T")
AT_ONCE = 50
"""Rows that are entered in one turn of the loop."""
MOST_EMBEDDED = 64
"""Texts that are embedded at once. One more would wait in vain, and its waiting would look like a failure."""


class Forgiven:
    """Work of our own that a request can do without, `part` by name: a fault in it is trouble."""

    def __init__(self, part: str, journal: Journal) -> None:
        self._part = part
        self._journal = journal
        self._faults = Faults(part)

    async def call(self, work: Awaitable[T]) -> T | Trouble:
        """What `work` gives. Never raises, but for the end of the caller."""
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - here it is forgiven, whatever it is
            self._faults.tell(error)
            self._journal.add("trouble", 1, self._part, FAULT)
            return Trouble(type(error).__name__, FAULT)


class GuardedStore:
    """A `Store` that never raises and never takes longer than `deadline` seconds to answer; removals excepted."""

    def __init__(self, store: Stocked, name: str, deadline: float, journal: Journal) -> None:
        self._store = store
        self.reads = Breaker(f"{name} (read)", deadline, journal)
        # An entry that a removal outran, or that is too large, may never have set off.
        self.writes = Breaker(f"{name} (write)", deadline, journal, proof=lambda kept: kept is Kept.YES)

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
        except Exception as error:  # noqa: BLE001 - here it is forgiven, whatever it is
            self.writes.tell(error)
            return 0

    async def count(self, selector: Selector, now: float, also: Collection[bytes] = ()) -> int | None:
        """Not forgiven, like all that follows: what could not be told, or done, must not be reported as if it were.
        Raises `Trouble`."""
        return await self._store.count(selector, now, also)

    async def fell(self, felled: Felled, also: Collection[bytes] = ()) -> int | None:
        return await self._store.fell(felled, also)

    async def remove(self, felled: Felled) -> set[bytes]:
        return await self._store.remove(felled)

    async def settle(self, felled: Felled) -> None:
        await self._store.settle(felled)

    async def browse(self, selector: Selector, now: float, cursor: str, most: int, *, whole: bool = False) -> Page:
        return await self._store.browse(selector, now, cursor, most, whole=whole)

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

    async def begin(self, order: Order, now: float) -> Felled:
        return await self._epochs.begin(order, now)

    async def claim(self, felled: Felled) -> bool:
        return await self._epochs.claim(felled)

    async def finish(self, felled: Felled) -> None:
        await self._epochs.finish(felled)

    async def past(self) -> Past:
        return await self._epochs.past()

    async def current(self) -> None:
        found = await self.breaker.call(self._epochs.current)
        if isinstance(found, Trouble):
            raise found

    async def close(self) -> None:
        """End what is being tried."""
        await self.breaker.close()


class GuardedEmbedder:
    """An embedder that never raises and never takes longer than `deadline` seconds; trouble as long as it has none."""

    def __init__(self, embedder: Embedder | None, deadline: float, journal: Journal) -> None:
        self._embedder = embedder
        self.breaker = Breaker("embedder", deadline, journal)
        self._running = 0

    def __repr__(self) -> str:
        return f"<GuardedEmbedder {self._embedder!r} {self.breaker!r}>"

    @property
    def bare(self) -> Embedder:
        """The embedder itself, for work that waits for it and nobody for that work. Raises `Trouble` if there is
        none yet."""
        if self._embedder is None:
            raise Trouble("the embedding model is not loaded", "loading")
        return self._embedder

    def exchange(self, embedder: Embedder) -> None:
        """Use `embedder` from now on."""
        self._embedder = embedder

    async def embed(self, text: str, scope: bytes) -> "NDArray[np.float32] | Unfit | Trouble":
        if (embedder := self._embedder) is None:
            return Trouble("the embedding model is not loaded", "loading")
        if self._running >= MOST_EMBEDDED:
            return Unfit.BUSY
        self._running += 1
        try:
            found = await self.breaker.call(lambda: embedder.embed(text, scope))
        finally:
            self._running -= 1
        return cast("NDArray[np.float32] | Unfit | Trouble", found)

    async def close(self) -> None:
        await self.breaker.close()
        if self._embedder is not None:
            await self._embedder.close()


class GuardedIndex:
    """A vector index that never raises and never takes longer than `deadline` seconds; nothing is found or kept as long
    as it has none."""

    def __init__(self, index: Questions | None, deadline: float, journal: Journal) -> None:
        self._index = index
        self.reads = Breaker("vector index (read)", deadline, journal)
        # A server without room for a row has all the more for a removal: only what was added shows that it has some.
        self.writes = Breaker("vector index (write)", deadline, journal, proof=lambda gone: gone is None)

    def __repr__(self) -> str:
        return f"<GuardedIndex {self._index!r} {self.reads!r} {self.writes!r}>"

    def exchange(self, index: Questions) -> None:
        """Use `index` from now on; what the other knows is not found any more."""
        self._index = index

    async def search(
        self, partition: bytes, vector: "NDArray[np.floating[Any]]", text: str, limit: int, now: float
    ) -> list[Near] | Trouble:
        if (index := self._index) is None:
            return []
        found = await self.reads.call(lambda: index.search(partition, vector, text, limit, now))
        return cast("list[Near] | Trouble", found)

    async def add(self, row: Row) -> None:
        if (index := self._index) is not None:
            await self.writes.call(lambda: index.add(row))

    async def remove(self, keys: Iterable[bytes]) -> None:
        """A row that stays behind is found to have no answer, and removed then."""
        if (index := self._index) is not None:
            await self.writes.call(lambda: index.remove(keys))

    async def rows(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        """Those of these rows that are there. Not forgiven, and waited for: what cannot be told must not look as if it
        were not there. Raises `Trouble`."""
        return await self._index.known(keys) if self._index is not None else {}

    async def enter(self, rows: Sequence[Row]) -> None:
        """Add rows for which nobody waits, and which are not dropped if the index is slow. Raises `Trouble`."""
        if (index := self._index) is None:
            raise Trouble("there is no index yet", "loading")
        for number, row in enumerate(rows, 1):
            await index.add(row)
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
        await index.remove([])  # of a file: until it has written what it was given

    async def sweep(self, now: float) -> int:
        try:
            return await self._index.sweep(now) if self._index is not None else 0
        except Trouble:
            return 0
        except Exception as error:  # noqa: BLE001 - here it is forgiven, whatever it is
            self.writes.tell(error)
            return 0

    async def close(self) -> None:
        await asyncio.gather(self.reads.close(), self.writes.close())
        if self._index is not None:
            await self._index.close()
