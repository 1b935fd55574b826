"""Running answers across replicas: processes of their own on a real Redis."""

import json
import random
import re

import pytest

from tests import rig
from tests.flights.callers import Caller, Street
from tests.flights.stage import EVENTS, WHOLE
from tests.flights.test_leaving import SOON, WAYS
from tests.redis_fixtures import redis, redis_server, redis_start  # noqa: F401

pytestmark = pytest.mark.redis

MANY = 1000

PATIENT = {"CACHEPROXY_REDIS__TIMEOUT": "2s"}
"""A deadline that nothing healthy misses, however busy the machine is."""


@pytest.fixture
async def pair(spawn, redis):  # noqa: F811
    """Two replicas on one Redis."""
    return [await spawn("--redis-url", redis.url, **PATIENT) for _ in range(2)]


@pytest.fixture
async def streets(pair):
    found = [Street(proxy.port) for proxy in pair]
    yield found
    for street in found:
        street.close()


def texts(callers: list[Caller]) -> set[bytes]:
    return {caller.body for caller in callers}


def keys_of_flights(server) -> list[bytes]:
    return [key for key in server.cli("KEYS", "*") if re.search(rb":f:|\{\d+\}:[frc]", key) and b":e:" not in key]


async def crowd_of(streets, backend, stage) -> list[Caller]:
    """So many at both who ask for the same, some before its head and some in its middle."""
    crowd = [await streets[0].stream()]
    await rig.until(lambda: backend.calls == 1)
    for told in (1, 5):
        for street in streets:
            crowd += await street.crowd(MANY // 4, stream=True)
        await stage.let(told)
        for caller in crowd:  # who comes later than the end is given what was stored, under another name
            await caller.events(told)
    return crowd


async def test_a_thousand_at_two_replicas_cost_one_generation(streets, stage, backend):
    """Everybody gets every event, in order, as it comes."""
    crowd = await crowd_of(streets, backend, stage)
    await stage.let()
    for caller in crowd:
        assert (await caller.end()).whole
    assert texts(crowd) == {WHOLE}
    assert backend.calls == 1
    assert [caller.field("x-cache-coalesced") for caller in crowd] == [None] + ["1"] * MANY
    again = await (await streets[1].stream()).end()
    assert (again.field("x-cache"), backend.calls) == ("HIT", 1)


async def test_half_of_a_thousand_leave_two_replicas(streets, stage, backend, redis):  # noqa: F811
    """The first, for whom the backend was asked, at once; the others at any event. Who stays is given everything."""
    dice = random.Random(8)
    first, *crowd = await crowd_of(streets, backend, stage)
    first.leave()
    dice.shuffle(crowd)
    leaving, staying = crowd[: MANY // 2], crowd[MANY // 2 :]
    while leaving:
        for caller in leaving[: dice.randint(1, 30)]:
            leaving.remove(caller)
            dice.choice([Caller.leave, Caller.close])(caller)
        await stage.let(min(stage.allowed + 1, len(EVENTS) - 1))
    await stage.let()
    for caller in staying:
        assert (await caller.end()).whole
    assert texts(staying) == {WHOLE}
    assert backend.calls == 1
    assert (await (await streets[1].stream()).end()).field("x-cache") == "HIT"
    await rig.until(lambda: not keys_of_flights(redis), 30, "no key of a running answer")


async def test_a_cut_is_told_to_a_thousand_at_two_replicas(streets, stage, backend, redis):  # noqa: F811
    """B15: none has a clean end, and nothing is stored."""
    stage.cuts_at = 30
    crowd = await crowd_of(streets, backend, stage)
    await stage.let()
    for caller in crowd:
        await caller.end()
    assert texts(crowd) == {b"".join(EVENTS[:30])}
    assert all(caller.over and not caller.whole for caller in crowd)
    assert backend.calls == 1
    stage.cuts_at = None
    again = await (await streets[1].stream()).end()
    assert (again.body, again.whole, again.field("x-cache"), backend.calls) == (WHOLE, True, "MISS", 2)
    await rig.until(lambda: not keys_of_flights(redis), 30, "no key of a running answer")


async def test_who_wants_json_at_another_replica_waits_and_reads_what_was_stored(streets, stage, backend):
    first = await streets[0].stream()
    await rig.until(lambda: backend.calls == 1)
    await stage.let(3)
    await first.events(3)
    other = await streets[1].call()
    await stage.let()
    await first.end()
    answer = json.loads((await other.end()).body)
    assert answer["choices"][0]["message"]["content"] == "".join(
        json.loads(event[6:])["choices"][0]["delta"].get("content", "") for event in EVENTS[:-1]
    )
    assert backend.calls == 1


async def test_a_stream_goes_on_at_the_other_replica(streets, stage, backend):
    """While the first connection's break is not yet noticed, and after everything has ended."""
    first = await streets[0].stream(headers={"X-Cache-Event-Ids": "on"})
    await rig.until(lambda: backend.calls == 1)
    await stage.let(7)
    seen = b"".join(await first.events(7))
    last = re.findall(rb"^id: (\S+)$", seen, re.MULTILINE)[-1].decode()
    rest = await streets[1].stream(headers={"Last-Event-ID": last})
    await stage.let()
    whole = (await first.end()).body
    assert (await rest.end()).body == whole.removeprefix(seen)
    late = await (await streets[1].stream(headers={"Last-Event-ID": last})).end()
    assert late.body == whole.removeprefix(seen)
    assert backend.calls == 1


async def test_an_answer_goes_on_for_those_who_follow_it_elsewhere(streets, stage, backend):
    """Everybody at the replica that fetches has left."""
    first = await streets[0].stream()
    await rig.until(lambda: backend.calls == 1)
    await stage.let(3)
    await first.events(3)
    other = await streets[1].stream()
    await other.events(3)
    first.leave()
    await stage.let(8)
    await other.events(8)
    await stage.let()
    assert (await other.end()).body == WHOLE
    assert (backend.calls, stage.left) == (1, 0)


@pytest.mark.parametrize("way", WAYS)
async def test_when_everybody_has_left_everywhere_the_backend_is_stopped(streets, stage, backend, way):
    """However they leave, and though the last one was elsewhere, within a second."""
    first = await streets[0].stream()
    await rig.until(lambda: backend.calls == 1)
    await stage.let(3)
    await first.events(3)
    other = await streets[1].stream()
    await other.events(3)
    WAYS[way](first)
    WAYS[way](other)
    await rig.until(lambda: stage.left == 1, SOON, "the end of the call")


async def test_a_purge_in_the_middle_lets_nobody_join_at_the_other_replica(pair, streets, stage, backend, session):
    """Its caller gets it to the end, the next one starts a new call, and nothing old is stored."""
    first = await streets[0].stream()
    await rig.until(lambda: backend.calls == 1)
    await stage.let(3)
    await first.events(3)
    order = {"selector": {"all": True}, "confirm": "purge all"}
    async with session.post(pair[1].admin + "/admin/purge", json=order) as answer:
        assert answer.status == 200
    next_one = await streets[1].stream()
    await rig.until(lambda: backend.calls == 2)
    await stage.let()
    assert (await first.end()).body == (await next_one.end()).body == WHOLE


async def test_nobody_goes_on_with_what_was_purged_at_the_other_replica(pair, streets, stage, backend, session):
    """This one has heard nothing of the purge, and asks before it goes on with what it holds."""
    await stage.let()
    whole = (await (await streets[0].stream(headers={"X-Cache-Event-Ids": "on"})).end()).body
    last = re.findall(rb"^id: (\S+)$", whole, re.MULTILINE)[5].decode()
    order = {"selector": {"all": True}, "confirm": "purge all"}
    async with session.post(pair[1].admin + "/admin/purge", json=order) as answer:
        assert answer.status == 200
    body = (await (await streets[0].stream(headers={"Last-Event-ID": last})).end()).body
    assert re.sub(rb"^id: \S+\n", b"", body, flags=re.MULTILINE) == WHOLE
    assert backend.calls == 2


async def test_a_replica_that_is_killed(pair, streets, stage, backend, redis):  # noqa: F811
    """Who follows elsewhere is told within the lease; who has seen nothing yet gets a new generation, one for all; and
    nothing is left of the old one."""
    first = await streets[0].stream()
    await rig.until(lambda: backend.calls == 1)
    await stage.let(3)
    await first.events(3)
    halfway = await streets[1].stream()
    await halfway.events(3)
    waiting = [await streets[1].call() for _ in range(5)]  # as JSON: they have seen nothing
    assert keys_of_flights(redis)
    pair[0].kill()
    await halfway.until(lambda: halfway.over, 20)
    assert not halfway.whole
    answers = [json.loads((await caller.end()).body)["choices"][0]["message"]["content"] for caller in waiting]
    assert set(answers) == {"Hello."}
    assert backend.calls == 2
    await rig.until(lambda: stage.left == 1, 20, "the end of the first call")
    await rig.until(lambda: not keys_of_flights(redis), 30, "no key of a running answer")


async def test_without_redis_a_crowd_does_not_become_a_storm(spawn, stage, backend, redis_start):  # noqa: F811
    """Redis is gone: the replica shares among its own callers those answers that it began in this moment."""
    server = redis_start()
    proxy = await spawn("--redis-url", server.url, CACHEPROXY_FLIGHT__LEASE="2s")
    street = Street(proxy.port)
    try:
        server.stop()
        crowd = await street.crowd(200, stream=True)
        await stage.let()
        for caller in crowd:
            assert (await caller.end()).whole
        assert texts(crowd) == {WHOLE}
        assert backend.calls < 40
    finally:
        street.close()
