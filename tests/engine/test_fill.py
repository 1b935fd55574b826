"""Background work: bounded, never in the way, gone at the end."""

import asyncio
import logging

import pytest

from cacheproxy.engine.fill import Fill
from tests.engine.fakes import Notes
from tests.rig import until


class Work:
    """Coroutines that wait for a gate, counted."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.begun = self.done = self.cancelled = 0

    async def __call__(self) -> None:
        self.begun += 1
        try:
            await self.gate.wait()
            self.done += 1
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


async def test_work_runs_without_its_caller():
    work, fill = Work(), Fill(Notes())
    assert fill.offer(work())
    assert work.begun == 0, "offering waits for nothing"
    work.gate.set()
    await until(lambda: work.done == 1)
    await until(lambda: repr(fill) == "<Fill 0/256>")


async def test_what_is_too_much_is_dropped_and_counted():
    """B78: at most the limit at once, the rest is refused at once and never begun; room is used again."""
    work, notes = Work(), Notes()
    fill = Fill(notes, limit=3)
    assert [fill.offer(work()) for _ in range(5)] == [True, True, True, False, False]
    assert notes.counted == [("background_dropped", "")] * 2
    await until(lambda: work.begun == 3)
    assert repr(fill) == "<Fill 3/3>"
    work.gate.set()
    await until(lambda: repr(fill) == "<Fill 0/3>")
    assert (work.begun, work.done) == (3, 3)
    assert fill.offer(work())
    await fill.close(5)
    assert work.done == 4


async def test_closing_waits_for_what_runs():
    """B79: what is nearly done is finished."""
    work, fill = Work(), Fill(Notes())
    fill.offer(work())
    await until(lambda: work.begun == 1)
    closing = asyncio.create_task(fill.close(30))
    await asyncio.sleep(0)
    assert not closing.done()
    work.gate.set()
    await asyncio.wait_for(closing, 10)
    assert (work.done, work.cancelled) == (1, 0)


async def test_closing_ends_what_will_not_end():
    """B79: the process never hangs at its end; when `close` is back nothing runs any more."""
    work, fill = Work(), Fill(Notes())
    for _ in range(4):
        fill.offer(work())
    await asyncio.wait_for(fill.close(0.01), 10)
    assert (work.done, work.cancelled) == (0, 4)
    await until(lambda: repr(fill) == "<Fill 0/256>")
    await fill.close(0.01)


async def test_closing_with_nothing_to_do_is_immediate():
    await asyncio.wait_for(Fill(Notes()).close(1000), 5)
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("error", [ValueError("a secret prompt"), KeyError("x"), OSError()])
async def test_work_that_fails_is_told_in_one_line_without_what_it_held(caplog, error):
    """B14: an error's text may carry a prompt; the line names its kind only."""
    fill = Fill(Notes())

    async def fails() -> None:
        raise error

    with caplog.at_level(logging.DEBUG):
        assert fill.offer(fails())
        await until(lambda: repr(fill) == "<Fill 0/256>")
    said = [r.getMessage() for r in caplog.records if r.name == "cacheproxy.fill"]
    assert said == [f"background work failed: {type(error).__name__}"]
    assert "secret" not in caplog.text


async def test_cancelled_work_is_no_failure(caplog):
    work, fill = Work(), Fill(Notes())
    fill.offer(work())
    await until(lambda: work.begun == 1)
    await fill.close(0)
    assert work.cancelled == 1
    assert [r for r in caplog.records if r.name == "cacheproxy.fill"] == []
