"""Exports and imports of many answers, and what an import does where a removal, a version or a store is in between."""

import tracemalloc
from dataclasses import replace

import pytest

from cacheproxy.core import parcel
from cacheproxy.core.knowledge import Known
from cacheproxy.core.model import Census
from cacheproxy.core.parcel import End, Head, Item
from cacheproxy.core.past import Ordered, Past
from cacheproxy.core.removal import Felled, Removal, Removals, Selector
from cacheproxy.engine.export import Export
from cacheproxy.engine.intake import SLACK, Fate, Intake, Lifetimes
from cacheproxy.engine.shelf import Alone, Shelf
from cacheproxy.errors import Trouble
from cacheproxy.ports import Listed, Page
from cacheproxy.stores.memory import Memory
from tests.engine.fakes import Hands, alone
from tests.stores.entries import entry

SEAL = parcel.seal(b"s" * 32, b"http://backend")
MANY = 10_000
KNOWN = Past(0.0)
"""All removals are known, and there are none."""


class Remembered:
    def __init__(self, past: Past) -> None:
        self.given = past

    async def past(self) -> Past:
        return self.given


class Versions:
    def __init__(self, **versions: Known) -> None:
        self.given = versions

    async def versions(self) -> dict[str, Known]:
        return self.given


class Endless:
    """A store that makes its entries when they are asked for."""

    def __init__(self, number: int, now: float) -> None:
        self.number, self.now = number, now

    def census(self) -> Census:
        return Census(self.number, 0)

    async def browse(self, selector, now, cursor, most, *, whole):
        assert whole
        first = int(cursor or 0)
        last = min(first + most, self.number)
        rows = [Listed(made(number, self.now), 0) for number in range(first, last)]
        return Page(rows, str(last) if last < self.number else "")


def made(number: int, now: float, length: int = 3000):
    return replace(
        entry(number, length), stored_at=now - 10, asked_at=now - 11, fresh_until=now + 1000, expires_at=now + 2000
    )


def intake(store, clock: Hands, past: Past = KNOWN, **versions: Known) -> Intake:
    return Intake(
        shelf=alone(store, clock), stock=store, removals=Removals(), history=Remembered(past), knowledge=Versions(**versions),
        meaning=None, clock=clock, seal=lambda: SEAL, lifetimes=Lifetimes(1e6, 1e6),
    )  # fmt: skip


async def given(*items: Item):
    yield parcel.head_line(Head(SEAL, 0.0, None, 0, len(items)))
    for item in items:
        yield parcel.item_line(item)
    yield parcel.end_line(End(len(items), 0))


async def fate(store, clock: Hands, one, past: Past, *, vouched: bool = False, **versions: Known) -> Fate:
    report = await intake(store, clock, past, **versions).take(given(Item(one)), vouched=vouched)
    (found,) = [fate for fate, count in report.fates.items() if count]
    return found


@pytest.fixture
def clock() -> Hands:
    return Hands()


NOW = Hands().wall
FAQ = Selector(tags=frozenset({"faq"}))
ASKED = NOW - 500
"""When the answer was asked for."""


def tagged(*tags: str, **fields):
    usual = {"asked_at": ASKED, "stored_at": ASKED + 1, "fresh_until": NOW + 500, "expires_at": NOW + 900}
    return replace(entry(1), tags=tags, **{**usual, **fields})


@pytest.mark.parametrize(
    ("since", "removals", "expected"),
    [
        (0.0, (), Fate.IMPORTED),
        (0.0, ((ASKED + 1, FAQ),), Fate.PURGED),
        (0.0, ((NOW, FAQ),), Fate.PURGED),
        (0.0, ((NOW, Selector(everything=True)),), Fate.PURGED),
        (0.0, ((NOW, Selector(tags=frozenset({"other"}))),), Fate.IMPORTED),
        # Clocks may differ: what was ordered a little earlier counts, what was long before does not.
        (0.0, ((ASKED - SLACK + 1, FAQ),), Fate.PURGED),
        (0.0, ((ASKED - SLACK - 1, FAQ),), Fate.IMPORTED),
        (ASKED - SLACK - 1, (), Fate.IMPORTED),
        (ASKED - SLACK + 1, (), Fate.UNPROVEN),
        (float("inf"), (), Fate.UNPROVEN),
        (ASKED, ((NOW, FAQ),), Fate.PURGED),
    ],
)
async def test_what_a_removal_meant_since_it_was_asked_for(clock, since, removals, expected):
    past = Past(since, tuple(Ordered(*one) for one in removals))
    store = Memory(10**6)
    assert await fate(store, clock, tagged("faq"), past) is expected
    assert store.census().entries == (expected is Fate.IMPORTED)
    vouched = Fate.IMPORTED if expected is Fate.UNPROVEN else expected
    assert await fate(Memory(10**6), clock, tagged("faq"), past, vouched=True) is vouched


