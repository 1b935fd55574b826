"""Called wrong: the answer is out of service when the call returns, on every replica, and that pair never matches
again; over a restart too."""

import json

import pytest

from cacheproxy.errors import Trouble
from tests.fakes.embedder import Chosen
from tests.redis_fixtures import redis, redis_server  # noqa: F401
from tests.rig import CHAT, Client, until

ASKED = "How do I get a new password for my account?"
LIKE = "How can I get a new password for my account?"
THIRD = "How shall I get a new password for my account?"
BARRED = "unlike"


def placed() -> Chosen:
    made = Chosen()
    made.near(ASKED, 1.0)
    for text in LIKE, THIRD:
        made.near(text, 0.97)
    return made


def body(text: str) -> dict:
    return {"model": "m", "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": text}]}


def ask(client: Client, text: str, **more):
    return client.send(body(text), path=CHAT, **more)


async def learnt(proxy) -> None:
    await until(lambda: not proxy.house.engine.fill._tasks, what="the end of background work")


class Judge:
    """Says what was wrong to a proxy's admin listener."""

    def __init__(self, session, proxy) -> None:
        self._session, self._proxy = session, proxy

    async def say(self, document, **headers) -> tuple[int, dict]:
        data = document if isinstance(document, bytes) else json.dumps(document)
        async with self._session.post(self._proxy.admin + "/admin/feedback", data=data, headers=headers) as answer:
            return answer.status, await answer.json()

    async def wrong(self, hit, text: str | None = None) -> dict:
        document = {"entry_id": hit.get("x-cache-entry-id"), "verdict": "wrong"}
        status, told = await self.say(document | ({"request": body(text)} if text is not None else {}))
        assert status == 200, told
        return told


@pytest.fixture
async def semantic(start):
    return await start(embedder=placed())


@pytest.fixture
def client(semantic, session) -> Client:
    return Client(semantic.base, session)


@pytest.fixture
def judge(semantic, session) -> Judge:
    return Judge(session, semantic)


async def met(proxy, client):
    """A question with an answer, and a hit by meaning on it."""
    await ask(client, ASKED)
    await learnt(proxy)
    hit = await ask(client, LIKE)
    assert hit.get("x-cache-tier") == "semantic"
    return hit


async def test_wrong_takes_the_answer_out_and_the_pair_never_matches_again(semantic, client, judge, backend):
    hit = await met(semantic, client)
    told = await judge.wrong(hit, LIKE)
    assert told == {"entry_id": hit.get("x-cache-entry-id"), "verdict": "wrong", "removed": 1, "barred": 1, "lifted": 0}
    again = await ask(client, ASKED)
    assert again.cache == "MISS"
    await learnt(semantic)
    answer = await ask(client, LIKE)
    assert (answer.cache, answer.get("x-cache-reason")) == ("MISS", BARRED)
    assert (await ask(client, THIRD)).get("x-cache-tier") == "semantic"


async def test_in_the_other_order_it_does_not_match_either(semantic, client, judge):
    await judge.wrong(await met(semantic, client), LIKE)
    await ask(client, LIKE)
    await learnt(semantic)
    answer = await ask(client, ASKED)
    assert (answer.cache, answer.get("x-cache-reason")) == ("MISS", BARRED)


async def test_without_a_request_the_question_of_the_answer_matches_nothing(semantic, client, judge):
    hit = await met(semantic, client)
    await judge.wrong(hit)
    await ask(client, ASKED)
    await learnt(semantic)
    assert (await ask(client, THIRD)).get("x-cache-reason") == BARRED
    status, told = await judge.say({"entry_id": hit.get("x-cache-entry-id"), "verdict": "right"})
    assert (status, told["lifted"]) == (200, 1)


async def test_right_lets_the_pair_match_again(semantic, client, judge):
    hit = await met(semantic, client)
    await judge.wrong(hit, LIKE)
    await ask(client, ASKED)
    await learnt(semantic)
    status, told = await judge.say({"entry_id": hit.get("x-cache-entry-id"), "verdict": "right", "request": body(LIKE)})
    assert (status, told["lifted"]) == (200, 1)
    assert (await ask(client, LIKE)).get("x-cache-tier") == "semantic"


async def test_an_exact_hit_that_is_called_wrong_is_gone(start, session, backend):
    """Also where the semantic layer is off."""
    proxy = await start()
    client, judge = Client(proxy.base, session), Judge(session, proxy)
    await ask(client, ASKED)
    hit = await ask(client, ASKED)
    assert hit.get("x-cache-tier") == "exact"
    await judge.wrong(hit, ASKED)
    assert (await ask(client, ASKED)).cache == "MISS"
    assert len(backend.seen) == 2


