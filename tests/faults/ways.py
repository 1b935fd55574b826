"""The ways in which a Redis fails: what to do to the relay before it, or to the server, and what it is counted as."""

import socket
from collections.abc import Callable
from dataclasses import dataclass

from tests.fakes import relay as relays
from tests.fakes.relay import OPENING, Relay
from tests.parts.redis import Redis

WRITING = ("EVALSHA", "EVAL", "SET", "UNLINK")
HOST = "redis.test"
"""A name that only `Name` resolves."""


@dataclass(frozen=True)
class Way:
    """`begin` makes it fail; `end`, if clearing the relay is not enough. `kinds`: what it may be counted as; `reads`:
    whether lookups fail too."""

    begin: Callable[[Relay, Redis], None]
    kinds: frozenset[str]
    reads: bool = True
    end: Callable[[Relay, Redis], None] = lambda relay, server: None


def _refuse(relay: Relay, _: Redis) -> None:
    relay.refuse()
    relay.reset()


def _silent(relay: Relay, _: Redis) -> None:
    relay.reset()
    relay.freeze()


def _says(reply: bytes, *commands: str) -> Callable[[Relay, Redis], None]:
    return lambda relay, _: relay.answer(reply, *commands, but=() if commands else OPENING)


def _way(begin: Callable[[Relay, Redis], None], *kinds: str, **more) -> Way:
    return Way(begin, frozenset(kinds), **more)


WAYS = {
    "refused": _way(_refuse, "refused", "reset"),
    "reset": _way(lambda relay, _: relay.cut(0, resets=True), "reset"),
    "reset within an answer": _way(lambda relay, _: relay.cut(3, resets=True), "reset"),
    "server frozen": _way(lambda _, server: server.freeze(), "timeout", end=lambda _, server: server.thaw()),
    "relay frozen": _way(lambda relay, _: relay.freeze(), "timeout"),
    "taken but silent": _way(_silent, "timeout", "reset"),
    "a byte a second": _way(lambda relay, _: relay.trickle(), "timeout"),
    "garbage": _way(lambda relay, _: relay.garble(), "protocol", "timeout", "reset", "other"),
    "OOM for writes": _way(_says(relays.OOM, *WRITING), "oom", reads=False),
    "OOM for all": _way(_says(relays.OOM), "oom"),
    "LOADING": _way(_says(relays.LOADING), "loading"),
    "READONLY for writes": _way(_says(relays.READONLY, *WRITING), "readonly", reads=False),
    "MASTERDOWN": _way(_says(relays.MASTERDOWN), "masterdown"),
    "NOAUTH": _way(_says(relays.NOAUTH), "noauth"),
    "MOVED": _way(_says(relays.MOVED), "moved"),
    "BUSY": _way(_says(b"-BUSY Redis is busy running a script.\r\n"), "busy"),
    "nil to all": _way(_says(b"$-1\r\n"), "protocol"),
    "OK to all": _way(_says(b"+OK\r\n"), "protocol"),
}


class Name:
    """What `HOST` resolves to, for this process; nothing while it is not `known`."""

    def __init__(self, monkeypatch) -> None:
        self.known, self.asked = True, 0
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._find)

    def _find(self, host, *arguments, **options):
        if host != HOST:
            return self._real(host, *arguments, **options)
        self.asked += 1
        if not self.known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self._real("127.0.0.1", *arguments, **options)
