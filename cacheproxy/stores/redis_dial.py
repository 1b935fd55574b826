"""How a byte stream to a Redis comes to be: names, TCP, TLS, Unix sockets, and who is the primary now. No Redis client
has to know the topology: a `Dial` gives the streams of a new connection, each time resolved anew."""

import asyncio
import contextlib
import ipaddress
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import aiohappyeyeballs

from cacheproxy.errors import ConfigurationError

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[], Awaitable[Streams]]
Infos = list[Any]
"""What getaddrinfo gives."""

ATTEMPT_DELAY = 0.1
"""Seconds until a name's next address is tried beside one that has not answered."""
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


class Names:
    """Resolves names, each in one thread of its own at a time: a name server that hangs costs one thread, and none of
    those that others need."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, int], asyncio.Future[Infos]] = {}

    async def find(self, host: str, port: int) -> Infos:
        """The addresses of `host`. Raises `socket.gaierror`."""
        with contextlib.suppress(ValueError):
            family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
            return [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))]
        where = host, port
        if where not in self._asked:
            loop = asyncio.get_running_loop()
            future: asyncio.Future[Infos] = loop.create_future()
            future.add_done_callback(partial(self._found, where))
            self._asked[where] = future
            # A daemon: an interpreter that ends does not wait for a name server.
            threading.Thread(target=_resolve, args=(where, loop, future), name="redis-names", daemon=True).start()
        return await asyncio.shield(self._asked[where])

    def _found(self, where: tuple[str, int], future: "asyncio.Future[Infos]") -> None:
        del self._asked[where]
        if not future.cancelled():
            future.exception()  # seen, even if all who asked have gone


def _resolve(where: tuple[str, int], loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Infos]") -> None:
    try:
        found = socket.getaddrinfo(*where, type=socket.SOCK_STREAM)
        settle = partial(_settle, future.set_result, future, found)
    except (OSError, UnicodeError) as error:
        wrong = error if isinstance(error, OSError) else socket.gaierror(socket.EAI_NONAME, "not a name")
        settle = partial(_settle, future.set_exception, future, wrong)
    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(settle)


def _settle(how: Callable[[Any], None], future: "asyncio.Future[Infos]", what: object) -> None:
    if not future.done():
        how(what)


class Seal:
    """The TLS of a client: whom it trusts and what it shows. Files that have changed are read again, so that renewed
    certificates need no restart. Raises `ConfigurationError` if the files cannot be used at the start."""

    def __init__(self, authority: str | None, certificate: str | None, key: str | None) -> None:
        self._authority, self._certificate, self._key = authority, certificate, key
        self._stamp = self._look()
        try:
            self._context = self._make()
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"the certificate files for Redis cannot be used ({type(error).__name__}); redis.ca_file,"
                " redis.cert_file and redis.key_file are PEM files, the key without a passphrase"
            ) from None

    def context(self) -> ssl.SSLContext:
        """The context of the files as they are now, or as they last could be read."""
        stamp = self._look()
        if stamp != self._stamp:
            with contextlib.suppress(OSError, ValueError):  # half-written; the next change is seen again
                self._context = self._make()
                self._stamp = stamp
        return self._context

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(path) for path in (self._authority, self._certificate, self._key) if path]

    def _make(self) -> ssl.SSLContext:
        if self._key and not self._certificate:
            raise ValueError("a key of no certificate")
        context = ssl.create_default_context(cafile=self._authority)
        if self._certificate:
            context.load_cert_chain(self._certificate, self._key, password=_no_passphrase)
        return context


def _no_passphrase() -> str:
    raise ValueError("the key has a passphrase")


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


async def by_tcp(names: Names, seal: Seal | None, host: str, port: int) -> Streams:
    """Raises `OSError`: also `socket.gaierror` and `ssl.SSLError`."""
    infos = await names.find(host, port)
    sock = await aiohappyeyeballs.start_connection(infos, happy_eyeballs_delay=ATTEMPT_DELAY)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in _KEEPALIVE:
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
    if seal is None:
        return await asyncio.open_connection(sock=sock)
    return await asyncio.open_connection(sock=sock, ssl=seal.context(), server_hostname=host)


async def by_socket(path: str) -> Streams:
    return await asyncio.open_unix_connection(path)
