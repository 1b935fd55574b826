"""The one place that forgives: what trouble of a store costs, how long, and how often it is told."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

import pytest

from cacheproxy.core.model import Census, Entry, Identity, Unfit
from cacheproxy.core.removal import Felled, Removal, Selector
from cacheproxy.engine import breaker
from cacheproxy.engine.breaker import FAILURES
from cacheproxy.engine.guard import MOST_EMBEDDED, GuardedEmbedder, GuardedEpochs, GuardedIndex, GuardedStore
from cacheproxy.errors import Trouble
from cacheproxy.ports import Kept
from cacheproxy.stores.memory import Memory
from tests.engine.fakes import Notes
from tests.rig import until
from tests.stores.entries import entry, key_of

DEADLINE = 0.02


class Moody(Memory):
    """A store that fails or hangs on demand."""

    def __init__(self) -> None:
        super().__init__(10_000_000)
        self.error: BaseException | Callable[[], BaseException] | None = None
        self.hang = False
        self.calls = 0
        self.waiting = 0
        self.most = 0

    async def _mood(self) -> None:
        self.calls += 1
        if self.hang:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            try:
                await asyncio.Event().wait()
            finally:
                self.waiting -= 1
        if callable(self.error):
            raise self.error()
        if self.error is not None:
            raise self.error

    async def get(self, key: bytes) -> Entry | None:
        await self._mood()
        return self.peek(key)

    async def put(self, entry: Entry, epoch: int | None = None) -> Kept:
        await self._mood()
        return await super().put(entry, epoch)

    async def sweep(self, now: float) -> int:
        await self._mood()
        return await super().sweep(now)


@pytest.fixture
def inner() -> Moody:
    store = Moody()
    store.keep(entry(1))
    return store


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
async def guarded(inner, notes):
    store = GuardedStore(inner, "cache file", DEADLINE, notes)
    yield store
    await store.close()


@pytest.fixture
def quick(monkeypatch) -> None:
    """Trials follow each other at once."""
    monkeypatch.setattr(breaker, "FIRST_GAP", 0.0)
    monkeypatch.setattr(breaker, "PAUSE", 0.0)


@pytest.fixture
def never(monkeypatch) -> None:
    """No trial comes while the test lasts."""
    monkeypatch.setattr(breaker, "FIRST_GAP", 1000.0)


def lines(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "cacheproxy.guard"]


def is_trouble(found: object, kind: str) -> bool:
    return isinstance(found, Trouble) and found.kind == kind


async def test_what_works_passes_unchanged(guarded, notes, caplog):
    assert await guarded.put(entry(2)) is Kept.YES
    assert await guarded.get(key_of(2)) == entry(2)
    assert await guarded.get(key_of(3)) is None
    assert guarded.census() == Census(2, entry(1).size + entry(2).size)
    assert await guarded.sweep(2e9) == 2
    assert (notes.counted, lines(caplog)) == ([], [])
    assert guarded.reads.state == guarded.writes.state == "closed"


@pytest.mark.parametrize(("error", "kind"), [(Trouble("on fire", "oom"), "oom"), (TimeoutError(), "timeout")])
async def test_trouble_is_told_as_such_and_is_counted_by_kind(guarded, inner, notes, never, error, kind):
    """B67: trouble in a cache part never costs an answer, and what it was is counted."""
    inner.error = error
    assert await guarded.put(entry(2)) is Kept.TROUBLE
    assert is_trouble(await guarded.get(key_of(1)), kind)
    assert notes.counted == [("trouble", "cache file (write)", kind), ("trouble", "cache file (read)", kind)]


class Leaky(Exception):
    """Of no library's and none of ours, with a caller's words in it."""


def boom() -> Leaky:
    return Leaky("the caller's words")


async def test_a_fault_of_ours_costs_a_miss_and_one_line_of_the_log(guarded, inner, notes, quick, caplog):
    """CONTRACT 6.7: whatever a cache part raises never costs an answer. It shows by its kind and its place."""
    inner.error = boom
    assert is_trouble(await guarded.get(key_of(1)), "fault")
    assert await guarded.put(entry(2)) is Kept.TROUBLE
    assert await guarded.sweep(1.0) == 0
    await until(lambda: inner.calls > 3 * FAILURES, what="many trials")
    told = [line for line in lines(caplog) if line.startswith("a fault in cache file (read): ")]
    assert len(told) == 1, "however often it is tried"
    assert told[0].endswith(" > Leaky")
    assert "tests.engine.test_guard:" in told[0]
    assert not any("words" in line for line in lines(caplog))
    assert set(notes.counted) == {("trouble", "cache file (read)", "fault")}
    inner.error = None
    await until(lambda: guarded.reads.closed, what="a trial that succeeds")
    assert await guarded.get(key_of(1)) == entry(1)


async def test_a_fault_of_a_sweep_is_told_once(guarded, inner, caplog):
    """It must not end what sweeps, for ever."""
    inner.error = boom
    assert [await guarded.sweep(1.0) for _ in range(3)] == [0, 0, 0]
    assert len(lines(caplog)) == 1


async def test_a_store_that_hangs_costs_its_deadline(guarded, inner, notes, never):
    """B63: the call is given up at the deadline and nothing of it is left waiting."""
    inner.hang = True
    began = asyncio.get_running_loop().time()
    assert is_trouble(await guarded.get(key_of(1)), "timeout")
    took = asyncio.get_running_loop().time() - began
    assert DEADLINE * 0.9 <= took < 5
    assert inner.waiting == 0


async def test_who_has_waited_for_a_look_that_failed_does_not_wait_for_the_writing(guarded, inner, never):
    """One deadline for a request, not two."""
    inner.hang = True
    await guarded.get(key_of(1))
    calls = inner.calls
    assert await guarded.put(entry(2)) is Kept.TROUBLE
    assert inner.calls == calls


async def test_after_one_failure_nobody_waits(guarded, inner, never):
    """B63: one blip costs those who are in it, and misses until a trial succeeds; no caller waits any more."""
    inner.hang = True
    found = await asyncio.gather(*(guarded.get(key_of(1)) for _ in range(30)))
    assert all(is_trouble(one, "timeout") for one in found)
    calls = inner.calls
    for _ in range(50):
        assert is_trouble(await guarded.get(key_of(1)), "left_alone")
    assert inner.calls == calls
    assert guarded.reads.state in ("suspect", "open")


async def test_a_blip_is_over_at_the_first_trial_that_succeeds(guarded, inner, quick, caplog, notes):
    """B63: it neither opens the breaker nor is a line of the log."""
    inner.error = Trouble("blip")
    await guarded.get(key_of(1))
    inner.error = None
    await until(lambda: guarded.reads.closed, what="a trial")
    assert await guarded.get(key_of(1)) == entry(1)
    assert lines(caplog) == []
    assert len(notes.counted) == 1


async def test_after_failures_in_a_row_it_is_open_with_one_line(guarded, inner, quick, caplog):
    inner.error = Trouble("gone")
    await guarded.get(key_of(1))
    await until(lambda: inner.calls > 3 * FAILURES, what="many trials")
    assert guarded.reads.state == "open"
    assert lines(caplog) == [f"cache file (read) left alone after {FAILURES} failures: gone"]
    inner.error = None
    await until(lambda: guarded.reads.closed, what="a trial that succeeds")
    assert lines(caplog)[1:] == ["cache file (read) works again"]
    assert await guarded.get(key_of(1)) == entry(1)
    inner.error = Trouble("again")
    assert is_trouble(await guarded.get(key_of(1)), "other")
    assert guarded.reads.state == "suspect", "failures count from nought again"


async def test_trials_come_one_at_a_time_and_each_is_what_was_asked_last(guarded, inner, quick):
    """Half open: one probe, whatever comes at the same time. It is not always the call that failed first: that one may
    be what fails by itself."""
    inner.hang = True
    await guarded.get(key_of(1))
    asked = [key_of(number) for number in range(2, 40)]
    inner.most = 0
    for name in asked:
        await guarded.get(name)
        await asyncio.sleep(DEADLINE / 20)
    assert inner.most == 1
    inner.hang = False
    await until(lambda: guarded.reads.closed, what="a trial")


async def test_while_it_is_open_it_is_tried_once_a_pause(guarded, inner, monkeypatch):
    pauses: list[float] = []
    slept = asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await slept(0)

    monkeypatch.setattr(breaker.asyncio, "sleep", sleep)
    inner.error = Trouble("gone")
    await guarded.get(key_of(1))
    while len(pauses) < FAILURES + 5:
        await slept(0.001)
    monkeypatch.undo()
    gaps = pauses[: FAILURES - 1]
    assert gaps == [breaker.FIRST_GAP * 2**n for n in range(FAILURES - 1)]
    assert set(pauses[FAILURES - 1 :]) == {breaker.PAUSE}


async def test_reading_and_writing_have_breakers_of_their_own(guarded, inner, never):
    """B67: a store that refuses writes is read from all the same."""
    inner.error = Trouble("read only", "readonly")
    assert await guarded.put(entry(5)) is Kept.TROUBLE
    inner.error = None
    assert await guarded.get(key_of(1)) == entry(1)
    calls = inner.calls
    assert await guarded.put(entry(5)) is Kept.TROUBLE
    assert inner.calls == calls, "writes are left alone"
    assert (guarded.reads.state, guarded.writes.state) == ("closed", "suspect")


async def test_a_cancelled_call_is_no_failure(guarded, inner, notes):
    inner.hang = True
    asked = asyncio.create_task(guarded.get(key_of(1)))
    await until(lambda: inner.waiting == 1, what="the call")
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert guarded.reads.closed
    assert notes.counted == []
    assert inner.waiting == 0


async def test_closing_ends_the_trial(inner, notes, quick):
    store = GuardedStore(inner, "cache file", DEADLINE, notes)
    inner.hang = True
    await store.get(key_of(1))
    await until(lambda: inner.waiting == 1, what="a trial")
    await store.close()
    assert inner.waiting == 0


async def test_removal_is_not_forgiven(guarded, inner, monkeypatch):
    """What could not be removed must not be reported as gone."""

    async def remove(*_: object) -> set[bytes]:
        raise Trouble("gone")

    monkeypatch.setattr(inner, "remove", remove)
    with pytest.raises(Trouble, match="gone"):
        await guarded.remove(Felled(1, Selector(everything=True), Removal.HARD, 1.0))


async def test_trouble_of_a_sweep_is_forgiven(guarded, inner):
    inner.error = Trouble("gone")
    assert await guarded.sweep(1.0) == 0


class SlowEpochs:
    lease = 0.1

    def __init__(self) -> None:
        self.hang = False

    async def current(self) -> None:
        if self.hang:
            await asyncio.Event().wait()


async def test_epochs_that_hang_are_not_current(notes, never):
    """What cannot be told in time must not be taken for current; then nobody waits for it."""
    inner = SlowEpochs()
    epochs = GuardedEpochs(inner, "redis", DEADLINE, notes)
    await epochs.current()
    inner.hang = True
    with pytest.raises(Trouble) as caught:
        await epochs.current()
    assert caught.value.kind == "timeout"
    with pytest.raises(Trouble) as caught:
        await epochs.current()
    assert caught.value.kind == "left_alone"
    assert epochs.lease == 0.1
    await epochs.close()


async def test_a_fault_of_the_epochs_is_trouble(notes, never):
    """Whoever serves asks for them last: a fault there is a miss, and no error of a caller's."""
    inner = SlowEpochs()
    inner.current = Moody._mood.__get__(inner)
    inner.calls, inner.error = 0, boom
    epochs = GuardedEpochs(inner, "redis", DEADLINE, notes)
    with pytest.raises(Trouble) as caught:
        await epochs.current()
    assert caught.value.kind == "fault"
    await epochs.close()


