"""Deferred requests outlive the process, however and whenever it ends: none is lost, every answer is in the cache, and
one is asked twice only if its process ended while it was asked.
"""

import asyncio
import json
import random
import time
from collections import Counter

import aiohttp

from tests.examples import NAMES, SEED, TIMES
from tests.fakes.backend import completion, plain
from tests.rig import Client, until

COUNT = 50 if TIMES == 1 else 100 * TIMES
AT_ONCE = 40
LEASE = 0.5


class Slow:
    """A backend that takes a moment for each, and remembers which it began and which it had under way when."""

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()
        self.running: set[str] = set()

    async def __call__(self, exchange) -> None:
        if exchange.seen.method == b"GET":
            await plain(exchange)
            return
        text = exchange.seen.json["messages"][-1]["content"]
        self.begun[text] += 1
        self.running.add(text)
        try:
            await asyncio.sleep(0.02)
            await exchange.json(completion(f"answer to {text}"))
            await exchange.writer.drain()
            await asyncio.sleep(0.03)  # until the proxy has written down what came of it
        finally:
            self.running.discard(text)


def says(text: str) -> dict:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


async def test_none_is_lost_and_none_is_asked_twice_unless_a_kill_hit_it(
    spawn, backend, session, tmp_path, monkeypatch
):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    slow = backend.script = Slow()
    config = tmp_path / "config.yaml"
    config.write_text(
        json.dumps(
            {
                "admission": {"p2": {"depth": 0}},
                "jobs": {"path": "/_jobs", "lease": LEASE, "attempts": 50, "max_deferred_per_key": 2000},
            }
        )
    )
    arguments = ("--config", str(config), "--data-dir", str(tmp_path / "data"))
    draw, hit, where = random.Random(SEED), Counter(), {}
    again: Counter[str] = Counter()
    proxy = await spawn(*arguments)
    ready = asyncio.Event()
    ready.set()

    async def put(number: int) -> None:
        """Until it is answered, or kept. What a kill cuts off is said again, as a client does."""
        text = f"q{number}"
        while text not in where:
            await ready.wait()
            try:
                said = await Client(proxy.base, session).send(says(text), X_Priority="P2", Prefer="respond-async")
            except (aiohttp.ClientError, ConnectionError):
                again[text] += 1
                await asyncio.sleep(0.01)
                continue
            assert said.status in (200, 202), said.body
            where[text] = said.get("Location")

    async def puts(numbers) -> None:
        for number in numbers:
            await put(number)

    async def kill_now() -> None:
        nonlocal proxy
        hit.update(slow.running)
        ready.clear()
        before = slow.begun.copy()
        proxy.kill()
        await asyncio.sleep(0.1)  # what it had sent is read by the backend only now
        hit.update(slow.running)
        hit.update(slow.begun - before)
        proxy = await spawn(*arguments)
        ready.set()

    async def done(text: str):
        if where[text] is None:
            return True
        await ready.wait()
        try:
            return (await Client(proxy.base, session).send(method="GET", path=where[text])).status != 202
        except (aiohttp.ClientError, ConnectionError):
            return False

    work = asyncio.gather(*(puts(range(n, COUNT, AT_ONCE)) for n in range(AT_ONCE)))
    kills, began, last = 3 + COUNT // 100, time.monotonic(), 0.0
    for _ in range(kills):
        # At any moment: while requests are put, and while those that were kept are asked.
        goal = slow.begun.total() + draw.randint(3, COUNT // kills)
        try:
            await until(lambda goal=goal: slow.begun.total() >= goal, 10)
        except AssertionError:
            break
        await asyncio.sleep(draw.random() * 0.05)
        await kill_now()
    await work
    kept = [text for text, at in where.items() if at is not None]
    assert len(where) == COUNT and len(kept) > COUNT // 5
    pending = set(where)
    limit = time.monotonic() + 60 + COUNT / 5
    while pending:
        assert time.monotonic() < limit, f"{len(pending)} of {COUNT} not done"
        pending -= {text for text in list(pending)[:50] if await done(text)}
        last = time.monotonic() - began
    client = Client(proxy.base, session)
    for text in kept:
        answer = await client.send(method="GET", path=where[text])
        assert (answer.status, answer.text) == (200, f"answer to {text}")
        hit_again = await client.send(says(text))
        assert (hit_again.cache, hit_again.text) == ("HIT", f"answer to {text}"), text
    twice = {text for text, number in slow.begun.items() if number > 1}
    assert twice <= set(hit) | set(again)
    print(f"{COUNT} requests, {len(kept)} kept, {kills} kills hit {len(hit)}, asked twice {len(twice)}, {last:.1f} s")
