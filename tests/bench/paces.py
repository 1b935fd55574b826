"""Many readers of one long stream, a few of them slow and one that takes nothing:
``python -m tests.bench.paces [--mebibytes 20] [--rate 50000]``.

First the fast ones alone, then all of them. Told is how long the fast ones took in both, whether the slow ones got
everything, what became of the one that takes nothing, and what it cost the proxy, a process of its own, in memory. At
the default size the slow ones take about seven minutes.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import psutil

from tests import rig
from tests.fakes.backend import Backend
from tests.flights.paces import Long, Pace

MEBIBYTE = 2**20


class Weight:
    """What the proxy holds, looked at again and again: resident bytes, and those that its answers account for."""

    def __init__(self, proxy: rig.Process) -> None:
        self._process = psutil.Process(proxy.process.pid)
        self._metrics = proxy.admin + "/metrics"
        self.first = self._process.memory_info().rss
        self.busy = self._process.cpu_times().user + self._process.cpu_times().system
        self.most = self.held = 0

    @property
    def cost(self) -> str:
        times = self._process.cpu_times()
        mebibytes = (self.most - self.first) / MEBIBYTE
        return f"resident +{mebibytes:.0f} MiB, processor {times.user + times.system - self.busy:.1f} s"

    async def look(self) -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                self.most = max(self.most, self._process.memory_info().rss)
                async with session.get(self._metrics) as answer:
                    for line in (await answer.text()).splitlines():
                        if line.startswith("cacheproxy_recording_bytes "):
                            self.held = max(self.held, int(float(line.split()[1])))
                await asyncio.sleep(0.1)


async def run(proxy: rig.Process, script: Long, paces: list[Pace], seed: int) -> Weight:
    """All of `paces` read the answer to the request of `seed`, which is generated once."""
    weight = Weight(proxy)
    looking = asyncio.create_task(weight.look())
    script.go.clear()
    reading = [asyncio.create_task(paces[0].read(proxy.base, seed=seed))]
    await paces[0].begun.wait()
    reading += [asyncio.create_task(pace.read(proxy.base, seed=seed)) for pace in paces[1:]]
    for pace in paces:
        await pace.begun.wait()
    script.go.set()
    await asyncio.gather(*reading)
    looking.cancel()
    return weight


def fast(paces: list[Pace], script: Long) -> str:
    """How the fast ones went: by how much they ended later than the backend."""
    late = sorted(pace.ended - script.ended for pace in paces if pace.rate is None)
    pause = max(pace.pause for pace in paces if pace.rate is None)
    return f"median {late[len(late) // 2]:.3f} s after the backend, last {late[-1]:.3f} s, longest pause {pause:.3f} s"


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=float, default=20)
    parser.add_argument("--rate", type=int, default=50_000, help="bytes a second of a slow reader")
    parser.add_argument("--pace", type=int, default=250_000, help="bytes a second of the backend, 0 for all at once")
    parser.add_argument("--event", type=int, default=4096, help="bytes of an event")
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--slow", type=int, default=5)
    parser.add_argument("--write-timeout", default="60s")
    chosen = parser.parse_args()
    script = Long(int(chosen.mebibytes * MEBIBYTE), chosen.event, chosen.pace)
    backend = await Backend(script).start()
    with tempfile.TemporaryDirectory() as place:
        proxy = await rig.spawn(
            backend.url,
            Path(place) / "log",
            "--data-dir",
            "none",
            CACHEPROXY_LIMITS__WRITE_TIMEOUT=chosen.write_timeout,
        )
        try:
            return await compare(proxy, script, chosen)
        finally:
            proxy.kill()
            await backend.stop()


async def compare(proxy: rig.Process, script: Long, chosen: argparse.Namespace) -> int:
    count = chosen.readers - chosen.slow - 1
    alone = [Pace() for _ in range(count)]
    light = await run(proxy, script, alone, 1)
    print(f"{count} fast alone: {fast(alone, script)}; {light.cost}")
    paces = [*(Pace() for _ in range(count)), *(Pace(chosen.rate) for _ in range(chosen.slow)), Pace(0)]
    began = time.perf_counter()
    weight = await run(proxy, script, paces, 2)
    whole = [pace for pace in paces if pace.whole and pace.digest == script.digest]
    slow, stuck = [pace for pace in paces if pace.rate], paces[-1]
    print(f"{count} fast of all:  {fast(paces, script)}; {weight.cost}")
    print(f"held for answers at most: {weight.held / MEBIBYTE:.1f} MiB of a stream of {script.size / MEBIBYTE:.1f} MiB")
    print(
        f"slow: {sum(pace in whole for pace in slow)} of {len(slow)} whole, last after {max(p.seconds for p in slow):.1f} s"
    )
    print(f"the one that takes nothing: {'cut off' if stuck.broken else 'not cut off'} after {stuck.seconds:.1f} s")
    print(
        f"whole, byte for byte: {len(whole)} of {len(paces)}; backend calls: {script.calls - 1}; {time.perf_counter() - began:.0f} s"
    )
    right = len(whole) == len(paces) - 1 and stuck.broken and script.calls == 2
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
