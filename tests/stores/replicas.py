"""Replicas that share a Redis, below the proxy: each has a store, the removals that it knows, and its own connections."""

import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace

from cacheproxy.core.model import Entry
from cacheproxy.core.outcome import Reason
from cacheproxy.core.redis_url import read
from cacheproxy.core.removal import Order, Removal, Removals, Selector
from cacheproxy.engine.purge import Purge, Purged
from cacheproxy.engine.shelf import Shelf
from cacheproxy.stores.redis import RedisStore
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_epochs import RedisEpochs
from cacheproxy.stores.redis_keys import Keys
from cacheproxy.stores.redis_link import Link, LinkTerms
from cacheproxy.wiring.house import SystemClock
from tests.engine.fakes import Notes
from tests.stores import entries
from tests.stores.entries import key_of

PATIENT = 30.0
"""A deadline that a loaded machine does not miss."""
EVERYTHING = Selector(everything=True)
SECRET = b"s" * 32


def entry(
    number: int, length: int = 500, *, version: int = 0, tags: tuple[str, ...] = (), lives: float = 3600
) -> Entry:
    """Entry `number` that lives from now."""
    return replace(entries.entry(number, length, version=version, expires_at=time.time() + lives), tags=tags)


def hard(selector: Selector) -> Order:
    return Order(selector, Removal.HARD)


def tagged(*tags: str) -> Selector:
    return Selector(tags=frozenset(tags))


@dataclass
class Replica:
    """One of those that share a Redis."""

    link: Link
    calls: Calls
    keys: Keys
    removals: Removals
    epochs: RedisEpochs
    store: RedisStore
    clock: SystemClock
    agreed: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shelf = Shelf(self.store, self.removals, self.epochs, self.clock)
        self.purge = Purge(
            stock=self.store, removals=self.removals, epochs=self.epochs, journal=Notes(), clock=self.clock
        )

    async def get(self, number: int) -> Entry | None:
        return await self.shelf.get(key_of(number))

    def asking(self) -> tuple[int, float]:
        """What a request that comes now remembers: `keep` takes it."""
        return self.shelf.epoch, self.clock.monotonic()

    async def keep(self, wanted: Entry, asked: tuple[int, float] | None = None) -> Reason | None:
        """Keep the answer to a request that came when it was `asked`."""
        return await self.shelf.put(wanted, *(asked or self.asking()))

    async def remove(
        self, selector: Selector = EVERYTHING, removal: Removal = Removal.HARD, *, wait: bool = True
    ) -> Purged:
        """Acknowledged when this returns; `wait`: and carried out."""
        return await self.purge.carry_out(Order(selector, removal, wait))

    async def close(self) -> None:
        await self.purge.close()
        await self.store.close()
        await self.link.close()


def replica(url: str, *, secret: bytes = SECRET, timeout: float = PATIENT, connections: int = 4, prefix="cacheproxy"):
    """A replica on the Redis at `url`; connects when it is first asked."""
    link = Link(read(url), LinkTerms(timeout, max_connections=connections))
    calls, keys, removals, clock = Calls(link), Keys(prefix, link.shards), Removals(), SystemClock()
    agreed: list[bytes] = []
    epochs = RedisEpochs(calls, keys, removals, clock, secret=secret, agreed=agreed.append)
    store = RedisStore(calls, keys, epochs, removals, clock, width=max(1, connections // 2))
    return Replica(link, calls, keys, removals, epochs, store, clock, agreed)


Join = Callable[..., Replica]


@contextlib.asynccontextmanager
async def joining() -> AsyncIterator[Join]:
    """``a, b = join(url), join(url)``: replicas that are closed at the end."""
    made: list[Replica] = []

    def join(url: str, **options) -> Replica:
        made.append(replica(url, **options))
        return made[-1]

    try:
        yield join
    finally:
        for one in made:
            await one.close()
