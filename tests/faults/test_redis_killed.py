"""A Redis that is killed over and over while requests go on: no error, no wrong answer, and hits are back each time."""

import asyncio

import pytest

from tests.faults.load import ask, hits_back, purge, version_of
from tests.rig import until

pytestmark = pytest.mark.redis

TIMES = 10
PROMPTS = [f"question {n}" for n in range(25)]


class Traffic:
    """Workers that ask until they are told to stop. Each answer is right, and of no version older than `least` was when
    it was asked for: what was purged before is never given."""

    def __init__(self, clients, workers: int = 8) -> None:
        self.clients, self.least, self.asked, self.hits = clients, 1, 0, 0
        self._over = False
        self._tasks = [asyncio.create_task(self._work(n)) for n in range(workers)]

    async def _work(self, number: int) -> None:
        while not self._over:
            self.asked += 1
            prompt = PROMPTS[(self.asked * 7 + number) % len(PROMPTS)]
            if self.asked % 3 == 0:
                prompt = f"new {self.asked}"
            least = self.least
            answer = await ask(self.clients[self.asked % len(self.clients)], prompt, stream=self.asked % 2 > 0)
            assert version_of(answer, prompt) >= least, "purged before it was asked for"
            self.hits += answer.cache == "HIT"

    async def stop(self) -> None:
        self._over = True
        await asyncio.gather(*self._tasks)

    async def more(self, count: int = 20) -> None:
        """Wait for so many more requests; a worker that failed says so."""
        target = self.asked + count
        await until(lambda: self.asked >= target or any(task.done() for task in self._tasks), 30, "more requests")
        if any(task.done() for task in self._tasks):
            await self.stop()


async def test_killed_ten_times_under_load(sharing, own_redis, session, telling):
    """Half of the times it comes back empty, half with what it had saved. Between the kills all is purged, so that a
    state from before comes back that must not be served."""
    server = own_redis()
    proxies, clients = await sharing(server.url, redis__timeout="100ms")
    traffic = Traffic(clients)
    for time in range(TIMES):
        await hits_back(clients, "canary")
        if time % 2:
            server.cli("SAVE")
        if time % 4 > 1:
            telling.version += 1
            status, _ = await purge(session, proxies[time % 2])
            assert status == 200
            traffic.least = telling.version
        server.kill()
        await traffic.more()
        if time % 2 == 0:
            (server.directory / "dump.rdb").unlink(missing_ok=True)
        server.launch()
        await until(server._answers, 10, "the server")
        await hits_back(clients, "canary")
        await traffic.more()
    await traffic.stop()
    assert traffic.hits > 0
    assert [proxy.house.store.reads.state for proxy in proxies] == ["closed", "closed"]
