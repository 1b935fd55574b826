"""A caller who leaves a stream frees the engine: it stops generating for nobody.

Streams only: this engine does not look whether the caller of a plain answer is still there, with or without a proxy.
"""

import asyncio
import time

import pytest

from tests import rig
from tests.engine_real.asking import EXACTLY

# Half a minute of work at least.
LONG = {
    **EXACTLY, "messages": [{"role": "user", "content": "Count to a thousand."}], "max_tokens": 1800,
    "ignore_eos": True,
}  # fmt: skip


async def _busy(direct: rig.Client) -> bool:
    slots = (await direct.send(method="GET", path="/slots", key=None)).json
    return any(slot["is_processing"] for slot in slots)


async def _until(direct: rig.Client, busy: bool, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while await _busy(direct) is not busy:
        assert time.monotonic() < deadline, f"the slot is {'free' if busy else 'busy'} after {seconds} s"
        await asyncio.sleep(0.02)


async def _kept_nothing(client: rig.Client, body: dict) -> None:
    answer = await client.send(body, key=None, Cache_Control="only-if-cached")
    assert (answer.status, answer.json["error"]["code"]) == (504, "cache_miss")


@pytest.mark.parametrize("asked", [{}, {"stream_options": {"include_usage": True}}])
async def test_leaving_a_stream_frees_the_slot(client, direct, session, asked):
    """B61."""
    body = {**LONG, "stream": True, **asked}
    async with session.post(client.base + rig.CHAT, json=body) as answer:
        assert answer.headers["X-Cache"] == "MISS"
        for _ in range(6):
            assert await answer.content.readline()
        assert await _busy(direct)
        answer.close()
        await _until(direct, False, 3.0)
    await _kept_nothing(client, body)


async def test_the_next_caller_is_answered_at_once(client, direct, session):
    """B61: the one slot serves the next caller, and its answer is whole and kept."""
    async with session.post(client.base + rig.CHAT, json={**LONG, "stream": True}) as answer:
        await answer.content.readline()
        answer.close()
    short = {**LONG, "max_tokens": 40, "ignore_eos": False, "grammar": 'root ::= "one"'}
    one, two = await client.send(short, key=None), await client.send(short, key=None)
    assert (one.cache, one.text, two.cache, two.text) == ("MISS", "one", "HIT", "one")
