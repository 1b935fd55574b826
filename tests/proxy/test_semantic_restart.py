"""What a proxy has learnt by meaning it knows after a restart, if it keeps its answers."""

from tests.fakes.embedder import Chosen
from tests.rig import Client, until

ASKED = "How do I get a new password for my account?"
LIKE = "How can I get a new password for my account?"


def placed() -> Chosen:
    made = Chosen()
    made.near(ASKED, 1.0)
    made.near(LIKE, 0.97)
    return made


def ask(client: Client, text: str, **more):
    return client.chat(messages=[{"role": "user", "content": text}], **more)


def index(proxy):
    return proxy.house.meaning.index._index


async def begin(start, tmp_path):
    proxy = await start(embedder=placed(), store__data_dir=str(tmp_path))
    await until(lambda: index(proxy).whole)
    return proxy


async def learnt(proxy) -> None:
    await until(lambda: not proxy.house.engine.fill._tasks, what="the end of background work")


async def test_a_like_question_has_its_answer_after_a_restart(start, session, backend, tmp_path):
    proxy = await begin(start, tmp_path)
    first = await ask(Client(proxy.base, session), ASKED)
    await learnt(proxy)
    await proxy.running.stop()
    proxy = await begin(start, tmp_path)
    hit = await ask(Client(proxy.base, session), LIKE)
    assert (hit.cache, hit.get("x-cache-tier"), hit.text) == ("HIT", "semantic", first.text)
    assert hit.get("x-cache-similarity") == "0.9700"
    assert len(backend.seen) == 1
    async with session.get(proxy.admin + "/metrics") as metrics:
        assert "cacheproxy_semantic_loaded 1.0" in await metrics.text()


async def test_what_was_purged_is_not_in_the_file_when_the_call_returns(start, session, tmp_path):
    proxy = await begin(start, tmp_path)
    client = Client(proxy.base, session)
    await ask(client, ASKED)
    await learnt(proxy)
    await until(lambda: index(proxy)._file.count == 1)
    document = {"selector": {"all": True}, "confirm": "purge all", "wait": True}
    async with session.post(proxy.admin + "/admin/purge", json=document) as answer:
        assert answer.status == 200
    assert index(proxy)._file.count == 0
    await proxy.running.stop()
    proxy = await begin(start, tmp_path)
    assert len(index(proxy)) == 0
    assert (await ask(Client(proxy.base, session), LIKE)).cache == "MISS"
