"""Redis set up in ways that make it say no: full, evicting, behind a password that is not ours, without its modules."""

import random

import pytest

from tests.fakes.backend import Exchange, completion
from tests.faults.load import (
    Telling,
    ask,
    burst,
    caches,
    hits_back,
    is_alive,
    purge,
    reasons,
    troubles,
    version_of,
    within,
)  # fmt: skip
from tests.redis_fixtures import redis_acl, redis_acl_server  # noqa: F401
from tests.rig import Client, until

pytestmark = pytest.mark.redis

ROOM = "8mb"
LONG = 12_000
_dice = random.Random(5)


class Long(Telling):
    """The same, with a long tail that does not shrink when it is packed; the next answer has `length` letters more."""

    length = LONG

    async def __call__(self, exchange: Exchange) -> None:
        if b"completions" not in exchange.seen.target:
            await super().__call__(exchange)
            return
        asked = exchange.seen.json
        tail = _dice.randbytes(self.length // 2).hex()
        await exchange.json(completion(f"{self.version}|{asked['messages'][0]['content']}|{tail}"))


async def long_answer(client: Client, prompt: str, **headers):
    """Ask; the answer is the one to this question."""
    asked = [{"role": "user", "content": prompt}]
    answer = await client.chat(messages=asked, Accept_Encoding="identity", **headers)
    assert answer.status == 200
    assert answer.text.split("|")[1] == prompt
    return answer


async def test_a_redis_that_evicts_gives_what_it_has_and_nothing_else(sharing, own_redis, session, backend):
    server = own_redis(config=[f"maxmemory {ROOM}", "maxmemory-policy allkeys-lru"])
    proxies, clients = await sharing(server.url)
    backend.script = Long()
    for number in range(1200):
        await long_answer(clients[number % 2], f"question {number}")
    assert int(server.info("stats")["evicted_keys"]) > 100
    last = [await long_answer(client, "question 1199") for client in clients]
    assert [answer.cache for answer in last] == ["HIT", "HIT"]
    assert last[0].text == last[1].text
    await is_alive(session, proxies[0])
    backend.script.version = 2
    assert (await purge(session, proxies[0]))[0] == 200
    for number in range(1150, 1200):
        answer = await long_answer(clients[number % 2], f"question {number}")
        assert answer.text.startswith("2|")


async def test_a_full_redis_that_evicts_nothing_is_read_on(sharing, own_redis, session, backend):
    """B67: writes fail and are counted by their kind; what is there is served, by one who comes later too."""
    server = own_redis()
    [proxy], [client] = await sharing(server.url, 1)
    backend.script = Long()
    await long_answer(client, "kept")
    server.cli("CONFIG", "SET", "maxmemory-policy", "noeviction")
    server.cli("CONFIG", "SET", "maxmemory", 1)
    for number in range(20):
        assert (await long_answer(client, f"new {number}")).cache == "MISS"
        assert (await long_answer(client, "kept")).cache == "HIT"
    counted = await troubles(session, proxy)
    assert counted.keys() <= {"redis (write)", "redis (recordings)"}
    assert set(counted["redis (write)"]) == {"oom"}
    _, [late] = await sharing(server.url, 1)
    backend.script = Long()  # `sharing` has set another
    assert (await long_answer(late, "kept")).cache == "HIT"
    server.cli("CONFIG", "SET", "maxmemory", 0)
    await long_answer(client, "after")

    async def kept() -> bool:
        return (await long_answer(client, "after")).cache == "HIT"

    await within(kept, "a hit")


async def test_an_answer_too_long_for_a_lookup_is_not_kept_and_takes_the_older_one_away(sharing, redis, backend):
    """4 MiB of a stored form; packed as text it is half of what the caller reads."""
    proxies, clients = await sharing(redis.url)
    backend.script = Long()
    assert (await long_answer(clients[0], "long")).cache == "MISS"
    assert (await long_answer(clients[1], "long")).cache == "HIT"
    backend.script.length = 12 * 2**20
    await long_answer(clients[0], "long", Cache_Control="no-cache")
    told = proxies[0].house.telemetry.summary
    await until(lambda: told()["not_kept"] == {"too_large": 1}, what="its being counted")
    assert [(await long_answer(client, "long")).cache for client in clients] == ["MISS", "MISS"]


async def test_an_answer_of_some_mebibytes_is_shared(sharing, redis, backend):
    _, clients = await sharing(redis.url)
    backend.script = Long()
    backend.script.length = 3 * 2**20
    first, second = [await long_answer(client, "rather long") for client in clients]
    assert [first.cache, second.cache] == ["MISS", "HIT"]
    assert first.text == second.text


@pytest.mark.parametrize("login", [":wrong-password@", "someone:wrong-password@", ""])
async def test_a_wrong_password_costs_nothing_and_is_said_once(sharing, own_redis, session, caplog, login):
    server = own_redis(acl=["user cache on >right ~* &* +@all"])
    url = server.url.replace("redis://", f"redis://{login}")
    [proxy], [client] = await sharing(url, 1)
    answers = await burst([client], [f"new {n}" for n in range(60)])
    assert caches(answers) == {"MISS": 60}
    assert set(reasons(answers)) == {"store_trouble"}
    assert set((await troubles(session, proxy))["redis (read)"]) == {"noauth"}
    await is_alive(session, proxy)
    assert "wrong-password" not in caplog.text
    assert sum("answers come from the backend" in line for line in caplog.messages) == 1
    assert sum("left alone" in line for line in caplog.messages) <= 2
    assert (await purge(session, proxy))[0] == 503


async def test_without_the_search_module_exact_answers_are_shared(sharing, own_redis, session):
    proxies, clients = await sharing(own_redis(search=False).url)
    assert [(await ask(client, "x")).cache for client in clients] == ["MISS", "HIT"]
    assert (await purge(session, proxies[0]))[1]["purged"] == 1
    assert (await ask(clients[1], "x")).cache == "MISS"


async def test_the_smallest_set_of_rights_is_enough(sharing, redis_acl, session):  # noqa: F811
    """The user of configs/redis.conf: looked up, stored, purged, swept, without one refusal."""
    proxies, clients = await sharing(redis_acl.url)
    assert [(await ask(client, "x")).cache for client in clients] == ["MISS", "HIT"]
    assert (await purge(session, proxies[0], {"selector": {"model": "m"}, "mode": "soft"}))[0] == 200
    assert (await ask(clients[1], "x")).cache == "MISS"
    assert (await purge(session, proxies[1]))[0] == 200
    assert (await ask(clients[0], "x")).cache == "MISS"
    for proxy in proxies:
        await proxy.house.storage.shared._epochs.keep_alive()
        await proxy.house.store._store.sweep(proxy.house.clock.now())
        assert proxy.house.store.census().entries == 1
        assert await troubles(session, proxy) == {}


async def test_flushed_between_two_requests(sharing, redis, telling):
    """Whoever empties Redis loses what was there, and nothing else."""
    _, clients = await sharing(redis.url)
    await ask(clients[0], "x")
    redis.cli("FLUSHALL")
    telling.version = 2
    answers = [await ask(client, "x") for client in (*clients, *clients)]
    assert [version_of(answer, "x") for answer in answers] == [2, 2, 2, 2]
    await hits_back(clients, "x")