class Faulty:
    """An embedder and an index whose every call is a fault of theirs."""

    async def fail(self, *_: object) -> object:
        raise boom()

    embed = search = add = remove = sweep = fail

    async def close(self) -> None:
        return


async def test_faults_of_the_embedder_and_the_index_are_trouble(notes, never, caplog):
    embedder, index = GuardedEmbedder(Faulty(), 1.0, notes), GuardedIndex(Faulty(), 1.0, notes)
    assert is_trouble(await embedder.embed("words", b"scope"), "fault")
    assert is_trouble(await index.search(b"partition", [1.0], "words", 5, 1.0), "fault")
    await index.add(None)
    await index.remove([b"key"])
    assert await index.sweep(1.0) == 0
    assert notes.counted == [
        ("trouble", part, "fault") for part in ("embedder", "vector index (read)", "vector index (write)")
    ]
    assert all(line.startswith("a fault in ") and line.endswith(" > Leaky") for line in lines(caplog))
    await embedder.close()
    await index.close()


class Full:
    """An index on a server without room: it forgets, and takes nothing in."""

    def __init__(self) -> None:
        self.removed = 0

    async def add(self, _: object) -> None:
        raise Trouble("no room", "oom")

    async def remove(self, _: object) -> int:
        self.removed += 1
        return 1

    async def close(self) -> None:
        return


