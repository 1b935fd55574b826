"""Whatever goes wrong with recordings is `Trouble`, in time, and they are let alone while there is some."""

import asyncio
from collections.abc import Sequence

import pytest

from cacheproxy.engine.recordings import GuardedLead, GuardedRecordings
from cacheproxy.errors import Trouble
from tests.engine.fakes import Notes
from tests.rig import until

KEY = b"k" * 32
MINE, OTHER = b"m" * 16, b"o" * 16


async def kind_of(awaitable) -> str:
    """The kind of the trouble that comes of it."""
    with pytest.raises(Trouble) as caught:
        await awaitable
    return caught.value.kind


class FakeLead:
    identity = MINE
    followers = 2

    def __init__(self) -> None:
        self.said: list[object] = []
        self.wrong: Exception | None = None
        self.hangs = False

    async def _say(self, what: object) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.wrong is not None:
            raise self.wrong
        self.said.append(what)

    async def append(self, records: Sequence[bytes]) -> None:
        await self._say(records)

    async def renew(self) -> None:
        await self._say("renew")

    async def end(self, records: Sequence[bytes], seconds: float) -> None:
        await self._say((records, seconds))

    async def abandon(self) -> None:
        await self._say("abandon")


class FakeRecordings:
    lease = 0.2

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, bytes]] = []
        self.led: list[FakeLead] = []
        self.wrong: Exception | None = None
        self.hangs = False
        self.runs = False
        self.batches: list[Sequence[bytes] | Exception] = []
        self.left = 0
        self.closed = False

    async def lead(self, key: bytes, identity: bytes) -> FakeLead | bytes:
        self.asked.append((key, identity))
        if self.hangs:
            await asyncio.Event().wait()
        if self.wrong is not None:
            raise self.wrong
        if self.runs:
            return OTHER
        self.led.append(FakeLead())
        return self.led[-1]

    async def follow(self, key: bytes, identity: bytes, after: int):
        try:
            assert (key, identity, after) == (KEY, OTHER, 3)
            for batch in self.batches:
                if isinstance(batch, Exception):
                    raise batch
                yield batch
        finally:
            self.left += 1

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
async def fake():
    return FakeRecordings()


@pytest.fixture
async def notes():
    return Notes()


@pytest.fixture
async def guarded(fake, notes):
    made = GuardedRecordings(fake, "redis", 0.05, notes)
    yield made
    await made.close()
    assert fake.closed


async def test_it_gives_what_there_is(guarded, fake, notes):
    lead = await guarded.lead(KEY, MINE)
    await lead.append([b"1"])
    await lead.renew()
    assert (lead.identity, lead.followers) == (MINE, 2)
    await lead.end([b"2"], 5)
    assert fake.led[0].said == [[b"1"], "renew", ([b"2"], 5)]
    fake.runs = True
    assert await guarded.lead(KEY, MINE) == OTHER
    fake.batches = [(), (b"4", b"5")]
    assert [batch async for batch in guarded.follow(KEY, OTHER, 3)] == [(), (b"4", b"5")]
    assert notes.counted == []
    assert guarded.lease == 0.2
    assert repr(lead).startswith("<GuardedLead ")


@pytest.mark.parametrize("wrong", [Trouble("no", "refused"), ValueError("a fault"), None])
async def test_nobody_waits_while_there_is_trouble_and_what_is_tried_leads_nobody(guarded, fake, notes, wrong):
    fake.wrong, fake.hangs = wrong, wrong is None
    kind = "timeout" if wrong is None else "refused" if isinstance(wrong, Trouble) else "fault"
    assert await kind_of(guarded.lead(KEY, MINE)) == kind
    assert await kind_of(guarded.lead(KEY, MINE)) == "left_alone"
    assert ("trouble", "redis (recordings)", kind) in notes.counted
    assert fake.asked[:1] == [(KEY, MINE)]
    await until(lambda: len(fake.asked) > 2)
    assert all(key != KEY and identity != MINE for key, identity in fake.asked[1:])
    fake.wrong, fake.hangs = None, False
    await until(lambda: guarded.breaker.closed)
    assert [lead.said for lead in fake.led] == [["abandon"]]
    assert isinstance(await guarded.lead(KEY, MINE), GuardedLead)


@pytest.mark.parametrize("wrong", [Trouble("no", "lost"), ValueError("a fault"), None])
async def test_whatever_goes_wrong_while_something_is_said_is_trouble_in_time(guarded, fake, notes, wrong):
    lead = await guarded.lead(KEY, MINE)
    await lead.append([b"1"])
    fake.led[0].wrong, fake.led[0].hangs = wrong, wrong is None
    kind = "timeout" if wrong is None else "lost" if isinstance(wrong, Trouble) else "fault"
    assert await kind_of(lead.append([b"2"])) == kind
    assert await kind_of(lead.renew()) == kind
    assert await kind_of(lead.end([b"2"], 1)) == kind
    await lead.abandon()
    assert fake.led[0].said == [[b"1"]]
    assert notes.counted == [("trouble", "redis (recordings)", kind)] * 4
    assert guarded.breaker.closed


@pytest.mark.parametrize("wrong", [Trouble("no", "gone"), ValueError("a fault")])
async def test_who_follows_is_told_of_any_trouble(guarded, fake, notes, wrong):
    fake.batches = [(b"4",), wrong]
    got = []
    with pytest.raises(Trouble) as caught:
        async for batch in guarded.follow(KEY, OTHER, 3):
            got.append(batch)
    assert got == [(b"4",)]
    assert caught.value.kind == ("gone" if isinstance(wrong, Trouble) else "fault")
    assert notes.counted == [("trouble", "redis (recordings)", caught.value.kind)]
    assert fake.left == 1


async def test_who_stops_following_has_left(guarded, fake):
    fake.batches = [(b"4",), (b"5",)]
    batches = guarded.follow(KEY, OTHER, 3)
    await anext(batches)
    await batches.aclose()
    assert fake.left == 1
