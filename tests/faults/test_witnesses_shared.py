"""Who was told the same, through one Redis: what a credential confirmed at one proxy counts at all of them."""

import pytest

from tests.fakes.backend import completion, gives
from tests.faults.load import purge
from tests.faults.test_semantic_shared import ASKED, LIKE, SECOND, ask, learnt, placed, sharing_meaning

__all__ = ["sharing_meaning"]

pytestmark = pytest.mark.redis
SHARED = {"access__scope": "shared", "semantic__sample": 0}


def embedder():
    made = placed()
    made.near(SECOND, 0.96)
    return made


async def test_what_was_confirmed_at_one_proxy_counts_at_the_others(sharing_meaning, backend):
    proxies, [one, other] = await sharing_meaning(embedder(), embedder(), **SHARED)
    first = await ask(one, ASKED, key="A")
    await learnt(proxies[0])
    second = await ask(other, LIKE, key="B", X_Cache_Semantic="0.965")
    assert (second.cache, second.get("x-cache-reason")) == ("MISS", "not_confirmed")
    await learnt(proxies[1])
    third = await ask(one, SECOND, key="C")
    assert (third.cache, third.get("x-cache-tier"), third.text) == ("HIT", "semantic", first.text)


async def test_what_was_purged_begins_with_nobody_everywhere(sharing_meaning, session, backend):
    """B83: also if the very same answer is planted again."""
    proxies, [one, other] = await sharing_meaning(embedder(), embedder(), **SHARED)
    await ask(one, ASKED, key="A")
    await learnt(proxies[0])
    await ask(other, LIKE, key="B")
    await learnt(proxies[1])
    assert (await ask(one, SECOND, key="C")).get("x-cache-tier") == "semantic"
    assert (await purge(session, proxies[1]))[0] == 200
    await ask(one, ASKED, key="A")
    await learnt(proxies[0])
    for client in (one, other):
        again = await ask(client, SECOND, key="C", X_Cache_TTL="0")
        assert (again.status, again.cache) == (200, "MISS")


async def test_a_redis_that_is_gone_confirms_nothing(sharing_meaning, own_redis, backend):
    server = own_redis(search=True)
    proxies, [one] = await sharing_meaning(embedder(), url=server.url, **SHARED)
    await ask(one, ASKED, key="A")
    await learnt(proxies[0])
    backend.script = gives(completion("Something else."))
    server.stop()
    assert (await ask(one, LIKE, key="B")).text == "Something else."
