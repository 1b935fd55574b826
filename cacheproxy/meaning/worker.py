"""One thread that does one thing after the other. Work that hangs holds up what comes after it, and nothing else: not
the event loop, nor the end of the process."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from cacheproxy.errors import Trouble

T = TypeVar("T")
_Order = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class Worker:
    """Begins with the first order."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def do(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """What `work` gives or raises, after what was ordered before. It is done though nobody waits for it. `Trouble`
        once it is closed."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if self._closed:
            future.set_exception(Trouble("closed", "closed"))
            return future
        self._orders.put((work, loop, future))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        return future

    def close(self) -> None:
        """Let the thread end after what was ordered. Does not wait for it."""
        self._closed = True
        self._orders.put(None)

    def _run(self) -> None:
        while (order := self._orders.get()) is not None:
            work, loop, future = order
            result, error = None, None
            try:
                result = work()
            except BaseException as raised:  # noqa: BLE001 - it is who ordered it that has to know
                error = raised
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(_settle, future, result, error)
            del order, work, future, result, error  # not kept until the next


def _settle(future: "asyncio.Future[Any]", result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error if isinstance(error, Exception) else RuntimeError(type(error).__name__))
