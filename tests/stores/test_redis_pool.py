"""The connections to a Redis: never too many, never lost, never with somebody else's answer, whoever leaves and when."""

import asyncio
import random
from collections import Counter

import pytest
from redis._parsers import _AsyncHiredisParser, _AsyncRESP3Parser
from redis.exceptions import TimeoutError as SlowError

from cacheproxy.stores.redis_trouble import trouble
from tests.examples import OPERATIONS, SEED
from tests.fakes import relay as replies
from tests.parts import redis as part
from tests.rig import until

pytestmark = [
    pytest.mark.redis,
    pytest.mark.skipif(not part.here(), reason="the packaged Redis exists for Linux on x86-64 only"),
]
KEYS = 50


def named(server: part.Redis) -> int:
    """Connections of ours, as the server counts them."""
    return sum("name=cacheproxy" in line for line in bytes(server.cli("CLIENT", "LIST")).decode().splitlines())


async def kind_of(awaitable) -> str:
    with pytest.raises(Exception) as caught:
        await awaitable
    return trouble(caught.value).kind


async def test_a_full_pool_waits(redis, relay, link_to):
    """B66: 300 at once on two connections: nobody is refused, in the order of their coming."""
    link = link_to(relay.url, max_connections=2)
    order: list[int] = []

    async def ask(number: int) -> None:
        await link.redis.set(f"k{number}", number)
        order.append(number)

    await asyncio.gather(*(ask(number) for number in range(300)))
    assert all(abs(place - number) < 3 for place, number in enumerate(order))
    assert (link.connections, named(redis), relay.opened) == (2, 2, 2)


async def test_a_server_that_takes_few_clients(redis_start, link_to):
    """B66: what it takes is enough for all."""
    server = redis_start(search=False, config=["maxclients 4"])
    link = link_to(server.url, max_connections=10)
    assert await asyncio.gather(*(link.redis.get("k") for _ in range(200))) == [None] * 200
    assert 1 <= link.connections <= 4