async def test_who_says_that_he_asked_later_than_he_stored_is_not_believed(clock):
    """A line that was made by hand cannot pass by a removal so."""
    past = Past(0.0, (Ordered(NOW - 100, FAQ),))
    assert await fate(Memory(10**6), clock, tagged("faq", asked_at=NOW), past) is Fate.PURGED


@pytest.mark.parametrize(
    ("names", "published", "since", "expected"),
    [
        (("faq@v1",), ASKED - 100, 0.0, Fate.OTHER_VERSION),
        (("faq@v2",), ASKED - 100, 0.0, Fate.IMPORTED),
        (("other@v1",), ASKED - 100, 0.0, Fate.IMPORTED),
        (("a%40b@v%402",), ASKED - 100, 0.0, Fate.IMPORTED),
        # Without a version it is of the one that was current: that is known by what was removed, or by when.
        (("faq",), ASKED + 100, 0.0, Fate.IMPORTED),
        (("faq",), ASKED + 100, NOW, Fate.OTHER_VERSION),
        (("faq",), ASKED - 100, NOW, Fate.IMPORTED),
    ],
)
async def test_only_the_current_version_is_taken(clock, names, published, since, expected):
    versions = {"faq": Known("v2", None, published), "a@b": Known("v@2", None, published)}
    one = tagged(knowledge=names)
    assert await fate(Memory(10**6), clock, one, Past(since), vouched=True, **versions) is expected


async def test_what_was_removed_cannot_be_told(clock):
    class Silent(Remembered):
        async def past(self):
            raise Trouble("down")

    taking = intake(Memory(10**6), clock)
    taking._history = Silent(Past(0.0))
    with pytest.raises(Trouble):
        await taking.take(given(Item(tagged())))


async def test_the_record_is_read_again_where_much_is_removed_meanwhile(clock, monkeypatch):
    """What a running import is compared with has a bound; the record has not."""
    monkeypatch.setattr("cacheproxy.engine.intake.MOST_REMOVALS", 5)
    monkeypatch.setattr("cacheproxy.engine.intake.BATCH", 1)
    store, removals = Memory(10**6), Removals()
    taking = intake(store, clock)
    taking._shelf = Shelf(store, removals, Alone(removals), clock)
    taking._removals = removals
    read = []

    class Counting(Remembered):
        async def past(self):
            read.append(1)
            return Past(0.0)

    taking._history = Counting(Past(0.0))

    async def lines():
        number = 0
        async for line in given(*(Item(made(number, NOW)) for number in range(20))):
            number += 1
            if number > 1:
                removals.add(FAQ, clock.now())
            yield line

    report = await taking.take(lines())
    assert report.fates[Fate.IMPORTED] == 20
    assert len(read) == 4


async def test_a_removal_that_is_under_way_counts_though_it_is_not_in_the_record_yet(clock):
    """It was counted before, and is written down only now."""
    taking = intake(Memory(10**6), clock)
    removals = taking._removals
    number = removals.add(FAQ, NOW)
    removals.begin(Felled(number, FAQ, Removal.HARD, NOW))
    report = await taking.take(given(Item(tagged("faq"))))
    assert report.fates[Fate.PURGED] == 1


async def test_ten_thousand_answers_are_not_held(clock):
    """Neither by an export nor by an import, whatever their size in all."""
    endless = Endless(MANY, clock.now())
    export = Export(shelf=alone(endless, clock), census=endless.census, meaning=None, clock=clock, seal=lambda: SEAL)
    seen = [0, 0]

    async def lines():
        async for some in export.lines(Selector()):
            seen[0] += some.entries
            seen[1] += len(some.data)
            for line in some.data.splitlines():
                yield line

    taking = intake(Memory(200_000), clock)
    tracemalloc.start()
    try:
        report = await taking.take(lines())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (report.complete, report.fates[Fate.IMPORTED], seen[0]) == (True, MANY, MANY)
    assert seen[1] > 9_000_000 and peak < 6_000_000
