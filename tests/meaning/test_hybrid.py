"""FT.HYBRID, which no server that we can run here has: the form of the command and of its answer by the documentation,
and what happens where it is refused."""

import pytest
from redis.exceptions import ResponseError

from cacheproxy.core.key import entry_id
from cacheproxy.core.model import Near
from cacheproxy.errors import Trouble
from cacheproxy.meaning import hybrid
from cacheproxy.meaning.redisearch_hits import Hits
from tests.contract.index_fixtures import NOW, P, line, row
from tests.stores.entries import key_of

HITS = Hits(P.hex(), line(1), NOW)
STANDING = f"@p:{{{P.hex()}}} @x:[({NOW:.6f} +inf]"


def test_the_form_of_the_command():
    assert hybrid.command("alias", ["one", "two"], 7, HITS) == [
        "FT.HYBRID", "alias",
        "SEARCH", f"{STANDING} (@w:(_one|_two))=>{{$weight:0;}} ~@w:_one ~@w:_two", "SCORER", "BM25STD",
        "YIELD_SCORE_AS", "words",
        "VSIM", "@v", "$q", "KNN", 2, "K", 7, "FILTER", STANDING, "YIELD_SCORE_AS", "meaning",
        "COMBINE", "RRF", 4, "CONSTANT", 60, "WINDOW", 7,
        "LIMIT", 0, 7,
        "LOAD", 6, "@__key", "@k", "@p", "@x", "@v", "@t",
        "PARAMS", 2, "q", line(1).tobytes(),
    ]  # fmt: skip


def answered(number: int, vector, **scores) -> dict:
    name = f"cacheproxy:{{0}}:v:0:{entry_id(key_of(number))}"
    fields = {
        "__key": name,
        "k": key_of(number),
        "p": P.hex(),
        "x": str(NOW + 9),
        "v": vector.tobytes(),
        "t": b"text",
        **scores,
    }
    return {k.encode(): v.encode() if isinstance(v, str) else v for k, v in fields.items()}


ROWS = [
    answered(1, line(0.8, 0.6), meaning="0.9", words="2.5"), answered(2, line(0, 1), words="7.5"),
    answered(3, line(1), meaning="1"), {**answered(4, line(1), meaning="1"), b"p": bytes(32).hex().encode()},
]  # fmt: skip


def resp3(rows) -> dict:
    return {b"total_results": len(rows), b"results": rows, b"warnings": [], b"execution_time": 0.5}


def resp2(rows) -> list:
    flat = [[part for pair in each.items() for part in pair] for each in rows]
    return [b"total_results", len(rows), b"results", flat, b"warnings", [], b"execution_time", b"0.5"]


WANTED = [
    Near(key_of(1), pytest.approx(0.8), 2, 2), Near(key_of(2), pytest.approx(0), None, 1),
    Near(key_of(3), pytest.approx(1), 1, None),
]  # fmt: skip


@pytest.mark.parametrize("shape", [resp2, resp3])
def test_an_answer_keeps_its_order_and_every_row_proves_itself(shape):
    found = hybrid.found(shape(ROWS), Hits(P.hex(), line(1), NOW))
    assert found == WANTED
    assert [near.text for near in found] == ["text"] * 3
    assert hybrid.found(shape([]), Hits(P.hex(), line(1), NOW)) == []


class Server:
    """Stands before a client and answers FT.HYBRID; everything else is the client's."""

    def __init__(self, index, answer) -> None:
        self._client, self._answer = index.redis, answer
        self.asked = 0
        index.redis = self

    def __getattr__(self, name: str):
        return getattr(self._client, name)

    async def execute_command(self, *words, **options):
        assert words[0] == "FT.HYBRID"
        self.asked += 1
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.redis
async def test_a_server_that_has_it_is_asked_once_for_both(redis, make):
    index = make(hybrid=True)
    await index.add(row(1))
    server = Server(index, resp3(ROWS))
    with redis.monitor() as monitor:
        assert await index.search(P, line(1), "some words", 7, NOW) == WANTED
        assert monitor.names == []
    assert server.asked == 1
    assert [near.key for near in await index.search(P, line(1), "?!", 7, NOW)] == [key_of(1)], "no words, no fusion"
    assert server.asked == 1


@pytest.mark.redis
async def test_a_server_that_refuses_it_is_not_asked_again(redis, make):
    index = make(hybrid=True)
    await index.add(row(1, text="some words"))
    asked = []
    real = index.redis.execute_command

    async def execute(*words, **options):
        asked.append(words[0])
        return await real(*words, **options)

    index.redis.execute_command = execute
    for _ in range(3):
        (found,) = await index.search(P, row(1).vector, "words", 7, NOW)
        assert (found.key, found.by_meaning, found.by_words) == (key_of(1), 1, 1)
    assert asked.count("FT.HYBRID") == 1


@pytest.mark.redis
async def test_a_missing_index_is_no_refusal(redis, make):
    index = make(hybrid=True)
    await index.add(row(1, text="some words"))
    server = Server(index, ResponseError("SEARCH_INDEX_NOT_FOUND Index not found"))
    assert await index.search(P, line(1), "words", 7, NOW) == []
    assert server.asked == 2, "once more after a look"
    server._answer = resp3(ROWS)
    assert len(await index.search(P, line(1), "words", 7, NOW)) == 3


@pytest.mark.redis
@pytest.mark.parametrize("answer", [None, b"text", {}, [b"results"], resp3([{}]), resp3([None])])
async def test_an_answer_of_another_shape_is_like_a_refusal(redis, make, answer):
    """A version that answers otherwise costs the fusion by the server, and nothing else."""
    index = make(hybrid=True)
    await index.add(row(1, text="some words"))
    server = Server(index, answer)
    for _ in range(3):
        assert [near.key for near in await index.search(P, row(1).vector, "words", 7, NOW)] == [key_of(1)]
    assert server.asked == 1


@pytest.mark.redis
async def test_a_server_that_is_gone_is_trouble_and_no_refusal(redis, make):
    index = make(hybrid=True)
    await index.add(row(1))
    server = Server(index, ConnectionError("gone"))
    with pytest.raises(Trouble):
        await index.search(P, line(1), "words", 7, NOW)
    server._answer = resp3(ROWS)
    assert len(await index.search(P, line(1), "words", 7, NOW)) == 3
