"""Who is the primary: Sentinels are asked at each new connection, all at once; the first that knows is believed.
Whether it is one is checked where the connection is made.

They are also asked once in a while: a primary that has been replaced while it lives goes on answering for many seconds,
with what was removed from the new one.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from itertools import cycle
from typing import Any

from redis.asyncio.sentinel import MasterNotFoundError
from redis.exceptions import RedisError

from cacheproxy.errors import Trouble
from cacheproxy.stores.redis_dial import Dial, Streams
from cacheproxy.stores.redis_wire import Wire

Address = tuple[str, int]

LOOK = 1.0
"""Seconds between two looks at who is the primary."""


class Sentinels:
    """Those at the ends of `dials`, and what they call the primary. `to`: how a connection to an address is made;
    `changed` is called when another server is the primary; `options`: of the connections to the Sentinels (see
    `Wire`)."""

    def __init__(
        self, service: str, dials: list[Dial], to: Callable[[str, int], Awaitable[Streams]],
        changed: Callable[[], None], **options: Any,
    ) -> None:  # fmt: skip
        self._service = service
        self._dials = dials
        self._to = to
        self._changed = changed
        self._options = options
        self._primary: Address | None = None
        self._asking: asyncio.Task[Address] | None = None
        self._looking: asyncio.Task[None] | None = None

    async def dial(self) -> Streams:
        """Streams to the primary. Connections that are made at the same time share one question."""
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._find())
            self._asking.add_done_callback(self._found)
        primary = await asyncio.shield(self._asking)
        self._note(primary)
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())
        return await self._to(*primary)

    def _found(self, task: "asyncio.Task[Address]") -> None:
        self._asking = None
        if not task.cancelled():
            task.exception()  # seen, even if all who asked have gone

    def _note(self, primary: Address) -> None:
        before, self._primary = self._primary, primary
        if before not in (None, primary):
            self._changed()

    async def _look(self) -> None:
        """Ask one Sentinel after the other, for ever."""
        for dial in cycle(self._dials):
            await asyncio.sleep(LOOK)
            with contextlib.suppress(RedisError, Trouble):
                self._note(await self._ask(dial))

    async def _find(self) -> Address:
        asked = [asyncio.ensure_future(self._ask(dial)) for dial in self._dials]
        errors: list[Exception] = []
        try:
            for answer in asyncio.as_completed(asked):
                try:
                    return await answer
                except (RedisError, Trouble) as error:
                    errors.append(error)
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        unknown = (error for error in errors if isinstance(error, MasterNotFoundError))
        raise next(unknown, errors[-1])

    async def _ask(self, dial: Dial) -> Address:
        wire = Wire(dial=dial, **self._options)
        try:
            await wire.connect()
            await wire.send_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service)
            answer = await wire.read_response()
        finally:
            wire.abort()
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            host, port = answer
            return host.decode(), int(port)
        raise MasterNotFoundError("no such name")

    async def close(self) -> None:
        ending = [task for task in (self._asking, self._looking) if task is not None]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)
