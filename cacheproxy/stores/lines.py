"""A file of lines, written beside the event loop by a thread of its own: bounded, and for its owner's eyes only.

Nobody waits for the disk: what it cannot take in time is dropped. When the file is full it becomes ``<name>.1``, in
place of the one that was that before.
"""

import asyncio
import errno
import logging
import os
import threading
from contextlib import suppress
from pathlib import Path
from queue import Full, Queue

log = logging.getLogger("cacheproxy")

WAITING = 1024
"""Lines that wait for the disk at most."""
CLOSING = 2.0
"""Seconds that the end waits for the disk."""


class Lines:
    """The file at `path`, of at most `most` bytes; with its forerunner twice as many. Begins with the first line."""

    def __init__(self, path: Path, most: int) -> None:
        self._path = path
        self._most = most
        self._queue: Queue[bytes | None] = Queue(WAITING)
        self._thread: threading.Thread | None = None
        self._file: int | None = None
        self._size = 0
        self._failing = False
        self.dropped = 0
        """Lines that were not written."""

    def __repr__(self) -> str:
        return f"<Lines {self._path} {self._queue.qsize()} waiting, {self.dropped} dropped>"

    def write(self, line: bytes) -> bool:
        """Have `line`, with its end, written soon; False if it is dropped."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="lines", daemon=True)
            self._thread.start()
        try:
            self._queue.put_nowait(line)
        except Full:
            self.dropped += 1
            return False
        return True

    async def close(self) -> None:
        """Write what waits, unless the disk takes too long, and let go."""
        if self._thread is not None:
            await asyncio.to_thread(self._end)

    def _end(self) -> None:
        if self._thread is not None:
            try:
                self._queue.put(None, timeout=CLOSING)
            except Full:
                return
            self._thread.join(CLOSING)

    def _run(self) -> None:
        while (line := self._queue.get()) is not None:
            try:
                self._append(line)
                self._failing = False
            except OSError as error:
                self._fail(error)
        self._leave()

    def _append(self, line: bytes) -> None:
        file = self._open() if self._file is None else self._file
        if self._size and self._size + len(line) > self._most:
            self._leave()
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            file = self._open()
        if os.write(file, line) < len(line):
            os.ftruncate(file, self._size)  # no line is left in part
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size += len(line)

    def _open(self) -> int:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(file, 0o600)
            self._size = os.fstat(file).st_size
        except OSError:
            os.close(file)
            raise
        self._file = file
        return file

    def _fail(self, error: OSError) -> None:
        self.dropped += 1
        self._leave()
        if not self._failing:
            log.warning("nothing is written to %s: %s", self._path, error.strerror)
        self._failing = True

    def _leave(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                os.close(file)
