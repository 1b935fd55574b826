"""Questions asked of proxies, whose answers can be told right or wrong by themselves; and what proxies say of themselves."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable

import aiohttp

from tests import rig
from tests.fakes.backend import Exchange, chunk, completion, plain, usage_chunk
from tests.rig import Answer, Client

_TROUBLE = re.compile(r'^cacheproxy_trouble_total\{kind="(\w+)",part="([^"]+)"\} (\S+)$', re.MULTILINE)
EVERYTHING = {"selector": {"all": True}, "confirm": "purge all"}


class Telling:
    """A script of the backend: each answer says to whom and to what it is the answer, and of which `version`."""

    def __init__(self) -> None:
        self.version = 1
        self.calls = 0

    async def __call__(self, exchange: Exchange) -> None:
        if b"completions" not in exchange.seen.target:
            await plain(exchange)
            return
        self.calls += 1
        asked = exchange.seen.json
        text = told(asked["model"], asked["messages"][0]["content"], exchange.seen.get(b"authorization"), self.version)
        if asked.get("stream"):
            usage = [usage_chunk()] if (asked.get("stream_options") or {}).get("include_usage") else []
            await exchange.events(chunk({"role": "assistant", "content": text}), chunk(finish="stop"), *usage)
        else:
            await exchange.json(completion(text))


def told(model: str, prompt: str, credential: bytes | None, version: int) -> str:
    """What the backend says; of a long prompt its beginning."""
    return f"{version}|{(credential or b'').decode()}|{model}|{prompt[:60]}"


def version_of(answer: Answer, prompt: str, *, key: str = "A", model: str = "m") -> int:
    """Of which version a right answer is. Anything but a right one fails."""
    assert answer.status == 200, (answer.status, answer.body[:500])
    version, _, rest = answer.text.partition("|")
    assert rest == told(model, prompt, f"Bearer {key}".encode(), 0).partition("|")[2]
    return int(version)


async def ask(
    client: Client, prompt: str, *, stream: bool = False, key: str = "A", model: str = "m", **headers
) -> Answer:
    """Ask one question; the answer is the right one, of whatever version."""
    body = {"model": model, "messages": [{"role": "user", "content": prompt}], **({"stream": True} if stream else {})}
    answer = await client.send(body, key=key, **headers)
    version_of(answer, prompt, key=key, model=model)
    return answer


async def burst(clients: list[Client], prompts: Iterable[str], width: int = 40) -> list[Answer]:
    """Ask all of them, `width` at once, of the clients in turn, every other one as a stream. All are right."""
    waiting, found = list(enumerate(prompts)), []

    async def worker() -> None:
        while waiting:
            number, prompt = waiting.pop()
            found.append(await ask(clients[number % len(clients)], prompt, stream=number % 4 > 1))

    await asyncio.gather(*(worker() for _ in range(width)))
    return found


def caches(answers: Iterable[Answer]) -> Counter[str]:
    return Counter(answer.cache for answer in answers)


def reasons(answers: Iterable[Answer]) -> Counter[str]:
    return Counter(answer.get("x-cache-reason") for answer in answers)


async def within(met: Callable, what: str, seconds: float = 5.0) -> float:
    """Try until it is met; the seconds that it took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while not await met():
        assert loop.time() < began + seconds, f"{what} did not come within {seconds} s"
        await asyncio.sleep(0.05)
    return loop.time() - began


async def is_hit(client: Client, prompt: str) -> bool:
    return (await ask(client, prompt)).cache == "HIT"


async def hits_back(clients: list[Client], prompt: str) -> float:
    """Wait until each of them serves the answer from the store: at most 5 s in all; how long it took."""
    return max([await within(lambda client=client: is_hit(client, prompt), "a hit") for client in clients])


async def purge(
    session: aiohttp.ClientSession, proxy: rig.InProcess | rig.Process, order: dict | None = None, **selector
):
    """Order a purge of what `selector` says; the status and what was told."""
    document = order or ({"selector": selector} if selector else EVERYTHING)
    async with session.post(proxy.admin + "/admin/purge", data=json.dumps(document)) as answer:
        return answer.status, await answer.json()


async def troubles(session: aiohttp.ClientSession, proxy: rig.InProcess | rig.Process) -> dict[str, Counter[str]]:
    """The failures that were counted: part -> kind -> times."""
    async with session.get(proxy.admin + "/metrics") as answer:
        text = await answer.text()
    found: dict[str, Counter[str]] = {}
    for kind, part, count in _TROUBLE.findall(text):
        found.setdefault(part, Counter())[kind] += int(float(count))
    return found


async def is_alive(session: aiohttp.ClientSession, proxy: rig.InProcess | rig.Process) -> None:
    for path in ("/livez", "/readyz"):
        async with session.get(proxy.admin + path) as answer:
            assert (path, answer.status) == (path, 200)
