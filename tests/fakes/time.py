"""An event loop whose time passes only when nothing else is to be done, and then at once."""

import asyncio
import selectors
from typing import Any


class _Selector(selectors.DefaultSelector):
    """Looks at the sockets without waiting, and moves the time on instead."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout:
            self.passed += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` begins at 1,000 s."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return 1000.0 + self._virtual.passed


class LoopClock:
    """The clock of a loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        return 1.7e9 + self._loop.time()

    def monotonic(self) -> float:
        return self._loop.time()
