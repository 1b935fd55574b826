"""A new plan's index is built beside the old from its rows, while the old is searched and new rows go to the new.

It goes in small steps and keeps no state: what was carried over is there, so whoever goes on skips it. One replica at a
time builds. Only when all is carried over the alias points to the new index; the old one is left to expire.
"""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cacheproxy.core.model import Row
from cacheproxy.errors import Trouble
from cacheproxy.meaning import redisearch_rows
from cacheproxy.meaning.redisearch import Redisearch
from cacheproxy.meaning.redisearch_errors import told
from cacheproxy.meaning.vectors import checked

Embed = Callable[[list[str]], Awaitable[NDArray[np.floating[Any]]]]
"""Questions to vectors, one row each. A row with a NaN leaves its question out."""

AT_ONCE = 32
"""Rows that are carried over in one step."""

_SCANNED = 500
_LOCKED_MILLISECONDS = 60_000


async def rebuild(index: Redisearch, embed: Embed, pause: float = 0.01) -> bool:
    """Build what is missing, with `pause` seconds between the steps. True: the index of this plan is searched, or
    another took its place; False: another replica is building. Raises `Trouble`, and what `embed` raises; then, and
    when it is cancelled, the next call goes on."""
    await index.life.look()
    if index.life.whole:
        return True
    lock = _Lock(index)
    if not await lock.take():
        return False
    try:
        for source in await index.life.sources():
            async for names in _pages(index, source):
                if not await lock.hold():
                    return False
                await _carry(index, names, embed if not index.names.comparable(source) else None)
                await asyncio.sleep(pause)
        await index.life.switch()
    finally:
        with suppress(Trouble):
            await lock.release()
    return True


@dataclass
class _Lock:
    """Who builds. It ends by itself when its holder does; two holders would only do the same work twice."""

    index: Redisearch
    mark: bytes = field(default_factory=lambda: secrets.token_hex(16).encode())

    async def take(self) -> bool:
        with told(self.index.trouble):
            taken = await self.index.redis.set(self.index.names.lock, self.mark, nx=True, px=_LOCKED_MILLISECONDS)
        return bool(taken)

    async def hold(self) -> bool:
        """Hold it longer; False if it is lost."""
        with told(self.index.trouble):
            if await self.index.redis.get(self.index.names.lock) != self.mark:
                return False
            return bool(await self.index.redis.pexpire(self.index.names.lock, _LOCKED_MILLISECONDS))

    async def release(self) -> None:
        with told(self.index.trouble):
            if await self.index.redis.get(self.index.names.lock) == self.mark:
                await self.index.redis.unlink(self.index.names.lock)


async def _pages(index: Redisearch, source: str) -> AsyncIterator[list[bytes | str]]:
    """The names of the rows of an index, `AT_ONCE` at most at once."""
    pattern = re.sub(r"([*?\[\]\\])", r"\\\1", index.names.rows(source)) + "*"
    cursor, waiting = 0, list[bytes | str]()
    while True:
        with told(index.trouble):
            cursor, names = await index.redis.scan(cursor, match=pattern, count=_SCANNED, _type="hash")
        waiting += names
        while len(waiting) >= AT_ONCE or (waiting and not cursor):
            yield waiting[:AT_ONCE]
            del waiting[:AT_ONCE]
        if not cursor:
            return


async def _carry(index: Redisearch, names: Sequence[bytes | str], embed: Embed | None) -> None:
    """Carry rows over that are not there yet; with their own vectors if there is no `embed`."""
    rows = await _missing(index, names)
    if embed is not None and rows:
        vectors = await embed([row.text for row in rows])
        if len(vectors) != len(rows):
            raise Trouble("the embedder gave another number of vectors than there were questions")
        rows = [Row(row.key, row.partition, v, row.text, row.expires_at) for row, v in zip(rows, vectors, strict=True)]
    able = []
    for row in rows:
        with suppress(Trouble):
            able.append((row, checked(row, index.dim)))
    if able:
        await index.write(able, index.names.index)


async def _missing(index: Redisearch, names: Sequence[bytes | str]) -> list[Row]:
    """Those of the rows of these names that the new index has not."""
    with told(index.trouble):
        async with index.redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.hmget(name, *redisearch_rows.READ)
            rows = [row for values in await pipe.execute() if (row := redisearch_rows.read(values)) is not None]
        if not rows:
            return []
        async with index.redis.pipeline(transaction=False) as pipe:
            for row in rows:
                pipe.exists(index.names.row(index.names.index, row.key))
            there = await pipe.execute()
    return [row for row, is_there in zip(rows, there, strict=True) if not is_there]
