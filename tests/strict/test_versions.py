"""The promise at full speed: while versions are told without a pause, nobody who asks after one was acknowledged gets
an answer from before it; not as a stream, not by meaning, not through another's call, not while Redis is in trouble."""

import asyncio

import pytest

from tests.examples import SECONDS, SEED
from tests.strict.readers import Readers, rise

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120 + 2 * SECONDS)]

EVERY = 0.2
"""Seconds between two versions."""


async def disturb(relay, over) -> None:
    """Redis is slow half of the time. In each half all connections to it break off once; in one of them it cannot be
    reached then, for a moment."""
    loop = asyncio.get_running_loop()

    async def rest(seconds: float) -> None:
        until = loop.time() + seconds
        while loop.time() < until and not over():
            await asyncio.sleep(0.01)

    while not over():
        relay.delay(0.004, 0.003)
        await rest(0.8)
        relay.reset()
        await rest(0.8)
        relay.clear()
        await rest(0.8)
        relay.refuse()
        relay.reset()
        await rest(0.05)
        relay.accept()
        await rest(0.75)
    relay.clear()


async def test_no_answer_is_older_than_the_last_acknowledged_version(group, knowledge, session, relay, tmp_path):
    shared = await group("shared", "--data-dir", "none", "--redis-url", relay.url, count=2)
    alone = await group("alone", "--data-dir", str(tmp_path / "alone"))
    loop = asyncio.get_running_loop()
    readers, end = Readers([shared, alone], each=8, seed=SEED), loop.time() + SECONDS

    def over() -> bool:
        return readers.failed or loop.time() >= end

    await asyncio.gather(rise(knowledge, [shared, alone], session, EVERY, over), disturb(relay, over))
    await readers.stop()
    assert readers.wrong == []
    for one in (shared, alone):
        seen = readers.seen[one.name]
        assert one.told[200] > SECONDS / 4, one.told
        for way in ("MISS", "HIT exact", "HIT semantic"):
            assert min(seen[f"{way} json"], seen[f"{way} stream"]) > 0, (way, seen)
        assert seen["coalesced json"] + seen["coalesced stream"] > 0, seen
    assert alone.told.keys() == {200}