async def test_a_row_removed_does_not_show_that_one_can_be_added(notes, quick):
    inner = Full()
    index = GuardedIndex(inner, 1.0, notes)
    await index.add(None)
    while inner.removed < 3:
        await index.remove([b"key"])
        await asyncio.sleep(0)
    assert not index.writes.closed
    await index.close()


async def test_an_older_answer_is_never_laid_over_a_newer_one_by_a_trial(inner, notes, quick):
    """Two proxies on one store: one was refused an answer; the other has stored a newer one when it works again."""
    store = GuardedStore(inner, "redis", DEADLINE, notes)
    old, new = entry(5), replace(entry(5), stored_at=entry(5).stored_at + 60)
    inner.error = Trouble("no room", "oom")
    assert await store.put(old) is Kept.TROUBLE
    inner.error = None
    inner.keep(new)
    calls = inner.calls
    for _ in range(100):
        await asyncio.sleep(0)
    assert inner.calls == calls
    assert await store.get(key_of(5)) == new
    await store.close()


async def test_a_put_that_never_set_off_does_not_show_that_writing_works(inner, notes, quick, caplog, monkeypatch):
    store = GuardedStore(inner, "redis", DEADLINE, notes)
    inner.error = Trouble("no room", "oom")
    await store.put(entry(5))
    trials = 0

    async def outrun(*_: object) -> Kept:
        nonlocal trials
        trials += 1
        return Kept.OUTRUN

    monkeypatch.setattr(inner, "put", outrun)
    while trials < 10:
        assert await store.put(entry(5), 0) is Kept.TROUBLE
        await asyncio.sleep(0)
    monkeypatch.undo()
    inner.error = None
    for _ in range(1000):
        if store.writes.closed:
            break
        await store.put(entry(6))
        await asyncio.sleep(0)
    assert await store.get(key_of(6)) == entry(6), "the trial itself has stored it"
    assert "works again" not in " ".join(lines(caplog))
    await store.close()


