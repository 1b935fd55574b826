"""The promise of removals against a model: three replicas get, look, put and remove at random while their Redis is emptied,
killed, and set back to what it was. Nothing from before an acknowledged removal that means it is ever given after it."""

import asyncio
import itertools
import random
from collections import Counter
from dataclasses import dataclass

import pytest

from cacheproxy.core.model import Entry
from cacheproxy.core.removal import Removal, Selector
from cacheproxy.errors import Trouble
from cacheproxy.stores import redis_epochs
from tests.examples import OPERATIONS, SEED
from tests.stores.replicas import EVERYTHING, Replica, entry, joining, tagged

pytestmark = pytest.mark.redis

LENGTH = OPERATIONS // 4 if OPERATIONS > 3000 else 400
NUMBERS = 12
COLOURS = ("red", "green", "blue")
LEASE = 0.01


@dataclass
class Removed:
    """An acknowledged removal: what it means, and between which moments it was ordered and acknowledged."""

    selector: Selector
    ordered: int
    acknowledged: int


class Model:
    """What happened, each at its moment."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.moments = itertools.count(1)
        self.asked: dict[int, int] = {}  # version -> the moment when its request came
        self.removed: list[Removed] = []
        self.seen: Counter[str] = Counter()

    def judge(self, found: Entry, begun: int) -> None:
        """`found` was given to who asked at the moment `begun`."""
        asked = self.asked[round(found.stored_at - 1000)]
        for one in self.removed:
            if one.acknowledged < begun and asked < one.ordered and one.selector.means(found, 0.0):
                raise AssertionError(f"asked at {asked}, {one}, and given to who asked at {begun}: {found.tags}")

    async def get(self, one: Replica) -> None:
        begun = next(self.moments)
        found = await one.get(self.dice.randrange(NUMBERS))
        if found is not None:
            self.judge(found, begun)
        self.seen["miss" if found is None else "hit"] += 1

    async def look(self, one: Replica) -> None:
        """A look that waits before it is served: judged at the moment of serving."""
        mark = one.shelf.mark()
        found = await one.get(self.dice.randrange(NUMBERS))
        await asyncio.sleep(self.dice.choice([0, LEASE / 2, 3 * LEASE]))
        if found is not None and await one.shelf.holds(mark, found):
            self.judge(found, next(self.moments))
            self.seen["held"] += 1

    async def put(self, one: Replica) -> None:
        version = next(self.moments)
        self.asked[version] = version
        asked = one.asking()
        await asyncio.sleep(self.dice.choice([0, 0, 0.001, 0.02]))
        made = entry(self.dice.randrange(NUMBERS), 50, version=version, tags=(self.dice.choice(COLOURS),))
        refused = await one.keep(made, asked)
        self.seen["kept" if refused is None else refused.word] += 1

    async def remove(self, one: Replica) -> None:
        selector = tagged(self.dice.choice(COLOURS)) if self.dice.random() < 0.9 else EVERYTHING
        ordered = next(self.moments)
        await one.remove(selector, Removal.HARD, wait=self.dice.random() < 0.5)
        self.removed.append(Removed(selector, ordered, next(self.moments)))
        self.seen["removed"] += 1

    async def work(self, replicas: list[Replica], count: int) -> None:
        for _ in range(count):
            act = self.dice.choices([self.get, self.look, self.put, self.remove], [10, 5, 8, 1])[0]
            try:
                await act(self.dice.choice(replicas))
            except Trouble as trouble:
                self.seen[trouble.kind] += 1


def mischief(server, dice: random.Random) -> str:
    """Do something to the server; what it was."""
    what = dice.choice(
        ["save", "save", "emptied", "head gone", "log gone", "open gone", "killed", "killed", "set back", "set back"]
    )
    if what == "save":
        server.cli("SAVE")
    elif what == "emptied":
        server.cli("FLUSHALL")
    elif what.endswith(" gone"):
        server.cli("DEL", f"cacheproxy:{{0}}:{what.partition(' ')[0]}")
    elif what == "killed":
        server.restart()
    else:
        server.kill()
        server.restart(keep=True)
    return what


@pytest.mark.timeout(0 if LENGTH > 400 else 120)
@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
@pytest.mark.parametrize("calm", [True, False], ids=["calm", "wild"])
async def test_nothing_from_before_a_removal_is_given_after_it(redis_start, monkeypatch, seed, calm):
    monkeypatch.setattr(redis_epochs, "LEASE", LEASE)
    monkeypatch.setattr(redis_epochs.RedisEpochs, "lease", LEASE)
    dice, server = random.Random(seed), redis_start(search=False)
    model = Model(dice)
    async with joining() as join:
        replicas = [join(server.url, timeout=2, connections=dice.randrange(2, 6)) for _ in range(3)]
        working = [asyncio.create_task(model.work(replicas, LENGTH)) for _ in range(4)]
        while not all(task.done() for task in working):
            await asyncio.wait(working, timeout=dice.random() * 0.15)
            if not calm:
                model.seen[mischief(server, dice)] += 1
                if dice.random() < 0.3:  # one that has known nothing so far
                    replicas[dice.randrange(3)] = join(server.url, timeout=2, connections=2)
        await asyncio.gather(*working)
        with server.line() as line:
            assert [name for name in line.call("KEYS", "*") if line.call("PTTL", name) == -1] == []
    assert model.seen["hit"] > LENGTH / 20, model.seen
    assert min(model.seen[what] for what in ("held", "kept", "purged", "removed")) > 5, model.seen
    if calm:
        assert set(model.seen) == {"hit", "miss", "held", "kept", "purged", "removed"}, model.seen
