"""What holds when the caller vanishes at any await: the pipeline is stepped to each of its awaits in turn and
cancelled there. Whatever the point, the backend's reply is closed and nothing is held."""

import asyncio
import json

import pytest

from cacheproxy.core.model import Census
from cacheproxy.engine.flight import Flights
from cacheproxy.engine.pipeline import Pipeline
from cacheproxy.engine.profile import Stages
from cacheproxy.engine.record import Budget
from cacheproxy.errors import UpstreamCut
from cacheproxy.settings import resolve
from cacheproxy.stores.memory import Memory
from cacheproxy.telemetry import Telemetry
from cacheproxy.wiring import engine
from cacheproxy.wiring.house import SystemClock
from tests.engine.fakes import alone
from tests.fakes.backend import chunk, completion
from tests.rig import until

SECRET = b"s" * 32


class Pause:
    """Counts awaits; every one of them really gives the loop a turn."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> None:
        self.count += 1
        await asyncio.sleep(0)


class SlowStore(Memory):
    def __init__(self, pause: Pause) -> None:
        super().__init__(2**20)
        self._pause = pause

    async def get(self, key):
        await self._pause()
        return await super().get(key)

    async def put(self, entry, epoch=None):
        await self._pause()
        kept = await super().put(entry, epoch)
        await self._pause()
        return kept


class SlowReply:
    """A backend's reply that pauses before each piece, and may break off."""

    def __init__(self, pause: Pause, fields, pieces: list[bytes], *, cut: bool) -> None:
        self.status, self.phrase, self.fields, self.interim = 200, b"OK", fields, b""
        self._pause = pause
        self._pieces = list(pieces)
        self._cut = cut
        self.closed = 0

    @property
    def ended(self) -> bool:
        return not self._pieces and not self._cut

    async def read(self) -> bytes:
        await self._pause()
        if self._pieces:
            return self._pieces.pop(0)
        if self._cut:
            raise UpstreamCut("cut")
        return b""

    async def settle(self, seconds: float) -> bool:
        await self._pause()
        return True

    def close(self) -> None:
        self.closed += 1


class SlowBackend:
    def __init__(self, pause: Pause, make) -> None:
        self._pause = pause
        self._make = make
        self.replies: list[SlowReply] = []

    async def send(self, request):
        await self._pause()
        self.replies.append(self._make())
        return self.replies[-1]


class Arrived:
    method, target = "POST", b"/v1/chat/completions"

    def __init__(self, pause: Pause, body: bytes) -> None:
        self.fields = ((b"Authorization", b"Bearer A"), (b"Content-Type", b"application/json"))
        self.stages = Stages()
        self._body = body
        self._pause = pause

    async def whole(self) -> bytes:
        await self._pause()
        return self._body

    async def pieces(self) -> bytes:
        return await self.whole()


def json_pieces() -> tuple[tuple, list[bytes]]:
    body = json.dumps(completion()).encode()
    return ((b"Content-Type", b"application/json"),), [body[:40], body[40:]]


def stream_pieces() -> tuple[tuple, list[bytes]]:
    pieces = [
        chunk({"role": "assistant", "content": "a"}),
        chunk({"content": "b"}),
        chunk(finish="stop"),
        b"data: [DONE]\n\n",
    ]
    return ((b"Content-Type", b"text/event-stream"),), pieces


def build(pause: Pause, make) -> tuple[Pipeline, SlowBackend, Budget, Flights, SlowStore]:
    journal, clock, store = Telemetry(), SystemClock(), SlowStore(pause)
    backend = SlowBackend(pause, make)

    async def probe(_fields) -> int:
        return 200

    settings = resolve({"upstreams": ["http://backend"], "exact.keep_stale": 0}, None, {}).settings
    inside = engine.build(
        settings,
        shelf=alone(store, clock),
        backend=backend,
        probe=probe,
        clock=clock,
        journal=journal,
        secret=SECRET,
        realm=b"r",
    )
    return inside.pipeline, backend, inside.budget, inside.flights, store


async def serve(pipeline: Pipeline, call: Arrived) -> bytes:
    """What the HTTP side does with an answer."""
    served = await pipeline.answer(call)
    try:
        if isinstance(served.body, bytes):
            return served.body
        written = []
        async for piece in served.body:
            written.append(piece)
            await call._pause()
        return b"".join(written)
    finally:
        await served.close()


CASES = {
    "json": (b'{"messages":[]}', json_pieces, False),
    "stream": (b'{"messages":[],"stream":true}', stream_pieces, False),
    "stream that is cut": (b'{"messages":[],"stream":true}', stream_pieces, True),
    "json that is cut": (b'{"messages":[]}', json_pieces, True),
    "no-store": (b'{"messages":[],"cache":{"no-store":true}}', json_pieces, False),
}


@pytest.mark.parametrize("case", CASES)
async def test_cancelled_at_every_await(case):
    body, pieces, cut = CASES[case]

    async def attempt(stop_at: int) -> int:
        pause = Pause()
        fields, parts = pieces()
        pipeline, backend, budget, flights, store = build(pause, lambda: SlowReply(pause, fields, parts, cut=cut))
        task = asyncio.create_task(serve(pipeline, Arrived(pause, body)))
        while pause.count < stop_at and not task.done():
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await flights.close(5)
        assert all(reply.closed for reply in backend.replies), f"a reply left open at await {stop_at}"
        assert budget.held == 0, f"bytes held at await {stop_at}"
        census = store.census()
        assert census.entries in (0, 1)
        if cut or case == "no-store":
            assert census == Census(0, 0)
        return pause.count

    whole = await attempt(10_000)
    assert whole >= 5
    for stop_at in range(1, whole + 1):
        await attempt(stop_at)


async def test_a_caller_that_leaves_at_the_terminal_event_leaves_the_answer(tmp_path):
    """The stream's [DONE] was delivered, its framing not yet: the rest is read in the background and kept."""
    pause = Pause()
    fields, parts = stream_pieces()
    pipeline, backend, budget, flights, store = build(
        pause, lambda: SlowReply(pause, fields, [*parts, b": bye\n\n"], cut=False)
    )
    served = await pipeline.answer(Arrived(pause, CASES["stream"][0]))
    async for piece in served.body:
        if b"[DONE]" in piece:
            break
    await served.close()
    await flights.close(5)
    assert store.census().entries == 1
    assert (backend.replies[0].closed, budget.held) == (1, 0)


@pytest.mark.parametrize("case", ["stream", "no-store"])
async def test_an_answer_that_is_never_read_is_let_go(case):
    """The caller left between the head and the first read: the generator has to clean up without having been read."""
    pause = Pause()
    body, pieces, _ = CASES[case]
    fields, parts = pieces()
    pipeline, backend, budget, flights, _ = build(pause, lambda: SlowReply(pause, fields, parts, cut=False))
    served = await pipeline.answer(Arrived(pause, body))
    await served.close()
    await until(lambda: not flights.running)
    assert (backend.replies[0].closed, budget.held) == (1, 0)
