"""The life of the index in Redis: it is looked for, made, proven, pointed to, missed, made again, and at last dropped.

An alias, one for each embedder, is what is searched. It points to an index that is whole. Where there are rows of an
earlier plan the index is built first (rebuild.py) and the alias pointed to it then.
"""

import asyncio
import math
import secrets

import numpy as np
from redis.asyncio import Redis
from redis.commands.search.index_definition import IndexDefinition, IndexType
from redisvl.index import AsyncSearchIndex

from cacheproxy.errors import Trouble
from cacheproxy.meaning import redisearch_schema as schema
from cacheproxy.meaning.redisearch_errors import Mapper, Missing, There, told
from cacheproxy.meaning.redisearch_schema import Names, Plan
from cacheproxy.ports import Journal

PAUSE = 1.0
"""Seconds between two looks for an index that is missing."""

_PROBE_MILLISECONDS = 10_000


class Life:
    """Knows which index is searched (`target`), how many rows it had at the last look (`rows`), and which is written to
    (`written`)."""

    def __init__(self, redis: Redis, plan: Plan, names: Names, journal: Journal, trouble: Mapper) -> None:
        self._redis, self._plan, self._names = redis, plan, names
        self._journal, self._trouble = journal, trouble
        self._own = AsyncSearchIndex(schema.schema(names.index, names, plan), redis_client=redis)
        self.alias = AsyncSearchIndex(schema.schema(names.alias, names, plan), redis_client=redis)
        self.target: str | None = None
        self.rows = 0
        self._was_searched = False
        self._proven = False
        self._looking: asyncio.Task[None] | None = None
        self._missed_at = -math.inf
        self._empty: set[str] = set()

    def __repr__(self) -> str:
        state = "not looked for" if not self._proven else "searched" if self.whole else "being built"
        return f"<Life {state}>"

    @property
    def whole(self) -> bool:
        """Whether the index of this plan is the one that is searched, or once was."""
        return self._was_searched

    @property
    def written(self) -> str:
        """The index that rows are written to: that of this plan, until another has taken its place."""
        return self.target if self._was_searched and self.target is not None else self._names.index

    @property
    def own(self) -> AsyncSearchIndex:
        """The index that rows are written to."""
        return self._own if self.written == self._names.index else self.alias

    async def known(self) -> None:
        """The first look, if there was none."""
        if not self._proven:
            await self.look()

    async def missed(self) -> bool:
        """A search missed the index: look again, but not all the time; whether it is worth another try."""
        now = asyncio.get_running_loop().time()
        if now < self._missed_at + PAUSE:
            return False
        self._missed_at = now
        await self.look()
        return self.target is not None

    async def look(self) -> None:
        """See what there is and make what is missing. Goes on when the caller vanishes; all callers share one."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
            self._looking.add_done_callback(lambda task: task.cancelled() or task.exception())
        looking = self._looking
        await asyncio.wait([looking])
        if looking.cancelled():
            raise Trouble("the index is being closed")
        looking.result()

    async def sources(self) -> list[str]:
        """The indexes of earlier plans whose rows this one can be built from, those with the same vectors first."""
        with told(self._trouble):
            names = [str(name) for name in await self._own.listall()]
        others = [name for name in names if self._names.readable(name) and name != self._names.index]
        return sorted(others, key=lambda name: (not self._names.comparable(name), name))

    async def switch(self) -> None:
        """The index of this plan is whole: search it."""
        with told(self._trouble):
            await self._redis.ft(self._names.index).aliasupdate(self._names.alias)
        self.target, self._was_searched = self._names.index, True

    async def drop_dead(self) -> None:
        """Drop indexes of earlier plans, once their last row has been gone for two sweeps. No row goes with them."""
        with told(self._trouble):
            names = [str(name) for name in await self._own.listall() if self._names.ours(str(name))]
            others = set(names) - {self._names.index, self.target}
            empty = {name for name in others if await self._rowless(name)}
            for name in empty & self._empty:
                await self._redis.ft(name).dropindex(delete_documents=False)
            self._empty = empty - self._empty

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    async def _look(self) -> None:
        own = self._names.index
        with told(self._trouble):
            target = await self._pointed()
            superseded = self._was_searched and target is not None
            if target != own and not superseded and await self._make() and self._was_searched:
                self._journal.count("index_recreated")
            if not self._proven:
                await self._prove()
                self._proven = True
            if target is None and (self._was_searched or not await self.sources()):
                target = await self._point()
        self.target = target
        self._was_searched = self._was_searched or target == own

    async def _pointed(self) -> str | None:
        """The index that the alias points to."""
        try:
            with told(self._trouble):
                info = await self._own.info(self._names.alias)
                self.rows = int(info["num_docs"])
                return str(info["index_name"])
        except Missing:
            return None

    async def _make(self) -> bool:
        """Make the index of this plan; False if it was there. Not by redisvl, which does not tell who of two that came
        at once has made it."""
        stands = self._own.schema
        definition = IndexDefinition([stands.index.prefix], index_type=IndexType.HASH)  # type: ignore[no-untyped-call]
        try:
            with told(self._trouble):
                search = self._redis.ft(self._names.index)
                await search.create_index(stands.redis_fields, definition=definition, stopwords=stands.index.stopwords)
        except There:
            return False
        return True

    async def _point(self) -> str | None:
        """Point the alias, which there was none of, to the index of this plan; where it points now."""
        try:
            with told(self._trouble):
                await self._redis.ft(self._names.index).aliasadd(self._names.alias)
        except There:
            return await self._pointed()
        return self._names.index

    async def _prove(self) -> None:
        """See by a row of our own that the distance of the server is that of the cosine. Raises `Trouble`."""
        probe, direction = np.zeros(self._plan.identity.dim, np.float32), np.zeros(self._plan.identity.dim, np.float32)
        probe[:2], direction[0] = (6, 8)[: len(probe)], 1  # of no length that another measure would take for right
        wanted = 1 - float(probe[0] / np.linalg.norm(probe))
        mark = secrets.token_hex(16)
        name = self._names.rows(self._names.index) + mark
        row = {schema.PARTITION: mark, schema.VECTOR: probe.tobytes(), schema.EXPIRY: "1"}
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hset(name, mapping=row)  # type: ignore[arg-type]
            pipe.pexpire(name, _PROBE_MILLISECONDS)
            await pipe.execute()
        found = await self._own.batch_search([(schema.nearest(mark, 1, 0.0), {"q": direction.tobytes()})])
        await self._redis.unlink(name)
        distances = [float(document.__dict__[schema.DISTANCE]) for document in found[0].docs]
        if len(distances) != 1 or abs(distances[0] - wanted) > 1e-3:
            raise Trouble("the search server does not measure by the cosine, or does not find what was just written")

    async def _rowless(self, index: str) -> bool:
        try:
            with told(self._trouble):
                info = await self._own.info(index)
        except Missing:
            return False
        return int(info["num_docs"]) == 0 and int(info.get("indexing", 0)) == 0
