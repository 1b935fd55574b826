"""A part that works again is used again, whatever happened while it was tried; and a blip is one failure."""

import asyncio

import pytest

from cacheproxy.engine import breaker as breakers
from cacheproxy.engine.breaker import FAILURES, Breaker
from cacheproxy.errors import Trouble
from tests.engine.fakes import Notes
from tests.rig import until


async def test_a_call_that_fails_in_the_moment_after_a_successful_trial_is_tried_again():
    """It set off before the part was left alone, and fails between the trial's success and the trial's end."""
    breaker = Breaker("part", 10.0, Notes())
    late, tried = (asyncio.get_running_loop().create_future() for _ in range(2))
    calls = 0

    async def first_bad() -> object:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise Trouble("gone")
        return await tried

    async def waits() -> object:
        return await late

    running = asyncio.create_task(breaker.call(waits))
    await asyncio.sleep(0)
    assert isinstance(await breaker.call(first_bad), Trouble)
    await until(lambda: calls == 2, what="the trial")
    tried.set_result("well")
    late.set_exception(Trouble("late"))  # in the same turn of the loop
    assert isinstance(await running, Trouble)

    async def good() -> object:
        return "good"

    await breaker.call(good)
    await until(lambda: breaker.closed, what="its being used again")
    assert await breaker.call(good) == "good"
    await breaker.close()


async def test_a_blip_under_many_calls_is_one_failure(monkeypatch, caplog):
    """B63: all that are under way fail; the part is back at the first trial, and not left alone for a whole pause."""
    monkeypatch.setattr(breakers, "PAUSE", 1000.0)
    notes, down = Notes(), True
    breaker = Breaker("part", 0.02, notes)

    async def work() -> object:
        if down:
            await asyncio.Event().wait()
        return "good"

    found = await asyncio.gather(*(breaker.call(work) for _ in range(4 * FAILURES)))
    assert {one.kind for one in found} == {"timeout"}
    assert breaker.state == "suspect"
    assert len(notes.counted) == 4 * FAILURES, "each of them cost its caller a deadline, and is counted"
    down = False
    await until(lambda: breaker.closed, what="a trial")
    assert await breaker.call(work) == "good"
    assert caplog.records == []
    await breaker.close()


async def test_what_a_part_cancels_itself_is_trouble_and_its_caller_stays():
    breaker = Breaker("part", 10.0, Notes())

    async def work() -> object:
        raise asyncio.CancelledError

    found = await breaker.call(work)
    assert isinstance(found, Trouble)
    assert found.kind == "fault"
    await breaker.close()


class Writing:
    """A part that is written to, of which each call says what it gives."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.gives: object = Trouble("full")

    def write(self, name: str):
        async def work() -> object:
            self.done.append(name)
            if isinstance(self.gives, Exception):
                raise self.gives
            return self.gives

        return work


@pytest.fixture
def quick(monkeypatch) -> None:
    monkeypatch.setattr(breakers, "FIRST_GAP", 0.0)
    monkeypatch.setattr(breakers, "PAUSE", 0.0)


async def test_what_changes_something_is_tried_when_it_is_asked_for_and_never_later(quick):
    """Late, it would lay an older answer over a newer one that somebody else has stored meanwhile."""
    part = Writing()
    breaker = Breaker("part", 10.0, Notes(), proof=lambda kept: kept == "kept")
    await breaker.call(part.write("first"))
    part.gives = "kept"
    for _ in range(50):
        await asyncio.sleep(0)
    assert part.done == ["first"]
    assert not breaker.closed
    for number in range(1000):
        if breaker.closed:
            break
        assert isinstance(await breaker.call(part.write(f"later {number}")), Trouble), "nobody waits for it"
        await asyncio.sleep(0)
    assert len(part.done) == 2
    assert part.done[1].startswith("later")
    await breaker.close()


async def test_what_is_asked_for_during_a_trial_is_not_tried_after_it(monkeypatch):
    monkeypatch.setattr(breakers, "FIRST_GAP", 0.0)
    breaker = Breaker("part", 10.0, Notes(), proof=lambda kept: kept == "kept")
    held: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    part = Writing()
    await breaker.call(part.write("first"))

    async def waits() -> object:
        part.done.append("trial")
        return await held

    while "trial" not in part.done:
        await breaker.call(waits)
        await asyncio.sleep(0)
    part.gives = "kept"
    await breaker.call(part.write("during"))
    held.set_exception(Trouble("full"))
    for _ in range(50):
        await asyncio.sleep(0)
    assert part.done == ["first", "trial"]
    await breaker.close()


async def test_what_shows_nothing_closes_nothing(quick, caplog):
    """A put that a removal outran came back without having been anywhere."""
    part = Writing()
    breaker = Breaker("part", 10.0, Notes(), proof=lambda kept: kept == "kept")
    await breaker.call(part.write("first"))
    part.gives = "outrun"
    while len(part.done) < 3 * FAILURES:
        await breaker.call(part.write("trial"))
        await asyncio.sleep(0)
    assert breaker.state == "suspect", "nor does it count as a failure"
    assert caplog.records == []
    await breaker.close()
