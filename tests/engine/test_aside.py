"""Long work on bytes does not stop the loop; short work is done at once."""

import asyncio
import threading

from cacheproxy.engine.aside import AT_ONCE, aside


async def test_short_work_is_done_at_once():
    assert await aside(AT_ONCE, threading.get_ident) == threading.get_ident()


async def test_the_loop_goes_on_beside_long_work():
    entered, go_on = threading.Event(), threading.Event()

    def work() -> str:
        entered.set()
        assert go_on.wait(30)
        return "done"

    working = asyncio.create_task(aside(AT_ONCE + 1, work))
    while not entered.is_set():
        await asyncio.sleep(0)
    assert not working.done()
    go_on.set()
    assert await working == "done"
