"""The promise of removals on a shared Redis: once one is acknowledged on any replica, no replica gives or keeps an answer
from before. And nothing else is lost for it."""

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest

from cacheproxy.core.outcome import Reason
from cacheproxy.core.removal import REMEMBERED, Removal, Removals
from cacheproxy.errors import Trouble
from cacheproxy.ports import Kept
from cacheproxy.stores import redis_epochs
from tests.parts import redis_fleet as fleet
from tests.rig import until
from tests.stores.entries import key_of
from tests.stores.replicas import Join, Replica, entry, hard, joining, tagged

pytestmark = pytest.mark.redis

RED, BLUE = ("red",), ("blue",)


@pytest.fixture
async def join() -> AsyncIterator[Join]:
    async with joining() as join:
        yield join


@pytest.fixture
def server(redis):
    yield redis
    assert lasting(redis) == []


@pytest.fixture
def own(redis_start):
    """Starts servers of the test's own, without search."""
    return lambda **options: redis_start(search=False, **options)


def lasting(server) -> list[bytes]:
    """Keys without an expiry."""
    with server.line() as line:
        return [name for name in line.call("KEYS", "*") if line.call("PTTL", name) == -1]


async def met(*replicas: Replica) -> None:
    """Let each have its first contact."""
    for one in replicas:
        assert await one.get(-1) is None


# --- One removal, several replicas -----------------------------------------------------------------------------------


async def test_what_one_keeps_all_have_and_a_removal_on_one_holds_for_all(join, server):
    """B37"""
    a, b, c = replicas = join(server.url), join(server.url), join(server.url)
    await met(*replicas)
    red, blue = entry(1, tags=RED), entry(2, tags=BLUE)
    assert (await a.keep(red), await b.keep(blue)) == (None, None)
    assert [await one.get(1) for one in replicas] == [red] * 3
    assert (await c.remove(tagged("red"))).matched == 1
    assert [await one.get(1) for one in replicas] == [None] * 3
    assert [await one.get(2) for one in replicas] == [blue] * 3


async def test_a_removal_is_known_with_the_next_lookup_of_anything(join, server):
    a, b = join(server.url), join(server.url)
    await met(a, b)
    known = b.removals.epoch
    await a.remove(tagged("red"))
    await a.remove(tagged("blue"))
    assert b.removals.epoch == known
    old = entry(1, tags=RED), entry(2, tags=BLUE), entry(3, tags=("green",))
    await b.get(77)
    assert [b.removals.stands(one, known) for one in old] == [False, False, True]


async def test_a_running_request_does_not_keep_what_was_removed_elsewhere(join, server):
    """Its answer is refused though this replica has not heard of the removal, and what else it has is kept."""
    a, b = join(server.url), join(server.url)
    await met(a, b)
    asked = b.asking()
    await a.remove(tagged("red"))
    assert await b.keep(entry(1, tags=RED), asked) is Reason.PURGED
    assert await b.keep(entry(2, tags=BLUE), asked) is None
    assert (await a.get(1), (await a.get(2)).tags) == (None, BLUE)


async def test_what_was_asked_for_after_a_removal_is_kept_by_who_had_not_heard_of_it(join, server):
    a, b = join(server.url), join(server.url)
    await met(a, b)
    await a.remove(tagged("red"))
    await asyncio.sleep(0.02)
    assert await b.keep(entry(1, tags=RED)) is None
    assert (await a.get(1)).tags == RED


async def test_an_answer_asked_for_shortly_before_a_removal_is_never_taken_for_later(join, server):
    """Whatever the server's and our clocks round: asked for before it was ordered is before."""
    a, b = join(server.url), join(server.url)
    await met(a, b)
    for number in range(300):
        asked = b.asking()
        begun = await a.epochs.begin(hard(tagged("red")), a.clock.now())
        assert await b.keep(entry(number, 10, tags=RED), asked) is Reason.PURGED, number
        await a.epochs.finish(begun)


