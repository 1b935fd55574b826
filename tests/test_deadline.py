"""A deadline counts the time in which the loop came round, and no other."""

import asyncio
import time

import pytest

from cacheproxy.deadline import SLICES, Deadline


async def test_what_never_comes_is_given_up():
    with pytest.raises(TimeoutError):
        async with Deadline(0.02):
            await asyncio.Event().wait()


async def test_what_is_there_when_a_busy_loop_comes_round_is_not_late():
    """The answer came while the loop was held up for longer than the deadline; it takes some turns to be read."""
    told = asyncio.get_running_loop().create_future()

    async def turns() -> str:
        asyncio.get_running_loop().call_soon(time.sleep, 0.05)
        for _ in range(20):
            await asyncio.sleep(0)
        told.set_result("here")
        return await told

    async with Deadline(0.02):
        assert await turns() == "here"


async def test_a_loop_that_is_held_up_again_and_again_ends_it_all_the_same():
    """Each slice counts once, however late."""
    held_up = 0
    with pytest.raises(TimeoutError):
        async with Deadline(0.01):
            while True:
                time.sleep(0.01)
                held_up += 1
                await asyncio.sleep(0)
    assert held_up >= SLICES


async def test_a_cancelled_one_is_cancelled_and_leaves_no_timer():
    deadline = Deadline(0.01)

    async def wait() -> None:
        async with deadline:
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert deadline._timer is not None and deadline._timer.cancelled()
