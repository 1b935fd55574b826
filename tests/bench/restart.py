"""How soon the vector index in a process is whole again after a restart, and what searches cost meanwhile.

    python -m tests.bench.restart [--rows 100000 1000000] [--dim 384] [--partitions 100] [--place DIR]

Writes rows into a file as a proxy does, then opens it as the next process would: the time until the index can be
searched, until it is whole, the p50 and the worst of searches and of turns of the event loop while it is loading, and
the memory of the process. The questions are of 12 words, few of them common.
"""

import argparse
import asyncio
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from cacheproxy.core.model import Identity, Row
from cacheproxy.meaning.kept import KEPT_AS, KeptIndex, name_of
from cacheproxy.stores.sqlite_vectors import VectorFile
from tests.bench.index import texts
from tests.stores.entries import key_of

LIMIT = 20
BLOCK = 10_000


def memory() -> float:
    """GB that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def partition(number: int) -> bytes:
    return number.to_bytes(32, "big")


async def write(file: VectorFile, rows: int, dim: int, partitions: int) -> float:
    """Seconds that it takes to write the rows."""
    dice, told = np.random.default_rng(1), texts(BLOCK)
    began = time.perf_counter()
    for at in range(0, rows, BLOCK):
        vectors = dice.standard_normal((BLOCK, dim), np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        for n in range(min(BLOCK, rows - at)):
            text = f"{told[n]} {at + n}"
            file.put((key_of(at + n), partition(n % partitions), vectors[n].astype(KEPT_AS).tobytes(), text, 4e9))
        while len(file._pending) > BLOCK:
            await asyncio.sleep(0.01)
    await file.remove([])
    await file.close()
    return time.perf_counter() - began


async def turns(index: KeptIndex, taken: list[float]) -> None:
    """Milliseconds by which a timer of 5 ms is late, until the index is whole."""
    while not index.whole:
        began = time.perf_counter()
        await asyncio.sleep(0.005)
        taken.append((time.perf_counter() - began) * 1000 - 5)


async def measure(path: Path, rows: int, dim: int, partitions: int) -> None:
    """Print one line."""
    name, now = name_of(Identity("bench", "1", dim)), time.time()
    wrote = await write(VectorFile(path, name, rows), rows, dim, partitions)
    size, before = path.stat().st_size / 2**20, memory()
    asked, dice = texts(1000), random.Random(2)
    vectors = np.random.default_rng(3).standard_normal((1000, dim), np.float32)
    began, worked = time.perf_counter(), time.process_time()
    index = KeptIndex(dim, rows, VectorFile(path, name, rows))
    index.start()
    opened = (time.perf_counter() - began) * 1000
    late: list[float] = []
    watching = asyncio.create_task(turns(index, late))
    taken = []
    while not index.whole:
        at = dice.randrange(1000)
        start = time.perf_counter()
        await index.search(partition(dice.randrange(partitions)), vectors[at], asked[at], LIMIT, now)
        taken.append((time.perf_counter() - start) * 1000)
        await asyncio.sleep(0.02)
    whole, worked = time.perf_counter() - began, time.process_time() - worked
    await watching
    assert len(index) == rows, (len(index), rows)
    start = time.perf_counter()
    await index.add(Row(key_of(-1), partition(0), vectors[0], "one more", now + 60))
    print(
        f"{rows:9} rows {size:6.0f} MB written {wrote:6.1f} s | open {opened:5.1f} ms whole {whole:6.1f} s, {worked:5.1f} s of work |"
        f" search p50 {sorted(taken)[len(taken) // 2]:5.2f} ms worst {max(taken):6.1f} ms |"
        f" loop late p50 {sorted(late)[len(late) // 2]:5.2f} ms worst {max(late):6.1f} ms |"
        f" memory {before:4.1f} -> {memory():4.1f} GB",
        flush=True,
    )
    await index.close()


async def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.restart", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--place", type=Path)
    options = parser.parse_args()
    for rows in options.rows:
        with tempfile.TemporaryDirectory(dir=options.place) as place:
            await measure(Path(place) / "meaning.sqlite3", rows, options.dim, options.partitions)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