@pytest.mark.parametrize("who", ["the one who removes", "another"])
async def test_what_is_meant_and_still_there_is_not_given(join, server, who):
    """The removal is in force before anything has left the store; a look that began while it was still there is judged
    by it also when it has been carried out."""
    a, b = join(server.url), join(server.url)
    await met(a, b)
    await a.keep(entry(1, tags=RED))
    await a.keep(entry(2, tags=("blue",)))
    begun = await a.epochs.begin(hard(tagged("red")), a.clock.now())
    one = a if who == "the one who removes" else b
    assert await one.get(1) is None
    assert await one.store.get(key_of(1)) is not None, "it is still there"
    assert await one.get(2) is not None
    late = join(server.url)
    assert await late.get(1) is None, "one that came later knows what is under way"
    closings = one.removals.closings
    found = await one.store.get(key_of(1))
    assert await a.store.remove(begun) == {key_of(1)}
    await a.epochs.finish(begun)
    await one.epochs.current()
    assert not one.removals.open
    assert one.removals.judge(found, closings) is None
    assert await b.keep(entry(1, version=1, tags=RED)) is None
    assert (await one.get(1)).stored_at == 1001.0


async def test_the_end_of_a_removal_is_not_that_of_its_namesake_after_a_new_beginning(join, server):
    """Redis emptied counts from nothing: who still takes out what a removal meant before does not end the one that has
    its number now."""
    a, b = join(server.url), join(server.url)
    await met(a, b)
    before = await a.epochs.begin(hard(tagged("red")), a.clock.now())
    server.cli("FLUSHALL")
    await met(a, b)
    await b.keep(entry(1, tags=RED))
    after = await b.epochs.begin(hard(tagged("red")), b.clock.now())
    assert after.number == before.number
    assert not await a.epochs.claim(before)
    await a.epochs.finish(before)
    for one in (a, b, join(server.url)):
        assert await one.get(1) is None


async def test_a_removal_is_carried_out_beside_its_namesake_from_before_a_new_beginning(join, server, monkeypatch):
    a = join(server.url)
    await met(a)
    go_on, remove = asyncio.Event(), a.store.remove

    async def late(felled):
        await go_on.wait()
        return await remove(felled)

    monkeypatch.setattr(a.store, "remove", late)
    first = await a.remove(tagged("red"), wait=False)
    server.cli("FLUSHALL")
    await met(a)
    await a.keep(entry(1, tags=RED))
    second = await a.remove(tagged("red"), wait=False)
    assert second.epoch == first.epoch
    assert a.purge.under_way == 2
    go_on.set()
    await until(lambda: not a.purge.under_way)
    assert await a.store.get(key_of(1)) is None, "it has left the store"


async def test_a_look_is_served_while_its_lease_lasts_and_no_longer(join, server):
    """A removal is acknowledged when every lease is over that was begun before it was carried out."""
    a, b = join(server.url), join(server.url)
    await met(a, b)
    await a.keep(entry(1, tags=RED))
    marks, served = [], []

    async def look() -> None:
        while True:
            mark = b.shelf.mark()
            found = await b.get(1)
            if found is None:
                return
            marks.append((mark, found))
            for waited in marks:
                if await b.shelf.holds(*waited):
                    served.append(b.clock.monotonic())

    looking = asyncio.create_task(look())
    await until(lambda: len(served) > 20)
    await a.remove(tagged("red"))
    acknowledged = a.clock.monotonic()
    await looking
    assert served[-1] < acknowledged
    assert not any([await b.shelf.holds(*waited) for waited in marks])


async def test_what_was_found_after_a_removal_may_wait(join, server):
    """A look at what was kept after the removal is good however long it waits."""
    a, b = join(server.url), join(server.url)
    await met(a, b)
    await a.remove(tagged("red"))
    await a.keep(entry(1, tags=RED))
    await b.get(77)
    mark = b.shelf.mark()
    found = await b.get(1)
    await asyncio.sleep(b.epochs.lease)
    assert found is not None
    assert await b.shelf.holds(mark, found)
    await a.remove(tagged("blue"))
    assert await b.shelf.holds(mark, found)


