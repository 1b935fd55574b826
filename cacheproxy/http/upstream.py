"""One backend: where it is, and its connections that wait for the next request."""

import asyncio
import socket
import ssl
from collections import deque

import aiohappyeyeballs

from cacheproxy.core import address
from cacheproxy.core.rules import Globs
from cacheproxy.errors import ConfigurationError
from cacheproxy.http.connection import Connection

IDLE_SECONDS = 55.0
"""How long a connection is kept for the next request; below the usual minute of servers and balancers."""
IDLE_LIMIT = 256


class Upstream:
    """A backend at `url`, with or without a trailing ``/v1``. `models`: patterns of those that it serves, none if that
    is not said."""

    def __init__(self, url: str, weight: float = 1.0, models: Globs = ()) -> None:
        where = address.read(url)
        if isinstance(where, str):
            raise ConfigurationError(f"a backend's URL {where}")
        self.weight = weight
        self.host, self.port, self.tls = where.host, where.port, where.tls
        self.path, self.host_field = where.path, where.host_field
        self.models = models
        self._context: ssl.SSLContext | None = None
        self._idle: deque[tuple[float, Connection]] = deque()

    def __repr__(self) -> str:
        return f"<Upstream {self.url} {len(self._idle)} idle>"

    @property
    def url(self) -> str:
        """The URL in one spelling."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{self.path.decode()}"

    async def connect(self) -> Connection:
        """A new connection. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        if self.tls and self._context is None:
            self._context = await loop.run_in_executor(None, ssl.create_default_context)
        addresses = await loop.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        sock = await aiohappyeyeballs.start_connection(addresses, happy_eyeballs_delay=0.25)
        try:
            _, connection = await loop.create_connection(
                lambda: Connection(loop),
                sock=sock,
                ssl=self._context if self.tls else None,
                server_hostname=self.host if self.tls else None,
            )
        except BaseException:
            sock.close()
            raise
        return connection

    def take(self) -> Connection | None:
        """A kept connection that is still open, the one used last first."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            since, connection = self._idle.pop()
            if connection.closed:
                continue
            if now - since <= IDLE_SECONDS:
                return connection
            connection.abort()
        return None

    def give(self, connection: Connection) -> None:
        """Keep a connection whose exchange is over."""
        self._idle.append((asyncio.get_running_loop().time(), connection))
        if len(self._idle) > IDLE_LIMIT:
            self._idle.popleft()[1].abort()

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[1].abort()
