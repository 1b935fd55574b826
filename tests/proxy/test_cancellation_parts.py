"""What holds when the caller, or the process, vanishes at any await of a batch, a refresh, or a rescue."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from cacheproxy.settings import resolve
from cacheproxy.telemetry import Telemetry
from cacheproxy.wiring import engine
from tests.engine.fakes import alone
from tests.fakes.backend import completion
from tests.proxy.test_cancellation import SECRET, Arrived, Pause, SlowBackend, SlowReply, SlowStore, serve
from tests.rig import Clock, until

JSON = ((b"Content-Type", b"application/json"),)


def reply(pause: Pause, document, status: int = 200, *, cut: bool = False) -> SlowReply:
    body = json.dumps(document).encode()
    made = SlowReply(pause, JSON, [body[:20], body[20:]], cut=cut)
    made.status = status
    return made


def vectors(*texts: str) -> dict:
    data = [{"index": i, "object": "embedding", "embedding": [len(text), 1.5]} for i, text in enumerate(texts)]
    return {"object": "list", "model": "e", "data": data, "usage": {"prompt_tokens": 3, "total_tokens": 3}}


class Parts:
    """An engine over slow parts, and a clock that is moved."""

    def __init__(self, **values) -> None:
        self.pause, self.clock = Pause(), Clock()
        self.store = SlowStore(self.pause)
        self.next: list = []
        self.backend = SlowBackend(self.pause, lambda: self.next.pop(0))
        flags = {"upstreams": ["http://backend"], **{n.replace("__", "."): v for n, v in values.items()}}

        async def probe(_fields) -> int:
            await self.pause()
            return 200

        self.inside = engine.build(
            resolve(flags, None, {}).settings, shelf=alone(self.store, self.clock), backend=self.backend, probe=probe,
            clock=self.clock, journal=Telemetry(), secret=SECRET, realm=b"r",
        )  # fmt: skip

    def arrive(self, document: dict, target: bytes = b"/v1/chat/completions", *lines: tuple[bytes, bytes]) -> Arrived:
        call = Arrived(self.pause, json.dumps(document).encode())
        call.target = target
        call.fields += lines
        return call

    def ask(self, *arguments):
        return serve(self.inside.pipeline, self.arrive(*arguments))

    async def close(self) -> None:
        """Wait for what goes on without a caller."""
        await self.inside.flights.close(5)
        await self.inside.fill.close(5)

    def assert_nothing_held(self, where: str) -> None:
        assert all(made.closed for made in self.backend.replies), f"a reply left open {where}"
        assert self.inside.budget.held == 0, f"bytes held {where}"
        assert self.inside.refresher.running == 0, f"a refresh left in the table {where}"


async def embeddings(parts: Parts) -> SimpleNamespace:
    parts.next = [reply(parts.pause, vectors("a")), reply(parts.pause, vectors("b", "c"))]
    await parts.ask({"model": "e", "input": "a"}, b"/v1/embeddings")
    return SimpleNamespace(ask=({"model": "e", "input": ["b", "a", "c"]}, b"/v1/embeddings"), entries={1, 2, 3})


async def rescue(parts: Parts) -> SimpleNamespace:
    parts.next = [reply(parts.pause, completion()), reply(parts.pause, {"error": {}}, 503)]
    body = {"model": "m", "messages": []}
    await parts.ask(body, b"/v1/chat/completions", (b"X-Cache-TTL", b"60"))
    parts.clock.time += 61
    return SimpleNamespace(ask=(body,), entries={1})


async def rescue_from_a_stream(parts: Parts) -> SimpleNamespace:
    """The backend's failure has a body that is not yet read, and the caller has to be proven again."""
    scene = await rescue(parts)
    parts.next[0].fields = ((b"Content-Type", b"text/event-stream"),)
    return scene


async def refresh(parts: Parts) -> SimpleNamespace:
    parts.next = [reply(parts.pause, completion()), reply(parts.pause, completion("New."))]
    body = {"model": "m", "messages": []}
    await parts.ask(body, b"/v1/chat/completions", (b"X-Cache-TTL", b"60"))
    parts.clock.time += 61
    return SimpleNamespace(ask=(body,), entries={1})


async def broken_refresh(parts: Parts) -> SimpleNamespace:
    scene = await refresh(parts)
    parts.next = [reply(parts.pause, completion("New."), cut=True)]
    return scene


SCENES = {
    "a batch of which one is known": (embeddings, {}),
    "a stale answer for a failed backend": (rescue, {"exact__stale_if_error": 600}),
    "the same for a stream": (rescue_from_a_stream, {"exact__stale_if_error": 600, "access__grant_ttl": 1}),
    "a refresh": (refresh, {"exact__stale_while_revalidate": 600}),
    "a refresh that breaks off": (broken_refresh, {"exact__stale_while_revalidate": 600}),
}


@pytest.mark.parametrize("patience", [5.0, 0.0], ids=["the caller leaves", "the process ends"])
@pytest.mark.parametrize("scene", SCENES)
async def test_cancelled_at_every_await(scene, patience):
    prepare, values = SCENES[scene]

    async def attempt(stop_at: int) -> int:
        parts = Parts(**values)
        set_up = await prepare(parts)
        start = parts.pause.count
        task = asyncio.create_task(parts.ask(*set_up.ask))
        turns = 0
        while parts.pause.count - start < stop_at and turns < 1000:
            turns += 1
            await asyncio.sleep(0)
        reached = parts.pause.count - start
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await parts.inside.flights.close(patience)
        await parts.inside.fill.close(patience)
        parts.assert_nothing_held(f"at await {stop_at}")
        assert parts.store.census().entries in set_up.entries
        return reached

    whole = await attempt(10_000)
    assert whole >= 3
    for stop_at in range(1, whole + 1):
        await attempt(stop_at)


async def test_a_refresh_that_breaks_off_leaves_the_old_answer():
    """Nobody's answer is lost by trying to renew it."""
    parts = Parts(exact__stale_while_revalidate=600)
    scene = await broken_refresh(parts)
    assert b"Hello." in await parts.ask(*scene.ask)
    await parts.close()
    parts.assert_nothing_held("after it")
    parts.next = [reply(parts.pause, completion("New."))]
    assert b"Hello." in await parts.ask(*scene.ask)
    await parts.close()
    assert b"New." in await parts.ask(*scene.ask)


async def test_a_failed_answer_that_is_replaced_is_let_go_at_once():
    """Not when the interpreter gets to it: the backend would go on until then."""
    parts = Parts(exact__stale_if_error=600)
    scene = await rescue_from_a_stream(parts)
    served = await parts.inside.pipeline.answer(parts.arrive(*scene.ask))
    await until(lambda: not parts.inside.flights.running)
    assert (served.status, [made.closed for made in parts.backend.replies]) == (200, [1, 1])
    await served.close()
