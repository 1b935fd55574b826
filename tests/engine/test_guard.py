"""The one place that forgives: what trouble of a store costs, and how often it is told."""

import asyncio
import logging

import pytest

from cacheproxy.core.model import Census, Entry
from cacheproxy.engine.guard import FAILURES, PAUSE, Breaker, GuardedStore
from cacheproxy.errors import Trouble
from cacheproxy.stores.memory import Memory
from tests.engine.fakes import Hands, Notes
from tests.rig import until
from tests.stores.entries import entry, key_of

DEADLINE = 0.02


class Moody(Memory):
    """A store that fails or hangs on demand."""

    def __init__(self) -> None:
        super().__init__(10_000_000)
        self.error: BaseException | None = None
        self.hang = False
        self.calls = 0
        self.waiting = 0

    async def _mood(self) -> None:
        self.calls += 1
        if self.hang:
            self.waiting += 1
            try:
                await asyncio.Event().wait()
            finally:
                self.waiting -= 1
        if self.error is not None:
            raise self.error

    async def get(self, key: bytes) -> Entry | None:
        await self._mood()
        return self.peek(key)

    async def put(self, entry: Entry) -> None:
        await self._mood()
        self.keep(entry)

    async def sweep(self, now: float) -> int:
        await self._mood()
        return await super().sweep(now)


@pytest.fixture
def inner() -> Moody:
    store = Moody()
    store.keep(entry(1))
    return store


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def guarded(inner, clock, notes) -> GuardedStore:
    return GuardedStore(inner, "cache file", DEADLINE, clock, notes)


def lines(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "cacheproxy.guard"]


async def fail(guarded: GuardedStore, times: int = FAILURES) -> None:
    for _ in range(times):
        assert await guarded.get(key_of(1)) is None


async def test_what_works_passes_unchanged(guarded, notes, caplog):
    await guarded.put(entry(2))
    assert await guarded.get(key_of(2)) == entry(2)
    assert await guarded.get(key_of(3)) is None
    assert guarded.census() == Census(2, entry(1).size + entry(2).size)
    assert await guarded.sweep(2e9) == 2
    assert (notes.counted, lines(caplog)) == ([], [])


@pytest.mark.parametrize("error", [Trouble("the disk is on fire"), TimeoutError()])
async def test_trouble_is_a_miss_and_is_counted(guarded, inner, notes, error):
    """Trouble in a cache part never costs an answer."""
    inner.error = error
    assert await guarded.get(key_of(1)) is None
    await guarded.put(entry(2))
    assert notes.counted == [("trouble", "cache file (read)"), ("trouble", "cache file (write)")]
    inner.error = None
    assert await guarded.get(key_of(1)) == entry(1)


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyError(1), AssertionError(), RuntimeError()])
async def test_a_bug_is_not_forgiven(guarded, inner, notes, error):
    """Only what a store may raise is forgiven; anything else is a fault of ours, and has to show."""
    inner.error = error
    for act in (lambda: guarded.get(key_of(1)), lambda: guarded.put(entry(2)), lambda: guarded.sweep(1.0)):
        with pytest.raises(type(error)):
            await act()
    assert notes.counted == []


async def test_a_store_that_hangs_costs_its_deadline(guarded, inner, notes):
    """B63: the call is given up at the deadline and nothing of it is left waiting."""
    inner.hang = True
    began = asyncio.get_running_loop().time()
    assert await guarded.get(key_of(1)) is None
    await guarded.put(entry(2))
    took = asyncio.get_running_loop().time() - began
    assert 2 * DEADLINE * 0.9 <= took < 5
    assert inner.waiting == 0
    assert [e for e, _ in notes.counted] == ["trouble", "trouble"]


async def test_after_failures_in_a_row_the_store_is_left_alone(guarded, inner, clock, caplog):
    """B63: no call and so no delay at all while the breaker is open; one line tells that it opened."""
    inner.error = Trouble("gone")
    await fail(guarded, FAILURES)
    assert inner.calls == FAILURES
    assert lines(caplog) == [f"cache file (read) left alone after {FAILURES} failures: gone"]
    inner.error = None
    for _ in range(50):
        assert await guarded.get(key_of(1)) is None
    clock.move(PAUSE * 0.99)
    assert await guarded.get(key_of(1)) is None
    assert inner.calls == FAILURES
    assert "open" in repr(guarded)


