"""Requests that go on all the time while something is done to Redis."""

import asyncio

from tests.faults.load import ask, version_of
from tests.rig import Client, until

PROMPTS = [f"question {n}" for n in range(25)]


class Traffic:
    """Workers that ask until they are told to stop. Each answer is right, and of no version older than `least` was when
    it was asked for: what was purged before is never given."""

    def __init__(self, clients: list[Client], workers: int = 8) -> None:
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
