"""Real clients read streams that come live, shared, from the cache, or late: the texts are those of the backend's own."""

import asyncio

import pytest

from tests import rig
from tests.clients.tap import tapped
from tests.flights.stage import Stage, telling

CLIENTS = [
    "openai_sync.py", "openai_async.py", "langchain.py", "litellm_sdk.py", "pydantic_ai_agent.py", "openai_node.mjs",
]  # fmt: skip
WORDS = [
    "Hello", ", 世界 ", "é", "🙂🙃", " ", "\n", "\n\n", "data: [DONE]\n\n", ": waiting\n\n", "\r\n", "\u2028\u0085",
    '\x00\t"\\/', "id: 1\n", "</script>", "e\u0301", "\ufeff", " end.\n",
]  # fmt: skip
"""Texts that a stream's own syntax, or an unwary reader of lines, could stumble over."""
TEXT = "".join(WORDS)


@pytest.fixture
def stage(backend) -> Stage:
    backend.script = Stage(telling(WORDS))
    return backend.script


async def asked(run, script: str, base: str, *questions: str) -> list[dict]:
    """What the client has seen of the streams it was given in turn."""
    return await run(script, base, [("streamed", question) for question in questions])


@pytest.mark.parametrize("script", CLIENTS)
async def test_a_live_join_and_a_hit_are_the_backends_text(run, backend, proxy, stage, script):
    """A second client joins while the first one's answer is half said; a third comes when all is over."""
    flights = proxy.house.engine.flights
    first = asyncio.create_task(asked(run, script, proxy.base, "one"))
    await rig.until(lambda: backend.calls == 1 or first.done(), 60, "the first call")
    await stage.let(len(stage.events) // 2)
    second = asyncio.create_task(asked(run, script, proxy.base, "one"))
    await rig.until(lambda: flights.waiting == 2 or second.done(), 60, "the second reader")
    await stage.let()
    (began,), (joined,) = await asyncio.gather(first, second)
    assert backend.calls == 1
    (again,) = await asked(run, script, proxy.base, "one")
    (direct,) = await asked(run, script, backend.url, "one")
    assert [(seen["cache"], seen["coalesced"]) for seen in (began, joined, again)] == [
        ("MISS", None), ("MISS", "1"), ("HIT", None),
    ]  # fmt: skip
    assert direct["text"] == TEXT
    assert [seen["text"] for seen in (began, joined, again)] == [TEXT] * 3
    for name in ("finish", "usage"):
        assert {seen[name] for seen in (began, joined, again)} == {direct[name]}


@pytest.mark.parametrize("script", CLIENTS)
async def test_signs_of_life_are_no_part_of_the_text(run, backend, start, stage, script):
    """The backend begins only after two of them have come."""
    proxy = await start(stream__heartbeat="100ms")
    async with tapped(proxy.port) as tap:
        asking = asyncio.create_task(asked(run, script, tap.url, "one"))
        await rig.until(lambda: tap.seen.count(b"\r\n: waiting\n\n\r\n") >= 2 or asking.done(), 60, "two signs of life")
        assert backend.calls == 1
        await stage.let()
        (seen,) = await asking
    assert (seen["text"], seen["finish"], seen["usage"]) == (TEXT, "stop", 7)
