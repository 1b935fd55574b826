"""What happens when far more comes than the backend can take.

    python -m tests.bench.overload [--seconds 60] [--slots 8] [--service 0.2] [--times 10]

A backend of its own process answers `slots` requests at once, each after `service` seconds, and counts what it was
given. The proxy, in a process of its own, is offered `times` the backend's capacity, drawn at random: P0 10 %, P1 30 %,
P2 60 %, each request another one; and besides, all the time, questions whose answers are stored. Who is refused and is
told when to come back does so, once, as far as the machine can carry that: `--obedient` of a hundred.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from tests.rig import spawn

SHARES = {"P0": 0.1, "P1": 0.3, "P2": 0.6}


def serve(port: "multiprocessing.Value", slots: int, service: float, calls: "multiprocessing.Value", worst) -> None:
    """The backend: keep-alive HTTP by hand, JSON answers after a while."""

    async def main() -> None:
        running = 0

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal running
            try:
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = next(
                        (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")),
                        0,
                    )
                    await reader.readexactly(length)
                    if head.startswith(b"POST"):
                        running += 1
                        calls.value += 1
                        worst.value = max(worst.value, running)
                        await asyncio.sleep(service)
                        running -= 1
                        document = {
                            "id": "c", "object": "chat.completion", "created": 1, "model": "m",
                            "choices": [
                                {
                                    "index": 0,
                                    "message": {"role": "assistant", "content": "yes"},
                                    "finish_reason": "stop",
                                }
                            ],
                            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                        }  # fmt: skip
                    else:
                        document = {"object": "list", "data": []}
                    body = json.dumps(document).encode()
                    writer.write(
                        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                        + body
                    )
                    await writer.drain()
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port.value = server.sockets[0].getsockname()[1]
        await server.serve_forever()

    asyncio.run(main())


class Callers:
    """Connections to the proxy that are used again."""

    def __init__(self, base: str) -> None:
        self._host, port = base.removeprefix("http://").split(":")
        self._port = int(port)
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, text: str, priority: str) -> tuple[int, float, dict[bytes, bytes]]:
        """Status, seconds to the whole answer, header fields."""
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
        began = time.perf_counter()
        reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection(self._host, self._port)
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nX-Priority: %b\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (priority.encode(), len(body)) + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        fields = {n.lower(): v.strip() for n, _, v in (line.partition(b":") for line in lines[1:])}
        await reader.readexactly(int(fields[b"content-length"]))
        took = time.perf_counter() - began
        self._idle.append((reader, writer))
        return int(lines[0].split(b" ")[1]), took, fields


def percentile(values: list[float], part: float) -> float:
    return statistics.quantiles(values, n=1000)[round(part * 1000) - 1] if len(values) > 1 else max(values, default=0)


async def load(base: str, options: argparse.Namespace) -> dict:
    callers, dice = Callers(base), random.Random(options.seed)
    rate = options.slots / options.service * options.times
    statuses: dict[str, Counter] = defaultdict(Counter)
    waits: dict[str, list[float]] = defaultdict(list)
    refusals: list[float] = []
    obeyed: Counter = Counter()
    hits: list[float] = []
    tasks: set[asyncio.Task] = set()
    accepted_in_time = 0
    begin = time.perf_counter()
    end = begin + options.seconds

    async def one(number: int, priority: str) -> None:
        nonlocal accepted_in_time
        status, took, fields = await callers.ask(f"question {number}", priority)
        statuses[priority][status] += 1
        if status == 200:
            waits[priority].append(max(0.0, took - options.service))
            accepted_in_time += time.perf_counter() <= end
        elif status in (429, 503):
            if status == 429:
                refusals.append(took)
            if dice.random() * 100 < options.obedient:
                await asyncio.sleep(int(fields[b"retry-after"]))
                again, _, _ = await callers.ask(f"question {number}", priority)
                obeyed[again == 200] += 1
                statuses["again"][again] += 1
                accepted_in_time += again == 200 and time.perf_counter() <= end

    async def hitting() -> None:
        while time.perf_counter() < end:
            status, took, fields = await callers.ask("known", "P2")
            assert status == 200
            assert fields[b"x-cache"] == b"HIT", fields
            hits.append(took)
            await asyncio.sleep(0.05)

    await callers.ask("known", "P1")
    tasks.add(asyncio.ensure_future(hitting()))
    number, at = 0, time.perf_counter()
    while at < end:
        at += dice.expovariate(rate) if not options.even else 1 / rate
        await asyncio.sleep(max(0, at - time.perf_counter()))
        priority = dice.choices(list(SHARES), list(SHARES.values()))[0]
        if options.even:
            priority = ("P0", "P1", "P1", "P1", *["P2"] * 6)[number % 10]
        task = asyncio.ensure_future(one(number, priority))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        number += 1
    await asyncio.gather(*tasks)
    return {
        "offered": number, "statuses": {name: dict(found) for name, found in statuses.items()},
        "p0_wait_p99": percentile(waits["P0"], 0.99), "goodput": accepted_in_time / (options.seconds * rate / options.times),
        "refusal_p50": percentile(refusals, 0.5), "refusal_p99": percentile(refusals, 0.99), "obeyed": dict(obeyed),
        "hit_p50": percentile(hits, 0.5), "hit_p99": percentile(hits, 0.99),
    }  # fmt: skip


async def run(options: argparse.Namespace) -> None:
    port, calls, worst = (multiprocessing.Value("i", 0) for _ in range(3))
    backend = multiprocessing.Process(
        target=serve, args=(port, options.slots, options.service, calls, worst), daemon=True
    )
    backend.start()
    while not port.value:
        await asyncio.sleep(0.01)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(
            f"upstreams:\n  - url: http://127.0.0.1:{port.value}\n    max_inflight: {options.slots}\n"
            "store: {data_dir: none}\n"
        )  # fmt: skip
        log = Path(folder) / "log"
        log.touch()
        proxy = await spawn(None, log, "--config", str(config))
        try:
            found = await load(proxy.base, options)
        finally:
            proxy.terminate()
            await proxy.exit()
            print("\n".join(line for line in log.read_text().splitlines() if "WARN" in line or "ERROR" in line)[-2000:])
    backend.kill()
    accepted = sum(n for by in found["statuses"].values() for status, n in by.items() if status == 200)
    found["calls_by_accepted"] = calls.value / (accepted + 1)
    found["most_at_once"] = worst.value
    print(json.dumps(found, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--service", type=float, default=0.2)
    parser.add_argument("--times", type=float, default=10)
    parser.add_argument("--obedient", type=float, default=1)
    parser.add_argument("--even", action="store_true", help="not at random: one after the other, as evenly as can be")
    parser.add_argument("--seed", type=int, default=1)
    os.environ.setdefault("CACHEPROXY_SEMANTIC__MODE", "off")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
