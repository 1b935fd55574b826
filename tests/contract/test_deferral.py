"""What every store of deferred requests promises, whatever they are kept in."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import pytest

from cacheproxy.core.deferral import Bounds, State
from cacheproxy.engine.deferral import Deferrals
from cacheproxy.stores.deferral_file import FileDeferrals
from cacheproxy.stores.deferral_memory import MemoryDeferrals
from cacheproxy.stores.deferral_redis import RedisDeferrals
from cacheproxy.wiring.house import SystemClock
from tests.stores.replicas import Replica, replica

KINDS = ["memory", "file", *(pytest.param(kind, marks=pytest.mark.redis) for kind in ("redis_acl", "redis_cluster"))]
SHARED = ["file", *KINDS[2:]]
A, B = b"a" * 16, b"b" * 16
ROOMY = Bounds(10**6, 100, 600, 600)
LONG = 60.0


def name(number: int) -> str:
    return f"{number:024}"


@pytest.fixture(params=KINDS)
def deferral_kind(request) -> str:
    return request.param


@pytest.fixture
async def join(deferral_kind, tmp_path, request) -> AsyncIterator[Callable[[], Deferrals]]:
    """Makes stores of this kind that share what is shared."""
    made: list[Deferrals] = []
    replicas: list[Replica] = []

    def build() -> Deferrals:
        if deferral_kind == "memory":
            made.append(MemoryDeferrals(SystemClock()))
        elif deferral_kind == "file":
            made.append(FileDeferrals(tmp_path / "deferred.sqlite3", SystemClock()))
        else:
            cluster = deferral_kind == "redis_cluster"
            servers = request.getfixturevalue("nodes") if cluster else [request.getfixturevalue(deferral_kind)]
            url = servers[0].url
            replicas.append(replica(url.replace("redis://", "redis+cluster://").removesuffix("/0") if cluster else url))
            made.append(RedisDeferrals(replicas[-1].calls, replicas[-1].keys))
        return made[-1]

    if deferral_kind == "redis_cluster":
        for server in request.getfixturevalue("nodes"):
            server.cli("FLUSHALL")
    yield build
    for one in made:
        await one.close()
    for one in replicas:
        await one.close()


@pytest.fixture
def deferrals(join) -> Deferrals:
    return join()


async def when(ask, seconds: float = 10.0):
    """What `ask` gives, as soon as it gives something."""
    until = time.monotonic() + seconds
    while (found := await ask()) is None or found is False:
        assert time.monotonic() < until
        await asyncio.sleep(0.02)
    return found


async def state(deferrals: Deferrals, number: int = 1) -> State | None:
    row = await deferrals.find(name(number))
    return None if row is None else row.state


async def test_its_life_from_queued_to_done(deferrals):
    assert await deferrals.find(name(1)) is None
    assert await deferrals.claim("t", LONG) is None
    assert await deferrals.put(name(1), A, b"order", ROOMY)
    row = await deferrals.find(name(1))
    assert (row.id, row.owner, row.state, row.sealed, row.attempts) == (name(1), A, State.QUEUED, b"order", 0)
    assert abs(row.created_at - time.time()) < 5
    assert await deferrals.census() == (1, 5)
    claimed = await deferrals.claim("t", LONG)
    assert (claimed.id, claimed.sealed, claimed.attempts) == (name(1), b"order", 1)
    assert await state(deferrals) is State.RUNNING
    assert await deferrals.finish(name(1), "t", b"the reply", LONG, failed=False)
    row = await deferrals.find(name(1))
    assert (row.state, row.sealed, row.owner) == (State.DONE, b"the reply", A)
    assert row.ended_at >= row.started_at >= row.created_at > 0
    assert await deferrals.census() == (0, 9)
    assert await deferrals.claim("u", LONG) is None


async def test_one_that_failed_says_so(deferrals):
    await deferrals.put(name(1), A, b"order", ROOMY)
    await deferrals.claim("t", LONG)
    assert await deferrals.finish(name(1), "t", b"why", LONG, failed=True)
    assert await state(deferrals) is State.FAILED


async def test_it_is_claimed_once_and_the_first_comes_first(deferrals):
    for number in range(3):
        await deferrals.put(name(number), A, b"order", ROOMY)
        await asyncio.sleep(0.005)
    claimed = [await deferrals.claim(f"t{n}", LONG) for n in range(4)]
    assert [row and row.id for row in claimed] == [name(0), name(1), name(2), None]


async def test_many_who_claim_at_once_get_each_one_once(join, deferral_kind):
    stores = [join() for _ in range(1 if deferral_kind == "memory" else 3)]
    for number in range(20):
        await stores[0].put(name(number), A, b"order", ROOMY)

    async def take(store: Deferrals, token: str) -> list[str]:
        found = []
        while (row := await store.claim(f"{token}{len(found)}", LONG)) is not None:
            found.append(row.id)
        return found

    taken = await asyncio.gather(*(take(store, f"{n}-{m}-") for n, store in enumerate(stores) for m in range(3)))
    assert sorted(one for found in taken for one in found) == [name(n) for n in range(20)]


async def test_when_its_lease_ends_another_takes_it_and_the_first_can_do_nothing_more(deferrals):
    await deferrals.put(name(1), A, b"order", ROOMY)
    await deferrals.claim("first", 0.2)
    row = await when(lambda: deferrals.claim("second", LONG))
    assert (row.id, row.attempts) == (name(1), 2)
    assert not await deferrals.hold(name(1), "first", LONG)
    assert not await deferrals.release(name(1), "first", 0, 0)
    assert not await deferrals.finish(name(1), "first", b"stale", LONG, failed=False)
    assert await deferrals.finish(name(1), "second", b"right", LONG, failed=False)
    assert (await deferrals.find(name(1))).sealed == b"right"
    assert not await deferrals.finish(name(1), "second", b"again", LONG, failed=True)


async def test_a_lease_that_is_renewed_does_not_end(deferrals):
    for number in (1, 2):
        await deferrals.put(name(number), A, b"order", ROOMY)
    for number in (1, 2):
        assert (await deferrals.claim("first", 0.3)).id == name(number)
    assert await deferrals.hold(name(1), "first", LONG)
    # That the other one's has ended tells that so would have this one's.
    assert (await when(lambda: deferrals.claim("second", LONG))).id == name(2)
    assert await deferrals.claim("second", LONG) is None
    assert await deferrals.finish(name(1), "first", b"reply", LONG, failed=False)


async def test_one_that_is_given_back_is_claimed_again_after_its_pause(deferrals):
    await deferrals.put(name(1), A, b"order", ROOMY)
    await deferrals.claim("first", LONG)
    assert await deferrals.release(name(1), "first", 0.3, 0)
    assert await state(deferrals) is State.QUEUED
    assert await deferrals.claim("second", LONG) is None
    row = await when(lambda: deferrals.claim("second", LONG))
    assert (row.id, row.attempts) == (name(1), 1)
    assert not await deferrals.hold(name(1), "first", LONG)


async def test_bytes_and_each_owner_have_a_bound_and_what_ends_makes_room(deferrals):
    bounds = Bounds(100, 2, 600, 600)
    assert await deferrals.put(name(1), A, b"x" * 40, bounds)
    assert not await deferrals.put(name(2), A, b"x" * 61, bounds)
    assert await deferrals.put(name(3), A, b"x" * 10, bounds)
    assert not await deferrals.put(name(4), A, b"x", bounds)
    assert await deferrals.put(name(5), B, b"x", bounds)
    await deferrals.claim("t", LONG)
    await deferrals.finish(name(1), "t", b"y" * 80, LONG, failed=False)
    assert await deferrals.census() == (2, 91)
    assert not await deferrals.put(name(6), A, b"x" * 20, bounds)
    assert await deferrals.put(name(7), A, b"x" * 9, bounds)
    await deferrals.forget(name(1))
    await deferrals.forget(name(3))
    await deferrals.forget(name(99))
    assert await deferrals.census() == (2, 10)
    assert await deferrals.put(name(8), A, b"x" * 90, bounds)


async def test_one_that_waited_too_long_has_failed_and_is_not_claimed(deferrals):
    await deferrals.put(name(1), A, b"order", Bounds(1000, 10, 0.2, 600))

    async def failed():
        row = await deferrals.find(name(1))
        return row if row.state is State.FAILED else None

    row = await when(failed)
    assert (row.sealed, row.owner) == (b"", A)
    assert await deferrals.claim("t", LONG) is None
    assert (await deferrals.census())[0] == 0
    assert await deferrals.put(name(2), A, b"order", Bounds(1000, 1, 600, 600))


async def test_what_has_ended_is_known_for_a_while_and_then_leaves_nothing(deferrals):
    await deferrals.put(name(1), A, b"order", ROOMY)
    await deferrals.claim("t", LONG)
    await deferrals.finish(name(1), "t", b"reply", 0.3, failed=False)
    assert await state(deferrals) is State.DONE

    async def gone():
        return await deferrals.find(name(1)) is None

    await when(gone)
    await deferrals.put(name(2), A, b"x", ROOMY)
    assert await deferrals.census() == (1, 1)


async def test_one_that_is_forgotten_while_it_is_asked_is_lost_to_who_asks_it(deferrals):
    await deferrals.put(name(1), A, b"order", ROOMY)
    await deferrals.claim("t", LONG)
    await deferrals.forget(name(1))
    assert not await deferrals.hold(name(1), "t", LONG)
    assert not await deferrals.finish(name(1), "t", b"reply", LONG, failed=False)
    assert await deferrals.census() == (0, 0)


@pytest.mark.parametrize("deferral_kind", SHARED, indirect=True)
async def test_others_see_it_when_it_returns(join):
    one, other = join(), join()
    await one.put(name(1), A, b"order", ROOMY)
    assert (await other.find(name(1))).sealed == b"order"
    assert (await other.claim("t", LONG)).id == name(1)
    assert await state(one) is State.RUNNING


@pytest.mark.redis
@pytest.mark.parametrize("deferral_kind", ["redis_acl"], indirect=True)
async def test_every_key_expires_has_the_prefix_and_a_fixed_size(deferrals, redis_acl):
    for number in range(3):
        await deferrals.put(name(number), A, b"order", ROOMY)
    with redis_acl.line() as line:
        assert all(line.call("PTTL", key) > 1_200_000 for key in line.call("KEYS", "cacheproxy:{0}:d-*"))
    await deferrals.claim("t", LONG)
    await deferrals.finish(name(0), "t", b"reply", LONG, failed=False)
    await deferrals.claim("u", LONG)
    await deferrals.release(name(1), "u", 0, 0)
    with redis_acl.line() as line:
        keys = line.call("KEYS", "*")
        assert all(line.call("PTTL", key) > 0 for key in keys)
    assert len(keys) == 7
    assert {len(key) for key in keys if b":d:" in key} == {len("cacheproxy:{0}:d:") + 24}
    assert all(key.startswith(b"cacheproxy:{0}:d") for key in keys)