async def test_fewer_failures_change_nothing(guarded, inner, caplog):
    """B63: one blip does not open it, nor do failures with successes between them."""
    for _ in range(10):
        inner.error = Trouble("blip")
        await fail(guarded, FAILURES - 1)
        inner.error = None
        assert await guarded.get(key_of(1)) == entry(1)
    assert lines(caplog) == []


async def test_after_the_pause_one_call_tries(guarded, inner, clock, caplog):
    """B63: the trial alone goes through; while it fails the rest are kept off, and nothing more is logged."""
    inner.error = Trouble("gone")
    await fail(guarded)
    for turn in range(1, 6):
        clock.move(PAUSE)
        for _ in range(10):
            assert await guarded.get(key_of(1)) is None
        assert inner.calls == FAILURES + turn
    assert len(lines(caplog)) == 1


async def test_a_trial_that_succeeds_closes_it(guarded, inner, clock, caplog):
    """B63: it recovers by itself, with one line, and failures count from nought again."""
    inner.error = Trouble("gone")
    await fail(guarded)
    inner.error = None
    clock.move(PAUSE)
    assert await guarded.get(key_of(1)) == entry(1)
    assert await guarded.get(key_of(1)) == entry(1)
    assert lines(caplog)[1:] == ["cache file (read) works again"]
    inner.error = Trouble("again")
    await fail(guarded, FAILURES - 1)
    inner.error = None
    assert await guarded.get(key_of(1)) == entry(1)
    assert len(lines(caplog)) == 2


async def test_many_calls_at_once_are_one_trial(guarded, inner, clock):
    """Half open: of calls that come together one is the trial, the others are misses without delay."""
    inner.error = Trouble("gone")
    await fail(guarded)
    clock.move(PAUSE)
    inner.hang = True
    results = await asyncio.gather(*(guarded.get(key_of(1)) for _ in range(30)))
    assert results == [None] * 30
    assert inner.calls == FAILURES + 1


async def test_reading_and_writing_have_breakers_of_their_own(guarded, inner):
    """B67: a store that refuses writes is read from all the same."""
    inner.error = Trouble("read only")
    for number in range(FAILURES):
        await guarded.put(entry(number))
    inner.error = None
    assert await guarded.get(key_of(1)) == entry(1)
    calls = inner.calls
    await guarded.put(entry(5))
    assert inner.calls == calls, "writes are left alone"


async def test_callers_that_leave_are_no_failures(guarded, inner, notes):
    """B61: a cancelled call says nothing about the store; the cancellation goes through and nothing is left waiting."""
    inner.hang = True
    for turn in range(2 * FAILURES):
        call = asyncio.create_task(guarded.get(key_of(1)) if turn % 2 else guarded.put(entry(2)))
        await until(lambda: inner.waiting == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert inner.waiting == 0
    inner.hang = False
    assert notes.counted == []
    assert await guarded.get(key_of(1)) == entry(1)


async def test_a_trial_whose_caller_leaves_is_tried_again(guarded, inner, clock):
    """The breaker does not stay open for ever because the one that tried has left."""
    inner.error = Trouble("gone")
    await fail(guarded)
    inner.error = None
    inner.hang = True
    clock.move(PAUSE)
    call = asyncio.create_task(guarded.get(key_of(1)))
    await until(lambda: inner.waiting == 1)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    inner.hang = False
    clock.move(PAUSE)
    assert await guarded.get(key_of(1)) == entry(1)


async def test_sweeping_forgives_trouble(guarded, inner):
    inner.error = Trouble("gone")
    assert await guarded.sweep(1.0) == 0


async def test_closing_closes_the_store(guarded, inner):
    await guarded.close()
    assert inner.census() == Census(0, 0)


def test_a_breaker_tells_its_name_and_state(clock, notes, caplog):
    """Every failure is counted, every change of state is one line."""
    breaker = Breaker("index", clock, notes)
    assert repr(breaker) == "<Breaker index closed>"
    caplog.set_level(logging.INFO)
    for _ in range(2 * FAILURES):
        breaker.failed("x")
    assert repr(breaker) == "<Breaker index open>"
    assert notes.counted == [("trouble", "index")] * 2 * FAILURES
    breaker.succeeded()
    breaker.succeeded()
    assert not breaker.open
    assert len(lines(caplog)) == 2