async def test_who_does_not_wait_leaves_the_connection_to_the_next(relay, link_to):
    """A handshake may take longer than any caller waits."""
    relay.delay(0.02)
    link = link_to(relay.url, max_connections=1)

    async def tried(seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await link.redis.get("k")
        except TimeoutError:
            return False
        return True

    assert not await tried(0.03)
    await until(lambda: repr(link.redis.connection_pool).startswith("<Pool 1 idle, 0 busy, 0 being made"))
    relay.clear()
    assert await tried(30)
    assert relay.opened == 1


async def test_one_deadline_holds_for_the_whole_handshake(relay, link_to):
    """A byte a second, which is never silent for long, is too slow."""
    link = link_to(relay.url, 0.1)
    link.redis.connection_pool.connection_kwargs["deadline"] = 0.3
    relay.slice(1, 0.05, ways=[replies.DOWN])
    with pytest.raises(SlowError):  # redis-py's own, which its clients know
        await link.redis.get("k")
    await until(lambda: relay.open == 0)
    relay.clear()
    assert await link.redis.get("k") is None


async def test_a_handshake_may_take_longer_than_an_answer(relay, link_to):
    link = link_to(relay.url, 0.03)
    relay.delay(0.1, ways=[replies.DOWN])
    wire = await link.redis.connection_pool.get_connection()
    await link.redis.connection_pool.release(wire)
    assert link.connections == 1
    assert await kind_of(link.redis.get("k")) == "timeout"


async def test_a_connection_that_is_given_to_one_who_leaves_goes_to_the_next(redis, link_to):
    link = link_to(redis.url, max_connections=1)
    pool = link.redis.connection_pool
    wire = await pool.get_connection()
    leaves, next_one = (asyncio.ensure_future(pool.get_connection()) for _ in range(2))
    await asyncio.sleep(0)
    await pool.release(wire)
    leaves.cancel()
    assert await next_one is wire
    assert leaves.cancelled()
    await pool.release(wire)
    assert repr(pool).startswith("<Pool 1 idle, 0 busy")


async def test_who_waits_gets_another_in_place_of_one_that_broke(redis, link_to):
    link = link_to(redis.url, max_connections=1)
    pool = link.redis.connection_pool
    wire = await pool.get_connection()
    waits = asyncio.ensure_future(link.redis.get("k"))
    await asyncio.sleep(0)
    wire.abort()
    await pool.release(wire)
    assert await waits is None


@pytest.mark.parametrize("steps", range(1, 7))
async def test_a_handshake_that_breaks_off_anywhere(redis, relay, link_to, steps):
    """A half-made connection is nobody's: neither without its login nor in the wrong database."""
    redis.cli("SELECT", 0)
    link = link_to(relay.url.removesuffix("0") + "3")
    relay.cut(steps * 37)
    while True:
        try:
            await link.redis.set("k", "v")
            break
        except Exception as error:
            assert trouble(error).kind in ("reset", "timeout", "protocol")
            relay.clear()
    assert set(redis.info("keyspace")) == {"db3"}


async def test_those_who_wait_are_all_told_that_nobody_is_there(relay, link_to):
    link = link_to(relay.url, max_connections=2)
    relay.refuse()
    errors = await asyncio.gather(*(link.redis.get("k") for _ in range(100)), return_exceptions=True)
    assert {trouble(error).kind for error in errors} == {"refused"}
    assert len({id(error) for error in errors}) == 100
    assert link.connections == 0
    relay.accept()
    assert await link.redis.get("k") is None


async def test_an_idle_connection_that_ended_is_not_used(redis, relay, link_to):
    link = link_to(relay.url, max_connections=3)
    await asyncio.gather(*(link.redis.get("k") for _ in range(3)))
    redis.cli("CLIENT", "KILL", "TYPE", "normal")
    await until(lambda: all(wire._reader.at_eof() for wire in link.redis.connection_pool._idle))
    assert await link.redis.get("k") is None
    await until(lambda: relay.open == link.connections == 1)


async def test_an_idle_connection_on_which_something_came_is_not_used(redis, relay, link_to):
    """What was not asked for is never taken for an answer."""
    link = link_to(relay.url, max_connections=1)
    redis.cli("SET", "k", "right")
    assert await link.redis.get("k") == b"right"
    link.redis.connection_pool._idle[0]._reader.feed_data(b"$5\r\nwrong\r\n")
    assert await link.redis.get("k") == b"right"
    assert relay.opened == 2


async def test_dropped_connections_are_not_used_again_and_not_disturbed(redis, relay, link_to):
    link = link_to(relay.url, max_connections=2)
    await asyncio.gather(link.redis.ping(), link.redis.ping())
    busy = asyncio.ensure_future(link.redis.execute_command("BLPOP", "list", 0))
    await until(lambda: relay.commands["BLPOP"] == 1)
    await link.drop()
    await until(lambda: relay.open == 1)
    assert await link.redis.get("k") is None
    redis.cli("RPUSH", "list", "x")
    assert await busy == (b"list", b"x")
    await until(lambda: relay.open == link.connections == 1)
    assert relay.opened == 3


async def test_an_answer_that_cannot_be_used_leaves_none_behind(redis, relay, link_to):
    """What comes after it on that connection is not the next caller's."""
    link = link_to(relay.url, max_connections=1)
    redis.cli("SET", "a", "of a")
    plain = link.redis.response_callbacks.get("GET")

    def refuse(_: object, **__: object) -> None:
        raise ValueError("no")

    link.redis.set_response_callback("GET", refuse)
    pipeline = link.redis.pipeline(transaction=False)
    pipeline.get("a").execute_command("BLPOP", "list", 0)  # whose answer comes later
    assert await kind_of(pipeline.execute()) == "protocol"
    link.redis.response_callbacks.pop("GET") if plain is None else link.redis.set_response_callback("GET", plain)
    asked = asyncio.ensure_future(link.redis.get("a"))
    await until(lambda: relay.commands["GET"] == 2)
    redis.cli("RPUSH", "list", "x")
    assert await asked == b"of a"
    assert relay.opened == 2


async def test_closing_ends_what_runs_and_what_waits(redis, relay, link_to):
    link = link_to(relay.url, max_connections=1)
    await link.redis.ping()
    runs = asyncio.ensure_future(link.redis.execute_command("BLPOP", "list", 0))
    await until(lambda: relay.commands["BLPOP"] == 1)
    waits = asyncio.ensure_future(link.redis.get("k"))
    await asyncio.sleep(0)
    await link.close()
    assert (await kind_of(runs), await kind_of(waits), link.connections) == ("reset", "closed", 0)
    await until(lambda: relay.open == 0)
    other = link_to(relay.url)
    relay.freeze()
    begins = asyncio.ensure_future(other.redis.get("k"))
    await until(lambda: other.connections == 1)
    await other.close()
    assert (await kind_of(begins), other.connections) == ("closed", 0)


async def test_a_listener_comes_back(redis, link_to, relay):
    """After its connection broke off, with its subscriptions."""
    listener = link_to(relay.url).listener()
    await listener.subscribe("news")
    assert (await listener.get_message(timeout=10))["type"] == "subscribe"
    relay.reset()
    assert await kind_of(listener.get_message(timeout=10)) == "reset"
    assert (await listener.get_message(timeout=10))["type"] == "subscribe"
    redis.cli("PUBLISH", "news", "one")
    assert (await listener.get_message(timeout=10))["data"] == b"one"
    await listener.aclose()


class Asker:
    """Asks at random, and leaves at random moments."""

    def __init__(self, link, seed: int) -> None:
        self.link = link
        self.drawn = random.Random(seed)
        self.seen = Counter()

    async def one(self) -> None:
        number = self.drawn.randrange(KEYS)
        kind = self.drawn.choice(["get", "mget", "pipeline", "set", "script"])
        task = asyncio.ensure_future(getattr(self, kind)(number))
        if self.drawn.random() < 0.5:
            await asyncio.sleep(self.drawn.choice([0, 0, self.drawn.uniform(0, 0.004)]))
            task.cancel()
        try:
            await task
            self.seen["answered"] += 1
        except asyncio.CancelledError:
            self.seen["cancelled"] += 1

    async def get(self, number: int) -> None:
        assert await self.link.redis.get(f"{{k}}{number}") == b"%d" % number

    async def mget(self, number: int) -> None:
        other = (number + 7) % KEYS
        assert await self.link.redis.mget(f"{{k}}{number}", f"{{k}}{other}") == [b"%d" % number, b"%d" % other]

    async def pipeline(self, number: int) -> None:
        numbers = [(number + step) % KEYS for step in range(3)]
        async with self.link.redis.pipeline() as pipeline:
            for one in numbers:
                pipeline.execute_command("GET", f"{{k}}{one}")
            assert await pipeline.execute() == [b"%d" % one for one in numbers]

    async def set(self, number: int) -> None:
        assert await self.link.redis.set(f"{{k}}{number}", number) is True

    async def script(self, number: int) -> None:
        found = await self.link.redis.eval("return redis.call('GET', KEYS[1])", 1, f"{{k}}{number}")
        assert found == b"%d" % number


async def ask_at_random(link, operations: int) -> Counter:
    for number in range(KEYS):
        await link.redis.set(f"{{k}}{number}", number)
    asker = Asker(link, SEED)

    async def worker() -> None:
        for _ in range(operations // 20):
            await asker.one()

    await asyncio.gather(*(worker() for _ in range(20)))
    return asker.seen


@pytest.mark.parametrize("parser", [_AsyncHiredisParser, _AsyncRESP3Parser])
async def test_cancelled_at_any_moment(redis, relay, link_to, parser):
    """No answer is another's, no connection is lost, through a slow relay with a pool of two."""
    link = link_to(relay.url, max_connections=2)
    link.redis.connection_pool.connection_kwargs["parser_class"] = parser
    relay.delay(0.0002, jitter=0.0004)
    seen = await ask_at_random(link, OPERATIONS // 2)
    assert min(seen["answered"], seen["cancelled"]) > OPERATIONS // 10
    assert link.connections <= 2
    # What nobody waits for any more may still be being made.
    await until(lambda: "0 busy, 0 being made, 0 waiting" in repr(link.redis.connection_pool))
    await until(lambda: relay.open == link.connections)
    assert await link.redis.get("{k}1") == b"1"
