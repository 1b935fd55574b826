"""Talking with a Redis past every relay and every client library: a connection of one's own, and a monitor."""

import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.fakes import resp

_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(rb"\\(x[0-9a-f]{2}|.)")
_SIGNS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}


class Line:
    """A connection of one's own to a server, blocking, for tests to look and to steer."""

    def __init__(self, path: Path, login: tuple[str, str] | None, timeout: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout)
        self._waiting = bytearray()
        try:
            self._socket.connect(str(path))
            if login:
                self.call("AUTH", *login)
        except BaseException:
            self.close()
            raise

    def call(self, *words: str | bytes | float) -> object:
        """Ask and return the answer; raises resp.Refused for an error."""
        self._socket.sendall(resp.pack(*words))
        return self.read()

    def read(self) -> object:
        while (end := resp.end(self._waiting)) is None:
            data = self._socket.recv(2**16)
            if not data:
                raise ConnectionResetError("the server closed the connection")
            self._waiting += data
        value = resp.parse(self._waiting[:end])
        del self._waiting[:end]
        if isinstance(value, resp.Refused):
            raise value
        return value

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Heard:
    """One command that a server carried out: who sent it (address, ``unix:…`` or ``lua``) and its words."""

    source: str
    words: tuple[bytes, ...]

    @property
    def name(self) -> str:
        return self.words[0].decode("latin-1").upper()


class Monitor:
    """What a server carried out since this began, but what these tools asked meanwhile."""

    def __init__(self, line: Callable[[], Line]) -> None:
        self._line, self._marker = line(), line()
        self._line.call("MONITOR")
        self._heard: list[Heard] = []
        self._marks = 0

    def heard(self) -> list[Heard]:
        """All commands until now."""
        self._marks += 1
        mark = b"heard-%d-%d" % (id(self), self._marks)
        self._marker.call("ECHO", mark)
        while True:
            heard = self._read(bytes(self._line.read()))
            if heard.words[-1] == mark:
                return list(self._heard)
            self._heard.append(heard)

    @property
    def names(self) -> list[str]:
        """Their names, in order, upper case."""
        return [heard.name for heard in self.heard()]

    def close(self) -> None:
        self._line.close()
        self._marker.close()

    def _read(self, text: bytes) -> Heard:
        head, _, words = text.partition(b"] ")
        source = head.rpartition(b"[")[2].partition(b" ")[2].decode()
        quoted = _QUOTED.findall(words)
        return Heard(source, tuple(_ESCAPED.sub(self._sign, word) for word in quoted))

    def _sign(self, found: re.Match[bytes]) -> bytes:
        sign = found.group(1)
        return bytes.fromhex(sign[1:].decode()) if len(sign) == 3 else _SIGNS.get(sign, sign)
