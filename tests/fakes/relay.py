"""A relay between a client and a server that can be made slow, broken or deceitful while connections are open.

Two directions, ``UP`` (client to server) and ``DOWN``; each has a mode, which holds for every connection, also for those
that are open. A switch takes effect at once: whoever waits in the old mode is woken, and what it held goes on in the
new one, so that nothing is lost but by ``cut``, ``garble`` and ``reset``. Apart from the modes, requests of Redis can be
answered here, each in its turn, the server never seeing them. Traffic that is not RESP passes as it is.
"""

import asyncio
import contextlib
import random
import socket
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.fakes import resp
from tests.fakes.ports import free_port
from tests.fakes.ways import DOWN, UP, Connection, Mode

BOTH = (UP, DOWN)

LOADING = b"-LOADING Redis is loading the dataset in memory\r\n"
OOM = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
READONLY = b"-READONLY You can't write against a read only replica.\r\n"
MASTERDOWN = b"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n"
NOAUTH = b"-NOAUTH Authentication required.\r\n"
MOVED = b"-MOVED 1 127.0.0.1:1\r\n"
# What a server takes while it says no to everything else.
OPENING = ("HELLO", "AUTH", "CLIENT", "SELECT")


@dataclass(eq=False)
class Answer:
    """Requests that are answered here: all, those of `commands`, all `but` some; `times` in all (None: always)."""

    reply: bytes
    commands: frozenset[str]
    but: frozenset[str]
    times: int | None = None

    def takes(self, command: str) -> bool:
        return self.times != 0 and (command in self.commands if self.commands else command not in self.but)


@dataclass(eq=False)
class Relay:
    """The relay before `target`: host and port, or the path of a Unix socket. A target that is not there: the
    connection is taken and reset."""

    target: tuple[str, int] | str | Path
    seed: int = 0
    port: int = 0
    opened: int = 0  # connections taken so far
    passed: Counter[str] = field(default_factory=Counter)  # direction -> bytes given on
    commands: Counter[str] = field(default_factory=Counter)  # command -> requests, here answered ones too
    errors: list[BaseException] = field(default_factory=list)  # the relay's own failures
    round_trips: int = 0  # times that a client spoke after having been answered, or first

    def __post_init__(self) -> None:
        self.modes = {UP: Mode(), DOWN: Mode()}
        self.answers: list[Answer] = []
        self._listening: socket.socket | None = None
        self._connections: dict[Connection, asyncio.Task[None]] = {}
        self._switched = asyncio.Event()
        self.drawn = random.Random(self.seed)

    @property
    def open(self) -> int:
        """Connections that are open now."""
        return len(self._connections)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> "Relay":
        """Listen; needs the running loop."""
        self.port = self.port or free_port()
        self.accept()
        return self

    async def stop(self) -> None:
        """Close everything and wait for its end."""
        self.refuse()
        tasks = list(self._connections.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Modes

    def clear(self) -> None:
        """Pass everything, answer nothing, take connections."""
        self.answers.clear()
        self._switch(BOTH, Mode())
        self.accept()

    def delay(self, seconds: float, jitter: float = 0, *, ways: Iterable[str] = BOTH) -> None:
        """What has come waits, then goes; what comes meanwhile waits in its turn."""
        self._switch(ways, Mode(before=seconds, jitter=jitter))

    def slice(self, size: int, pause: float = 0, *, ways: Iterable[str] = BOTH) -> None:
        """Pieces of at most `size` bytes, each sent on its own, with pauses."""
        self._switch(ways, Mode(size=size, after=pause))

    def trickle(self, *, ways: Iterable[str] = BOTH) -> None:
        """One byte a second."""
        self.slice(1, 1.0, ways=ways)

    def freeze(self, *, ways: Iterable[str] = BOTH) -> None:
        """Take connections and bytes and pass nothing, not even an end."""
        self._switch(ways, Mode(frozen=True))

    def garble(self, share: float = 1.0, *, ways: Iterable[str] = (DOWN,)) -> None:
        """A share of the bytes becomes others, drawn by the seed."""
        self._switch(ways, Mode(share=share))

    def cut(self, after: int, *, ways: Iterable[str] = (DOWN,), resets: bool = False) -> None:
        """Each connection ends when `after` more bytes have gone that way; those waiting behind them are lost."""
        self._switch(ways, Mode(last=after, resets=resets))

    def answer(self, reply: bytes, *commands: str, but: Iterable[str] = (), times: int | None = None) -> None:
        """Answer requests here; the rule that was set first and takes a request answers it."""
        upper = frozenset(name.upper() for name in commands)
        self.answers.append(Answer(reply, upper, frozenset(name.upper() for name in but), times))

    # Connections

    def refuse(self) -> None:
        """Refuse new connections; open ones stay."""
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
            self._listening = None

    def accept(self) -> None:
        """Take new connections again, at the same port."""
        if self._listening is None:
            self._listening = socket.create_server(("127.0.0.1", self.port), backlog=1024)
            self._listening.setblocking(False)
            asyncio.get_running_loop().add_reader(self._listening, self._arrived)

    def reset(self) -> None:
        """End every open connection by a reset."""
        for connection in list(self._connections):
            connection.end(resets=True)

    def _arrived(self) -> None:
        try:
            taken, _ = self._listening.accept()
        except OSError:  # it has gone again
            return
        taken.setblocking(False)
        self.opened += 1
        connection = Connection(self, taken)
        task = asyncio.get_running_loop().create_task(connection.run())
        self._connections[connection] = task
        task.add_done_callback(partial(self._left, connection))

    def _switch(self, ways: Iterable[str], mode: Mode) -> None:
        self.modes.update(dict.fromkeys(ways, mode))
        self._switched.set()
        self._switched = asyncio.Event()
        for connection in self._connections:
            connection.wake()

    def _left(self, connection: "Connection", task: asyncio.Task[None]) -> None:
        del self._connections[connection]
        if not task.cancelled() and task.exception() is not None:
            self.errors.append(task.exception())

    def answered(self, request: bytes, *, ours: bool) -> bytes | None:
        """The answer to a request, unless it is the server's to give."""
        words = resp.parse(request)
        command = words[0].decode("latin-1").upper() if isinstance(words, list) and words else ""
        self.commands[command] += 1
        rule = next((rule for rule in self.answers if rule.takes(command)), None)
        if rule is None or not ours:
            return None
        if rule.times is not None:
            rule.times -= 1
        return rule.reply

    async def pause(self, seconds: float | None) -> None:
        """Wait, but not longer than the modes stand."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._switched.wait()
