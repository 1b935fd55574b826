"""What a Redis in trouble costs a request: ``python -m tests.bench.redis_faults [FAULT…]``, a table of milliseconds.

For each fault: requests that are in flight when it begins, then requests one after the other while Redis is left alone,
each beside one that goes to the backend directly. Told is what the proxy adds: the difference of the two (of those in
flight: what they take, less the median of such crowds before the fault). At last: when hits are back after the fault's end,
and how many answers were not 200.
"""

import argparse
import asyncio
import gc
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import aiohttp

from tests import rig
from tests.fakes.backend import Backend
from tests.fakes.relay import Relay
from tests.faults.load import Telling, told
from tests.faults.ways import WAYS, Way
from tests.parts import redis as part

AT_ONCE = 16
WARM = 200


@dataclass
class Row:
    """What one fault cost; seconds."""

    name: str
    first: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)
    back: float = 0.0
    wrong: int = 0

    def show(self) -> str:
        cells = [f"{self.name:24}"]
        for times in (self.first, self.after):
            ordered = sorted(times)
            cells += [f"{ordered[int(len(ordered) * share)] * 1000:8.2f}" for share in (0.5, 0.99)]
            cells.append(f"{ordered[-1] * 1000:8.2f}")
        return " ".join([*cells, f"{self.back:7.2f}", f"{self.wrong:6}"])


class Bench:
    """A backend, a relay before a Redis, and a proxy in a process of its own."""

    def __init__(self, proxy: rig.Process, backend: Backend, session: aiohttp.ClientSession) -> None:
        self.direct, self.through = rig.Client(backend.url, session), rig.Client(proxy.base, session)
        self.count = 0

    async def timed(self, client: rig.Client, row: Row, prompt: str | None = None) -> float:
        self.count += 1
        said = prompt or f"question {self.count}"
        began = time.perf_counter()
        answer = await client.chat(messages=[{"role": "user", "content": said}])
        took = time.perf_counter() - began
        row.wrong += answer.status != 200 or answer.text != told("m", said, b"Bearer A", 1)
        return took

    async def crowd(self, row: Row) -> list[float]:
        return list(await asyncio.gather(*(self.timed(self.through, row) for _ in range(AT_ONCE))))

    async def run(self, name: str, way: Way, relay: Relay, server: part.Redis, requests: int) -> Row:
        row = Row(name)
        await self.timed(self.through, row, "known")
        for _ in range(WARM):
            await self.timed(self.through, row)
            await self.timed(self.direct, row)
        usual = median([took for _ in range(5) for took in await self.crowd(row)])
        way.begin(relay, server)
        row.first = [took - usual for took in await self.crowd(row)]
        for _ in range(20):  # until what waits for writes alone is left alone too
            await self.timed(self.through, row)
        gc.collect()
        gc.disable()  # a pause of this process is none of the proxy's
        for _ in range(requests):
            direct = await self.timed(self.direct, row)
            row.after.append(await self.timed(self.through, row) - direct)
        gc.enable()
        relay.clear()
        way.end(relay, server)
        ended = time.perf_counter()
        while (await self.through.chat(messages=[{"role": "user", "content": "known"}])).cache != "HIT":
            await asyncio.sleep(0.01)
        row.back = time.perf_counter() - ended
        return row


async def main(names: list[str], requests: int) -> None:
    """Run the faults and print a row of each."""
    print(f"{'':24} {'in flight at first, ms':^26} {'left alone, ms':^26}    back    not")
    print(
        f"{'added by':24} {'p50':>8} {'p99':>8} {'max':>8} {'p50':>8} {'p99':>8} {'max':>8} {'after s':>7} {'right':>6}"
    )
    backend = await Backend(script=Telling()).start()
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), auto_decompress=False) as session:
            for name in ["healthy", *names]:
                with tempfile.TemporaryDirectory() as place:
                    await _one(name, Path(place), backend, session, requests)
    finally:
        await backend.stop()


async def _one(name: str, place: Path, backend: Backend, session: aiohttp.ClientSession, requests: int) -> None:
    server = part.start(place / "redis", search=False)
    relay = Relay(server.address).start()
    proxy = await rig.spawn(backend.url, place / "log", "--redis-url", relay.url, "--data-dir", "none")
    try:
        way = WAYS.get(name) or Way(lambda relay, server: None, frozenset())
        print((await Bench(proxy, backend, session).run(name, way, relay, server, requests)).show(), flush=True)
    finally:
        proxy.kill()
        await relay.stop()
        server.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fault", nargs="*", help=", ".join(WAYS))
    parser.add_argument("--requests", type=int, default=2000)
    given = parser.parse_args()
    asyncio.run(main(given.fault or list(WAYS), given.requests))
