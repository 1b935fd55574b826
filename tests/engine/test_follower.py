"""Following a stream of events: in order, once, and nothing is served before what was told is in force."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from cacheproxy.core.knowledge import Publication
from cacheproxy.core.streamed import place
from cacheproxy.engine import follower as module
from cacheproxy.engine.follower import Follower
from cacheproxy.engine.gate import Gate
from cacheproxy.errors import Trouble
from cacheproxy.ports import Notice
from tests.engine.fakes import Notes
from tests.rig import until


def notice(number: int, version: str = "") -> Notice:
    event = {
        "specversion": "1.0", "type": "kb.version.published", "source": "/index", "id": str(number),
        "subject": "faq", "data": {"version": version or f"v{number}"},
    }  # fmt: skip
    return Notice(b"%d-0" % number, {b"event": json.dumps(event).encode()})


@dataclass
class Stream:
    """What is told, and which of it nobody has done."""

    new: list[Notice] = field(default_factory=list)
    pending: set[bytes] = field(default_factory=set)
    broken: Exception | None = None
    held: list[bytes] = field(default_factory=list)

    def tell(self, *told: Notice) -> None:
        self.new += told

    async def take(self) -> Sequence[Notice]:
        if self.broken is not None:
            raise type(self.broken)(*self.broken.args)
        taken, self.new = self.new, []
        self.pending |= {one.identity for one in taken}
        return taken

    async def oldest(self) -> bytes | None:
        return min(self.pending, key=place, default=None)

    async def hold(self, identity: bytes) -> None:
        if self.broken is not None:
            raise self.broken
        self.held.append(identity)

    async def done(self, identity: bytes) -> None:
        self.pending.discard(identity)


@dataclass
class Told:
    told: list[Publication] = field(default_factory=list)
    fails: bool = False
    may_end: asyncio.Event | None = None
    cancelled: int = 0

    async def publish(self, told: Publication) -> None:
        if self.fails:
            raise Trouble("no answer in time")
        try:
            if self.may_end is not None:
                await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.told.append(told)

    @property
    def versions(self) -> list[str]:
        return [one.version for one in self.told]


@dataclass
class Scene:
    stream: Stream
    told: Told
    gate: Gate
    notes: Notes
    follower: Follower

    @property
    def is_open(self) -> bool:
        return self.gate.passes(["any"])

    async def turns(self, number: int = 3) -> None:
        for _ in range(number):
            await self.follower.turn()


@pytest.fixture
async def scene(monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.001)
    stream, told, gate, notes = Stream(), Told(), Gate(), Notes()
    follower = Follower(stream, knowledge=told, gate=gate, journal=notes)
    yield Scene(stream, told, gate, notes, follower)
    await follower.close()


async def test_what_was_told_before_is_in_force_before_the_gate_opens(scene):
    scene.stream.tell(*map(notice, (9, 10, 11)))
    assert not scene.is_open
    assert await scene.follower.turn()
    assert scene.told.versions == ["v9", "v10", "v11"]
    assert (scene.stream.pending, scene.is_open) == (set(), False)
    assert not await scene.follower.turn()
    assert scene.is_open


async def test_what_another_replica_is_at_comes_first(scene):
    """Versions without a number are taken in the order in which they were told, whoever carries them out."""
    scene.stream.pending.add(b"1-0")
    scene.stream.tell(notice(2))
    await scene.turns()
    assert (scene.told.told, scene.is_open) == ([], False)
    scene.stream.pending.discard(b"1-0")
    await scene.turns()
    assert (scene.told.versions, scene.is_open) == (["v2"], True)


async def test_an_event_that_another_replica_took_over_and_did_is_not_done_again(scene):
    scene.stream.pending.add(b"1-0")
    scene.stream.tell(notice(2))
    await scene.turns()
    scene.stream.pending.clear()
    await scene.turns()
    assert (scene.told.told, scene.is_open) == ([], True)


async def test_the_gate_is_shut_while_another_replica_is_at_what_was_told_before(scene):
    scene.stream.pending.add(b"1-0")
    await scene.turns()
    assert not scene.is_open
    scene.stream.pending.clear()
    await scene.turns(1)
    assert scene.is_open


async def test_what_could_not_be_carried_out_is_tried_again_before_what_comes_after(scene):
    scene.told.fails = True
    scene.stream.tell(notice(1))
    for _ in range(2):
        with pytest.raises(Trouble):
            await scene.follower.turn()
    scene.stream.tell(notice(2))
    scene.told.fails = False
    await scene.turns()
    assert scene.told.versions == ["v1", "v2"]
    assert scene.stream.pending == set()


async def test_what_takes_long_is_held_until_it_is_done(scene, monkeypatch):
    """Else another replica would take it over, and an old version could come after a newer one."""
    monkeypatch.setattr(module, "HOLDING", 0.001)
    scene.told.may_end = asyncio.Event()
    scene.stream.tell(notice(1))
    scene.follower.start()
    await until(lambda: len(scene.stream.held) > 2)
    assert set(scene.stream.held) == {b"1-0"}
    assert (scene.told.told, scene.stream.pending) == ([], {b"1-0"})
    scene.told.may_end.set()
    await until(lambda: scene.is_open)
    assert (scene.told.versions, scene.told.cancelled) == (["v1"], 0)


@pytest.mark.parametrize("ends", ["close", "trouble"])
async def test_what_is_given_up_does_not_go_on_behind(scene, monkeypatch, ends):
    monkeypatch.setattr(module, "HOLDING", 0.001)
    scene.told.may_end = asyncio.Event()
    scene.stream.tell(notice(1))
    scene.follower.start()
    await until(lambda: scene.stream.held)
    if ends == "close":
        await scene.follower.close()
    else:
        scene.stream.broken = Trouble("no answer in time")
    await until(lambda: scene.told.cancelled == 1)
    assert (scene.told.told, scene.stream.pending, scene.is_open) == ([], {b"1-0"}, False)


async def test_what_cannot_be_read_is_done_with_counted_and_not_repeated_in_the_log(scene, caplog):
    scene.stream.tell(Notice(b"1-0", {b"event": b"secret words"}), notice(2), Notice(b"3-0", {}))
    await scene.turns()
    assert scene.told.versions == ["v2"]
    assert scene.notes.counted == [("knowledge", "unreadable")] * 2
    assert scene.stream.pending == set()
    assert "1-0" in caplog.text
    assert "secret" not in caplog.text


async def test_events_of_other_types_are_done_with(scene):
    scene.stream.tell(Notice(b"1-0", {b"specversion": b"1.0", b"type": b"x", b"source": b"s", b"id": b"1"}))
    await scene.turns()
    assert (scene.told.told, scene.notes.counted, scene.stream.pending) == ([], [], set())


@pytest.mark.parametrize("trouble", [Trouble("no answer in time"), ValueError("secret words")])
async def test_while_the_stream_cannot_be_read_the_gate_is_shut(scene, caplog, trouble):
    scene.follower.start()
    await until(lambda: scene.is_open)
    scene.stream.broken = trouble
    await until(lambda: not scene.is_open)
    scene.stream.tell(notice(1))
    scene.stream.broken = None
    await until(lambda: scene.is_open)
    assert scene.told.versions == ["v1"]
    assert len(caplog.records) == 1
    assert "secret" not in caplog.text
