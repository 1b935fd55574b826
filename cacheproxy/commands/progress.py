"""What has been done of a long file, so that a command that was stopped goes on where it was.

One line for each request that is done: a hash of it. A line that was cut off by a crash counts for nothing.
"""

import hashlib
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from cacheproxy.engine.traffic import Line
from cacheproxy.errors import ConfigurationError

DIGITS = 32


class Progress:
    """What the file `path` says; it is made, or added to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._done = set(_read(path).splitlines())
            self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
        except OSError as error:
            raise ConfigurationError(f"cannot keep {path}: {error.strerror}") from None
        self._file.write(b"\n" if path.stat().st_size else b"")

    def __contains__(self, one: Line) -> bool:
        return _digest(one) in self._done

    def add(self, one: Line) -> None:
        """It is done."""
        self._done.add(_digest(one))
        self._file.write(_digest(one) + b"\n")
        self._file.flush()

    def finish(self) -> None:
        """All of it is done: the next run begins anew."""
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _digest(one: Line) -> bytes:
    whole = hashlib.blake2b(digest_size=DIGITS // 2)
    for part in (one.path.encode(), repr(one.headers).encode(), one.body):
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest().encode()
