"""The quarantine in Redis: names that live as long as they are used, nothing in them of a question, one round trip."""

import pytest

from cacheproxy.errors import Trouble
from cacheproxy.stores.quarantine_redis import YEAR, RedisQuarantine
from tests.stores.entries import key_of
from tests.stores.replicas import joining

pytestmark = pytest.mark.redis


@pytest.fixture
async def quarantine(redis):
    async with joining() as join:
        one = join(redis.url)
        yield RedisQuarantine(one.calls, one.keys)


def names(redis) -> list[str]:
    return redis.cli("KEYS", "*:q:*")


async def test_each_name_lives_a_year_after_its_last_use(quarantine, redis):
    await quarantine.put({key_of(1): b""})
    (name,) = names(redis)
    assert name.decode() == f"cacheproxy:{{0}}:q:{key_of(1).hex()}"
    assert YEAR - 60_000 < int(redis.cli("PTTL", name)) <= YEAR
    redis.cli("PEXPIRE", name, "60000")
    await quarantine.among([key_of(2)])
    assert int(redis.cli("PTTL", name)) <= 60_000
    await quarantine.among([key_of(2), key_of(1)])
    assert YEAR - 60_000 < int(redis.cli("PTTL", name)) <= YEAR


async def test_a_look_makes_no_name(quarantine, redis):
    assert await quarantine.among([key_of(1)]) == {}
    assert names(redis) == []


async def test_something_else_under_a_name_is_not_taken_for_one(quarantine, redis):
    """It hides nothing of what is barred beside it."""
    await quarantine.put({key_of(2): b""})
    redis.cli("RPUSH", f"cacheproxy:{{0}}:q:{key_of(1).hex()}", "x")
    assert await quarantine.among([key_of(1), key_of(2)]) == {key_of(2): b""}


async def test_a_server_that_is_gone_is_trouble(redis_start):
    server = redis_start()
    async with joining() as join:
        one = join(server.url, timeout=1.0)
        quarantine = RedisQuarantine(one.calls, one.keys)
        await quarantine.put({key_of(1): b""})
        server.stop()
        for work in quarantine.among([key_of(1)]), quarantine.put({key_of(2): b""}), quarantine.lift([key_of(1)]):
            with pytest.raises(Trouble):
                await work
