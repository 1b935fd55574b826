"""However a backend cuts and writes its stream, the caller gets its bytes, and the repeat its events."""

import asyncio
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.events import split
from cacheproxy.core.model import Endpoint
from tests import rig
from tests.core import streams
from tests.core.streams import Writer
from tests.examples import tries
from tests.fakes.backend import Exchange, Script
from tests.proxy import wire

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of what a failing example was given

PATHS = {
    Endpoint.CHAT: "/v1/chat/completions", Endpoint.COMPLETIONS: "/v1/completions", Endpoint.RESPONSES: "/v1/responses",
}  # fmt: skip
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def asking(start) -> rig.InProcess:
    """Asks every stream for its usage, and takes that out again."""
    return await start()


@pytest.fixture
async def silent(start) -> rig.InProcess:
    """Touches no stream."""
    return await start(stream__ask_usage=False)


def in_pieces(pieces: list[bytes]) -> Script:
    """A script that gives each piece a chunk, and a moment, of its own."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(HEAD)
        for piece in filter(None, pieces):
            await exchange.chunk(piece)
            await asyncio.sleep(0)
        await exchange.end()

    return script


def told(body: bytes) -> list[tuple[Any, list[bytes]]]:
    """What each event says, but for the id and the time that a repeat has of its own."""
    found = []
    for event in split(body):
        if not event.lines:
            continue
        document = None if event.data == b"[DONE]" else json.loads(event.data)
        if isinstance(document, dict) and document.get("object") != "response":
            document = {name: value for name, value in document.items() if name not in ("id", "created")}
        found.append((document, [line for line in event.lines if not line.startswith(b"data")]))
    return found


async def ask(proxy: rig.InProcess, endpoint: Endpoint, number: int, *, usage: bool = False) -> wire.Wire:
    options = {"stream_options": {"include_usage": True}} if usage else {}
    body = {"model": "m", "messages": [], "input": "x", "prompt": None, "stream": True, **options}
    return await wire.ask(proxy.port, wire.request(body, path=PATHS[endpoint], key=f"k{number}"))


@pytest.mark.parametrize("endpoint", sorted(PATHS))
@tries(40)
@given(streams.spoken, st.integers(0, 2**32))
async def test_a_stream_passes_byte_for_byte_and_comes_back_event_for_event(
    asking, silent, backend, endpoint, texts, seed
):
    """B20, B23, B25, CONTRACT 6.1, 6.3: with its comments, line ends and mark; without the usage that only we wanted."""
    dice = random.Random(seed)
    documents = streams.documents(endpoint, dice, texts)
    counts = endpoint is not Endpoint.RESPONSES
    writer = Writer(dice).stream([*documents, *([streams.usage_of(endpoint)] if counts else [])])
    bare = b"".join(
        block.raw for block in writer.blocks if not (block.document and block.document.get("choices") == [])
    )
    for proxy, usage, sent, wanted in (
        (silent, False, bare, bare), (silent, True, writer.raw, writer.raw),
        (asking, False, writer.raw, bare), (asking, True, writer.raw, writer.raw),
    ):  # fmt: skip
        backend.script = in_pieces(streams.cut(sent, dice, 60))
        await proxy.house.store.close()  # forgets all
        miss, hit = [await ask(proxy, endpoint, seed, usage=usage) for _ in range(2)]
        assert (miss.get(b"x-cache"), hit.get(b"x-cache")) == (b"MISS", b"HIT")
        assert (miss.whole, miss.body) == (True, wanted)
        assert (hit.whole, told(hit.body)) == (True, told(wanted))


async def test_an_event_of_five_mebibytes_passes_in_hundreds_of_pieces(asking, silent, backend):
    """B62."""
    dice = random.Random(7)
    texts = ["é漢😀\r\n data: " * (5 * 2**20 // 20)]
    writer = Writer(dice, plain=True).stream(streams.documents(Endpoint.CHAT, dice, texts))
    backend.script = in_pieces(streams.cut(writer.raw, dice, 400))
    for proxy in (silent, asking):
        miss, hit = [await ask(proxy, Endpoint.CHAT, 1) for _ in range(2)]
        assert (miss.get(b"x-cache"), hit.get(b"x-cache")) == (b"MISS", b"HIT")
        assert len(miss.body) > 5 * 2**20
        assert miss.body == writer.raw
        assert told(hit.body) == told(miss.body)


@tries(40)
@given(streams.spoken, st.integers(0, 2**32))
async def test_a_stream_that_breaks_off_passes_to_its_last_byte(asking, silent, backend, texts, seed):
    """B15: whatever had come, nothing more, no sign of an end, and nothing kept."""
    dice = random.Random(seed)
    writer = Writer(dice).stream(streams.documents(Endpoint.CHAT, dice, texts))
    # Not inside the line ends after the terminal event, where nothing is missing but framing.
    raw = writer.raw[: dice.randint(1, writer.raw.index(b"[DONE]"))]
    pieces = streams.cut(raw, dice, 60)

    async def script(exchange: Exchange) -> None:
        await exchange.send(HEAD)
        for piece in filter(None, pieces):
            await exchange.chunk(piece)
        exchange.close = True  # without the last chunk

    backend.script = script
    for proxy in (silent, asking):
        cut = await ask(proxy, Endpoint.CHAT, seed)
        assert (cut.get(b"x-cache"), cut.whole, cut.body) == (b"MISS", False, raw)
        assert proxy.house.store.census().entries == 0
        assert proxy.house.engine.budget.held == 0
