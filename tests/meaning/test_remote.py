"""The embedder behind a URL: few calls, one vector a text, and whatever the server does is trouble and nothing else."""

import asyncio

import numpy as np
import pytest
from aiohttp import web

from cacheproxy.core.model import Identity, Unfit
from cacheproxy.errors import Trouble
from cacheproxy.meaning.remote import MOST, Remote
from tests.rig import until

DIM = 4
SCOPE = b"s" * 16


def vector_of(text: str) -> list[float]:
    return [float(len(text)), 1.0, 0.0, 2.0]


class Server:
    """Embeds by `vector_of`; `answer` replaces what it says, `gate` holds it back."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.heads: list[dict[str, str]] = []
        self.answer = None
        self.gate: asyncio.Event | None = None
        self.url = ""

    async def embed(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.calls.append(asked["input"])
        self.heads.append(dict(request.headers) | {"model": asked["model"]})
        if self.gate is not None:
            await self.gate.wait()
        if self.answer is not None:
            made = self.answer(asked["input"])
            return made if isinstance(made, web.Response) else web.json_response(made)
        return web.json_response(rows([vector_of(text) for text in asked["input"]]))


def rows(vectors) -> dict:
    data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
    return {"object": "list", "data": data[::-1], "model": "m"}


@pytest.fixture
async def server():
    made = Server()
    app = web.Application()
    app.router.add_post("/base/v1/embeddings", made.embed)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/base"
    yield made
    await runner.cleanup()


@pytest.fixture
async def make():
    made: list[Remote] = []

    def build(url: str, **options) -> Remote:
        made.append(Remote(url, Identity("m", "", DIM, prefix=options.pop("prefix", "")), **options))
        return made[-1]

    yield build
    for remote in made:
        await remote.close()


@pytest.fixture
def remote(make, server) -> Remote:
    return make(server.url)


async def test_a_text_has_its_vector_with_the_length_1(remote, server):
    found = await remote.embed("hello", SCOPE)
    wanted = np.array(vector_of("hello")) / np.linalg.norm(vector_of("hello"))
    assert np.allclose(found, wanted)
    assert found.dtype == np.float32
    assert server.calls == [["hello"]]


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/"])
async def test_with_or_without_v1_means_the_same(make, server, tail):
    assert isinstance(await make(server.url + tail).embed("a", SCOPE), np.ndarray)


async def test_what_it_is_told_is_sent(make, server):
    remote = make(server.url, api_key="sk-1", prefix="query: ")
    await remote.embed("hello", SCOPE)
    assert server.calls == [["query: hello"]]
    assert server.heads[0]["Authorization"] == "Bearer sk-1"
    assert server.heads[0]["model"] == "m"
    assert "sk-1" not in repr(remote)


async def test_a_lone_text_goes_at_once_and_those_that_come_meanwhile_together(remote, server):
    server.gate = asyncio.Event()
    first = asyncio.create_task(remote.embed("first", SCOPE))
    await until(lambda: len(server.calls) == 1, what="the first call")
    others = [asyncio.create_task(remote.embed(f"other {n}", SCOPE)) for n in range(MOST + 3)]
    await asyncio.sleep(0)
    server.gate.set()
    found = await asyncio.gather(first, *others)
    assert [len(call) for call in server.calls] == [1, MOST, 3]
    assert all(isinstance(one, np.ndarray) for one in found)


async def test_a_text_that_is_known_is_not_asked_again_and_is_known_to_its_scope_alone(remote, server):
    for _ in range(3):
        await remote.embed("hello", SCOPE)
    await remote.embed("hello", b"t" * 16)
    assert server.calls == [["hello"], ["hello"]]


async def test_one_text_that_many_ask_for_at_once_is_sent_once(remote, server):
    found = await asyncio.gather(*(remote.embed("same", SCOPE) for _ in range(20)))
    assert server.calls == [["same"]]
    assert all(np.array_equal(one, found[0]) for one in found)


@pytest.mark.parametrize(
    ("text", "wanted"), [("", Unfit.EMPTY), (" \n", Unfit.EMPTY), ("x" * 21, Unfit.TOO_LONG), ("x" * 20, None)]
)
async def test_what_has_no_vector_is_not_sent(make, server, text, wanted):
    found = await make(server.url, most_chars=20).embed(text, SCOPE)
    assert (found if wanted else None) is wanted
    assert len(server.calls) == (0 if wanted else 1)


async def test_a_text_that_the_server_refuses_is_unfit_and_costs_no_other(remote, server):
    def answer(texts):
        if any("long" in text for text in texts):
            return web.json_response({"error": {}}, status=400)
        return rows([vector_of(text) for text in texts])

    server.answer = answer
    server.gate = asyncio.Event()
    asked = [asyncio.create_task(remote.embed(text, SCOPE)) for text in ("a", "b", "too long", "c")]
    await until(lambda: len(server.calls) == 1, what="the first call")
    server.gate.set()
    found = await asyncio.gather(*asked)
    assert found[2] is Unfit.TOO_LONG
    assert all(isinstance(one, np.ndarray) for one in (found[0], found[1], found[3]))


NAN = '{"data": [{"index": 0, "embedding": [NaN, 1, 1, 1]}]}'


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: web.Response(status=500, text="oops"),
        lambda _: web.Response(status=429),
        lambda _: web.Response(status=301, headers={"Location": "http://127.0.0.1:1/"}),
        lambda _: web.Response(text="<html>", content_type="text/html"),
        lambda _: web.Response(text=NAN, content_type="application/json"),
        lambda _: rows([]),
        lambda texts: rows([vector_of("a")] * (len(texts) + 1)),
        lambda _: rows([[0.0] * DIM]),
        lambda _: rows([[1.0] * (DIM + 1)]),
        lambda _: rows([["a"] * DIM]),
        lambda _: rows([None]),
        lambda _: rows([[1e39] * DIM]),
        lambda _: {"data": {"index": 0}},
        lambda _: {"data": [{"index": 1, "embedding": [1.0] * DIM}]},
        lambda _: [],
        lambda _: None,
    ],
)
async def test_anything_else_is_trouble_and_passes(remote, server, answer):
    """B70, B73: nothing that is no vector gets through, no answer's text is told, and the next text is asked as ever."""
    server.answer = answer
    with pytest.raises(Trouble) as caught:
        await remote.embed("hello", SCOPE)
    assert "hello" not in str(caught.value)
    server.answer = None
    assert isinstance(await remote.embed("hello", SCOPE), np.ndarray)


