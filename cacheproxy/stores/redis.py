"""Entries in Redis, which all replicas share. One round trip a lookup: entry and head of the removals, read together.

A value is the generation (8 bytes) and the stored form, which echoes its key: what comes back is compared with what was
asked. Each value has an absolute expiry, and Redis lets go of what it has no room for. Whoever waits for a round trip
may leave: see lane.py.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TypeVar

from cacheproxy.core import codec
from cacheproxy.core.model import Census, Entry
from cacheproxy.core.removal import Felled, Removal, Removals, Selector
from cacheproxy.ports import Clock, Kept, Listed, Page
from cacheproxy.stores.lane import Lane
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_epochs import RedisEpochs
from cacheproxy.stores.redis_keys import GENERATION_BYTES, Keys
from cacheproxy.stores.redis_scan import Scan
from cacheproxy.stores.redis_scripts import EXCHANGE, PUT

T = TypeVar("T")

MOST = 64
"""Entries that one round trip asks for."""
LARGEST = 4 * 2**20
"""Bytes of a value above which it is not kept: nobody would get it within a lookup's deadline."""
ASIDE = 128 * 2**10
"""Bytes of a value above which it is packed or unpacked beside the event loop."""
REST = 0.002
"""Seconds that a removal rests after each of its steps."""
COUNTING_SHARE = 100
"""Counting what is stored takes at most this fraction (one over it) of the time."""


