"""Makes way for threads that starve beside a busy event loop.

A busy loop lets go of the interpreter for an instant, each time it looks for events: too short for a thread that has
to wake up first, and so often that the thread's wait, after which it may demand the interpreter, begins anew each
time. It would starve for seconds.
"""

import asyncio
import time
from collections.abc import Callable

PATIENCE, AGAIN, GAP = 0.02, 0.005, 0.0002
"""Seconds: work that has not got on for so long is taken to starve; while it does, the event loop stands still so
often, for so long."""

Work = tuple[object, ...]
"""What is under way, None for nothing; each another object once it has got on."""


class Way:
    """Looks at `work` as long as there is any."""

    def __init__(self, work: Callable[[], Work]) -> None:
        self._work = work
        self.loop: asyncio.AbstractEventLoop | None = None
        """The loop on which it is looking now."""

    def watch(self) -> None:
        """From now on, until nothing is left to do, see that the threads get on."""
        loop = asyncio.get_running_loop()
        if self.loop is not loop:
            self.loop = loop
            loop.call_later(PATIENCE, self.make, loop, self._work())

    def make(self, loop: asyncio.AbstractEventLoop, before: Work) -> None:
        """Stand still for a moment if a thread has not got on since `before`."""
        now = self._work()
        starving = any(work is not None and work is last for work, last in zip(now, before, strict=True))
        if starving:
            time.sleep(GAP)
        if any(now):
            loop.call_later(AGAIN if starving else PATIENCE, self.make, loop, now)
        else:
            self.loop = None
