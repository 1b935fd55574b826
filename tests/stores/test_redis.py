"""Entries in a real Redis: how they lie there, what is asked of it, and what it may say without harm."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

import pytest

from cacheproxy.core import codec
from cacheproxy.core.model import Census
from cacheproxy.core.removal import Removal, Selector
from cacheproxy.errors import Trouble
from cacheproxy.ports import Kept
from cacheproxy.stores import redis as redis_store
from cacheproxy.stores import redis_epochs
from tests.fakes import resp
from tests.rig import until
from tests.stores.entries import felled, key_of
from tests.stores.replicas import EVERYTHING, Join, Replica, entry, hard, joining, tagged

pytestmark = pytest.mark.redis

FORBIDDEN = {"KEYS", "FLUSHALL", "FLUSHDB", "SCAN", "DEBUG", "CONFIG"}


@pytest.fixture
async def join() -> AsyncIterator[Join]:
    async with joining() as join:
        yield join


@pytest.fixture
def server(redis):
    """The shared server; nothing lasts in it."""
    yield redis
    with redis.line() as line:
        assert [name for name in line.call("KEYS", "*") if line.call("PTTL", name) == -1] == []


async def filled(one: Replica, count: int = 10, **options) -> None:
    await one.epochs.current()
    for number in range(count):
        assert await one.keep(entry(number, **options)) is None


def place(one: Replica, number: int) -> str:
    return one.keys.entry(key_of(number))


# --- What is asked of it ---------------------------------------------------------------------------------------------


async def test_a_lookup_is_one_round_trip_and_one_command(join, server, relay):
    """Entry and head together. And so is writing."""
    one = join(relay.url, connections=2)
    await filled(one)
    await one.get(0)  # the first on a new connection asks who answers
    trips, before = relay.round_trips, relay.commands.copy()
    for number in range(20):
        await one.get(number)
    assert (relay.round_trips - trips, relay.commands - before) == (20, {"MGET": 20})
    trips, before = relay.round_trips, relay.commands.copy()
    for number in range(20):
        assert await one.keep(entry(number, version=1)) is None
    assert (relay.round_trips - trips, relay.commands - before) == (20, {"EVALSHA": 20})


async def test_many_lookups_share_round_trips_on_few_connections(join, server, relay):
    one = join(relay.url, connections=2)
    await filled(one)
    await asyncio.gather(*map(one.get, range(200)))
    trips = relay.round_trips
    found = await asyncio.gather(*(one.get(number % 10) for number in range(300)))
    assert [got.key for got in found] == [key_of(number % 10) for number in range(300)]
    assert relay.round_trips - trips <= 1 + 300 / redis_store.MOST + 1
    assert relay.open <= 2


async def test_nothing_looks_at_everything_but_removal_and_sweep(join, server):
    a, b = join(server.url), join(server.url)
    with server.monitor() as monitor:
        await filled(a)
        await asyncio.gather(*(b.get(number) for number in range(20)))
        await b.keep(replace(entry(3), tags=("red",)))
        mark = b.shelf.mark()
        await asyncio.sleep(b.epochs.lease)
        assert await b.shelf.holds(mark, entry(3))
        assert set(monitor.names) & FORBIDDEN == set()
    with server.monitor() as monitor:
        await a.remove(tagged("red"))
        await a.store.sweep(0.0)
        assert set(monitor.names) & FORBIDDEN == {"SCAN"}


async def test_what_is_asked_by_id_is_not_searched_for(join, server):
    one = join(server.url)
    await filled(one)
    ids = frozenset({one.keys.entry(key_of(3))[-32:], "no id", "0" * 32, "*", "A" * 32})
    with server.monitor() as monitor:
        assert await one.store.remove(felled(Selector(entry_ids=ids), Removal.HARD, 0.0)) == {key_of(3)}
        assert set(monitor.names) & FORBIDDEN == set()
    assert await one.get(3) is None
    assert await one.get(4) is not None


# --- How it lies there -----------------------------------------------------------------------------------------------


async def test_names_are_short_and_under_the_prefix_and_values_expire_when_they_say(join, server):
    one = join(server.url, prefix="a.team:b")
    made = entry(1, lives=1234.5)
    await filled(one, 1)
    assert await one.keep(made) is None
    names = [name.decode() for name in server.cli("KEYS", "*")]
    assert all(name.startswith("a.team:b:{0}:") and len(name) < 100 for name in names)
    assert server.cli("PEXPIRETIME", place(one, 1)) == int(made.expires_at * 1000)
    assert await one.get(1) == made, "reading does not prolong it"
    assert server.cli("PEXPIRETIME", place(one, 1)) == int(made.expires_at * 1000)


async def test_what_has_expired_is_not_kept_and_leaves_no_older_one(join, server):
    one = join(server.url)
    await filled(one, 2)
    assert await one.keep(entry(1, version=1, lives=-5)) is None
    assert await one.get(1) is None
    assert server.cli("EXISTS", place(one, 1)) == 0


async def test_prefixes_keep_apart_what_shares_a_server(join, server):
    a, b = join(server.url, prefix="one"), join(server.url, prefix="other")
    await filled(a)
    await filled(b)
    assert (await a.remove(EVERYTHING)).purged == 10
    assert await a.get(1) is None
    assert await b.get(1) is not None
    await b.store.sweep(0.0)
    assert b.store.census().entries == 10


@pytest.mark.parametrize("length", [redis_store.ASIDE - 2000, redis_store.ASIDE + 500, 3_000_000])
async def test_large_ones_are_packed_and_unpacked_beside_the_loop(join, server, length, monkeypatch):
    one = join(server.url)
    await one.epochs.current()
    made = entry(1)
    made = replace(made, answer=replace(made.answer, body=random.Random(1).randbytes(length)))
    threads: list[object] = []
    aside = asyncio.to_thread
    monkeypatch.setattr(asyncio, "to_thread", lambda work: threads.append(work) or aside(work))
    assert await one.keep(made) is None
    assert await one.get(1) == made
    assert len(threads) == (2 if length > redis_store.ASIDE else 0)


async def test_the_census_is_of_the_last_sweep_that_counted(join, server, monkeypatch):
    one = join(server.url)
    await filled(one, 7)
    assert one.store.census() == Census(0, 0)
    assert await one.store.sweep(0.0) == 0
    assert one.store.census() == Census(7, sum(server.cli("STRLEN", place(one, number)) for number in range(7)))
    server.cli("DEL", place(one, 0))
    monkeypatch.setattr(one.store, "_count_after", time.monotonic() + 3600)
    await one.store.sweep(0.0)
    assert one.store.census().entries == 7, "counting everything is not done at every sweep"
    monkeypatch.setattr(one.store, "_count_after", 0.0)
    await one.store.sweep(0.0)
    assert one.store.census().entries == 6
    assert repr(one.store).startswith("<RedisStore 6 entries <Link redis://")


async def test_a_sweep_prolongs_what_all_need(join, server):
    one = join(server.url)
    await filled(one, 1)
    number = await one.epochs.begin(hard(tagged("red")), 0.0)
    await one.epochs.finish(number)
    needed = one.keys.head(0), one.keys.log, one.keys.secret
    for name in needed:
        server.cli("PEXPIRE", name, 5000)
    await one.store.sweep(0.0)
    assert min(server.cli("PTTL", name) for name in needed) > redis_epochs.LASTING_MS - 60_000


@pytest.mark.parametrize("policy", ["volatile-ttl", "allkeys-lfu"])
async def test_a_full_server_lets_answers_go_and_none_is_wrong(join, redis_start, policy):
    """The bound is the server's own. What all need outlives the answers."""
    server = redis_start(search=False, config=["maxmemory 8mb", f"maxmemory-policy {policy}"])
    one = join(server.url)
    await one.epochs.current()
    dice, last = random.Random(2), 0
    for number in range(600):
        made = entry(number)
        made = replace(made, answer=replace(made.answer, body=dice.randbytes(30_000)))
        assert await one.keep(made) is None
        found = await one.get(number)
        assert found in (made, None)
        last += found is not None
    there = [number for number in range(600) if await one.get(number) is not None]
    assert last > 500, "most are there when they were just put"
    assert 5 < len(there) < 400
    assert int(server.info("stats")["evicted_keys"]) > 200