class RedisStore:
    """A store in the Redis behind `calls`, of whose connections it uses at most `width` at once for lookups and as many
    for writing."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, calls: Calls, keys: Keys, epochs: RedisEpochs, removals: Removals, clock: Clock, *, width: int
    ) -> None:
        self._calls = calls
        self._keys = keys
        self._epochs = epochs
        self._removals = removals
        self._clock = clock
        self._lookups: Lane[bytes, Entry | None] = Lane(self._read, width=width, most=MOST)
        self._writes: Lane[tuple[Entry, bytes], Kept] = Lane(self._write, width=width, most=1)
        self._scan = Scan(calls, keys)
        self._census = Census(0, 0)
        self._count_after = 0.0

    def __repr__(self) -> str:
        return f"<RedisStore {self._census.entries} entries {self._calls.link!r}>"

    async def get(self, key: bytes) -> Entry | None:
        return await self._lookups.ask(key)

    async def put(self, entry: Entry, epoch: int | None = None) -> Kept:
        # Before anything is awaited: the head that goes with the epoch.
        if epoch not in (None, self._removals.epoch):
            return Kept.OUTRUN
        return await self._writes.ask((entry, self._epochs.head(self._keys.shard(entry.key))))

    async def _read(self, wanted: list[bytes]) -> list[Entry | None]:
        """One round trip for each shard in which something is wanted."""
        shards: dict[int, list[bytes]] = defaultdict(list)
        for name in wanted:
            shards[self._keys.shard(name)].append(name)
        found: dict[bytes, Entry | None] = {}
        for part in await asyncio.gather(*(self._read_shard(shard, names) for shard, names in shards.items())):
            found.update(part)
        return [found[name] for name in wanted]

    async def _read_shard(self, shard: int, names: list[bytes]) -> dict[bytes, Entry | None]:
        values = await self._calls.run("MGET", self._keys.head(shard), *map(self._keys.entry, names))
        if not isinstance(values, list) or len(values) != len(names) + 1:
            raise await self._calls.distrust("not as many values as were asked for")
        if not all(value is None or isinstance(value, bytes) for value in values):
            raise await self._calls.distrust("something that is no value")
        await self._epochs.meet(shard, values[0])
        return {name: await self._entry(name, value) for name, value in zip(names, values[1:], strict=True)}

    async def _entry(self, name: bytes, value: bytes | None) -> Entry | None:
        """The entry in `value`; None if it is damaged or of another generation. Raises `Trouble` if it is of another
        key: then somebody else's reply was read, or something else was written there."""
        if value is None or value[:GENERATION_BYTES] != self._epochs.generation:
            return None
        stored = value[GENERATION_BYTES:]
        entry = await _aside(len(stored), lambda: codec.decode(stored, name))
        if entry is None and (other := codec.key_in(stored)) not in (None, name) and codec.decode(stored, other):
            trouble = await self._calls.distrust("the value of another key")
            await self._calls.run("UNLINK", self._keys.entry(name))  # lest every lookup end here
            raise trouble
        return entry

    async def _write(self, given: list[tuple[Entry, bytes]]) -> list[Kept]:
        return [await self._write_one(entry, head) for entry, head in given]

    async def _write_one(self, entry: Entry, head: bytes) -> Kept:
        shard = self._keys.shard(entry.key)
        if not head:
            await self._epochs.current()  # the first contact: what was asked for before it may have been removed
            return Kept.OUTRUN
        value = bytes.fromhex(head[: 2 * GENERATION_BYTES].decode()) + await _aside(
            entry.size, lambda: codec.encode(replace(entry, epoch=int(head.split()[1])))
        )
        if len(value) > LARGEST:
            # The older answer of this key must not outlive the newer one that cannot be kept.
            await self._calls.run("UNLINK", self._keys.entry(entry.key))
            return Kept.TOO_LARGE
        names = [self._keys.head(shard), self._keys.entry(entry.key)]
        reply = await self._calls.script(PUT, names, head, value, _expiry(entry))
        if reply == 1:
            return Kept.YES
        if reply is not None and not isinstance(reply, bytes):
            raise await self._calls.distrust("not the reply of a script of ours")
        await self._epochs.meet(shard, reply)
        return Kept.OUTRUN

    async def count(self, selector: Selector, now: float, also: Collection[bytes] = ()) -> int | None:  # noqa: ARG002
        """Only a scan tells."""
        return None

    async def fell(self, felled: Felled, also: Collection[bytes] = ()) -> int | None:  # noqa: ARG002
        """The epochs remember it."""
        return None

    async def remove(self, felled: Felled) -> set[bytes]:
        selector, gone = felled.selector, set[bytes]()
        async for entries in self._scan.entries(selector.entry_ids, self._epochs.generation):
            older = (entry for entry in entries if entry.epoch < felled.number)
            keys = [entry.key for entry in older if selector.means(entry, felled.now)]
            gone.update(keys)
            if felled.removal is Removal.HARD and keys:
                await self._calls.together([("UNLINK", self._keys.entry(name)) for name in keys])
            elif felled.removal is Removal.SOFT:
                for name in keys:
                    await self._outdate(name, felled.now)
            await asyncio.sleep(REST)
        return gone

    async def settle(self, felled: Felled) -> None:
        """The epochs are told."""

    async def browse(self, selector: Selector, now: float, cursor: str, most: int, *, whole: bool = False) -> Page:
        """As a scan comes by them: a page may have more than `most`."""
        await self._epochs.current()  # whose generation counts, and where a cluster's nodes are
        names, goes_on = self._scan.names_of(selector.entry_ids), ""
        if not selector.entry_ids:
            names, goes_on = await self._scan.page(cursor, most)
        listed = await self._scan.listed(names, self._epochs.generation)
        rows = [Listed(entry, size) for entry, size in listed if selector.means(entry, now)]
        if whole:
            rows = [row for listed in rows if (row := await self._whole(listed)) is not None]
        return Page(rows, goes_on)

    async def _whole(self, listed: Listed) -> Listed | None:
        name = listed.entry.key
        entry = await self._entry(name, await self._calls.value(self._keys.entry(name)))
        return replace(listed, entry=entry) if entry is not None else None

    async def _outdate(self, name: bytes, now: float) -> None:
        """End the lifetime of an entry, unless it is replaced meanwhile."""
        value = await self._calls.value(self._keys.entry(name))
        entry = codec.decode(value[GENERATION_BYTES:], name) if value else None
        if value is None or entry is None:
            return
        new = value[:GENERATION_BYTES] + codec.encode(entry.past(now))
        digest = hashlib.sha1(value).hexdigest()  # noqa: S324 - to tell a value from another, as the script does
        await self._calls.script(EXCHANGE, [self._keys.entry(name)], digest, new, _expiry(entry))

    async def sweep(self, now: float) -> int:  # noqa: ARG002 - Redis frees what expired by itself
        """Keep what all need from expiring, and count what is there; 0."""
        await self._epochs.keep_alive()
        if self._clock.monotonic() >= self._count_after:
            began = self._clock.monotonic()
            self._census = await self._scan.count()
            ended = self._clock.monotonic()
            self._count_after = ended + COUNTING_SHARE * (ended - began)
        return 0

    def census(self) -> Census:
        """As of the last sweep that counted; bytes as Redis holds them, packed."""
        return self._census

    async def close(self) -> None:
        await self._lookups.close()
        await self._writes.close()
        await self._epochs.close()


async def _aside(size: int, work: Callable[[], T]) -> T:
    return work() if size <= ASIDE else await asyncio.to_thread(work)


def _expiry(entry: Entry) -> int:
    """Milliseconds since the epoch."""
    return max(1, int(entry.expires_at * 1000))
