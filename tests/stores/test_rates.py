"""What keys have used, counted in this process and in Redis: the same law for both."""

import asyncio
import itertools
import random

import pytest

from cacheproxy.core import rates
from cacheproxy.core.rates import Limits, Window
from cacheproxy.errors import Trouble
from cacheproxy.stores.rates import LocalCounters
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_keys import Keys
from cacheproxy.stores.redis_rates import RedisCounters
from tests.engine.fakes import Hands
from tests.parts import redis as part
from tests.parts import redis_fleet as fleet

A, B = b"a" * 16, b"b" * 16


class Local:
    """The count of a process, asked as the shared one is."""

    def __init__(self) -> None:
        self.hands = Hands()
        self.counters = LocalCounters(self.hands)

    async def admit(self, name, limits):
        return self.counters.admit(name, limits)

    async def book(self, uses, returns):
        for name, requests, tokens in uses:
            self.counters.add(name, requests, tokens)
        for name, second, requests in returns:
            self.counters.take_back(name, second, requests)

    def age(self, seconds: float) -> None:
        self.hands.move(seconds)


class Shared(RedisCounters):
    """The count in a Redis, whose keys can be made older than they are."""

    def __init__(self, server, link) -> None:
        super().__init__(Calls(link), Keys("cacheproxy", 4))
        self.server = server

    def lines(self) -> dict[bytes, dict[bytes, bytes]]:
        with self.server.line() as line:
            found = {}
            for key in line.call("KEYS", "cacheproxy:*:rate:*"):
                flat = line.call("HGETALL", key)
                found[key] = dict(zip(flat[::2], flat[1::2], strict=True)) if isinstance(flat, list) else flat
            return found

    def age(self, seconds: float) -> None:
        with self.server.line() as line:
            for key, fields in self.lines().items():
                line.call("DEL", key)
                for value in fields.values():
                    second, at, requests, tokens = map(int, value.split())
                    second, at = second - int(seconds), at - int(seconds * 1000)
                    line.call("HSET", key, second, b"%d %d %d %d" % (second, at, requests, tokens))
                line.call("PEXPIRE", key, 60_000)


@pytest.fixture(params=["local", pytest.param("redis", marks=pytest.mark.redis)])
def kept(request, link_to):
    if request.param == "local":
        return Local()
    server = request.getfixturevalue("redis_acl")
    return Shared(server, link_to(server.url))


@pytest.fixture
def shared(redis, link_to):
    return Shared(redis, link_to(redis.url))


def used(usage) -> list[int]:
    return [level.used for level in usage.levels]


async def test_requests_are_let_through_up_to_the_limit_and_again_when_the_first_is_a_minute_old(kept):
    limits = Limits(requests=2)
    assert used(await kept.admit(A, limits)) == [1]
    kept.age(20)
    assert used(await kept.admit(A, limits)) == [2]
    refused = await kept.admit(A, limits)
    assert (refused.admitted, used(refused)) == (False, [2])
    assert 38 <= refused.levels[0].wait <= 40
    assert 58 <= refused.levels[0].clears <= 60
    kept.age(35)
    assert not (await kept.admit(A, limits)).admitted
    kept.age(6)
    again = await kept.admit(A, limits)
    assert (again.admitted, used(again)) == (True, [2])


async def test_tokens_are_counted_whatever_the_limits_are(kept):
    limits = Limits(tokens=100)
    assert used(await kept.admit(A, limits)) == [0]
    await kept.book([(A, 0, 99)], [])
    assert (await kept.admit(A, limits)).admitted
    kept.age(10)
    await kept.book([(A, 0, 10**12), (A, 0, 1)], [])
    refused = await kept.admit(A, limits)
    assert (refused.admitted, used(refused)) == (False, [10**12 + 100])
    assert 58 <= refused.levels[0].wait <= 60
    kept.age(55)
    assert used(await kept.admit(A, limits)) == [10**12 + 1]
    kept.age(6)
    assert used(await kept.admit(A, limits)) == [0]


async def test_both_kinds_are_told_and_both_must_have_room(kept):
    limits = Limits(requests=2, tokens=10)
    await kept.admit(A, limits)
    await kept.book([(A, 0, 10)], [])
    kinds = {level.kind: level for level in (await kept.admit(A, limits)).levels}
    assert {kind: (level.limit, level.used) for kind, level in kinds.items()} == {
        "requests": (2, 1),
        "tokens": (10, 10),
    }
    assert kinds["requests"].wait == 0.0
    assert 58 <= kinds["tokens"].wait <= 60


