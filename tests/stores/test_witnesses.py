"""Sets of witnesses, in this process and in Redis: counted once each, forgotten in time, bounded."""

import asyncio
import time

import pytest

from cacheproxy.errors import Trouble
from cacheproxy.stores import redis_witnesses, witnesses
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_keys import Keys
from cacheproxy.stores.redis_witnesses import RedisWitnesses
from cacheproxy.stores.witnesses import LocalWitnesses
from cacheproxy.wiring.house import SystemClock
from tests.engine.fakes import Hands

NAME, OTHER = b"n" * 16, b"o" * 16
A, B, C = b"a" * 16, b"b" * 16, b"c" * 16


def soon(seconds: float = 100.0) -> float:
    return time.time() + seconds


@pytest.fixture(params=["local", pytest.param("redis", marks=pytest.mark.redis)])
def kept(request, link_to):
    if request.param == "local":
        return LocalWitnesses(SystemClock())
    return RedisWitnesses(Calls(link_to(request.getfixturevalue("redis_acl").url)), Keys("cacheproxy", 4))


async def test_each_counts_once(kept):
    assert await kept.count(NAME) == 0
    assert await kept.add(NAME, [A, B], soon()) == 2
    assert await kept.add(NAME, [B, A], soon()) == 2
    assert await kept.add(NAME, [C], soon()) == 3
    assert (await kept.count(NAME), await kept.count(OTHER)) == (3, 0)


async def test_they_are_forgotten_in_time(kept):
    await kept.add(NAME, [A], soon(0.05))
    await kept.add(OTHER, [A], soon())
    deadline = time.monotonic() + 10
    while await kept.count(NAME):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    assert await kept.count(OTHER) == 1
    assert await kept.add(NAME, [A], soon(-5)) in (0, 1)
    assert await kept.count(NAME) == 0


async def test_a_set_is_bounded(kept):
    many = [number.to_bytes(16, "big") for number in range(200)]
    assert await kept.add(NAME, many, soon()) == witnesses.MOST == redis_witnesses.MOST
    assert await kept.count(NAME) == witnesses.MOST


async def test_at_once_none_is_lost(kept):
    await asyncio.gather(*(kept.add(NAME, [A, number.to_bytes(16, "big")], soon()) for number in range(20)))
    assert await kept.count(NAME) == 21


async def test_sets_in_a_process_are_bounded_the_oldest_goes_first():
    hands = Hands()
    kept = LocalWitnesses(hands, most=2)
    await kept.add(NAME, [A], hands.now() + 5)
    await kept.add(OTHER, [A], hands.now() + 5)
    await kept.add(NAME, [B], hands.now() + 5)
    await kept.add(b"third", [A], hands.now() + 5)
    assert [await kept.count(name) for name in (NAME, OTHER, b"third")] == [2, 0, 1]
    assert repr(kept) == "<LocalWitnesses 2 sets>"


@pytest.mark.redis
async def test_one_round_trip_each_and_what_lies_there_expires(link_to, redis, relay):
    kept = RedisWitnesses(Calls(link_to(relay.url, max_connections=1)), Keys("cacheproxy", 4))
    await kept.add(OTHER, [A], soon())
    trips = relay.round_trips
    await kept.add(NAME, [A], soon())
    await kept.count(NAME)
    assert relay.round_trips - trips == 2
    with redis.line() as line:
        names = line.call("KEYS", "*")
        assert sorted(names) == sorted(
            b"cacheproxy:{%x}:w:%s" % (int(name.hex()[:4], 16) % 4, name.hex().encode()) for name in (NAME, OTHER)
        )
        assert all(0 < line.call("PTTL", name) <= 100_000 for name in names)


@pytest.mark.redis
async def test_a_reply_that_is_no_count_is_trouble(link_to, redis):
    kept = RedisWitnesses(Calls(link_to(redis.url)), Keys("cacheproxy"))
    with redis.line() as line:
        line.call("SET", f"cacheproxy:{{0}}:w:{NAME.hex()}", "x")
    with pytest.raises(Trouble):
        await kept.count(NAME)
    with pytest.raises(Trouble):
        await kept.add(NAME, [A], soon())