def test_it_says_what_it_is(inner, notes, caplog):
    caplog.set_level(logging.DEBUG)
    assert repr(GuardedStore(inner, "x", 1.0, notes)).startswith("<GuardedStore <Memory 1 entries")
    assert "<Breaker x (read) closed>" in repr(GuardedStore(inner, "x", 1.0, notes))


class Held:
    """An embedder that answers when it is let."""

    identity = Identity("held", "1", 2)

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def embed(self, text: str, scope: bytes):
        await self.gate.wait()
        return text

    async def close(self) -> None:
        pass


async def test_more_texts_than_can_be_embedded_in_time_do_not_wait_and_are_no_failure(notes):
    held = Held()
    embedder = GuardedEmbedder(held, 60.0, notes)
    going = [asyncio.create_task(embedder.embed(str(number), b"")) for number in range(MOST_EMBEDDED)]
    await asyncio.sleep(0)
    assert await embedder.embed("one more", b"") is Unfit.BUSY
    going.pop().cancel()
    await asyncio.wait([asyncio.create_task(asyncio.sleep(0))])
    last = asyncio.create_task(embedder.embed("in the place of one who left", b""))
    await asyncio.sleep(0)
    held.gate.set()
    assert await last == "in the place of one who left"
    assert await asyncio.gather(*going) == [str(number) for number in range(MOST_EMBEDDED - 1)]
    assert embedder.breaker.closed
    assert notes.counted == []
    await embedder.close()
