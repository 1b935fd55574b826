"""The vector index in Redis, for all replicas: the search module through redisvl.

Rows are hashes that expire by themselves. What is searched is an alias, which points to an index that is whole. The
index is made by whoever comes first, and made again by whoever misses it; rows that are there are picked up by it.
What a server says is believed of no row that does not itself prove its key, its partition and its time.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import NDArray
from redis.asyncio import Redis
from redis.commands.search.query import Query
from redis.exceptions import ResponseError

from cacheproxy.core.fusion import fused
from cacheproxy.core.model import Near, Row
from cacheproxy.core.words import asked
from cacheproxy.meaning import hybrid as hybrid_command
from cacheproxy.meaning import redisearch_rows
from cacheproxy.meaning import redisearch_schema as schema
from cacheproxy.meaning.crowds import Crowds
from cacheproxy.meaning.redisearch_errors import Mapper, Missing, is_missing, told
from cacheproxy.meaning.redisearch_hits import Hits
from cacheproxy.meaning.redisearch_life import Life
from cacheproxy.meaning.redisearch_schema import Names, Plan
from cacheproxy.meaning.vectors import Floats, check_partition, checked, unit
from cacheproxy.ports import Journal

log = logging.getLogger("cacheproxy.store")

AT_ONCE = 500
"""Rows that are removed by one command."""


class Redisearch:
    """A `VectorIndex` in the Redis of `redis`, whose deadlines and bounds hold; it is not closed here.

    `prefix`: what every name begins with; `trouble`: makes a `Trouble` of any error; `hybrid`: whether the server has
    FT.HYBRID; refused once, it is not asked again.
    """

    def __init__(  # noqa: PLR0913 - each by its name in wiring
        self, redis: Redis, plan: Plan, prefix: str, journal: Journal, trouble: Mapper, *, hybrid: bool = False
    ) -> None:
        self.redis = redis
        self.hybrid = hybrid
        self._crowds = Crowds()
        self.dim = plan.identity.dim
        self.trouble = trouble
        self.names = Names(prefix, plan)
        self.life = Life(redis, plan, self.names, journal, trouble)

    def __repr__(self) -> str:
        return f"<Redisearch {self.names.index} {self.life!r}>"

    async def add(self, row: Row) -> None:
        vector = checked(row, self.dim)
        await self.life.known()
        await self.write([(row, vector)], self.life.written)

    async def write(self, rows: Sequence[tuple[Row, Floats]], index: str) -> None:
        """Write rows of an index, each with its vector of length 1, all at once or none."""
        with told(self.trouble):
            async with self.redis.pipeline(transaction=True) as pipe:
                for row, vector in rows:
                    name = self.names.row(index, row.key)
                    pipe.hset(name, mapping=redisearch_rows.written(row, vector))  # type: ignore[arg-type]
                    pipe.pexpireat(name, int(row.expires_at * 1000))
                await pipe.execute()

    async def search(self, partition: bytes, vector: NDArray[Any], text: str, limit: int, now: float) -> list[Near]:
        check_partition(partition)
        direction = unit(vector, self.dim)
        await self.life.known()
        if limit < 1:
            return []
        try:
            return await self._find(partition.hex(), direction, text, limit, now)
        except Missing:
            if not await self.life.missed():
                return []
        try:
            return await self._find(partition.hex(), direction, text, limit, now)
        except Missing:
            return []

    async def remove(self, keys: Iterable[bytes]) -> int:
        await self.life.known()
        keys, gone = list(keys), 0
        indexes = {self.names.index, self.life.target or self.names.index}
        for at in range(0, len(keys), AT_ONCE):
            some = keys[at : at + AT_ONCE]
            gone += max([await self._unlink([self.names.row(index, key) for key in some]) for index in indexes])
        return gone

    async def known(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        """Of the index that is written to: what an older one has is not there before it has been carried over."""
        await self.life.known()
        found: dict[bytes, Row] = {}
        for at in range(0, len(keys), AT_ONCE):
            with told(self.trouble):
                async with self.redis.pipeline(transaction=False) as pipe:
                    for key in keys[at : at + AT_ONCE]:
                        pipe.hmget(self.names.row(self.life.written, key), *redisearch_rows.READ)
                    rows = [redisearch_rows.read(values) for values in await pipe.execute()]
            wanted = zip(keys[at : at + AT_ONCE], rows, strict=True)
            found |= {key: row for key, row in wanted if row is not None and row.key == key}
        return found

    async def sweep(self, now: float) -> int:
        """Rows expire by themselves: this frees those that a server kept for too long, and dead indexes."""
        await self.life.look()
        gone = 0
        while True:
            with told(self.trouble):
                found = await self.life.own.batch_search([(schema.expired(now, AT_ONCE), {})])
            freed = await self._unlink([document.id for document in found[0].docs if self.names.owns(document.id)])
            gone += freed
            if not freed:
                break
        await self.life.drop_dead()
        return gone

    async def close(self) -> None:
        await self.life.close()

    async def _find(self, partition: str, direction: Floats, text: str, limit: int, now: float) -> list[Near]:
        """Both searches in one round trip."""
        hits, terms = Hits(partition, direction, now), asked(text)
        if self.hybrid and terms:
            fused_there = await self._ask_hybrid(terms, limit, hits)
            if fused_there is not None:
                return fused_there
        crowd = await self._is_crowd(partition)
        queries: list[tuple[Query, dict[str, bytes]]] = []
        queries.append((schema.nearest(partition, limit, now, crowd=crowd), {"q": direction.tobytes()}))
        if terms:
            queries.append((schema.wording(partition, terms, limit, now, crowd=crowd), {}))
        began = asyncio.get_running_loop().time()
        with told(self.trouble):
            try:
                found = await self.life.alias.batch_search(queries)
            finally:  # it may have taken so long that nobody waited
                self._crowds.took(partition, asyncio.get_running_loop().time() - began)
            lists = [hits.take([document.__dict__ for document in result.docs]) for result in found]
        return fused(lists[0], lists[1] if terms else [], hits.similarities, limit, lambda key: hits.texts[key])

    async def _is_crowd(self, partition: str) -> bool:
        """Whether the partition is a crowd; counts it first if it is time."""
        if self._crowds.due(partition, asyncio.get_running_loop().time()):
            with told(self.trouble):
                (counted,) = await self.life.alias.batch_search([(schema.size(partition), {})])
            self._crowds.counted(partition, counted.total, asyncio.get_running_loop().time())
            if counted.total > self.life.rows:
                await self.life.look()
        return self._crowds.crowd(partition, self.life.rows)

    async def _ask_hybrid(self, terms: list[str], limit: int, hits: Hits) -> list[Near] | None:
        """The same by the server's own command; None if it refuses that, or answers in a way that is not known: then it
        is not asked again."""
        with told(self.trouble):
            command = hybrid_command.command(self.names.alias, terms, limit, hits)
            try:
                reply = await self.redis.execute_command(*command)  # type: ignore[no-untyped-call]
                return hybrid_command.found(reply, hits)
            except ResponseError as error:
                if is_missing(error):
                    raise
            except (TypeError, ValueError, LookupError, AttributeError):
                log.warning("the server's FT.HYBRID answers in an unknown way; two searches are made in its place")
            self.hybrid = False
            return None

    async def _unlink(self, names: list[str]) -> int:
        if not names:
            return 0
        with told(self.trouble):
            return int(await self.redis.unlink(*names))
