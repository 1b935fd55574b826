"""How much of what one endless cache would find is found when requests are spread over replicas, by policy.

    python -m tests.bench.affinity

Replays traces of prompts as hashes of blocks of 512 tokens (tests/data/traces). Each replica's cache holds every block
of the last prompts that it was given, endlessly or up to so many blocks, the least recently used dropped. A request is
in flight for as long as its uncached tokens take at 5,000 a second and its answer's at 40 a second, whatever else its
replica does.
"""

import gzip
import heapq
import json
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cacheproxy.core.affinity import Affinity, Policy, Route, Turns, least

TRACES = Path(__file__).parent.parent / "data" / "traces"
NAMES = ("conversation", "synthetic")
BLOCK, PREFILL, DECODE = 512, 5000.0, 40.0
"""Tokens of a block; tokens a second that are read and written."""


@dataclass(frozen=True, slots=True)
class Request:
    """One line of a trace. `at`: seconds; `chain`: a number for each block and all before it."""

    at: float
    read: int
    written: int
    chain: tuple[int, ...]


@cache
def trace(name: str) -> list[Request]:
    """A trace, in order of arrival."""
    with gzip.open(TRACES / f"mooncake_{name}_trace.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return [Request(r["timestamp"] / 1000, r["input_length"], r["output_length"], tuple(r["hash_ids"])) for r in rows]


class Cache:
    """A replica's blocks: all that it ever read, or the last `size` of them."""

    def __init__(self, size: int | None) -> None:
        self._size = size
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def read(self, chain: Sequence[int]) -> int:
        """How many blocks at the beginning of `chain` were there; all of them are now."""
        found = next((at for at, block in enumerate(chain) if block not in self._blocks), len(chain))
        for block in reversed(chain):
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while self._size is not None and len(self._blocks) > self._size:
            self._blocks.popitem(last=False)
        return found


Choose = Callable[[Request, list[int]], int]


def chooser(policy: Policy, replicas: int, bound: float = 1.25) -> Choose:
    """What the proxy does for each request under `policy`."""
    weights, everyone = [1.0] * replicas, list(range(replicas))
    turns, affinity = Turns(weights), Affinity([f"http://gpu-{i}" for i in everyone], weights, bound=bound)

    def choose(request: Request, loads: list[int]) -> int:
        if policy is Policy.ROUND_ROBIN:
            return turns.next(everyone)
        if policy is Policy.LEAST_INFLIGHT:
            return turns.next(least(loads, weights, everyone))
        # A trace does not say where a family's own texts end: all of its first block is the family.
        route = Route(request.chain[0].to_bytes(16, "big"), request.chain)
        at = affinity.choose(route, loads, everyone)
        affinity.remember(route, at)
        return at

    return choose


@dataclass(frozen=True, slots=True)
class Result:
    """`share`: blocks found of blocks asked for. `uneven`: the busiest replica's requests in flight as a multiple of
    the mean, over all arrivals. `microseconds`: what one choice took."""

    share: float
    uneven: float
    microseconds: float


def replay(requests: Sequence[Request], choose: Choose, replicas: int, size: int | None = None) -> Result:
    """Give the requests to replicas, each with a cache of `size` blocks."""
    caches = [Cache(size) for _ in range(replicas)]
    loads, ends = [0] * replicas, []
    found = asked = 0
    uneven = spent = 0.0
    for request in requests:
        while ends and ends[0][0] <= request.at:
            loads[heapq.heappop(ends)[1]] -= 1
        began = time.perf_counter()
        at = choose(request, loads)
        spent += time.perf_counter() - began
        hits = caches[at].read(request.chain)
        found, asked = found + hits, asked + len(request.chain)
        loads[at] += 1
        uneven += max(loads) * replicas / sum(loads)
        seconds = max(request.read - hits * BLOCK, 0) / PREFILL + request.written / DECODE
        heapq.heappush(ends, (request.at + seconds, at))
    return Result(found / asked, uneven / len(requests), spent / len(requests) * 1e6)


def endless(requests: Sequence[Request]) -> float:
    """The share that one endless cache finds."""
    return replay(requests, lambda _request, _loads: 0, 1).share


def main() -> int:
    head = f"{'trace':13} {'replicas':>8} {'blocks each':>11} {'policy':15} {'hit share':>9} {'of endless':>10}"
    print(f"{head} {'busiest/mean':>12} {'choice':>8}")
    for name in NAMES:
        requests = trace(name)
        best = endless(requests)
        print(f"{name:13} {1:8} {'endless':>11} {'one cache':15} {best:9.1%} {1:10.1%}")
        for replicas in (2, 4, 8):
            for size in (None, 16_000, 4_000, 1_000):
                for policy in Policy:
                    got = replay(requests, chooser(policy, replicas), replicas, size)
                    row = f"{name:13} {replicas:8} {size or 'endless':>11} {policy:15} {got.share:9.1%}"
                    print(f"{row} {got.share / best:10.1%} {got.uneven:12.2f} {got.microseconds:5.0f} us", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
