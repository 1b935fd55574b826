"""Reads entries of a cache file over a connection of its own, in one thread."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cacheproxy.core import codec
from cacheproxy.core.model import Entry
from cacheproxy.errors import Trouble
from cacheproxy.stores.sqlite_file import is_damage


class Reader:
    """Of the file `path`, the one of this `generation`; `damaged` is told which of them turned out to be damaged."""

    def __init__(self, path: Path, generation: Callable[[], int], damaged: Callable[[int], None]) -> None:
        self._path = path
        self._generation = generation
        self._damaged = damaged
        self._open: tuple[int, sqlite3.Connection] | None = None
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite-read")

    def read(self, key: bytes) -> Entry | None:
        """The entry of `key`; in the thread. Raises `Trouble`."""
        generation = self._generation()
        try:
            if self._open is None or self._open[0] != generation:
                if self._open is not None:
                    self._open[1].close()
                self._open = (generation, sqlite3.connect(self._path, check_same_thread=False, timeout=1.0))
            row = self._open[1].execute("SELECT blob FROM entry WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            if is_damage(error):
                self._damaged(generation)
            raise Trouble(f"reading {self._path.name}: {error}") from error
        return codec.decode(row[0], key) if row else None

    def close(self) -> None:
        """Let go; blocks until what is being read has been."""
        self.thread.shutdown(wait=True)
        if self._open is not None:
            self._open[1].close()
        self._open = None
