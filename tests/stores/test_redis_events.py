"""The stream of events in Redis: one of many readers gets each, none is lost, and nothing is taken out of it."""

import pytest

from cacheproxy.errors import Trouble
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_events import STREAM, TAKE_OVER, RedisEvents
from tests.fakes.relay import DOWN

pytestmark = pytest.mark.redis


@pytest.fixture
def reader(redis, link_to):
    """Makes readers: ``one = reader("a")``."""

    def make(name: str = "a", link=None, group: str = "cacheproxy", **options) -> RedisEvents:
        return RedisEvents(Calls(link or link_to(redis.url)), group, name, **options)

    return make


def tell(redis, *texts: str) -> list[bytes]:
    return [bytes(redis.cli("XADD", STREAM, "*", "event", text)) for text in texts]


def texts(taken) -> list[bytes]:
    return [one.fields.get(b"event") for one in taken]


async def test_without_a_stream_nothing_is_told_and_none_is_made(redis, reader):
    one = reader()
    assert (await one.take(), await one.oldest()) == ((), None)
    assert redis.cli("KEYS", "*") == []


async def test_what_was_told_before_the_first_reader_came_is_told(redis, reader):
    ids = tell(redis, "1", "2")
    one = reader()
    taken = await one.take()
    assert [notice.identity for notice in taken] == ids
    assert texts(taken) == [b"1", b"2"]
    assert await one.take() == []


async def test_each_event_is_one_readers(redis, reader):
    tell(redis, "1")
    one, other = reader("a"), reader("b")
    assert texts(await one.take()) == [b"1"]
    assert await other.take() == []
    tell(redis, "2")
    assert texts(await other.take()) == [b"2"]
    assert await one.take() == []


async def test_those_who_share_other_answers_get_each_too(redis, reader):
    tell(redis, "1")
    assert texts(await reader().take()) == [b"1"]
    assert texts(await reader(group="staging").take()) == [b"1"]


async def test_the_oldest_that_is_not_done_is_told_to_all(redis, reader):
    first, second = tell(redis, "1", "2")
    one, other = reader("a"), reader("b")
    await one.take()
    await other.take()
    assert await other.oldest() == first
    await one.done(first)
    assert await other.oldest() == second
    await one.done(second)
    assert await other.oldest() is None
    assert redis.cli("XLEN", STREAM) == 2


async def test_what_a_dead_reader_held_is_taken_over(redis, reader):
    tell(redis, "1", "2")
    dead, one = reader("dead"), reader("b", abandoned=0.0)
    await dead.take()
    assert texts(await one.take()) == [b"1", b"2"]


async def test_it_is_taken_over_also_while_one_has_not_done_its_own(redis, reader):
    """Else nobody would ever do the older one, and all wait for it."""
    tell(redis, "1")
    dead, one = reader("dead"), reader("b", abandoned=0.0)
    await dead.take()
    tell(redis, "2")
    assert texts(await dead.take()) == [b"2"]
    tell(redis, "3")
    assert b"1" in texts(await one.take())
    one._is_unsure, one._looked_at = True, 0.0
    tell(redis, "4")
    await dead.take()
    assert b"4" in texts(await one.take())


async def test_what_a_living_reader_holds_is_not_taken_over(redis, reader):
    tell(redis, "1")
    await reader("a").take()
    assert await reader("b").take() == []


async def test_what_is_held_is_not_taken_over(redis, reader):
    (first,) = tell(redis, "1")
    one, heir = reader("a"), reader("b", abandoned=60.0)
    await one.take()
    redis.cli("XCLAIM", STREAM, "cacheproxy", "a", 0, first, "IDLE", 100_000, "JUSTID")
    await one.hold(first)
    assert await heir.take() == []
    assert redis.cli("XPENDING", STREAM, "cacheproxy", "-", "+", 1)[0][1] == b"a"


async def test_what_was_given_and_did_not_arrive_is_given_again(redis, reader, relay_to, link_to):
    """The reply is lost on its way."""
    tell(redis, "1")
    relay = relay_to(redis.address)
    one = reader(link=link_to(relay.url, timeout=0.5))
    assert texts(await one.take()) == [b"1"]
    tell(redis, "2")
    relay.freeze(ways=(DOWN,))
    with pytest.raises(Trouble):
        await one.take()
    relay.clear()
    assert redis.cli("XPENDING", STREAM, "cacheproxy")[0] == 2
    assert texts(await one.take()) == [b"1", b"2"]


async def test_a_stream_that_was_lost_is_found_again(redis, reader):
    tell(redis, "1")
    one = reader()
    await one.take()
    redis.cli("FLUSHALL")
    tell(redis, "2")
    with pytest.raises(Trouble):
        await one.take()
    assert texts(await one.take()) == [b"2"]


async def test_an_event_that_was_cut_off_the_stream_has_no_text(redis, reader):
    tell(redis, "1")
    dead = reader("a")
    await dead.take()
    redis.cli("XTRIM", STREAM, "MAXLEN", "0")
    dead._is_unsure = True
    assert texts(await dead.take()) == [None]


async def test_what_redis_6_does_not_name_is_read_as_ones_own(redis, reader, monkeypatch):
    """It gives nothing in place of an event that was cut off."""
    tell(redis, "1")
    one = reader()
    await one.take()
    inner = one._calls.script

    async def script(script, *told):
        return [None] if script is TAKE_OVER else await inner(script, *told)

    monkeypatch.setattr(one._calls, "script", script)
    one._looked_at = -100.0
    assert await one.take() == []
    assert texts(await one.take()) == [b"1"]


async def test_another_thing_of_that_name_is_trouble(redis, reader):
    redis.cli("SET", STREAM, "x")
    with pytest.raises(Trouble):
        await reader().take()