async def test_requests_taken_back_make_room_and_no_more_than_they_took(kept):
    limits = Limits(requests=2, tokens=100)
    first = await kept.admit(A, limits)
    await kept.admit(A, limits)
    await kept.book([(A, 0, 9)], [(A, first.second, 1), (B, first.second, 1), (A, first.second - 30, 1)])
    assert used(await kept.admit(A, limits)) == [2, 9]
    assert not (await kept.admit(A, limits)).admitted
    await kept.book([], [(A, first.second, 50)])
    assert used(await kept.admit(A, limits)) in ([1, 9], [2, 9])  # the clock may have come to another second
    assert used(await kept.admit(B, limits)) == [1, 0]


async def test_names_do_not_know_each_other(kept):
    limits = Limits(requests=1)
    assert (await kept.admit(A, limits)).admitted
    assert (await kept.admit(B, limits)).admitted
    assert not (await kept.admit(A, limits)).admitted


async def test_at_once_no_more_than_the_limit_are_let_through(kept):
    found = await asyncio.gather(*(kept.admit(A, Limits(requests=7)) for _ in range(40)))
    assert sum(usage.admitted for usage in found) == 7


async def test_nothing_to_book_is_no_trouble(kept):
    await kept.book([], [])


def test_a_process_knows_no_more_keys_than_it_may_and_forgets_what_counts_no_more():
    hands = Hands()
    counters = LocalCounters(hands, most=3)
    for name in (b"1", b"2", b"3"):
        assert counters.admit(name, Limits(requests=1)).admitted
    hands.move(1)
    counters.add(b"1", 0, 5)
    counters.admit(b"4", Limits(requests=1))
    assert repr(counters) == "<LocalCounters of 3 keys>"
    assert not counters.admit(b"1", Limits(requests=1)).admitted
    assert counters.admit(b"2", Limits(requests=1)).admitted
    hands.move(60)
    counters.add(b"5", 1, 0)
    assert repr(counters) == "<LocalCounters of 1 keys>"


@pytest.mark.redis
async def test_redis_and_a_process_agree_on_everything(shared):
    """The script against the pure law, over the slots that Redis itself holds."""
    dice = random.Random(7)
    limits = Limits(requests=4, tokens=40)
    for _ in range(120):
        if dice.random() < 0.4:
            await shared.book([(A, 0, dice.randrange(20))], [])
        if dice.random() < 0.4:
            shared.age(dice.choice([0, 1, 3, 20]))
        lines = [sorted(map(bytes.split, fields.values())) for fields in shared.lines().values()]
        usage = await shared.admit(A, limits)
        window = Window()
        for _, at, requests, tokens in (map(int, line) for line in itertools.chain(*lines)):
            window.add(at / 1000, requests, tokens)
        with shared.server.line() as line:
            seconds, micros = map(int, line.call("TIME"))
        slots = window.slots(seconds + micros / 1e6)
        assert usage.admitted == rates.admits(limits, slots)
        requests = sum(slot.requests for slot in slots) + usage.admitted
        assert used(usage) == [requests, sum(slot.tokens for slot in slots)]
        for told, here in zip(usage.levels, rates.levels(limits, slots, seconds + micros / 1e6), strict=True):
            if not usage.admitted:
                assert told.wait == pytest.approx(here.wait, abs=0.1)


@pytest.mark.redis
async def test_one_round_trip_each(link_to, redis, relay):
    kept = RedisCounters(Calls(link_to(relay.url, max_connections=1)), Keys("cacheproxy", 4))
    limits = Limits(requests=100, tokens=100)
    usage = await kept.admit(A, limits)
    await kept.book([(A, 0, 1)], [(A, usage.second, 0)])  # the scripts are known from here on
    trips = relay.round_trips
    await kept.admit(A, limits)
    assert relay.round_trips - trips == 1
    await kept.book([(A, 0, 1), (B, 0, 2)], [(A, usage.second, 1), (B, usage.second, 1)])
    assert relay.round_trips - trips == 2


