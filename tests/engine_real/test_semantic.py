"""Answers by meaning with everything real: an engine that answers and embeds, a Redis that searches, two proxies."""

import pytest

from tests import rig
from tests.engine_real.asking import KEY
from tests.redis_fixtures import redis, redis_server  # noqa: F401

pytestmark = pytest.mark.redis

ASKED = "What is the capital of France? Answer in one word."
LIKE = "What is France's capital? Answer in one word."
TRAP = "What is the capital of Spain? Answer in one word."


def ask(client, text, **more):
    body = {"model": "smollm2-135m", "max_tokens": 20, "temperature": 0, **more}
    return client.send({**body, "messages": [{"role": "user", "content": text}]}, key=KEY)


async def test_what_one_learnt_the_other_finds_and_a_trap_is_no_hit(start, session, guarded, redis):  # noqa: F811
    """The vectors of a small chat model are poor, so the threshold is low: the guards have to tell the trap apart."""
    async with session.post(
        f"{guarded.url}/v1/embeddings", json={"input": "a"}, headers={"Authorization": f"Bearer {KEY}"}
    ) as answer:
        dimensions = len((await answer.json())["data"][0]["embedding"])
    proxies = [
        await start(
            upstream=guarded.url, redis__url=redis.url, redis__timeout="2s", semantic__mode="on",
            semantic__url=guarded.url, semantic__api_key=KEY, semantic__dimensions=dimensions,
            semantic__threshold=0.8, semantic__embed_timeout="30s", semantic__search_timeout="2s",
        )
        for _ in range(2)
    ]  # fmt: skip
    one, other = [rig.Client(proxy.base, session) for proxy in proxies]
    miss = await ask(one, ASKED)
    assert (miss.cache, miss.get("x-cache-reason")) == ("MISS", "nothing_near")
    await rig.until(lambda: not proxies[0].house.engine.fill._tasks, 30, "the end of background work")
    for stream in (False, True):
        hit = await ask(other, LIKE, stream=stream)
        assert (hit.cache, hit.get("x-cache-tier"), hit.text) == ("HIT", "semantic", miss.text)
        assert 0.8 <= float(hit.get("x-cache-similarity")) < 1
    trap = await ask(other, TRAP)
    assert (trap.cache, trap.get("x-cache-reason")) == ("MISS", "unlike")
