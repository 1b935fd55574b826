"""The cache file where the machine refuses: ``python -m tests.stores.hardship SCENE FILE``; prints what it saw as JSON.

A process of its own, since limits on file sizes and the loss of root's rights cannot be taken back.
"""

import asyncio
import json
import logging
import os
import resource
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Any

from cacheproxy.core.model import Census
from cacheproxy.errors import Trouble
from cacheproxy.stores.sqlite import Sqlite
from tests.rig import until
from tests.stores.entries import entry, key_of

ROOMY = 50_000_000


class Lines(logging.Handler):
    """Keeps the log lines."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def full(size: int) -> None:
    """From now on no file can be written beyond `size` bytes, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def roomy() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def reopen_as_nobody(path: Path) -> Path:
    """Stand in the directory and give up root's rights, which no permission holds for."""
    os.chdir(path.parent)
    path.parent.chmod(0o555)
    if os.getuid() == 0:
        os.setgid(65_534)
        os.setuid(65_534)
    return Path(path.name)


async def idle(store: Sqlite) -> None:
    await until(lambda: not (store._pending or store._writing) or not store._writer.is_alive())


def opening(path: Path) -> dict[str, Any]:
    try:
        Sqlite(path, ROOMY)
    except Trouble as error:
        return {"trouble": str(error), "threads": threading.active_count()}
    return {"trouble": None}


async def full_while_running(path: Path) -> dict[str, Any]:
    store = Sqlite(path, ROOMY)
    await store.put(entry(0, 3000))
    await idle(store)
    full(path.with_name(path.name + "-wal").stat().st_size + 10_000)
    for number in range(1, 31):
        await store.put(entry(number, 30_000))
        await idle(store)
    alive = store._writer.is_alive()
    rows = sqlite3.connect(path)
    count = rows.execute("SELECT count(*), coalesce(sum(size), 0) FROM entry").fetchone()
    rows.close()
    told = store.census()
    first = await store.get(key_of(0)) == entry(0, 3000)
    roomy()
    await store.put(entry(100))
    await idle(store)
    after = await store.get(key_of(100)) == entry(100)
    await store.close()
    return {"alive": alive, "honest": told == Census(*count), "first": first, "after": after}


async def full_when_damaged(path: Path) -> dict[str, Any]:
    """The file turns out damaged, and there is no room for a new one."""
    store = Sqlite(path, ROOMY)
    for number in range(100):
        await store.put(entry(number, 3000))
    await store.close()
    store = Sqlite(path, ROOMY)
    await until(lambda: store.census().entries == 100)
    with path.open("r+b") as raw:
        raw.seek(4096)
        raw.write(b"\xa5" * (path.stat().st_size - 4096))
    full(0)
    others: list[str] = []
    for number in range(60):
        for act in (store.get(key_of(number)), store.put(entry(1000 + number))):
            try:
                await act
            except Trouble:
                continue
            except Exception as error:
                others.append(repr(error))
        await idle(store)
    alive = store._writer.is_alive()
    roomy()
    await store.close()
    again = Sqlite(path, ROOMY)
    await again.put(entry(7))
    await again.close()
    again = Sqlite(path, ROOMY)
    after = await again.get(key_of(7)) == entry(7)
    await again.close()
    aside = len([p for p in path.parent.iterdir() if "set-aside" in p.name and not p.name.endswith(("-wal", "-shm"))])
    return {"alive": alive, "others": others, "after": after, "aside": aside}


def main() -> None:
    scene, path = sys.argv[1], Path(sys.argv[2])
    lines = Lines()
    logging.getLogger("cacheproxy").addHandler(lines)
    if scene == "full at opening":
        full(0)
        seen = opening(path)
    elif scene == "read-only directory":
        seen = opening(reopen_as_nobody(path))
    elif scene == "full while running":
        seen = asyncio.run(full_while_running(path))
    else:
        seen = asyncio.run(full_when_damaged(path))
    sys.stdout.write(json.dumps({**seen, "lines": lines.said}))


if __name__ == "__main__":
    main()
