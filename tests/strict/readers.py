"""Those who ask without a pause, and remember what was in force when they asked; and the one who tells of new versions."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

import aiohttp

from tests.rig import Answer, Client
from tests.strict import lore
from tests.strict.lore import Lore

FAVOURITES = 5
"""Questions that are asked as often as all others, so that many ask the same at once."""
STRANGERS = 0.1
"""The share of requests by callers who have not been seen before."""


@dataclass
class Group:
    """Proxies that know the same versions. `version`: the last one acknowledged; `least`: by question, the last of those
    that made older answers to it wrong; `told`: replies to what they were told, by status."""

    name: str
    clients: list[Client]
    admins: list[str]
    version: int = 0
    least: list[int] = field(default_factory=lambda: [0] * len(lore.NOUNS))
    told: Counter[int] = field(default_factory=Counter)

    async def tell(self, version: int, session: aiohttp.ClientSession) -> None:
        """Tell one of them, in turn, of a version, and of what changed since the last one acknowledged."""
        since = range(self.version + 1, version + 1)
        admin = self.admins[self.told.total() % len(self.admins)]
        async with session.put(f"{admin}/admin/kb/{lore.BASE}", data=lore.version_of(since)) as reply:
            self.told[reply.status] += 1
            told = await reply.json()
        assert reply.status in (200, 503), told
        if reply.status == 200:
            assert (told["course"], told["version"]) == ("published", str(version))
            self.version = version
            for number in range(len(self.least)):
                self.least[number] = max(self.least[number], *(v for v in since if lore.means(v, number)), 0)


def _way(answer: Answer) -> str:
    """Where an answer came from."""
    if answer.get("x-cache-coalesced"):
        return "coalesced"
    return " ".join(part for part in (answer.cache, answer.get("x-cache-tier")) if part)


class Readers:
    """Ask until they are told to stop."""

    def __init__(self, groups: list[Group], *, each: int, seed: int) -> None:
        self.seen: dict[str, Counter[str]] = {group.name: Counter() for group in groups}
        self.wrong: list[str] = []
        self._over = False
        self._tasks = [
            asyncio.create_task(self._work(group, client, random.Random(f"{seed} {group.name} {turn} {number}")))
            for group in groups
            for turn, client in enumerate(group.clients)
            for number in range(each)
        ]

    async def _work(self, group: Group, client: Client, dice: random.Random) -> None:
        while not self._over:
            number = dice.randrange(FAVOURITES if dice.random() < 0.5 else len(lore.NOUNS))
            stream, wording = dice.random() < 0.5, dice.randrange(2)
            rests = {"X_Cache_KB": lore.BASE} if lore.asks_for_base(number) else {}
            key = f"new {dice.random()}" if dice.random() < STRANGERS else "A"
            least = group.least[number]
            answer = await client.chat(**lore.asked(number, wording, stream=stream), key=key, **rests)
            assert answer.status == 200, (group.name, answer.status, answer.body[:300])
            version, noun = lore.read(answer.text)
            assert noun == lore.NOUNS[number], (noun, lore.NOUNS[number])
            way = f"{_way(answer)} {'stream' if stream else 'json'}"
            self.seen[group.name][way] += 1
            if version < least:
                self.wrong.append(f"{group.name}: {noun} of {version}, {least} was acknowledged: {way}")

    @property
    def failed(self) -> bool:
        return bool(self.wrong) or any(task.done() for task in self._tasks)

    async def stop(self) -> None:
        self._over = True
        await asyncio.gather(*self._tasks)


async def rise(knowledge: Lore, groups: list[Group], session: aiohttp.ClientSession, every: float, over) -> None:
    """A new version `every` so many seconds, until it is `over()`. First the backend answers from it, then each group is
    told, as soon as it has done what it was told before."""

    async def tell(group: Group) -> None:
        while not over():
            if knowledge.current > group.version:
                await group.tell(knowledge.current, session)
            await asyncio.sleep(0.005)

    async def go_on() -> None:
        while not over():
            knowledge.current += 1
            await asyncio.sleep(every)

    await asyncio.gather(go_on(), *(tell(group) for group in groups))
