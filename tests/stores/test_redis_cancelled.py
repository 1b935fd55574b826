"""Half of all operations are cancelled at random moments, through a slow relay, on two connections: nobody is given what
another asked for, no connection is lost, and afterwards everything works."""

import asyncio
import random
from collections import Counter

import pytest

from cacheproxy.core.model import Entry
from cacheproxy.errors import Trouble
from cacheproxy.ports import Kept
from tests.examples import OPERATIONS, SEED
from tests.rig import until
from tests.stores.entries import body_of, key_of
from tests.stores.replicas import Replica, entry, joining

pytestmark = pytest.mark.redis

USUAL = 2000
COUNT = OPERATIONS if OPERATIONS > 3000 else USUAL
KEYS = 40
AT_ONCE = 24
CONNECTIONS = 2


class Ground:
    """What was put, and so what may be found."""

    def __init__(self, one: Replica, seed: int) -> None:
        self.one = one
        self.dice = random.Random(seed)
        self.begun = Counter(dict.fromkeys(range(KEYS), 0))  # key -> the last version whose put was begun
        self.kept = Counter()  # key -> the last version whose put has returned
        self.seen = Counter()

    def length(self, number: int) -> int:
        """Small ones, and ones that fill more than one packet."""
        return [40, 700, 3000, 40_000][number % 4]

    async def get(self) -> None:
        number = self.dice.randrange(KEYS)
        floor = self.kept[number]
        found = await self.one.get(number)
        if found is None:
            assert floor == 0, f"entry {number} of version {floor} was lost"
            self.seen["none"] += 1
            return
        version = self.judge(number, found)
        assert floor <= version <= self.begun[number]
        self.seen["found"] += 1

    def judge(self, number: int, found: Entry) -> int:
        version = round(found.stored_at - 1000)
        assert found.key == key_of(number)
        assert found.answer.body == body_of(key_of(number), self.length(number), version)
        return version

    async def put(self) -> None:
        number = self.dice.randrange(KEYS)
        self.begun[number] += 1
        version = self.begun[number]
        if await self.one.store.put(entry(number, self.length(number), version=version)) is Kept.YES:
            self.kept[number] = max(version, self.kept[number])
            self.seen["put"] += 1

    async def current(self) -> None:
        await self.one.epochs.current()
        self.seen["current"] += 1

    async def one_of_them(self) -> None:
        draw = self.dice.random()
        await (self.get() if draw < 0.6 else self.put() if draw < 0.95 else self.current())

    async def operation(self) -> bool:
        """One operation, cancelled at a random moment or not; whether it was."""
        task = asyncio.create_task(self.one_of_them())
        if self.dice.random() < 0.5:
            if self.dice.random() < 0.5:
                for _ in range(self.dice.randrange(12)):
                    await asyncio.sleep(0)
            else:
                await asyncio.sleep(self.dice.random() * 0.004)
            task.cancel()
        [result] = await asyncio.gather(task, return_exceptions=True)
        if isinstance(result, asyncio.CancelledError):
            return True
        if result is not None:
            raise result
        return False

    async def worker(self, share: int) -> int:
        return sum([await self.operation() for _ in range(share)])


async def turmoil(ground: Ground, relay) -> None:
    """The relay is slow now in one way, now in another."""
    while True:
        relay.delay(0.0002, 0.0002)
        await asyncio.sleep(0.05)
        relay.slice(900, 0.0002)
        await asyncio.sleep(0.05)


@pytest.mark.timeout(0 if COUNT > USUAL else 120)
async def test_half_cancelled_and_nobody_gets_anothers_answer(redis, relay):
    async with joining() as join:
        one = join(relay.url, connections=CONNECTIONS)
        await one.epochs.current()
        ground = Ground(one, SEED)
        before = len(redis.cli("CLIENT", "LIST").splitlines())
        disturbing = asyncio.create_task(turmoil(ground, relay))
        cancelled = sum(await asyncio.gather(*(ground.worker(COUNT // AT_ONCE + 1) for _ in range(AT_ONCE))))
        disturbing.cancel()
        relay.clear()
        assert cancelled > COUNT // 4
        assert min(ground.seen[what] for what in ("found", "put", "current")) > COUNT // 100
        # Nothing is lost: what is under way ends, and its connections are free.
        await until(lambda: repr(one.store._lookups) == repr(one.store._writes) == "<Lane 0 waiting, 0 under way>")
        pool = one.link.redis.connection_pool
        await until(lambda: pool.busy == 0)
        assert one.link.connections <= CONNECTIONS
        assert relay.open == one.link.connections
        assert relay.opened == one.link.connections, "a connection was given up"
        assert len(redis.cli("CLIENT", "LIST").splitlines()) - before <= CONNECTIONS
        for number in range(KEYS):
            newest = entry(number, ground.length(number), version=ground.begun[number] + 1)
            assert await one.store.put(newest) is Kept.YES
            assert await one.get(number) == newest


async def test_who_leaves_while_a_connection_is_made_costs_nobody_that_connection(redis, relay):
    async with joining() as join:
        one = join(relay.url, connections=1)
        relay.delay(0.002)
        for steps in range(30):
            asking = asyncio.create_task(one.get(1))
            for _ in range(steps):
                await asyncio.sleep(0.0005)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        assert await one.keep(entry(1)) is None or await one.keep(entry(1)) is None
        assert (await one.get(1)).key == key_of(1)
        assert (relay.opened, relay.open, one.link.connections) == (1, 1, 1)


async def test_a_call_that_all_have_left_and_that_fails_leaves_no_connection_half_read(redis, relay):
    """The answer that came too late is never the answer to the next question."""
    async with joining() as join:
        one = join(relay.url, connections=1, timeout=0.2)
        await one.epochs.current()
        for number in range(4):
            assert await one.store.put(entry(number)) is Kept.YES
        for lap in range(2):
            relay.freeze(ways=("down",))
            asking = asyncio.create_task(one.get(lap))
            await until(lambda: one.link.redis.connection_pool.busy == 1)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            with pytest.raises(Trouble):
                await one.get(3)
            relay.clear()
            for number in range(4):
                assert (await one.get(number)).key == key_of(number)
            assert one.link.connections == 1