async def test_a_removal_whose_proxy_is_gone_stays_in_force_and_is_carried_out_by_another(join, server, monkeypatch):
    a, b = join(server.url), join(server.url)
    await met(a, b)
    await a.keep(entry(1, tags=RED))
    begun = await a.epochs.begin(hard(tagged("red")), a.clock.now())
    assert await b.get(1) is None
    await b.purge.resume()
    assert not b.purge._sweeps, "it is the other's as long as that may live"
    assert await b.keep(entry(2, tags=RED)) is None
    monkeypatch.setattr("cacheproxy.stores.redis_epochs.CLAIM_MS", 0)
    await b.purge.resume()
    await until(lambda: not b.removals.open)
    assert await b.store.get(key_of(1)) is None
    assert await b.get(2) is not None, "it was put later"
    await a.epochs.current()
    assert begun.number not in a.removals.open


async def test_soft_is_stale_everywhere_and_running_answers_are_not_kept(join, server):
    a, b = join(server.url), join(server.url)
    await met(a, b)
    await a.keep(entry(1, tags=RED))
    asked = b.asking()
    assert (await a.remove(tagged("red"), Removal.SOFT)).purged == 1
    stale = await b.get(1)
    assert stale.fresh_until <= b.clock.now() < stale.expires_at
    assert await b.keep(entry(1, tags=RED, version=1), asked) is Reason.PURGED
    assert await b.get(1) == stale


# --- Many, and lost ones ---------------------------------------------------------------------------------------------


@pytest.fixture
def unwaited(monkeypatch) -> None:
    """Removals that are acknowledged at once."""
    monkeypatch.setattr(redis_epochs, "LEASE", 0.0)


async def test_more_removals_than_are_remembered_are_of_everything(join, server, unwaited):
    a, b = join(server.url), join(server.url)
    await met(a, b)
    await a.keep(entry(9, tags=BLUE))
    asked = b.asking()
    await a.remove(tagged("red"))
    for number in range(REMEMBERED + 5):
        begun = await a.epochs.begin(hard(tagged(f"other {number}")), a.clock.now())
        await a.epochs.finish(begun)
    assert await b.keep(entry(1, tags=RED), asked) is Reason.PURGED
    assert await b.keep(entry(2, tags=BLUE), asked) is Reason.PURGED
    assert await b.keep(entry(3, tags=RED)) is None
    assert await b.get(9) is not None, "what is there was looked at one by one"
    assert server.cli("LLEN", b.keys.log) <= REMEMBERED


