"""A deadline that counts only the time in which the event loop came round.

When a thousand requests arrive in one moment the loop is busy for longer than a cache part may take, and the answer of
that part lies in its socket unread. Time in which nothing could have been read is nobody's failure: the deadline is
counted in slices, and a slice that was late counts once.
"""

import asyncio
from types import TracebackType

SLICES = 10


class Deadline:
    """``async with Deadline(seconds):`` raises `TimeoutError` like `asyncio.timeout`, and as exactly while the loop is
    not held up; None: never."""

    __slots__ = ("_left", "_slice", "_timeout", "_timer")

    def __init__(self, seconds: float | None) -> None:
        self._slice = None if seconds is None else seconds / SLICES
        self._left = SLICES
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        if self._slice is not None:
            self._timer = asyncio.get_running_loop().call_later(self._slice, self._tick, self._slice)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def _tick(self, pause: float) -> None:
        loop = asyncio.get_running_loop()
        self._left -= 1
        if self._left > 0:
            self._timer = loop.call_later(pause, self._tick, pause)
        else:
            self._timeout.reschedule(loop.time())
