"""What a purge of one of 1,000 tags costs: until it is acknowledged, until all is swept, and others meanwhile.

    python -m tests.bench.purge [--entries 1000000] [--directory DIR] [--redis]

Embedded: memory in front of a file with so many entries, about 2 GB for a million. `--redis`: 100,000 entries in the
Redis of the tests. Others look up, and put, all the time; theirs are the 99th percentiles, in milliseconds, before a
purge and during its sweep. `put` is the time for each of the entries that fill the store, all that goes on behind it
included.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from cacheproxy.core.removal import Order, Removal, Removals, Selector
from cacheproxy.engine.guard import GuardedStore
from cacheproxy.engine.purge import Purge
from cacheproxy.engine.shelf import Alone, Shelf
from cacheproxy.stores.memory import Memory
from cacheproxy.stores.sqlite import Sqlite
from cacheproxy.stores.tiered import Tiered
from cacheproxy.wiring.house import SystemClock
from tests.engine.fakes import Notes
from tests.parts import redis as part
from tests.stores.entries import entry, key_of
from tests.stores.replicas import replica

TAGS = 1000
IN_REDIS = 100_000
BODY = 700
PURGES = 5
OWNER = bytes(16)


def made(number: int):
    """Entry `number`, with one of the tags, of one caller."""
    lives = time.time() + 36_000
    one = entry(number, BODY, expires_at=lives)
    return replace(one, owner=OWNER, credential=OWNER, tags=(f"tag {number % TAGS}",))


class Others:
    """Look up and put, again and again."""

    def __init__(self, shelf: Shelf, count: int) -> None:
        self._shelf, self._count, self._dice = shelf, count, random.Random(1)
        self._took: list[float] = []

    async def go_on(self) -> None:
        number = self._count
        while True:
            began = time.perf_counter()
            await self._shelf.get(key_of(self._dice.randrange(self._count)))
            self._took.append((time.perf_counter() - began) * 1000)
            if self._dice.random() < 0.05:
                number += 1
                await self._shelf.put(made(number), self._shelf.epoch, time.monotonic())
            await asyncio.sleep(0.001)

    def told(self) -> str:
        took, self._took = sorted(self._took), []
        return f"{took[len(took) * 99 // 100]:.2f} of {len(took)}" if took else "none"


async def measure(what: str, shelf: Shelf, purge: Purge, count: int) -> None:
    others = Others(shelf, count)
    going = asyncio.create_task(others.go_on())
    await asyncio.sleep(3)
    print(f"{what}: p99 of others before: {others.told()} ms")
    for lap in range(PURGES):
        order = Order(Selector(tags=frozenset({f"tag {lap}"})), Removal.HARD, wait=False)
        began = time.perf_counter()
        purged = await purge.carry_out(order)
        acknowledged = (time.perf_counter() - began) * 1000
        while purge.under_way:
            await asyncio.sleep(0.001)
        swept = time.perf_counter() - began
        print(f"  {purged}: acknowledged in {acknowledged:.2f} ms, swept in {swept:.2f} s, others {others.told()} ms")
    going.cancel()


async def filled(put: Callable[[int], Awaitable[object]], idle: Callable[[], bool], count: int) -> None:
    began = time.perf_counter()
    for number in range(count):
        await put(number)
        if number % 500 == 0:
            while not idle():
                await asyncio.sleep(0.002)
    print(f"put: {(time.perf_counter() - began) / count * 1e6:.0f} µs each", flush=True)


async def embedded(path: Path, count: int) -> None:
    disk = Sqlite(path, 2**40)
    store = Tiered(Memory(2**28), GuardedStore(disk, "cache file", 5.0, Notes()))
    removals, clock = Removals(), SystemClock()
    removals.resume(*disk.record)
    epochs = Alone(removals, disk.past)
    shelf = Shelf(store, removals, epochs, clock)
    purge = Purge(stock=store, removals=removals, epochs=epochs, journal=Notes(), clock=clock)

    def idle() -> bool:
        return not disk._pending and not disk._writing

    await filled(lambda number: shelf.put(made(number), 0, clock.monotonic()), idle, count)
    await measure(f"embedded, {count} entries", shelf, purge, count)
    await purge.close()
    await store.close()


async def shared(url: str, count: int) -> None:
    one = replica(url, connections=8)
    await one.epochs.current()
    began = time.perf_counter()
    for at in range(0, count, 32):
        await asyncio.gather(*(one.keep(made(number)) for number in range(at, min(count, at + 32))))
    print(f"put: {(time.perf_counter() - began) / count * 1e6:.0f} µs each", flush=True)
    await measure(f"Redis, {count} entries", one.shelf, one.purge, count)
    await one.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--directory")
    parser.add_argument("--redis", action="store_true")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=told.directory) as directory:
        if told.redis:
            server = part.start(Path(directory))
            try:
                asyncio.run(shared(server.url, min(told.entries, IN_REDIS)))
            finally:
                server.stop()
        else:
            asyncio.run(embedded(Path(directory) / "cache.sqlite3", told.entries))


if __name__ == "__main__":
    main()
