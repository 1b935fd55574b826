"""Purging by family of prompts and by caller, with every store; whether a call waits; what erasing leaves on the disk."""

import asyncio
from pathlib import Path

import pytest

from tests.fakes.backend import Numbered, completion, gives
from tests.fakes.embedder import Chosen
from tests.redis_fixtures import redis, redis_server  # noqa: F401
from tests.rig import Client, until

SYSTEM, OTHER = "You are a helper of the shop. " * 20, "You translate what you are given. " * 20
CANARY = "CANARY-of-the-answer-1b7e"
ASKED = "CANARY of the question, what is it about?"


@pytest.fixture(params=["memory", "sqlite", pytest.param("redis", marks=pytest.mark.redis)])
async def stored(request, start, tmp_path, backend):
    """A proxy with this store."""
    backend.script = Numbered()
    if request.param == "redis":
        return await start(redis__url=request.getfixturevalue("redis").url, redis__timeout="2s")
    return await start(**({"store__data_dir": str(tmp_path / "data")} if request.param == "sqlite" else {}))


async def purge(proxy, session, selector, **more) -> dict:
    async with session.post(proxy.admin + "/admin/purge", json={"selector": selector, **more}) as answer:
        told = await answer.json()
        assert answer.status == 200, told
        return told


async def rows(proxy, session) -> list[dict]:
    async with session.get(proxy.admin + "/admin/entries") as answer:
        return (await answer.json())["entries"]


def under(client: Client, system: str, text: str):
    return client.chat(messages=[{"role": "system", "content": system}, {"role": "user", "content": text}])


async def test_what_was_answered_under_one_system_prompt(stored, session):
    client = Client(stored.base, session)
    for text in ("a", "b"):
        await under(client, SYSTEM, text)
    await under(client, OTHER, "a")
    families = [row["prefix"] for row in await rows(stored, session)]
    [family] = {one for one in families if families.count(one) == 2}
    assert all(families)
    async with session.get(stored.admin + "/admin/prefixes") as answer:
        assert {row["id"] for row in (await answer.json())["families"]} == set(families)
    told = await purge(stored, session, {"prefix": family})
    assert (told["matched"], told["purged"]) == (2, 2)
    assert (await under(client, OTHER, "a")).cache == "HIT"
    assert [(await under(client, SYSTEM, text)).cache for text in ("a", "b")] == ["MISS", "MISS"]


@pytest.mark.parametrize("facet", ["scope", "credential"])
async def test_one_callers_answers(stored, session, facet):
    client = Client(stored.base, session)
    await client.chat(key="A")
    [row] = await rows(stored, session)
    await client.chat(seed=1, key="B")
    told = await purge(stored, session, {"scope": row[facet]}, wait=True)
    assert (told["matched"], told["purged"]) == (1, 1)
    assert (await client.chat(seed=1, key="B")).cache == "HIT"
    assert (await client.chat(key="A")).cache == "MISS"


@pytest.mark.parametrize("wait", [True, False, None])
async def test_a_call_returns_before_anything_has_left_unless_it_is_told_to_wait(
    start, session, backend, tmp_path, monkeypatch, wait
):
    proxy = await start(store__data_dir=str(tmp_path))
    client = Client(proxy.base, session)
    await client.chat()
    store, go, removing = proxy.house.purge._stock, asyncio.Event(), asyncio.Event()
    whole = store.remove

    async def held(felled):
        removing.set()
        await go.wait()
        return await whole(felled)

    monkeypatch.setattr(store, "remove", held)
    more = {} if wait is None else {"wait": wait}
    call = asyncio.create_task(purge(proxy, session, {"model": "m"}, **more))
    await removing.wait()
    if wait:
        assert (await client.chat()).cache == "MISS", "it is in force"
        assert not call.done()
        go.set()
    told = await call
    assert (told["matched"], told["purged"]) == (1, 1)
    assert proxy.house.purge.under_way == (0 if wait else 1)
    go.set()
    await until(lambda: proxy.house.purge.under_way == 0)


async def test_the_same_prompt_is_of_the_same_family_after_a_restart(start, session, backend, tmp_path):
    """So that what was stored before can be purged by what is told now."""
    told = {"store__data_dir": str(tmp_path)}
    for text in ("a", "b"):
        proxy = await start(**told)
        await under(Client(proxy.base, session), SYSTEM, text)
        await until(lambda proxy=proxy: proxy.house.store.census().entries > 0)
        found = await rows(proxy, session)
        if text == "a":
            await proxy.running.stop()
    assert len({row["prefix"] for row in found}) == 1
    assert len(found) == 2
    assert (await purge(proxy, session, {"prefix": found[0]["prefix"]}))["matched"] == 2


def placed() -> Chosen:
    made = Chosen()
    made.near(ASKED, 1.0)
    return made


def holding(directory: Path, *words: str) -> dict[str, list[str]]:
    """The files in which one of these can be read."""
    files = [file for file in directory.rglob("*") if file.is_file()]
    found = {word: [file.name for file in files if word.encode() in file.read_bytes()] for word in words}
    return {word: names for word, names in found.items() if names}


async def learnt(proxy) -> None:
    await until(lambda: not proxy.house.engine.fill._tasks, what="the end of background work")


async def test_erasing_leaves_nothing_of_a_caller_in_any_file(start, session, backend, tmp_path):
    """Free pages included; what others asked stays."""
    backend.script = gives(completion(CANARY))
    proxy = await start(embedder=placed(), store__data_dir=str(tmp_path))
    client = Client(proxy.base, session)
    for number in range(30):
        await client.chat(key="A", messages=[{"role": "user", "content": f"{ASKED} {number}"}])
    await learnt(proxy)
    [scope] = {row["scope"] for row in await rows(proxy, session)}
    backend.script = gives(completion("others"))
    await client.chat(key="B")
    await learnt(proxy)
    index = proxy.house.meaning.index._index
    await until(lambda: index._file.count == 31)
    await until(lambda: holding(tmp_path, CANARY, ASKED).keys() == {CANARY, ASKED})
    assert (await purge(proxy, session, {"scope": scope}, wait=True))["purged"] == 30
    assert (await client.chat(key="B")).cache == "HIT"
    await proxy.running.stop()  # SQLite's logs are written back
    assert holding(tmp_path, CANARY, ASKED) == {}
    assert index._file.count == 1
