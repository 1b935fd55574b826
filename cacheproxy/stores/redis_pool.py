"""The connections to one Redis: never more than the bound, handed to those who wait in their order.

Connections are made in the background: who leaves while one is being made costs nobody that connection, so that a
handshake may take longer than a lookup may wait. Giving one back never waits, so that no cancellation can lose one.
"""

import asyncio
import copy
from collections import OrderedDict
from typing import Any

from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import MaxConnectionsError
from redis.exceptions import TimeoutError as SlowError
from redis.maint_notifications import MaintNotificationsConfig

from cacheproxy.errors import Trouble
from cacheproxy.stores.redis_wire import Wire

PATIENCE = 5.0
"""Seconds that a command may wait for a connection. Who is in a hurry leaves earlier."""
PARTING = 1.0
"""Seconds that closing waits for the transports to end."""


class Pool(ConnectionPool):
    """At most `bound` connections, each made of `options` (see `Wire`); a pool for redis-py's clients."""

    def __init__(self, bound: int, patience: float = PATIENCE, **options: Any) -> None:
        silent = MaintNotificationsConfig(enabled=False)
        super().__init__(Wire, bound, maint_notifications_config=silent, **options)
        self.patience = patience
        self._idle: list[Wire] = []
        self._busy: set[Wire] = set()
        self._dials: set[asyncio.Task[Wire]] = set()
        self._waiting: OrderedDict[asyncio.Future[Wire], None] = OrderedDict()
        self._age = 0
        self._closed = False

    def __repr__(self) -> str:
        return (
            f"<Pool {len(self._idle)} idle, {len(self._busy)} busy, {len(self._dials)} being made,"
            f" {len(self._waiting)} waiting, at most {self.max_connections}>"
        )

    @property
    def size(self) -> int:
        """Connections there are, those being made included."""
        return len(self._idle) + len(self._busy) + len(self._dials)

    @property
    def busy(self) -> int:
        """Connections that carry a command now."""
        return len(self._busy)

    async def get_connection(self, command_name: object = None, *_: object, **__: object) -> Wire:  # noqa: ARG002
        """A connection that owes nothing; give it back by `release`. Raises `MaxConnectionsError` if none becomes free
        in time, and what making one raised."""
        if self._closed:
            raise Trouble("the connections to Redis are closed", "closed")
        while self._idle:
            wire = self._idle.pop()
            if await wire.clean():
                self._busy.add(wire)
                return wire
            wire.abort()
        future: asyncio.Future[Wire] = asyncio.get_running_loop().create_future()
        self._waiting[future] = None
        self._dial()
        try:
            async with asyncio.timeout(self.patience):
                return await self._wait(future)
        except TimeoutError:
            if not self._busy:
                raise SlowError("none could be made") from None
            raise MaxConnectionsError("none became free") from None

    async def _wait(self, future: "asyncio.Future[Wire]") -> Wire:
        try:
            return await future
        except asyncio.CancelledError:
            if self._waiting.pop(future, self) is self and not future.cancelled() and future.exception() is None:
                self._settle(future.result(), fit=True)  # it came in the same moment
            raise

    async def release(self, connection: AbstractConnection) -> None:
        """Take it back. Never waits."""
        if not isinstance(connection, Wire) or connection not in self._busy:
            return
        self._settle(connection, fit=await connection.clean())

    def _settle(self, wire: Wire, *, fit: bool) -> None:
        """Give it to somebody, or make another in its place."""
        if fit and wire.age == self._age and not self._closed:
            self._give(wire)
        else:
            self._busy.discard(wire)
            wire.abort()
            self._dial()

    def _give(self, wire: Wire) -> None:
        """To the one who has waited longest, else to the idle."""
        while self._waiting:
            future, _ = self._waiting.popitem(last=False)
            if not future.done():
                self._busy.add(wire)
                future.set_result(wire)
                return
        self._busy.discard(wire)
        self._idle.append(wire)

    def _dial(self) -> None:
        """Make as many as are waited for, within the bound."""
        while len(self._dials) < len(self._waiting) and self.size < self.max_connections and not self._closed:
            wire = Wire(**self.connection_kwargs)
            wire.age = self._age
            task = asyncio.get_running_loop().create_task(_made(wire))
            self._dials.add(task)
            task.add_done_callback(self._dialled)

    def _dialled(self, task: "asyncio.Task[Wire]") -> None:
        self._dials.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            if not self._busy and not self._dials:
                self._disappoint(error)  # while others are at work one of theirs will do
        else:
            self._settle(task.result(), fit=True)

    def _disappoint(self, error: BaseException) -> None:
        """Nobody need wait for what cannot be had."""
        while self._waiting:
            future, _ = self._waiting.popitem(last=False)
            if not future.done():
                # One each: an exception that is raised in many places gathers their tracebacks.
                own = copy.copy(error)
                own.__cause__ = error
                future.set_exception(own)

    def drop(self) -> None:
        """Use none of the present connections again: the next is made anew, wherever the name leads then."""
        self._age += 1
        idle, self._idle = self._idle, []
        for wire in idle:
            wire.abort()

    async def disconnect(self, inuse_connections: bool = True) -> None:  # noqa: ARG002, FBT002
        self.drop()

    async def aclose(self) -> None:
        """Close them all, those at work too, and wait for their end. Who waits gets `Trouble`."""
        self._closed = True
        writers = [writer for wire in (*self._idle, *self._busy) if (writer := wire._writer) is not None]  # noqa: SLF001
        self._disappoint(Trouble("the connections to Redis are closed", "closed"))
        for task in self._dials:
            task.cancel()
        self.drop()
        for wire in self._busy:
            wire.abort()
        ends = [asyncio.ensure_future(writer.wait_closed()) for writer in writers] + list(self._dials)
        if ends:
            await asyncio.wait(ends, timeout=PARTING)
        for end in ends:
            if not end.cancel() and not end.cancelled():
                end.exception()


async def _made(wire: Wire) -> Wire:
    await wire.connect()
    return wire
