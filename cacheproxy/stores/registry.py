"""The versions of knowledge bases that this process has for itself, in a file that survives it.

The file is replaced as a whole, and is on the disk before a version is acknowledged. One that cannot be read is set
aside: then the versions are not known, and each is new when it is told again, which removes too much, never too little.
"""

import asyncio
import logging
import os
import time
from pathlib import Path

from cacheproxy.core import registry
from cacheproxy.core.knowledge import Known
from cacheproxy.errors import Trouble

log = logging.getLogger("cacheproxy.store")


class FileRegistry:
    """A `Registry` in the file `path`; in memory only without one."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._turn = asyncio.Lock()
        self._known = {} if path is None else _read(path)

    def __repr__(self) -> str:
        return f"<FileRegistry {len(self._known)}>"

    async def versions(self) -> dict[str, Known]:
        return dict(self._known)

    async def keep(self, name: str, known: Known) -> None:
        # A caller who leaves does not stop the disk: the next one must not write at the same time.
        writing = asyncio.get_running_loop().create_task(self._keep(name, known))
        writing.add_done_callback(_seen)
        await asyncio.wait([writing])
        writing.result()

    async def _keep(self, name: str, known: Known) -> None:
        async with self._turn:
            before = self._known.get(name)
            if before is not None and _is_older(known, before):
                return
            after = {**self._known, name: known}
            if self._path is not None:
                try:
                    await asyncio.to_thread(_write, self._path, after)
                except OSError as error:
                    raise Trouble(f"cannot write {self._path}: {error.strerror}", "disk") from None
            self._known = after

    async def close(self) -> None:
        """Nothing is held."""


def _seen(task: "asyncio.Task[None]") -> None:
    """Also if its caller has gone."""
    if not task.cancelled():
        task.exception()


def _is_older(known: Known, other: Known) -> bool:
    return known.sequence is not None and other.sequence is not None and known.sequence < other.sequence


def _read(path: Path) -> dict[str, Known]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Trouble(f"cannot read {path}: {error.strerror}", "disk") from None
    found = [registry.decode(line) for line in lines]
    if None in found:
        aside = path.with_name(f"{path.name}.set-aside-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
        log.warning("%s is damaged; set aside as %s, versions are learnt anew", path, aside.name)
        path.rename(aside)
    return dict(pair for pair in found if pair is not None)


def _write(path: Path, known: dict[str, Known]) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(registry.encode(name, one) + b"\n" for name, one in known.items())
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
