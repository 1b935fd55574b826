"""A folder that is a knowledge base, and the proxy before which it lies: nothing of an old content is served."""

import asyncio

import pytest

from tests.rig import Client

KB = {"X_Cache_KB": "faq"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "faq").mkdir()
    (tmp_path / "faq" / "a.md").write_text("A")
    (tmp_path / "faq" / "b.md").write_text("B")
    return tmp_path / "faq"


@pytest.fixture
def watching(start, session, folder, tmp_path):
    """Starts a proxy that watches it; what it keeps survives it."""

    async def begin(**values) -> Client:
        watched = [{"name": "faq", "path": str(folder)}]
        told = {"kb__watch": watched, "kb__watch_interval": 0.01, "store__data_dir": str(tmp_path / "data"), **values}
        proxy = await start(**told)
        client = Client(proxy.base, session)
        client.proxy = proxy
        return client

    return begin


async def is_served(client: Client, **told) -> bool:
    return (await client.chat(**{**KB, **told})).cache == "HIT"


async def comes_to_be_served(client: Client, **told) -> None:
    async with asyncio.timeout(10):
        while not await is_served(client, **told):
            await asyncio.sleep(0.005)


async def falls(client: Client, **told) -> None:
    async with asyncio.timeout(10):
        while (await client.chat(Cache_Control="only-if-cached", **{**KB, **told})).status != 504:
            await asyncio.sleep(0.005)


async def test_a_change_fells_what_read_the_document_and_what_names_none(watching, folder):
    client = await watching()
    read_a, read_b = {"seed": 1, "X_Cache_Tags": "doc:a.md"}, {"seed": 2, "X_Cache_Tags": "doc:b.md"}
    for told in ({}, read_a, read_b):
        await client.chat(**{**KB, **told})
        await comes_to_be_served(client, **told)
    (folder / "a.md").write_text("A2")
    await falls(client)
    await falls(client, **read_a)
    assert await is_served(client, **read_b)


async def test_what_changed_while_it_was_down_is_not_served_first(watching, folder):
    client = await watching()
    await client.chat(**KB)
    await client.chat(seed=9)
    await comes_to_be_served(client)
    await client.proxy.running.stop()
    client = await watching()
    await comes_to_be_served(client)
    await client.proxy.running.stop()
    (folder / "a.md").write_text("A2")
    client = await watching()
    assert not await is_served(client)
    assert (await client.chat(seed=9)).cache == "HIT"
    await comes_to_be_served(client)


async def test_while_the_folder_is_not_there_nothing_that_rests_on_it_is_served(watching, folder):
    client = await watching()
    await client.chat(**KB)
    await comes_to_be_served(client)
    folder.rename(folder.parent / "away")
    await falls(client)
    await client.chat(seed=9)
    assert (await client.chat(seed=9)).cache == "HIT"
    (folder.parent / "away").rename(folder)
    await comes_to_be_served(client)
