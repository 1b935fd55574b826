"""A folder on the disk as a knowledge base: its files are read only when they may have changed.

Nothing outside the folder is read: links lead nowhere else. Names that begin with a dot are no part of it, nor are
pipes, sockets and devices. What vanishes while it is read was not there.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from cacheproxy.core.snapshot import DIGEST_BYTES, Print, Snapshot
from cacheproxy.errors import Trouble

FRESH = 3 * 10**9
"""Nanoseconds: a file that was written so shortly before it was read may be written again with nothing to show it,
since the clocks of file systems are coarse."""
PIECE = 2**20
DEEPEST = 64


class Folder:
    """The files below `path`, or `path` alone if it is a file; `most_files` and `most_bytes` of them at most. What was
    found is kept in the file `memory`, if there is one. Every method blocks."""

    def __init__(self, path: Path, *, most_files: int, most_bytes: int, memory: Path | None = None) -> None:
        self._path = path
        self._most_files = most_files
        self._most_bytes = most_bytes
        self._memory = memory

    def __repr__(self) -> str:
        return f"<Folder {self._path}>"

    def scan(self, before: Snapshot) -> Snapshot:
        """What is there now; only what differs from `before` is read. Raises `Trouble`."""
        try:
            return Snapshot(dict(self._prints(self._found(), before)))
        except (OSError, RuntimeError) as error:
            raise Trouble(f"{self._path} cannot be read: {_why(error)}", "disk") from None

    def measure(self) -> tuple[int, int]:
        """How many files and bytes are there; each is opened and none is read. Raises `Trouble`."""
        sizes = []
        try:
            for _, path in self._found():
                if (opened := _opened(path)) is not None:
                    os.close(opened[0])
                    sizes.append(opened[1].st_size)
        except (OSError, RuntimeError) as error:
            raise Trouble(f"{self._path} cannot be read: {_why(error)}", "disk") from None
        if sum(sizes) > self._most_bytes:
            raise self._too_large()
        return len(sizes), sum(sizes)

    def _too_large(self) -> Trouble:
        return Trouble(f"{self._path} has more than {self._most_bytes} bytes (`kb.max_bytes`)", "disk")

    def _found(self) -> list[tuple[str, Path]]:
        root = self._path.resolve(strict=True)
        if root.is_file():
            return [(self._path.name, root)]
        with os.scandir(root):  # whether it may be listed
            return list(self._bounded(_files(root, root)))

    def _bounded(self, found: Iterator[tuple[str, Path]]) -> Iterator[tuple[str, Path]]:
        for number, one in enumerate(found):
            if number >= self._most_files:
                raise Trouble(f"{self._path} has more than {self._most_files} files (`kb.max_files`)", "disk")
            yield one

    def _prints(self, found: list[tuple[str, Path]], before: Snapshot) -> Iterator[tuple[str, Print]]:
        left = self._most_bytes
        for name, path in found:
            told = _print(path, before.files.get(name), left)
            if told is None:
                continue
            left -= told[1]
            if left < 0:
                raise self._too_large()
            yield name, told[0]

    def remembered(self) -> Snapshot | None:
        """What was found last, as it was kept; None if that is not known."""
        if self._memory is None:
            return None
        try:
            told = orjson.loads(self._memory.read_bytes())
            files = {name: Print(tuple(map(int, mark)), bytes.fromhex(digest)) for name, mark, digest in told["files"]}
        except (OSError, ValueError, TypeError, KeyError):
            return None
        found = Snapshot(files)
        return found if told.get("version") == found.version else None

    def remember(self, snapshot: Snapshot) -> None:
        """Keep it. Raises `Trouble`."""
        if self._memory is None:
            return
        rows = [[name, one.mark, one.digest.hex()] for name, one in snapshot.files.items()]
        part = self._memory.with_name(f"{self._memory.name}.{os.getpid()}")
        try:
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(orjson.dumps({"version": snapshot.version, "files": rows}))
            part.replace(self._memory)
        except OSError as error:
            raise Trouble(f"cannot write {self._memory}: {error.strerror}", "disk") from None


def _files(root: Path, place: Path, depth: int = 0) -> Iterator[tuple[str, Path]]:
    """The name and place of each file."""
    try:
        with os.scandir(place) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < DEEPEST:
                yield from _files(root, path, depth + 1)
        elif entry.is_symlink():
            if (target := _inside(root, path)) is not None:
                yield _name(root, path), target
        elif entry.is_file(follow_symlinks=False):
            yield _name(root, path), path


def _inside(root: Path, link: Path) -> Path | None:
    """The file to which a link leads, if it lies below `root`."""
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    return target if target.is_relative_to(root) and target.is_file() else None


def _name(root: Path, path: Path) -> str:
    return os.fsencode(path.relative_to(root).as_posix()).decode("utf-8", "backslashreplace")


def _print(path: Path, before: Print | None, most: int) -> tuple[Print, int] | None:
    """What a file is now, and its size; None if it is gone, or no file."""
    try:
        if before is not None and before.mark == _mark(told := path.lstat()):
            return before, told.st_size
    except FileNotFoundError:
        return None
    opened = _opened(path)
    if opened is None:
        return None
    descriptor, told = opened
    try:
        is_fresh = time.time_ns() - max(told.st_mtime_ns, told.st_ctime_ns) < FRESH
        digest, size = _digest(descriptor, most)
        return Print(() if is_fresh else _mark(told), digest), size
    finally:
        os.close(descriptor)


def _opened(path: Path) -> tuple[int, os.stat_result] | None:
    """A file, open; None if it is gone, or no file."""
    try:
        # A pipe would wait for somebody who writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    told = os.fstat(descriptor)
    if stat.S_ISREG(told.st_mode):
        return descriptor, told
    os.close(descriptor)
    return None


def _mark(told: os.stat_result) -> tuple[int, ...]:
    return told.st_size, told.st_mtime_ns, told.st_ctime_ns, told.st_ino


def _digest(descriptor: int, most: int) -> tuple[bytes, int]:
    """The hash of what is read, and how much that was: not much more than `most` bytes."""
    whole, size = hashlib.blake2b(digest_size=DIGEST_BYTES), 0
    while size <= most and (piece := os.read(descriptor, PIECE)):
        whole.update(piece)
        size += len(piece)
    return whole.digest(), size


def _why(error: Exception) -> str:
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else "links that lead in a circle"
