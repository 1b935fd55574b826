"""A backend's answer whose head has come."""

import asyncio

from cacheproxy.errors import UpstreamCut, UpstreamTimeout
from cacheproxy.http.connection import Connection, Dropped
from cacheproxy.http.lease import Lease
from cacheproxy.http.upstream import Upstream


class Answering:
    """A reply whose head has come (the `Reply` of ports.py)."""

    def __init__(
        self, upstream: Upstream, connection: Connection, pump: asyncio.Task[None] | None, idle: float,
        lease: Lease | None,
    ) -> None:  # fmt: skip
        self.status = connection.status
        self.phrase = connection.phrase
        self.fields = connection.fields
        self.interim = connection.interim
        self.connection = connection
        self._upstream = upstream
        self._pump = pump
        self._idle = idle
        self._lease = lease
        self._open = True

    def __repr__(self) -> str:
        return f"<Answering {self.status} {'open' if self._open else 'closed'} {self.connection!r}>"

    @property
    def ended(self) -> bool:
        return not self._open or self.connection.ended

    async def read(self) -> bytes:
        if not self._open:
            return b""
        try:
            data = await self.connection.read(self._idle)
        except Dropped as error:
            self._broke()
            raise UpstreamCut("the connection ended inside the answer") from error
        except UpstreamCut:
            self._broke()
            raise
        except UpstreamTimeout:
            self._broke()
            self.connection.abort()
            raise
        if self._lease is not None and data:
            self._lease.began(asyncio.get_running_loop().time())
        return data

    async def settle(self, seconds: float) -> bool:
        return not self._open or await self.connection.settle(seconds)

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        if self._lease is not None:
            if self.connection.ended:
                self._lease.whole()
            self._lease.end()
        sent = self._pump is None or self._pump.done()
        if self._pump is not None:
            self._pump.cancel()
        if sent and self.connection.reusable:
            self._upstream.give(self.connection)
        else:
            self.connection.abort()

    def _broke(self) -> None:
        """The backend broke off, or did not go on; unless that was the doing of who sends the request's body."""
        if self._lease is not None and self._pump is None and self._open:
            self._lease.broke()
