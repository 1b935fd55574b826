"""Replicas that share recordings in a Redis. ``python -m tests.stores.recordings <url> <key, hex> <lease>`` leads one,
says its identity and goes on until it is killed."""

import asyncio
import contextlib
import itertools
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from cacheproxy.stores.redis_lead import RedisLead
from cacheproxy.stores.redis_recordings import RedisRecordings
from tests.stores.entries import key_of
from tests.stores.replicas import Replica, replica

LEASE = 0.6
"""Seconds: for tests that wait until one is over."""
LONG = 300.0
"""One that does not end within a test: nothing comes of its end, or of the reads that are done three times within it."""


@dataclass
class Teller:
    """A replica that shares recordings."""

    one: Replica
    recordings: RedisRecordings

    async def lead(self, number: int = 1) -> RedisLead:
        """Lead the recording of key `number`, which nobody leads now."""
        found = await self.claim(number)
        assert isinstance(found, RedisLead)
        return found

    async def claim(self, number: int = 1) -> RedisLead | bytes:
        return await self.recordings.lead(key_of(number), secrets.token_bytes(16))

    async def read(self, number: int, identity: bytes, after: int = 0) -> list[bytes]:
        """All records after that number, once it has ended."""
        return [record async for batch in self.recordings.follow(key_of(number), identity, after) for record in batch]

    def reading(self, number: int, identity: bytes, after: int = 0) -> "Reading":
        return Reading(self, number, identity, after)

    async def close(self) -> None:
        await self.recordings.close()
        await self.one.close()


@dataclass
class Reading:
    """Somebody who follows: what has come, and how it ended."""

    teller: Teller
    number: int
    identity: bytes
    after: int
    come: list[bytes] = field(default_factory=list)
    opened: bool = False

    def __post_init__(self) -> None:
        self.task = asyncio.create_task(self._run())
        self.task.add_done_callback(lambda task: task.cancelled() or task.exception())  # seen, whoever asks

    async def _run(self) -> None:
        async for batch in self.teller.recordings.follow(key_of(self.number), self.identity, self.after):
            self.opened = True
            self.come.extend(batch)


Tell = Callable[..., Teller]


@contextlib.asynccontextmanager
async def telling() -> AsyncIterator[Tell]:
    """``a, b = tell(url), tell(url)``: replicas that are closed at the end."""
    made: list[Teller] = []

    def tell(url: str, *, lease: float = LONG, most: int = 2**20, **options) -> Teller:
        one = replica(url, **options)
        made.append(Teller(one, RedisRecordings(one.calls, one.keys, one.epochs, one.clock, lease=lease, most=most)))
        return made[-1]

    try:
        yield tell
    finally:
        for teller in made:
            await teller.close()


def records(first: int, count: int, size: int = 0) -> list[bytes]:
    return [b"record %d %s" % (number, b"." * size) for number in range(first, first + count)]


async def _lead(url: str, key: bytes, lease: float) -> None:
    one = replica(url)
    lead = await RedisRecordings(one.calls, one.keys, one.epochs, one.clock, lease=lease).lead(key, bytes(range(16)))
    assert isinstance(lead, RedisLead)
    print(lead.identity.hex(), flush=True)
    for number in itertools.count():
        await lead.append([b"%d" % number])
        await asyncio.sleep(lease / 10)


def main(argv: Sequence[str]) -> None:
    url, key, lease = argv
    asyncio.run(_lead(url, bytes.fromhex(key), float(lease)))


if __name__ == "__main__":
    main(sys.argv[1:])
