"""An answer that is being made while what it rests on falls: its caller gets it, nobody who comes later does, and the
next one who asks has a new one made, also while the old one is still on its way."""

import asyncio
from collections import defaultdict

import pytest

from tests.fakes.backend import Exchange, chunk, completion, plain
from tests.rig import until

KB = {"X_Cache_KB": "handbook", "X_Cache_Tags": "faq"}
FELL = {
    "purge": ("POST", "/admin/purge", {"selector": {"tags": "faq"}}),
    "soft purge": ("POST", "/admin/purge", {"selector": {"tags": "faq"}, "mode": "soft"}),
    "version": ("PUT", "/admin/kb/handbook", {"version": "v2"}),
    "document": ("PUT", "/admin/kb/handbook", {"version": "v2", "changed_documents": ["unknown"]}),
}


class Held:
    """A backend that numbers the answers that it begins, and ends each when it may. A stream's first words come at
    once."""

    def __init__(self) -> None:
        self.begun = 0
        self.may: dict[int, asyncio.Event] = defaultdict(asyncio.Event)

    async def __call__(self, exchange: Exchange) -> None:
        if b"completions" not in exchange.seen.target:
            await plain(exchange)
            return
        self.begun += 1
        number = self.begun
        if not exchange.seen.json.get("stream"):
            await self.may[number].wait()
            await exchange.json(completion(f"answer {number}"))
            return
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        await exchange.chunk(chunk({"role": "assistant", "content": f"answer {number}"}))
        await self.may[number].wait()
        await exchange.chunk(chunk(finish="stop") + b"data: [DONE]\n\n")
        await exchange.end()


@pytest.fixture
def held(backend) -> Held:
    backend.script = Held()
    return backend.script


@pytest.mark.parametrize("fell", FELL)
@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
async def test_it_is_its_callers_and_nobody_elses(place, held, stream, fell):
    """CONTRACT 6.6. Nobody else asks meanwhile: of two proxies, the one that is at it hears of nothing."""
    early = await _begun(place, held, stream, fell)
    held.may[1].set()
    assert (await early).text == "answer 1"
    held.may[2].set()
    later = [await client.chat(stream=stream, **KB) for client in (*place.clients, *place.clients)]
    assert [(answer.cache, answer.text) for answer in later] == [
        ("MISS", "answer 2"),
        *[("HIT", "answer 2")] * (len(later) - 1),
    ]


@pytest.mark.parametrize("ends_first", [1, 2])
@pytest.mark.parametrize("fell", FELL)
@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
async def test_who_comes_before_its_end_has_a_new_one_made(place, held, stream, fell, ends_first):
    """Whichever of the two ends first, the old one is not what is kept."""
    early = await _begun(place, held, stream, fell)
    late = [asyncio.create_task(client.chat(stream=stream, **KB)) for client in place.clients]
    await until(lambda: held.begun >= 2, what="a call for those who came later")
    for number in range(2, 2 + len(late)):
        held.may[number].set()
    if ends_first == 2:
        await asyncio.gather(*late)
    held.may[1].set()
    assert (await early).text == "answer 1"
    assert "answer 1" not in [(await one).text for one in late]
    for client in place.clients:
        after = await client.chat(stream=stream, **KB)
        assert after.cache == "HIT"
        assert after.text != "answer 1"


async def _begun(place, held: Held, stream: bool, fell: str) -> asyncio.Task:
    """A request of the first proxy, under way; the last one has been told that what it rests on fell."""
    early = asyncio.create_task(place.clients[0].chat(stream=stream, **KB))
    await until(lambda: held.begun == 1, what="the first call")
    status, told = await place.desks[-1].call(*FELL[fell])
    assert status == 200, told
    return early
