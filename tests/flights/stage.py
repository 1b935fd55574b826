"""A backend whose answers come as far as a test lets them, and which sees when they are not wanted any more."""

import asyncio
from collections.abc import Sequence

from tests.fakes.backend import Exchange, chunk, event, plain, usage_chunk

DONE = b"data: [DONE]\n\n"
WORDS = [f"word {number} é漢🙂; " for number in range(36)]


def telling(words: Sequence[str], finish: str = "stop") -> list[bytes]:
    """The events of a whole chat stream that says `words`, as a caller gets them who did not ask for usage."""
    opening = chunk({"role": "assistant", "content": ""})
    said = [event(_said(word)) if number % 2 else chunk({"content": word}) for number, word in enumerate(words)]
    return [opening, *said, chunk(finish=finish), DONE]


def _said(word: str) -> dict:
    choice = {"index": 0, "delta": {"content": word}, "finish_reason": None}
    return {"id": "chatcmpl-abc123", "object": "chat.completion.chunk", "created": 1700000000, "model": "m",
            "choices": [choice]}  # fmt: skip


EVENTS = telling(WORDS)
"""What the stage says by default."""
WHOLE = b"".join(EVENTS)


class Stage:
    """A script. Each stream gives the first `allowed` of its events, more when `let` is called; its head once one is
    allowed, or with `head`; it is cut off after `cuts_at` of them. `begun`: streams that began; `left`: those whose
    caller went away before their end."""

    def __init__(self, events: Sequence[bytes] = EVENTS, *, head: bool = False, extra: bytes = b"") -> None:
        self.events = list(events)
        self.begun = self.left = 0
        self.allowed = 0
        self.cuts_at: int | None = None
        self._head = head
        self._extra = extra
        self._changed = asyncio.Condition()

    async def let(self, count: int | None = None) -> None:
        """Allow `count` events in all; None: everything."""
        self.allowed = len(self.events) if count is None else count
        async with self._changed:
            self._changed.notify_all()

    async def __call__(self, exchange: Exchange) -> None:
        if not exchange.seen.json.get("stream"):
            await plain(exchange)
            return
        wants_usage = (exchange.seen.json.get("stream_options") or {}).get("include_usage")
        gone = asyncio.create_task(exchange.gone())
        self.begun += 1
        try:
            if not self._head and not await self._allowed(0, gone):
                return
            await exchange.send(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
                + self._extra
                + b"\r\n"
            )
            for number, said in enumerate(self.events):
                if number == self.cuts_at:
                    exchange.cut()
                    return
                if not await self._allowed(number, gone):
                    return
                if said == DONE and wants_usage:
                    await exchange.chunk(usage_chunk())
                await exchange.chunk(said)
            await exchange.end()
        finally:
            gone.cancel()
            await asyncio.wait({gone})
            exchange.close = self.cuts_at is not None

    async def _allowed(self, number: int, gone: asyncio.Task) -> bool:
        """Wait until the event `number` is allowed; False when the caller has gone away."""

        async def allowed() -> None:
            async with self._changed:
                await self._changed.wait_for(lambda: self.allowed > number)

        if self.allowed > number:
            return True
        waiting = asyncio.create_task(allowed())
        try:
            await asyncio.wait({waiting, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if self.allowed <= number:
            self.left += 1
        return self.allowed > number
