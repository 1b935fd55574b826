"""What the vector index costs: milliseconds of a search and of a row that is added, by how many rows a partition has.

    python -m tests.bench.index [--redis] [--dim 384]

A search is compared with the bare product of all vectors and one, which is what a look at each row costs at least. The
questions are of 12 words, few of them common. `--redis` also measures the Redis of the tests, with 10,000 rows.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np

from cacheproxy.core.model import Identity, Row
from cacheproxy.meaning.local import Local
from cacheproxy.meaning.redisearch_schema import Algorithm, Plan
from cacheproxy.ports import VectorIndex
from tests.meaning.redis import client, index_of
from tests.parts import redis as part
from tests.stores.entries import key_of

SIZES = (1_000, 10_000, 100_000)
IN_REDIS = 10_000
ASKED = 200
LIMIT = 20
PARTITION = bytes(32)


def texts(count: int) -> list[str]:
    """Questions; the words are as common as those of a language are."""
    dice, vocabulary = random.Random(1), [f"word{n}" for n in range(20_000)]
    return [" ".join(vocabulary[int(len(vocabulary) * dice.random() ** 4)] for _ in range(12)) for _ in range(count)]


def vectors(count: int, dim: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((count, dim), np.float32)


def bare(stock: np.ndarray) -> list[float]:
    """Milliseconds of the product of all vectors and one."""
    out, taken = np.empty(len(stock), np.float32), []
    for asked in stock[:ASKED]:
        began = time.perf_counter()
        np.dot(stock, asked, out=out)
        taken.append((time.perf_counter() - began) * 1000)
    return sorted(taken)


async def timed(calls: list[Callable[[], Awaitable[object]]]) -> list[float]:
    """Milliseconds of each, one after the other."""
    taken = []
    for call in calls:
        began = time.perf_counter()
        await call()
        taken.append((time.perf_counter() - began) * 1000)
    return sorted(taken)


async def measure(name: str, index: VectorIndex, stock: np.ndarray, questions: list[str]) -> None:
    """Print one line."""
    now = time.time()
    rows = [Row(key_of(n), PARTITION, v, t, now + 3600) for n, (v, t) in enumerate(zip(stock, questions, strict=True))]
    added = await timed([lambda each=each: index.add(each) for each in rows])
    near = stock + np.float32(0.4) * vectors(len(stock), stock.shape[1])[::-1]
    asked = range(0, len(rows), max(1, len(rows) // ASKED))
    searches = [lambda n=n: index.search(PARTITION, near[n], questions[n], LIMIT, now) for n in asked]
    await timed(searches[:20])
    taken = await timed(searches)
    found = [await search() for search in searches]
    first = sum(each[0].key == key_of(n) for n, each in zip(asked, found, strict=True)) / len(found)
    least = bare(stock)
    half = taken[len(taken) // 2]
    print(
        f"{name:12} {len(rows):8} {half:8.2f}ms {taken[int(0.99 * (len(taken) - 1))]:7.2f}ms"
        f" {least[len(least) // 2]:7.2f}ms {half / least[len(least) // 2]:6.1f}x"
        f" {sum(added) / len(added) * 1000:8.0f}us {added[-1]:7.1f}ms {first:7.1%}",
        flush=True,
    )


async def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.index", description=__doc__.splitlines()[0])
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--redis", action="store_true")
    options = parser.parse_args()
    print(
        f"{options.dim} dimensions, {LIMIT} found; search p50, p99, the bare product, ratio; add mean, worst; found first"
    )
    for size in SIZES:
        await measure("local", Local(options.dim, size), vectors(size, options.dim), texts(size))
    if options.redis:
        with tempfile.TemporaryDirectory() as place:
            server = part.start(Path(place))
            try:
                for algorithm in Algorithm:
                    server.cli("FLUSHALL")
                    redis = client(server)
                    index = index_of(redis, Plan(Identity("bench", "1", options.dim), algorithm))
                    await measure(f"redis {algorithm}", index, vectors(IN_REDIS, options.dim), texts(IN_REDIS))
                    await index.close()
                    await redis.aclose()
            finally:
                server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
