"""Watching a folder: what counts as a version, what is told of it, and when the gate is open."""

import asyncio
from dataclasses import dataclass, field

import pytest

from cacheproxy.core.knowledge import Known, Publication
from cacheproxy.core.snapshot import NOTHING, Print, Snapshot
from cacheproxy.engine import watch as module
from cacheproxy.engine.gate import Gate
from cacheproxy.engine.watch import Watch
from cacheproxy.errors import Trouble
from tests.rig import until


def found(**files: bytes) -> Snapshot:
    return Snapshot({name: Print((1,), digest) for name, digest in files.items()})


@dataclass
class Shown:
    """A folder that shows what a test says."""

    now: Snapshot | Trouble | ValueError = NOTHING
    kept: Snapshot | None = None
    may_keep: bool = True
    looks: int = 0

    def scan(self, _before: Snapshot) -> Snapshot:
        self.looks += 1
        if isinstance(self.now, Exception):
            raise self.now
        return self.now

    def remembered(self) -> Snapshot | None:
        return self.kept

    def remember(self, snapshot: Snapshot) -> None:
        if not self.may_keep:
            raise Trouble("cannot write")
        self.kept = snapshot


@dataclass
class Told:
    """Takes publications, unless it is to fail."""

    known: dict[str, Known] = field(default_factory=dict)
    told: list[Publication] = field(default_factory=list)
    fails: bool = False

    async def publish(self, told: Publication) -> None:
        if self.fails:
            raise Trouble("no")
        self.told.append(told)
        self.known[told.name] = Known(told.version, None, 0.0)

    async def versions(self) -> dict[str, Known]:
        return self.known


@dataclass
class Scene:
    folder: Shown
    told: Told
    gate: Gate
    watch: Watch

    async def looks(self, number: int = 2) -> None:
        for _ in range(number):
            await self.watch.look()

    @property
    def is_open(self) -> bool:
        return self.gate.passes(["faq"])


@pytest.fixture
async def scene():
    folder, told, gate = Shown(), Told(), Gate()
    watch = Watch("faq", folder, knowledge=told, gate=gate, interval=0.001)
    yield Scene(folder, told, gate, watch)
    await watch.close()


async def test_a_content_counts_when_two_looks_find_the_same(scene):
    scene.folder.now = found(a=b"1")
    await scene.looks(1)
    assert (scene.told.told, scene.is_open) == ([], False)
    scene.folder.now = found(a=b"2")
    await scene.looks(1)
    assert (scene.told.told, scene.is_open) == ([], False)
    await scene.looks(1)
    assert scene.told.told == [Publication("faq", found(a=b"2").version)]
    assert scene.is_open


async def test_an_empty_folder_is_a_version_too(scene):
    await scene.looks(1)
    assert not scene.is_open
    await scene.looks(1)
    assert scene.is_open


async def test_what_changed_is_named(scene):
    scene.folder.now = found(a=b"1", b=b"1")
    await scene.looks()
    scene.folder.now = found(a=b"1", b=b"2", c=b"1")
    await scene.looks()
    await scene.looks()
    assert scene.told.told[1:] == [Publication("faq", scene.folder.now.version, frozenset({"b", "c"}))]


async def test_a_content_that_does_not_come_to_rest_counts_in_the_end(scene):
    await scene.looks()
    told = len(scene.told.told)
    for number in range(module.RESTLESS):
        assert len(scene.told.told) == told
        scene.folder.now = found(a=b"%d" % number)
        await scene.looks(1)
    assert len(scene.told.told) == told + 1


async def test_what_changed_while_nobody_watched_is_found_at_the_start(scene):
    before = found(a=b"1", b=b"1")
    scene.folder.kept, scene.folder.now = before, found(a=b"2", b=b"1")
    scene.told.known["faq"] = Known(before.version, None, 0.0)
    await scene.looks()
    assert scene.told.told == [Publication("faq", scene.folder.now.version, frozenset({"a"}))]


@pytest.mark.parametrize("known", [None, Known("other", None, 0.0), Known(found(a=b"1").version, None, 0.0, (), False)])
async def test_where_it_is_not_certain_what_changed_all_of_it_did(scene, known):
    scene.folder.kept, scene.folder.now = found(a=b"1"), found(a=b"2")
    scene.told.known = {"faq": known} if known else {}
    await scene.looks()
    assert scene.told.told == [Publication("faq", scene.folder.now.version, None)]


async def test_nothing_is_told_at_the_start_where_nothing_changed(scene):
    scene.folder.now = found(a=b"1")
    scene.told.known["faq"] = Known(scene.folder.now.version, None, 0.0)
    await scene.looks()
    assert (scene.told.told, scene.is_open) == ([], True)


async def test_a_version_that_was_not_in_force_everywhere_is_told_again(scene):
    scene.folder.now = found(a=b"1")
    scene.told.known["faq"] = Known(scene.folder.now.version, None, 0.0, settled=False)
    await scene.looks()
    assert len(scene.told.told) == 1


async def test_a_version_that_could_not_be_told_is_told_later(scene):
    scene.folder.now, scene.told.fails = found(a=b"1"), True
    await scene.looks(1)
    with pytest.raises(Trouble):
        await scene.looks(1)
    assert not scene.is_open
    scene.told.fails = False
    await scene.looks(1)
    assert scene.is_open
    assert len(scene.told.told) == 1


async def test_while_it_cannot_be_read_the_gate_is_shut(scene, caplog):
    scene.watch.start()
    await until(lambda: scene.is_open)
    scene.folder.now = Trouble("/kb cannot be read: gone")
    await until(lambda: not scene.is_open)
    seen = scene.folder.looks
    await until(lambda: scene.folder.looks > seen + 3)
    assert len(caplog.records) == 1
    scene.folder.now = NOTHING
    await until(lambda: scene.is_open)
    scene.folder.now = ValueError("words of a document")
    await until(lambda: not scene.is_open)
    scene.folder.now = NOTHING
    await until(lambda: scene.is_open)
    assert "words" not in caplog.text


async def test_what_cannot_be_remembered_is_said_and_served_all_the_same(scene, caplog):
    scene.folder.may_keep = False
    await scene.looks()
    assert scene.is_open
    assert "all of it will count as changed" in caplog.text


async def test_marks_are_remembered_once_files_are_at_rest(scene):
    scene.folder.now = Snapshot({"a": Print((), b"1")})
    await scene.looks()
    scene.folder.now = found(a=b"1")
    await scene.looks(1)
    assert scene.folder.kept == found(a=b"1")
    assert scene.folder.kept.files["a"].mark == (1,)
    assert len(scene.told.told) == 1


async def test_it_stops_in_the_middle_of_a_look(scene):
    class Stuck(Told):
        async def versions(self):
            await asyncio.Event().wait()

    scene.watch._knowledge = Stuck()
    scene.watch.start()
    await until(lambda: scene.folder.looks > 1)
    await asyncio.wait_for(scene.watch.close(), 5)
    assert not scene.is_open
