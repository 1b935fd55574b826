"""Purges at random and tells of each that was acknowledged: ``python -m tests.stores.purger FILE SEED``, until it is
killed. Lines: ``put <number> <tag>`` once an entry is on the disk, ``purge <tag>`` once acknowledged. Sweeps stop half
way where the seed says so."""

import asyncio
import random
import sys
from dataclasses import replace
from pathlib import Path

from cacheproxy.core.removal import Order, Removal, Removals, Selector
from cacheproxy.engine.purge import Purge
from cacheproxy.engine.shelf import Alone, Shelf
from cacheproxy.stores.memory import Memory
from cacheproxy.stores.sqlite import Sqlite
from cacheproxy.stores.tiered import Tiered
from cacheproxy.wiring.house import SystemClock
from tests.engine.fakes import Notes
from tests.stores.entries import entry

TAGS = ("red", "green", "blue", "white")
PUT_AT_ONCE = 20


def made(number: int, tag: str):
    one = entry(number, 300)
    return replace(one, owner=bytes(16), credential=bytes(16), tags=(tag,))


class Stopping(Tiered):
    """Takes nothing out while `stopped`."""

    stopped = False

    async def remove(self, felled):
        while self.stopped:
            await asyncio.sleep(0.01)
        return await super().remove(felled)


async def main(path: Path, seed: int) -> None:
    dice = random.Random(seed)
    disk = Sqlite(path, 10**8)
    removals = Removals()
    removals.resume(*disk.record)
    store = Stopping(Memory(10**6), disk)
    shelf = Shelf(store, removals, Alone(removals), SystemClock())
    purge = Purge(stock=store, removals=removals, epochs=Alone(removals), journal=Notes(), clock=SystemClock())
    number = seed * 100_000
    while True:
        tag = dice.choice(TAGS)
        for _ in range(PUT_AT_ONCE):
            number += 1
            await shelf.put(made(number, tag), shelf.epoch, 0.0)
            print("put", number, tag)
        while disk._pending or disk._writing:
            await asyncio.sleep(0.001)
        store.stopped = dice.random() < 0.5
        if dice.random() < 0.6 and len(removals.open) < 8:
            meant = dice.choice(TAGS)
            await purge.carry_out(Order(Selector(tags=frozenset({meant})), Removal.HARD))
            print("purge", meant)
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
