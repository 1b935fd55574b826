"""A backend whose answers wait for a word, and callers before it."""

import asyncio
from dataclasses import dataclass, field

import pytest

from tests.fakes.backend import Backend, Exchange, completion
from tests.proxy.conftest import clock  # noqa: F401
from tests.rig import until


@dataclass
class Held:
    """A backend that answers when it is told to: `let(n)` answers the n that have waited longest. `order`: the last
    user message of each request, as they came."""

    backend: Backend
    order: list[str] = field(default_factory=list)
    waiting: list[asyncio.Event] = field(default_factory=list)
    most: int = 0
    """How many it has had at once."""
    open: bool = False

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.seen.method == b"GET":
            await exchange.json({"object": "list", "data": [{"id": "m", "object": "model"}]})
            return
        text = exchange.seen.json["messages"][-1]["content"]
        self.order.append(text)
        word = asyncio.Event()
        self.waiting.append(word)
        self.most = max(self.most, len(self.waiting))
        gone = asyncio.ensure_future(exchange.reader.read(1))
        try:
            if not self.open:
                told = asyncio.ensure_future(word.wait())
                await asyncio.wait({told, gone}, return_when=asyncio.FIRST_COMPLETED)
                told.cancel()
                if gone.done():
                    exchange.close = True
                    return
        finally:
            if word in self.waiting:
                self.waiting.remove(word)
            if not gone.done():
                gone.cancel()
                await asyncio.wait({gone})
        await exchange.json(completion(f"answer to {text}"))

    def let(self, count: int = 1) -> None:
        for word in self.waiting[:count]:
            word.set()

    def let_all(self) -> None:
        self.open = True
        self.let(len(self.waiting))

    async def has(self, count: int) -> None:
        await until(lambda: len(self.waiting) == count, what=f"{count} requests at the backend")


@pytest.fixture
def held(backend) -> Held:
    backend.script = found = Held(backend)
    return found