# --- Values that are not what they should be -------------------------------------------------------------------------


async def test_damaged_anywhere_it_is_a_miss(join, server):
    """And costs no connection."""
    one = join(server.url, connections=2)
    await filled(one, 2)
    whole = server.cli("GET", place(one, 1))
    made = one.link.made
    with server.line() as line:
        for at in [*range(len(whole))[:: len(whole) // 150], *range(8, 120)]:
            damaged = bytearray(whole)
            damaged[at] ^= 1 << at % 8
            line.call("SET", place(one, 1), bytes(damaged), "PX", 60_000)
            assert await one.get(1) is None, at
        for cut in 0, 1, 7, 8, 9, 15, 16, 30, len(whole) - 1:
            line.call("SET", place(one, 1), whole[:cut], "PX", 60_000)
            assert await one.get(1) is None, cut
        line.call("SET", place(one, 1), whole, "PX", 60_000)
    assert (await one.get(1)).key == key_of(1)
    assert one.link.made == made


async def test_the_value_of_another_key_is_never_given_and_no_connection_is_trusted_after_it(join, server):
    one = join(server.url)
    await filled(one, 3)
    first, second = server.cli("GET", place(one, 0)), server.cli("GET", place(one, 1))
    server.cli("SET", place(one, 0), second, "PX", 60_000)
    server.cli("SET", place(one, 1), first, "PX", 60_000)
    for number in 0, 1:
        made = one.link.made
        with pytest.raises(Trouble) as caught:
            await one.get(number)
        assert caught.value.kind == "protocol"
        assert await one.get(2) is not None
        assert one.link.made > made
        assert await one.get(number) is None, "once is enough: it does not stay in the way"
        assert await one.keep(entry(number, version=1)) is None
        assert (await one.get(number)).key == key_of(number)


async def test_an_answer_to_another_lookup_is_not_taken(join, server, relay):
    """As after a reply too many: head and all are right, the entry is somebody else's."""
    one = join(relay.url)
    await filled(one, 3)
    with server.line() as line:
        values = line.call("MGET", one.keys.head(0), place(one, 2))
    reply = b"*2\r\n" + b"".join(b"$%d\r\n%b\r\n" % (len(value), value) for value in values)
    relay.answer(reply, "MGET", times=1)
    opened = relay.opened
    with pytest.raises(Trouble):
        await one.get(1)
    assert (await one.get(0)).key == key_of(0)
    assert relay.opened > opened


REPLIES = [
    b"*-1\r\n", b"*0\r\n", b"+OK\r\n", b":1\r\n", b":7\r\n", b"$-1\r\n", b"$3\r\nabc\r\n", b"*1\r\n$-1\r\n", b"_\r\n",
    b"*2\r\n:1\r\n:2\r\n", b"*2\r\n$3\r\nabc\r\n$-1\r\n", b"*3\r\n$-1\r\n$-1\r\n$-1\r\n", b"%1\r\n+a\r\n:1\r\n", b"#t\r\n",
    b"*4\r\n$3\r\nabc\r\n$1\r\n1\r\n*0\r\n:1\r\n", b"*4\r\n$18\r\n0123456789abcdef 1\r\n$-1\r\n*0\r\n:1\r\n",
    b"*4\r\n$27\r\n0123456789abcdef 1 01234567\r\n$-1\r\n*1\r\n$1\r\nx\r\n:1\r\n",
    b"*4\r\n$27\r\n0123456789abcdef 1 01234567\r\n$-1\r\n:1\r\n:1\r\n", b",1.5\r\n", b"~1\r\n:1\r\n",
    b"-ERR what is that\r\n", b"*2\r\n*1\r\n:1\r\n$1\r\n0\r\n",
]  # fmt: skip


@pytest.mark.parametrize("reply", REPLIES)
async def test_a_reply_of_any_shape_to_anything_is_trouble_or_a_miss(join, server, relay, reply):
    """Never another exception, never an entry, and it works when it has passed."""
    one = join(relay.url, timeout=2)
    await filled(one, 3)
    acts = {
        "MGET": [partial(one.get, 0)],
        "EVALSHA": [partial(one.keep, entry(9)), one.epochs.current, partial(one.epochs.begin, hard(EVERYTHING), 0.0)],
        "SCAN": [partial(one.store.remove, felled(tagged("none"))), one.store._scan.count],
        "GETRANGE": [partial(one.store.remove, felled(tagged("none")))],
        "STRLEN": [one.store._scan.count],
        "GET": [partial(one.store._outdate, key_of(0), 0.0)],
        "INFO": [one.link.drop, partial(one.get, 0)],
        "UNLINK": [partial(one.store.remove, felled(EVERYTHING))],
    }
    for command, calls in acts.items():
        for call in calls:
            relay.answer(reply, command)
            try:
                async with asyncio.timeout(10):
                    found = await call()
            except Trouble:
                found = None
            relay.answers.clear()
            assert command != "MGET" or found is None
    generation = one.epochs.generation
    await one.epochs.current()
    assert await one.keep(entry(1, version=5)) is None
    assert await one.get(1) is not None
    assert len(generation) == 8


async def test_a_generation_that_is_made_up_is_not_believed(join, server, relay):
    """Had a reply been mistaken for another generation, the next one puts it right."""
    a, b = join(relay.url), join(server.url)
    await filled(a, 3)
    await b.epochs.current()
    reply = b"*5\r\n$27\r\n0123456789abcdef 9 01234567\r\n$-1\r\n*0\r\n:1\r\n*0\r\n"
    relay.answer(reply, "EVALSHA", times=1)
    await a.epochs.current()
    assert a.epochs.generation == bytes.fromhex("0123456789abcdef")
    assert await a.get(1) is not None
    assert a.epochs.generation == b.epochs.generation


# --- Removal ---------------------------------------------------------------------------------------------------------


async def test_what_is_replaced_while_it_is_softly_removed_keeps_its_lifetime(join, server):
    """Between reading and writing a newer answer came: it is not touched."""
    a, b = join(server.url), join(server.url)
    await filled(a, 3)
    await b.epochs.current()
    newer = entry(1, version=7)
    read = a.calls.value

    async def value(name: str):
        found = await read(name)
        if name == place(a, 1):
            assert await b.store.put(newer) is Kept.YES
        return found

    a.calls.value = value
    await a.store.remove(felled(EVERYTHING, Removal.SOFT, a.clock.now()))
    assert await b.get(1) == newer
    assert (await b.get(0)).fresh_until <= a.clock.now()


async def test_soft_leaves_expiry_and_contents_as_they_were(join, server):
    one = join(server.url)
    await filled(one, 2)
    before, at = await one.get(1), server.cli("PEXPIRETIME", place(one, 1))
    now = one.clock.now()
    assert await one.store.remove(felled(EVERYTHING, Removal.SOFT, now)) == {key_of(0), key_of(1)}
    assert await one.get(1) == replace(before, fresh_until=now)
    assert server.cli("PEXPIRETIME", place(one, 1)) == at


async def test_facts_longer_than_usual_are_read_whole(join, server):
    one = join(server.url)
    await filled(one, 1)
    labelled = replace(entry(1), tags=tuple(f"{number:04d}" + "x" * 100 for number in range(64)))
    assert await one.keep(labelled) is None
    assert len(codec.encode(labelled)) > 2 * 2048
    assert await one.store.remove(felled(tagged("0063" + "x" * 100), Removal.HARD, 0.0)) == {key_of(1)}


async def test_what_lies_under_a_strange_name_is_let_be(join, server):
    one = join(server.url)
    await filled(one, 2)
    strange = [one.keys.entry(key_of(0))[:-32] + "f" * 32, "cacheproxy:{0}:e:", "cacheproxy:{0}:e:short"]
    for name in strange:
        server.cli("SET", name, server.cli("GET", place(one, 1)), "PX", 60_000)
    assert await one.store.remove(felled(EVERYTHING, Removal.HARD, 0.0)) == {key_of(0), key_of(1)}
    assert all(server.cli("EXISTS", name) for name in strange)


async def test_a_restart_in_the_middle_of_a_removal_leaves_nothing_that_was_meant(join, redis_start):
    """A scan goes on at the place where it was on a server that is another by now: what it has not seen is given up."""
    server = redis_start(search=False)
    a, b = join(server.url), join(server.url)
    await filled(a, 1500, length=20, tags=("red",))
    assert await b.get(1) is not None
    run, scans = a.calls.run, 0

    async def scanning(*command, **options):
        nonlocal scans
        scans += command[0] == "SCAN"
        if command[0] == "SCAN" and scans == 4:
            server.restart(keep=True)
            await a.link.drop()
            await b.link.drop()
        return await run(*command, **options)

    a.calls.run = scanning
    try:
        await a.remove(tagged("red"))
    except Trouble:
        await a.remove(tagged("red"))
    found = await asyncio.gather(*(one.get(number) for one in (b, a) for number in range(1500)))
    assert [got for got in found if got is not None] == []


async def test_closed_it_answers_nobody_and_leaves_no_connection(join, server, relay):
    one = join(relay.url)
    await filled(one, 1)
    relay.freeze()
    asking = [asyncio.create_task(one.get(number)) for number in range(5)]
    await until(lambda: "under way" in repr(one.store._lookups) and one.store._lookups._trips)
    await one.close()
    results = await asyncio.gather(*asking, return_exceptions=True)
    assert all(isinstance(result, Trouble) for result in results)
    relay.clear()
    await until(lambda: relay.open == 0)
    with pytest.raises(Trouble):
        await one.get(1)


def test_the_replies_tried_are_whole_messages():
    assert [reply for reply in REPLIES if resp.end(reply) != len(reply)] == []