@pytest.mark.redis
async def test_every_key_expires_in_a_minute_and_says_nothing_of_anybody(shared, redis):
    usage = await shared.admit(A, Limits(requests=5, tokens=5))
    await shared.book([(B, 0, 5)], [(A, usage.second, 1)])
    with redis.line() as line:
        names = line.call("KEYS", "*")
        assert sorted(names) == sorted(
            b"cacheproxy:{%x}:rate:%s" % (int(name.hex()[:4], 16) % 4, name.hex().encode()) for name in (A, B)
        )
        assert all(50_000 < line.call("PTTL", name) <= 60_000 for name in names)


@pytest.mark.redis
async def test_a_refusal_does_not_keep_a_key_alive_and_what_is_over_is_dropped(shared, redis):
    limits = Limits(requests=1)
    await shared.admit(A, limits)
    with redis.line() as line:
        (name,) = line.call("KEYS", "*")
        line.call("PEXPIRE", name, 20_000)
        await shared.admit(A, limits)
        assert line.call("PTTL", name) <= 20_000
        shared.age(61)
        await shared.admit(A, limits)
        assert line.call("HLEN", name) == 1


@pytest.mark.redis
async def test_a_key_has_a_bounded_size_whatever_is_used(shared, redis):
    for _ in range(70):
        await shared.book([(A, 3, 2**40)], [])
        shared.age(1)
    await shared.admit(A, Limits(requests=10**6))
    ((_, fields),) = shared.lines().items()
    assert len(fields) <= rates.WINDOW + 1


@pytest.mark.redis
@pytest.mark.parametrize(
    "reply", [b"$-1\r\n", b"*0\r\n", b"*2\r\n:1\r\n:1\r\n", b"*4\r\n:1\r\n:1\r\n:1\r\n$1\r\nx\r\n"]
)
async def test_a_reply_that_is_no_count_is_trouble(link_to, redis, relay, reply):
    kept = RedisCounters(Calls(link_to(relay.url)), Keys("cacheproxy"))
    await kept.admit(A, Limits(requests=1))
    relay.answer(reply, "EVALSHA")
    with pytest.raises(Trouble):
        await kept.admit(A, Limits(requests=1))


@pytest.mark.redis
async def test_a_key_of_another_kind_is_trouble_and_a_damaged_line_counts_nothing(shared, redis):
    with redis.line() as line:
        await shared.admit(A, Limits(requests=2))
        (name,) = line.call("KEYS", "*")
        line.call("HSET", name, "junk", "junk")
        assert used(await shared.admit(A, Limits(requests=2))) == [2]
        line.call("SET", name, "x")
    with pytest.raises(Trouble):
        await shared.admit(A, Limits(requests=2))
    with pytest.raises(Trouble):
        await shared.book([(A, 1, 1)], [])
    with pytest.raises(Trouble):
        await shared.book([(A, 1, 1), (B, 1, 1)], [])
    assert used(await shared.admit(B, Limits(requests=9))) == [2]


@pytest.mark.redis
async def test_a_server_that_has_forgotten_its_scripts_is_told_them_again(shared, redis):
    await shared.admit(A, Limits(requests=9))
    redis.cli("SCRIPT", "FLUSH")
    assert used(await shared.admit(A, Limits(requests=9))) == [2]
    redis.cli("SCRIPT", "FLUSH")
    await shared.book([(A, 1, 0), (B, 1, 0)], [])
    assert used(await shared.admit(A, Limits(requests=9))) == [4]


@pytest.mark.redis
async def test_in_a_cluster_each_key_lies_with_one_node_and_all_are_told_at_once(link_to, tmp_path):
    if not part.here():
        pytest.skip("the packaged Redis exists for Linux on x86-64 only")
    made = fleet.cluster(tmp_path, 2)
    try:
        link = link_to("redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in made.nodes))
        kept = RedisCounters(Calls(link), Keys("cacheproxy", link.shards))
        names = [bytes([number]) * 16 for number in range(0, 256, 8)]
        for _ in range(2):  # the second time the scripts are known
            await kept.book([(name, 1, 10) for name in names], [])
        found = [await kept.admit(name, Limits(requests=9, tokens=99)) for name in names]
        assert [used(usage) for usage in found] == [[3, 20]] * len(names)
        sizes = [node.cli("DBSIZE") for node in made.nodes]
        assert min(sizes) > 0
        assert sum(sizes) == len(names)
    finally:
        await link.close()
        made.stop()
