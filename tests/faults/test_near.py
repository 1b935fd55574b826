"""Copies near by, as users meet them: faster, and what they cost is bounded by what the configuration says."""

import asyncio

import pytest

from tests.faults.load import ask, purge, version_of
from tests.rig import until

pytestmark = pytest.mark.redis

AGE = 1.0


@pytest.fixture
async def near(sharing, redis):
    """Two proxies with copies, both listening."""
    proxies, clients = await sharing(redis.url, redis__near__max_age=AGE)
    for proxy in proxies:
        listener = proxy.house.storage.shared._listener
        await until(lambda listener=listener: listener.listening, what="the subscription")
    return proxies, clients


async def test_a_copy_is_served_without_a_word_to_redis(sharing, redis, relay_to):
    relay = relay_to(redis.address)
    [proxy], [client] = await sharing(relay.url, 1, redis__near__max_age="1h")
    await ask(client, "hello")
    await until(lambda: not proxy.house.engine.flights.running, what="the end of the running answer")
    before = relay.commands.copy()
    for _ in range(5):
        assert (await ask(client, "hello")).cache == "HIT"
    assert relay.commands == before


async def test_by_default_there_are_no_copies(sharing, redis, relay_to):
    relay = relay_to(redis.address)
    _, [client] = await sharing(relay.url, 1)
    await ask(client, "hello")
    before = relay.commands["MGET"]
    for _ in range(5):
        assert (await ask(client, "hello")).cache == "HIT"
    assert relay.commands["MGET"] == before + 5


async def test_a_purge_by_the_other_is_heard_of(near, session, telling):
    """B37: long before the copy is too old."""
    proxies, [one, other] = near
    assert [(await ask(client, "old")).cache for client in (one, other, one, other)] == ["MISS", "HIT", "HIT", "HIT"]
    telling.version += 1
    known = proxies[1].house.storage.removals.epoch
    assert (await purge(session, proxies[0]))[0] == 200
    await until(lambda: proxies[1].house.storage.removals.epoch > known, what="the message")
    answer = await ask(other, "old")
    assert (answer.cache, version_of(answer, "old")) == ("MISS", 2)


async def test_a_purge_by_itself_is_strict(near, session, telling):
    proxies, [one, _] = near
    for turn in range(1, 6):
        await ask(one, "old")
        assert (await ask(one, "old")).cache == "HIT"
        telling.version += 1
        assert (await purge(session, proxies[0]))[0] == 200
        answer = await ask(one, "old")
        assert (answer.cache, version_of(answer, "old")) == ("MISS", turn + 1)


async def test_a_message_that_is_lost_costs_no_more_than_the_age(sharing, redis, relay_to, session, telling):
    """B37: the link is down during the purge; the stated bound holds all the same."""
    relay = relay_to(redis.address)
    [a], [one] = await sharing(redis.url, 1, redis__near__max_age=AGE)
    [b], [other] = await sharing(relay.url, 1, redis__near__max_age=AGE)
    await until(lambda: b.house.storage.shared._listener.listening, what="the subscription")
    await ask(one, "old")
    assert (await ask(other, "old")).cache == "HIT"
    read = asyncio.get_running_loop().time()
    telling.version += 1
    relay.refuse()
    relay.reset()
    assert (await purge(session, a))[0] == 200
    answers = []
    while asyncio.get_running_loop().time() < read + AGE:
        answers.append(version_of(await ask(other, "old"), "old"))
    assert answers[0] == 1, "a copy is served while Redis cannot be reached"
    await asyncio.sleep(0.01)
    assert version_of(await ask(other, "old"), "old") == 2


async def test_an_entry_with_little_time_left_leaves_no_longer_lived_copy(sharing, redis, telling):
    """B37: the copy ends with the entry, not after a full age of its own."""
    _, [one, other] = await sharing(redis.url, redis__near__max_age="1h")
    await ask(one, "short", X_Cache_TTL="1")
    stored = asyncio.get_running_loop().time()
    assert (await ask(other, "short")).cache == "HIT"
    telling.version += 1
    await until(lambda: asyncio.get_running_loop().time() > stored + 1, what="the end of its lifetime")
    answer = await ask(other, "short")
    assert (answer.cache, version_of(answer, "short")) == ("MISS", 2)
