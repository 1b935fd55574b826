"""A store in Redis for the suite of all stores: entries that expired long ago, by the suite's own time, on a server whose
clock cannot be moved."""

import time
from collections.abc import Collection
from dataclasses import replace

from cacheproxy.core.model import Entry
from cacheproxy.core.removal import Felled, Selector
from cacheproxy.ports import Kept, Page
from cacheproxy.stores.redis import RedisStore
from cacheproxy.stores.redis_keys import Keys
from tests.parts.redis import Redis
from tests.stores.replicas import Replica

ATTEMPTS = 5


class Shared:
    """The store of `one`. The suite's second 0 is a day from now; `servers` free what expired when it is swept, which
    they do by themselves as time goes by. What is outrun is put again, as `Shelf` does."""

    def __init__(self, one: Replica, servers: list[Redis]) -> None:
        self._one = one
        self._servers = servers
        self._zero = float(int(time.time()) + 86_400)

    def __repr__(self) -> str:
        return repr(self.store).replace("RedisStore", "Shared")

    @property
    def store(self) -> RedisStore:
        return self._one.store

    def _moved(self, entry: Entry, seconds: float) -> Entry:
        return replace(entry, fresh_until=entry.fresh_until + seconds, expires_at=entry.expires_at + seconds)

    async def get(self, key: bytes) -> Entry | None:
        found = await self.store.get(key)
        return found if found is None else self._moved(found, -self._zero)

    async def put(self, entry: Entry, epoch: int | None = None) -> Kept:
        for _ in range(ATTEMPTS):
            if (kept := await self.store.put(self._moved(entry, self._zero), epoch)) is not Kept.OUTRUN:
                break
        return kept

    async def count(self, selector: Selector, now: float, also: Collection[bytes] = ()) -> int | None:
        return await self.store.count(selector, now + self._zero, also)

    async def fell(self, felled: Felled, also: Collection[bytes] = ()) -> int | None:
        return await self.store.fell(felled._replace(now=felled.now + self._zero), also)

    async def remove(self, felled: Felled) -> set[bytes]:
        return await self.store.remove(felled._replace(now=felled.now + self._zero))

    async def settle(self, felled: Felled) -> None:
        await self.store.settle(felled)

    async def browse(self, selector: Selector, now: float, cursor: str, most: int, *, whole: bool = False) -> Page:
        page = await self.store.browse(selector, now + self._zero, cursor, most, whole=whole)
        return Page([replace(row, entry=self._moved(row.entry, -self._zero)) for row in page.rows], page.cursor)

    async def sweep(self, now: float) -> int:
        for server in self._servers:
            expire(server, self._one.keys, now + self._zero)
        return await self.store.sweep(now + self._zero)

    def census(self):
        return self.store.census()

    async def close(self) -> None:
        await self.store.close()


def expire(server: Redis, keys: Keys, now: float) -> None:
    """What a server does when its clock shows `now`: entries whose time has come are gone."""
    with server.line() as line:
        names, cursor = [], b"0"
        while True:
            cursor, page = line.call("SCAN", cursor, "MATCH", keys.entries, "COUNT", 1000)
            names += page
            if cursor == b"0":
                break
        for name in names:
            if line.call("PEXPIRETIME", name) <= now * 1000:
                line.call("DEL", name)