async def test_a_server_that_is_not_there_or_hangs_is_trouble(make, server):
    with pytest.raises(Trouble):
        await make("http://127.0.0.1:1").embed("a", SCOPE)
    server.gate = asyncio.Event()
    with pytest.raises(Trouble) as caught:
        await make(server.url, seconds=0.05).embed("a", SCOPE)
    assert caught.value.kind == "timeout"
    server.gate.set()


async def test_who_leaves_costs_nobody_else(remote, server):
    server.gate = asyncio.Event()
    leaving = asyncio.create_task(remote.embed("same", SCOPE))
    staying = asyncio.create_task(remote.embed("same", SCOPE))
    await until(lambda: len(server.calls) == 1, what="the call")
    leaving.cancel()
    server.gate.set()
    assert isinstance(await staying, np.ndarray)
    assert isinstance(await remote.embed("another", SCOPE), np.ndarray)


async def test_closing_ends_the_wait(make, server):
    remote = make(server.url)
    server.gate = asyncio.Event()
    asked = asyncio.create_task(remote.embed("a", SCOPE))
    await until(lambda: len(server.calls) == 1, what="the call")
    await remote.close()
    with pytest.raises(Trouble):
        await asked
    server.gate.set()
    await remote.close()


async def test_any_text_can_be_sent(remote, server):
    """But half a pair, which JSON cannot say; it costs no other text its vector."""
    texts = ('"\\\x00', "\ud800", "\u2028 é 漢字 😀", "a\r\nb")
    found = await asyncio.gather(*(remote.embed(text, SCOPE) for text in texts))
    assert [isinstance(one, np.ndarray) for one in found] == [True, False, True, True]
    assert found[1] is Unfit.UNKNOWN_TOKENS
    assert [text for call in server.calls for text in call] == [texts[0], *texts[2:]]
