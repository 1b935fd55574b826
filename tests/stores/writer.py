"""Starts writers on a cache file and kills each: ``python -m tests.stores.writer FILE``.

For each line on standard input, a number: a process puts entries as fast as it can, and once the file or its log was
seen to change so often it is killed (SIGKILL). Then a line is written. The writers are forks, so that twenty of them
take a moment only.
"""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from cacheproxy.stores.sqlite import Sqlite
from tests.stores.entries import entry

CAPACITY = 3_000_000


async def _write(path: Path, start: int) -> None:
    store = Sqlite(path, CAPACITY, pending_bytes=CAPACITY // 10)
    number = start
    while True:
        await store.put(entry(number, number * 37 % 9000))
        number += 1
        if number % 20 == 0:
            await asyncio.sleep(0)


def _state(path: Path) -> list[tuple[int, int]]:
    parts = [path, path.with_name(path.name + "-wal")]
    return [(p.stat().st_size, p.stat().st_mtime_ns) for p in parts if p.exists()]


def _watch(path: Path, changes: int) -> None:
    """Wait until the file was seen to change `changes` times."""
    deadline = time.monotonic() + 20
    last = _state(path)
    while changes > 0 and time.monotonic() < deadline:
        now = _state(path)
        changes -= now != last
        last = now


def main() -> None:
    path = Path(sys.argv[1])
    for turn, line in enumerate(sys.stdin):
        child = os.fork()
        if child == 0:
            asyncio.run(_write(path, turn * 100_000))
        _watch(path, int(line))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print("killed", flush=True)


if __name__ == "__main__":
    main()