@pytest.mark.parametrize("way", ["trouble", "unreadable"])
async def test_a_quarantine_in_trouble_costs_a_miss_and_never_an_answer(start, session, tmp_path, way):
    if way == "unreadable":
        (tmp_path / "quarantine.sqlite3").mkdir()
    proxy = await start(embedder=placed(), store__data_dir=str(tmp_path))
    client = Client(proxy.base, session)
    if way == "trouble":
        proxy.house.feedback._quarantine.among = _fails
    await ask(client, ASKED)
    await learnt(proxy)
    answer = await ask(client, LIKE)
    assert (answer.cache, answer.get("x-cache-reason")) == ("MISS", "semantic_trouble")
    assert (await ask(client, ASKED)).get("x-cache-tier") == "exact"
    status, told = await Judge(session, proxy).say({"entry_id": answer.get("x-cache-entry-id"), "verdict": "wrong"})
    assert (status, told["error"]["code"]) == (503, "store_trouble")


async def _fails(_names):
    raise Trouble("no")


async def test_it_holds_over_a_restart(start, session, tmp_path):
    proxy = await start(embedder=placed(), store__data_dir=str(tmp_path))
    client = Client(proxy.base, session)
    await Judge(session, proxy).wrong(await met(proxy, client), LIKE)
    await proxy.running.stop()
    proxy = await start(embedder=placed(), store__data_dir=str(tmp_path))
    client = Client(proxy.base, session)
    await ask(client, ASKED)
    await learnt(proxy)
    assert (await ask(client, LIKE)).get("x-cache-reason") == BARRED


@pytest.mark.redis
async def test_on_every_replica_when_the_call_returns(start, session, redis):  # noqa: F811
    options = {"redis__url": redis.url, "redis__timeout": "2s", "semantic__search_timeout": "2s"}
    one, other = [await start(embedder=placed(), **options) for _ in range(2)]
    here, there = Client(one.base, session), Client(other.base, session)
    hit = await met(one, here)
    only = {"Cache_Control": "only-if-cached"}
    assert (await ask(there, LIKE, **only)).get("x-cache-tier") == "semantic"
    await Judge(session, other).wrong(hit, LIKE)
    for client in here, there:
        assert (await ask(client, ASKED, **only)).status == 504
    await ask(there, ASKED)
    await learnt(other)
    for client in here, there:
        assert (await ask(client, LIKE, **only)).status == 504
        assert (await ask(client, THIRD, **only)).get("x-cache-tier") == "semantic"
    names = redis.cli("KEYS", "*:q:*")
    assert len(names) == 3
    assert {len(name) for name in names} == {len(names[0])}


@pytest.mark.parametrize(
    ("document", "param"),
    [
        ([], "body"),
        ({"verdict": "wrong"}, "entry_id"),
        ({"entry_id": "", "verdict": "wrong"}, "entry_id"),
        ({"entry_id": 1, "verdict": "wrong"}, "entry_id"),
        ({"entry_id": "x"}, "verdict"),
        ({"entry_id": "x", "verdict": "WRONG"}, "verdict"),
        ({"entry_id": "x", "verdict": ["wrong"]}, "verdict"),
        ({"entry_id": "x", "verdict": "wrong", "request": "text"}, "request"),
        ({"entry_id": "x", "verdict": "wrong", "why": "so"}, "why"),
    ],
)
async def test_what_is_not_said_well(judge, document, param):
    status, told = await judge.say(document)
    assert (status, told["error"]["code"], told["error"]["param"]) == (400, "invalid_request", param)


async def test_no_json_and_unknown_answers(judge):
    assert (await judge.say(b"{"))[1]["error"]["code"] == "invalid_json"
    for verdict in "wrong", "right":
        status, told = await judge.say({"entry_id": "0" * 32, "verdict": verdict, "request": body(LIKE)})
        assert (status, told["error"]["code"]) == (404, "not_found")


async def test_it_is_behind_the_token(start, session):
    proxy = await start(admin__token="t" * 32)
    judge = Judge(session, proxy)
    document = {"entry_id": "0" * 32, "verdict": "right"}
    assert (await judge.say(document))[0] == 401
    assert (await judge.say(document, Authorization=f"Bearer {'t' * 32}"))[0] == 404
