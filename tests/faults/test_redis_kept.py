"""What lies in Redis after everything has been used: each key expires, and the user of configs/redis.conf may do all."""

import re
from collections import Counter

import pytest

from tests.faults.conftest import lasting
from tests.faults.load import purge, troubles
from tests.faults.test_semantic_shared import ASKED, LIKE, ask, learnt, placed
from tests.proxy.test_knowledge import Desk
from tests.redis_fixtures import redis_acl, redis_acl_server  # noqa: F401
from tests.rig import Client

pytestmark = pytest.mark.redis

NAME = re.compile(
    rb"cacheproxy:\{0\}:(?:(head|log|open|secret|kb)|([eqw]):[0-9a-f]{32,64}|(f):[0-9a-f]{32}(?::[0-9a-z:]+)?|(v):[0-9a-f]{16}:[0-9a-f]{32})"
)


def refused(server) -> list[bytes]:
    """Commands, keys and channels that the server has refused a user."""
    return [dict(zip(told[::2], told[1::2], strict=True))[b"object"] for told in server.cli("ACL", "LOG")]


async def test_no_request_looks_through_the_keys(start, session, redis):
    """Of whatever layer: MONITOR shows what two proxies ask for."""
    told = {"redis__url": redis.url, "redis__timeout": "2s", "semantic__search_timeout": "2s"}
    proxies = [await start(embedder=placed(), **told) for _ in range(2)]
    one, other = [Client(proxy.base, session) for proxy in proxies]
    with redis.monitor() as monitor:
        await ask(one, ASKED)
        await learnt(proxies[0])
        answers = [
            await ask(client, text, stream=stream)
            for client in (one, other)
            for text in (ASKED, LIKE)
            for stream in (False, True)
        ]
        answers += [await ask(client, ASKED, Cache_Control="no-cache") for client in (one, other)]
        for proxy in proxies:
            await learnt(proxy)
        names = set(monitor.names)
    assert Counter(answer.get("x-cache-tier") for answer in answers) == {"exact": 4, "semantic": 4, None: 2}
    assert {"MGET", "EVALSHA", "FT.SEARCH"} <= names
    assert not names & {"KEYS", "SCAN", "FLUSHALL", "FLUSHDB", "RANDOMKEY", "DBSIZE"}


async def test_every_key_expires_and_no_right_is_missing(start, session, redis_acl):  # noqa: F811
    """Two proxies: stored, streamed, found by meaning, confirmed by witnesses, judged, purged both ways, told of versions
    of a knowledge base, swept."""
    redis_acl.cli("ACL", "LOG", "RESET")
    told = {
        "redis__url": redis_acl.url, "redis__timeout": "2s", "redis__near__max_age": "1s",
        "semantic__search_timeout": "2s", "semantic__sample": 0, "access__scope": "shared",
    }  # fmt: skip
    proxies = [await start(embedder=placed(), **told) for _ in range(2)]
    one, other = [Client(proxy.base, session) for proxy in proxies]
    for number in range(20):
        await ask(one, f"question {number}", stream=number % 2 > 0, X_Cache_Tags="faq")
    await ask(one, ASKED, key="A", X_Cache_KB="handbook")
    await learnt(proxies[0])
    assert (await ask(other, ASKED, key="B", X_Cache_KB="handbook")).cache == "HIT"
    assert (await ask(other, LIKE, key="B", X_Cache_KB="handbook")).get("x-cache-reason") == "not_confirmed"
    await learnt(proxies[1])
    hit = await ask(one, LIKE, key="C", X_Cache_KB="handbook", X_Cache_TTL="60")
    assert hit.cache == "HIT"
    request = {"model": "m", "messages": [{"role": "user", "content": LIKE}]}
    judged = {"entry_id": hit.get("x-cache-entry-id"), "verdict": "wrong", "request": request}
    async with session.post(proxies[0].admin + "/admin/feedback", json=judged) as answer:
        assert answer.status == 200, await answer.text()
    await Desk(session, proxies[0].admin).put("handbook", "2")
    await ask(other, ASKED, key="B", X_Cache_KB="handbook")
    assert (await purge(session, proxies[1], {"selector": {"tags": ["faq"]}, "mode": "soft"}))[0] == 200
    assert (await purge(session, proxies[0], namespace="none"))[0] == 200
    for proxy in proxies:
        await learnt(proxy)
        await proxy.house.sweep()
        assert proxy.house.store.census().entries > 20
        assert await troubles(session, proxy) == {}
    assert refused(redis_acl) == []
    assert lasting(redis_acl) == []
    keys = redis_acl.cli("KEYS", "*")
    kinds = Counter(found[found.lastindex] if (found := NAME.fullmatch(key)) else key for key in keys)
    assert set(kinds) - {b"open", b"f"} == {b"head", b"log", b"secret", b"kb", b"e", b"q", b"w", b"v"}
