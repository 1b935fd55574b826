"""A purge that was acknowledged holds though the process is killed before anything has left the file."""

import asyncio
import sqlite3
import subprocess
import sys

import pytest

from cacheproxy.core.removal import Removals
from cacheproxy.engine.purge import Purge
from cacheproxy.engine.shelf import Alone, Shelf
from cacheproxy.stores.memory import Memory
from cacheproxy.stores.sqlite import Sqlite
from cacheproxy.stores.tiered import Tiered
from cacheproxy.wiring.house import SystemClock
from tests.engine.fakes import Notes
from tests.rig import ROOT, until
from tests.stores.entries import key_of

LAPS = 4


def killed(path, seed: int, lines: int) -> list[list[str]]:
    """What a process told before it was killed."""
    command = [sys.executable, "-m", "tests.stores.purger", str(path), str(seed)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        told = [process.stdout.readline().split() for _ in range(lines)]
        process.kill()
        told += [line.split() for line in process.stdout.read().split("\n")[:-1]]
    return told


@pytest.mark.parametrize("seed", [1, 2])
async def test_no_look_gets_what_an_acknowledged_purge_meant(tmp_path, seed):
    """Over several processes, each killed at another moment, with sweeps that stopped half way."""
    path, gone, live = tmp_path / "cache.sqlite3", set[int](), dict[int, str]()
    for lap in range(LAPS):
        for act, *told in killed(path, seed * 10 + lap, 150 + 77 * lap):
            if act == "put":
                live[int(told[0])] = told[1]
            else:
                meant = {number for number, tag in live.items() if tag == told[0]}
                gone |= meant
                live = {number: tag for number, tag in live.items() if number not in meant}
    assert len(gone) > 200 and len(live) > 20
    disk, removals = Sqlite(path, 10**8), Removals()
    store = Tiered(Memory(10**6), disk)
    removals.resume(*disk.record)
    epochs, clock = Alone(removals), SystemClock()
    shelf = Shelf(store, removals, epochs, clock)
    purge = Purge(stock=store, removals=removals, epochs=epochs, journal=Notes(), clock=clock)
    was_open = len(removals.open)
    assert [number for number in gone if await shelf.get(key_of(number)) is not None] == []
    # The process may have been killed between a purge and the line that tells of it.
    found = [number for number in live if await shelf.get(key_of(number)) is not None]
    await purge.resume()
    await until(lambda: not removals.open)
    assert [number for number in gone if await shelf.get(key_of(number)) is not None] == []
    assert [number for number in live if await shelf.get(key_of(number)) is not None] == found
    await purge.close()
    await store.close()
    with sqlite3.connect(path) as connection:
        left = {key for (key,) in connection.execute("SELECT key FROM entry")}
        assert connection.execute("SELECT count(*) FROM removal WHERE NOT swept").fetchone() == (0,)
    connection.close()
    assert left.isdisjoint(map(key_of, gone))
    assert was_open
    await asyncio.sleep(0)


async def test_numbers_are_not_used_twice(tmp_path):
    """What was put under a number that a process counted, and did not live to write down, is older than the next."""
    starts = []
    for _ in range(3):
        store = Sqlite(tmp_path / "cache.sqlite3", 10**7)
        starts.append(store.record.start)
        await store.close()
    assert starts == [0, 1_000_000, 2_000_000]
