"""A part that works again is used again, whatever happened while it was tried."""

import asyncio

from cacheproxy.engine.breaker import Breaker
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
