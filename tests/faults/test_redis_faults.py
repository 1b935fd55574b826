"""Whatever a Redis does, every request is answered by the backend, nobody is served what is not his, and the cache is
back by itself within 5 s of the fault's end (B63, B67)."""

import asyncio
from collections import Counter

import pytest

from cacheproxy.engine import breaker
from tests.examples import OPERATIONS
from tests.faults.load import Telling, ask, burst, caches, hits_back, is_alive, purge, reasons, troubles
from tests.faults.ways import HOST, WAYS, Name, Way
from tests.rig import Client, InProcess

pytestmark = pytest.mark.redis

KNOWN = [f"known {n}" for n in range(20)]
USUAL = 200
"""Requests under each fault; in a soak a fiftieth of the operations, 2,000 of 100,000."""
SOAK = OPERATIONS > 3000
COUNT = max(USUAL, OPERATIONS // 50) if SOAK else USUAL
DEADLINE = "250ms"


@pytest.fixture
def soon(monkeypatch) -> None:
    """What is left alone is tried again sooner, so that this suite is short; a soak waits as long as a user does."""
    if not SOAK:
        monkeypatch.setattr(breaker, "PAUSE", 0.2)


def mixed(count: int, name: str = "new") -> list[str]:
    """Prompts, half of them known."""
    return [KNOWN[n % len(KNOWN)] if n % 2 else f"{name} {n}" for n in range(count)]


async def warm(client: Client) -> None:
    for prompt in KNOWN:
        await ask(client, prompt)
    for prompt in KNOWN:
        assert (await ask(client, prompt)).cache == "HIT"


def said(caplog) -> Counter[str]:
    """The state changes in the log: part and what became of it -> how often."""
    lines = [record.getMessage() for record in caplog.records if record.name == "cacheproxy.guard"]
    assert all(" left alone after " in line or line.endswith(" works again") for line in lines)
    return Counter(line.partition(" after ")[0] for line in lines)


def alternate(changes: Counter[str]) -> bool:
    """Each part told of its change at most once, and of its recovery only if it had been left alone."""
    return max(changes.values(), default=0) <= 1 and all(
        changes[f"{part} left alone"] >= changes[f"{part} works again"] for part in ("redis (read)", "redis (write)")
    )


class Counted:
    """A store before which it is counted how often it is asked."""

    def __init__(self, proxy: InProcess) -> None:
        guarded = proxy.house.store
        self._store, self.gets, self.puts = guarded._store, 0, 0
        guarded._store = self

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def get(self, key):
        self.gets += 1
        return await self._store.get(key)

    async def put(self, entry, epoch=None):
        self.puts += 1
        return await self._store.put(entry, epoch)


async def is_left_alone(client: Client, proxy: InProcess) -> None:
    """Lookups are tried whether anybody asks or not; what is to be stored is tried only as it comes."""
    guarded, number = proxy.house.store, 0
    loop = asyncio.get_running_loop()
    until_ = loop.time() + 10
    while "open" not in (guarded.reads.state, guarded.writes.state):
        assert loop.time() < until_, "never left alone"
        await ask(client, f"to be stored {number}")
        number += 1


async def is_left_alone_unwaited(client: Client, store: Counted, way: Way, count: int) -> None:
    """What is left alone is not asked by those who are being served: only the trial that goes on beside them."""
    loop = asyncio.get_running_loop()
    began, gets, puts = loop.time(), store.gets, store.puts
    answers = await burst([client], mixed(count, "unwaited"), width=10)
    trials = 2 + (loop.time() - began) / breaker.PAUSE
    if way.reads:
        assert store.gets - gets <= trials
        assert reasons(answers) == {"store_trouble": count}
        assert caches(answers) == {"MISS": count}
    else:
        assert 0 < caches(answers)["HIT"] <= count // 2
    assert store.puts - puts <= trials


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("name", WAYS)
async def test_a_fault_costs_no_answer_and_passes(
    sharing, own_redis, relay_to, session, telling: Telling, caplog, name
):
    way, server = WAYS[name], own_redis()
    relay = relay_to(server.address)
    [proxy], [client] = await sharing(relay.url, 1, redis__timeout=DEADLINE)
    await warm(client)
    store = Counted(proxy)
    caplog.clear()
    way.begin(relay, server)
    before = telling.calls
    answers = await burst([client], mixed(COUNT))
    await is_alive(session, proxy)
    if way.reads:
        assert caches(answers)["HIT"] <= 1  # one that was on its way
        shared = sum(answer.get("x-cache-coalesced") is not None for answer in answers)
        assert telling.calls - before == caches(answers)["MISS"] - shared
        part = "redis (read)"
    else:
        # Reading goes on; on a busy machine a look may be too late all the same, which costs some hits.
        assert COUNT // 4 < caches(answers)["HIT"] <= COUNT // 2
        part = "redis (write)"
    await is_left_alone(client, proxy)
    await is_left_alone_unwaited(client, store, way, 40)
    counted = (await troubles(session, proxy))[part]
    assert counted
    assert set(counted) <= {*way.kinds, "timeout"}
    assert store.puts == 0 or not way.reads, "who has waited for a look in vain does not wait to store too"
    relay.clear()
    way.end(relay, server)
    await hits_back([client], KNOWN[0])
    await comes_back(client)
    assert alternate(said(caplog)), said(caplog)
    assert said(caplog)[f"{part} left alone"] == 1


async def comes_back(client: Client) -> None:
    """Answers are stored again, within 5 s."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(1000):
        await ask(client, f"after {number}")
        if (await ask(client, f"after {number}")).cache == "HIT":
            break
        await asyncio.sleep(0.05)
    assert loop.time() - began < 5


async def test_a_name_that_does_not_resolve(sharing, redis, session, caplog, monkeypatch):
    """From the start; and it is not asked for at every request."""
    name = Name(monkeypatch)
    name.known = False
    [proxy], [client] = await sharing(f"redis://{HOST}:{redis.port}", 1, redis__timeout=DEADLINE)
    answers = await burst([client], mixed(COUNT))
    assert caches(answers) == {"MISS": COUNT}
    assert set((await troubles(session, proxy))["redis (read)"]) == {"dns"}
    assert name.asked < COUNT // 4
    await is_alive(session, proxy)
    name.known = True
    await hits_back([client], KNOWN[0])
    await comes_back(client)
    assert alternate(said(caplog))


@pytest.mark.usefixtures("soon")
async def test_a_demoted_primary_is_left_for_the_one_at_the_same_name(sharing, own_redis, relay_to, caplog):
    """B67: the connections to the old one are open and well, and it takes no writes; the name leads elsewhere now."""
    old, new = own_redis(), own_redis()
    relay = relay_to(old.address)
    _, [client] = await sharing(relay.url, 1, redis__max_connections=1)
    await warm(client)
    old.cli("REPLICAOF", "127.0.0.1", new.port)
    relay.target = new.address
    await comes_back(client)
    assert len([key for key in new.cli("KEYS", "*") if b":e:" in key]) > 0
    assert alternate(said(caplog))


async def test_a_blip_costs_a_moment(sharing, relay, caplog):
    """B63: 300 ms of silence, under one request after the other."""
    _, [client] = await sharing(relay.url, 1, redis__timeout="50ms")
    await warm(client)
    relay.freeze()
    loop = asyncio.get_running_loop()
    until_ = loop.time() + 0.3
    while loop.time() < until_:
        await ask(client, KNOWN[0])
    relay.clear()
    assert await hits_back([client], KNOWN[0]) < 2
    assert alternate(said(caplog))


SHAPES = {
    "a number": b":1\r\n",
    "a text": b"$5\r\nhello\r\n",
    "an empty list": b"*0\r\n",
    "a list of nothing": b"*1\r\n$-1\r\n",
    "two numbers": b"*2\r\n:1\r\n:2\r\n",
    "a list of lists": b"*2\r\n*1\r\n:1\r\n*1\r\n:1\r\n",
    "a map": b"%1\r\n+a\r\n+b\r\n",
    "a long list": b"*5\r\n$4\r\nabcd\r\n$2\r\n-1\r\n:5\r\n:7\r\n:1\r\n",
    "a log that is none": b"*5\r\n$16\r\n0123456789abcdef\r\n:3\r\n$-1\r\n*2\r\n$1\r\nx\r\n*0\r\n:1\r\n",
    "no number": b"*5\r\n$16\r\n0123456789abcdef\r\n,inf\r\n$-1\r\n*0\r\n:1\r\n",
}


@pytest.mark.parametrize("command", ["MGET", "EVALSHA"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_reply_of_another_shape_is_trouble_and_nothing_else(sharing, relay, session, command, shape):
    """Whatever it is: the request is answered, a purge says that it failed, and it passes."""
    [proxy], [client] = await sharing(relay.url, 1, redis__timeout=DEADLINE)
    await ask(client, KNOWN[0])
    relay.answer(SHAPES[shape], command)
    for number in range(2):
        await ask(client, KNOWN[0])
        await ask(client, f"new {number}")
        await ask(client, f"new {number}", Cache_Control="no-cache")
    # After nonsense to a lookup all connections are made anew, which a purge may not wait for.
    assert (await purge(session, proxy))[0] in ((503,) if command == "EVALSHA" else (200, 503))
    await proxy.house.store.sweep(proxy.house.clock.now())
    relay.clear()
    await comes_back(client)


PURGING = ("SCAN", "GETRANGE", "GET", "INFO", "STRLEN", "PEXPIRE", "WAIT")


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_reply_of_another_shape_to_a_purge(sharing, relay, session, shape):
    """Nothing is acknowledged that was not done, and the work that goes on beside requests goes on."""
    [proxy], [client] = await sharing(relay.url, 1)
    for command in PURGING:
        await ask(client, command)
        relay.answer(SHAPES[shape], command)
        hard, _ = await purge(session, proxy, model="m")
        soft, _ = await purge(session, proxy, {"selector": {"model": "m"}, "mode": "soft"})
        assert {hard, soft} <= {200, 503}
        await proxy.house.store.sweep(proxy.house.clock.now())
        relay.clear()
        if hard == 200:
            assert (await ask(client, command)).cache == "MISS"
    assert (await purge(session, proxy, model="m"))[0] == 200