async def test_missed_ones_that_are_remembered_are_told_apart(join, server, unwaited):
    a, b = join(server.url), join(server.url)
    await met(a, b)
    asked = b.asking()
    for number in range(REMEMBERED // 2 - 1):
        begun = await a.epochs.begin(hard(tagged(f"other {number}")), a.clock.now())
        await a.epochs.finish(begun)
    assert await b.keep(entry(1, tags=RED), asked) is None
    assert await b.keep(entry(1, tags=("other 7",)), asked) is Reason.PURGED


async def test_a_log_that_was_evicted_is_of_everything(join, server):
    a, b = join(server.url), join(server.url)
    await met(a, b)
    await a.keep(entry(9))
    asked = b.asking()
    await a.remove(tagged("red"))
    server.cli("DEL", b.keys.log)
    assert await b.keep(entry(1, tags=BLUE), asked) is Reason.PURGED
    assert await b.get(9) is not None
    again = b.asking()
    await a.remove(tagged("red"))
    assert await b.keep(entry(1, tags=BLUE), again) is None
    assert await b.keep(entry(1, tags=RED), again) is Reason.PURGED


async def test_a_notice_that_cannot_be_read_is_of_everything(join, server):
    """As a newer version may write it, in the middle of an upgrade."""
    a, b = join(server.url), join(server.url)
    await met(a, b)
    asked = b.asking()
    begun = await a.epochs.begin(hard(tagged("red")), a.clock.now())
    await a.epochs.finish(begun)
    line = server.cli("LINDEX", b.keys.log, -1)
    server.cli("LSET", b.keys.log, -1, line.replace(b'"tags"', b'"moods"'))
    assert await b.keep(entry(1, tags=BLUE), asked) is Reason.PURGED


@pytest.mark.parametrize("lost", ["head", "all", "emptied and restarted"])
async def test_emptied_is_begun_anew_and_nothing_comes_back(join, own, lost):
    server = own()
    a, b = join(server.url), join(server.url)
    await met(a, b)
    await a.keep(entry(1))
    asked = b.asking()
    await a.remove(tagged("red"))
    before = a.epochs.generation
    if lost == "head":
        server.cli("DEL", a.keys.head(0))
    elif lost == "all":
        server.cli("FLUSHALL")
    else:
        server.restart()
    assert await b.get(1) is None
    assert await b.keep(entry(1, tags=BLUE), asked) is Reason.PURGED
    assert await b.keep(entry(1, tags=BLUE)) is None
    assert (await a.get(1)).tags == BLUE
    assert a.epochs.generation == b.epochs.generation != before
    assert lasting(server) == []


# --- An older state of Redis -----------------------------------------------------------------------------------------


async def set_back(server, a: Replica, *others: Replica, hears=()) -> None:
    """Entries 1 (red) and 2 (blue) are there; red is removed and acknowledged; Redis dies, and comes back as before."""
    await met(a, *others)
    await a.keep(entry(1, tags=RED))
    await a.keep(entry(2, tags=BLUE))
    for one in others:
        assert await one.get(1) is not None
    server.cli("SAVE")
    await a.remove(tagged("red"))
    assert [await one.get(1) for one in (a, *hears)] == [None] * (1 + len(hears))
    server.kill()
    server.restart(keep=True)
    for one in (a, *others):
        await one.link.drop()  # the loop has not seen yet that its connections have ended
    assert b"e:" in b" ".join(server.cli("KEYS", "*")), "the snapshot was not loaded"


@pytest.mark.parametrize("first", ["who removed", "who heard", "who had not heard", "a new one"])
async def test_set_back_to_an_older_state_what_was_removed_does_not_come_back(join, own, first):
    server = own()
    a, b, c, d = (join(server.url) for _ in range(4))
    await set_back(server, a, b, c, hears=(b,))
    one = {"who removed": a, "who heard": b, "who had not heard": c, "a new one": d}[first]
    for _ in range(3):
        assert await one.get(1) is None
    assert [await other.get(1) for other in (a, b, c, d)] == [None] * 4
    assert await one.keep(entry(1, tags=RED, version=1)) is None
    assert (await a.get(1)).stored_at == 1001.0
    assert lasting(server) == []


async def test_set_back_and_a_removal_is_what_comes_first(join, own):
    server = own()
    a, b = join(server.url), join(server.url)
    await set_back(server, a, b)
    await a.remove(tagged("blue"))
    assert [await one.get(number) for one in (a, b) for number in (1, 2)] == [None] * 4


async def test_set_back_and_another_removal_makes_the_count_what_it_was(join, own):
    """The count alone does not tell the two apart."""
    server = own()
    a, b = join(server.url), join(server.url)
    await set_back(server, a, b)
    asked = a.asking()
    await b.remove(tagged("green"))
    assert [await one.get(1) for one in (a, b)] == [None, None]
    assert await a.keep(entry(5, tags=("green",)), asked) is Reason.PURGED


async def test_a_failover_right_after_a_removal_brings_nothing_back(join, own, tmp_path):
    """By Sentinel, the primary killed; entries of before may be lost."""
    primary = own()
    other = fleet.replica(tmp_path / "follower", primary, search=False)
    watchers = fleet.sentinel(tmp_path, primary, [other])
    try:
        host, port = watchers.addresses[0]
        a, b, c = (join(f"redis+sentinel://{host}:{port}/{watchers.name}", timeout=2) for _ in range(3))
        await met(a, b)
        for number in range(50):
            await a.keep(entry(number, tags=RED))
        assert (await a.remove(tagged("red"))).purged == 50
        before = watchers.primary()
        primary.kill()
        await asyncio.to_thread(watchers.moved, before)

        async def works(one: Replica) -> bool:
            try:
                return [await one.get(number) for number in range(50)] == [None] * 50
            except Trouble:
                return False

        for one in (c, b, a):
            async with asyncio.timeout(20):
                while not await works(one):
                    await asyncio.sleep(0.02)
        assert await b.keep(entry(1, tags=RED)) is None
        assert (await c.get(1)).tags == RED
    finally:
        watchers.stop()
        other.stop()


async def test_a_removal_that_replicas_of_redis_do_not_have_is_not_acknowledged(join, own, tmp_path, monkeypatch):
    monkeypatch.setattr(redis_epochs, "REPLICATED", 0.2)
    primary = own()
    other = fleet.replica(tmp_path / "follower", primary, search=False)
    try:
        a = join(primary.url)
        await a.keep(entry(1))
        await a.keep(entry(1))
        await a.remove(tagged("red"))
        other.freeze()
        with pytest.raises(Trouble) as caught:
            await a.remove(tagged("red"))
        assert caught.value.kind == "replication"
        other.thaw()
        await a.remove(tagged("red"))
    finally:
        other.thaw()
        other.stop()


# --- The secret ------------------------------------------------------------------------------------------------------


async def test_two_that_start_at_once_agree_on_one_secret(join, server):
    a, b = join(server.url, secret=b"a" * 32), join(server.url, secret=b"b" * 32)
    await asyncio.gather(a.epochs.current(), b.epochs.current())
    kept = server.cli("GET", a.keys.secret)
    assert kept in (b"a" * 32, b"b" * 32)
    assert (a.agreed, b.agreed) in (([], [b"a" * 32]), ([b"b" * 32], []))
    c = join(server.url, secret=b"")
    await c.epochs.current()
    assert c.agreed == []


async def test_after_a_flush_the_secret_is_still_the_one_that_all_use(join, server):
    a, b = join(server.url, secret=b"a" * 32), join(server.url, secret=b"b" * 32)
    await a.epochs.current()
    await b.epochs.current()
    server.cli("FLUSHALL")
    await b.epochs.current()
    await a.epochs.current()
    assert server.cli("GET", a.keys.secret) == b"a" * 32
    assert (a.agreed, b.agreed) == ([], [b"a" * 32])


# --- Its own parts ---------------------------------------------------------------------------------------------------


async def test_who_asks_while_a_call_is_under_way_is_told_by_a_later_one(join, relay):
    """A count that was read before the question is not an answer to it; all who ask meanwhile share one call."""
    a, b = join(relay.url), join(relay.url)
    await a.epochs.current()
    await b.epochs.current()
    known = b.removals.epoch
    relay.freeze()
    first = asyncio.create_task(b.epochs.current())
    await until(lambda: b.epochs._learning is not None and not b.epochs._learning.done())
    others = [asyncio.create_task(b.epochs.current()) for _ in range(20)]
    await asyncio.sleep(0)
    before = relay.commands["EVALSHA"]
    relay.clear()
    await asyncio.gather(first, *others)
    assert relay.commands["EVALSHA"] - before <= 2
    assert b.removals.epoch == known


async def test_nobody_need_wait_for_what_is_learnt(join, server, caplog):
    """All who asked have gone when it fails: nobody is told, nothing is said, and the next is answered."""
    a = join(server.url, timeout=0.3)
    await a.epochs.current()
    server.cli("CLIENT", "PAUSE", 600, "ALL")
    before = a.epochs._learning
    asking = asyncio.create_task(a.epochs.current())
    await until(lambda: a.epochs._learning is not before)
    asking.cancel()
    await asyncio.wait([asking, a.epochs._learning])
    assert "Trouble" in repr(a.epochs._learning), "it failed; and looking at it this way does not take its exception"
    del asking
    server.cli("CLIENT", "UNPAUSE")
    a.epochs._learning = None
    gc.collect()
    await a.epochs.current()
    assert [record for record in caplog.records if record.name == "asyncio"] == []


async def test_first_contact_outruns_what_was_asked_for_before(join, server):
    a, b = join(server.url), join(server.url)
    await met(b)
    asked = a.asking()
    assert await a.store.put(entry(1), a.removals.epoch) is Kept.OUTRUN
    assert await a.keep(entry(1), asked) is Reason.PURGED
    assert await a.keep(entry(1)) is None


def test_removals_that_are_forgotten_are_never_taken_for_earlier_ones():
    """A request that has run through more removals than are remembered is not kept, whatever the others meant."""
    removals = Removals()
    removals.add(tagged("red"), 1.0, at=10.0)
    for number in range(REMEMBERED):
        removals.add(tagged("blue"), 1.0, at=11.0 + number)
    arrived = 5.0
    assert not removals.stands(entry(1, tags=RED), max(0, removals.epoch_at(arrived)))
    assert removals.stands(entry(1, tags=RED), max(0, removals.epoch_at(11.5)))
