"""Folders that are knowledge bases: what changes in one is a new version of it.

A content counts when two looks in a row find the same, so that what is half written is no version; one that does not
come to rest counts after some looks as it is. Until the first version of a folder is in force, and while it cannot be
read, the gate is shut for what rests on it.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from cacheproxy.core.knowledge import Known, Publication
from cacheproxy.core.snapshot import NOTHING, Snapshot
from cacheproxy.engine.gate import Gate
from cacheproxy.engine.knowledge import Knowledge
from cacheproxy.errors import Trouble, place_of
from cacheproxy.ports import Folder

log = logging.getLogger("cacheproxy.purge")
T = TypeVar("T")

AT_START = 0.05
"""Seconds between the first two looks: until they agree nothing is served."""
REST = 20
"""How many times as long as a look took there is none: a large folder costs little, and is looked at less often."""
RESTLESS = 15
"""Looks after which a content counts that does not come to rest."""


@dataclass(frozen=True, slots=True)
class _Look:
    """What a look found; whether the one before found the same, whether that is in force, and whether files are known
    by other marks than when it came into force."""

    found: Snapshot
    is_at_rest: bool
    is_in_force: bool
    is_marked_otherwise: bool


class Watch:
    """Watches the folder of one knowledge base, every `interval` seconds, from `start` to `close`."""

    def __init__(self, name: str, folder: Folder, *, knowledge: Knowledge, gate: Gate, interval: float) -> None:
        self._name = name
        self._folder = folder
        self._knowledge = knowledge
        self._gate = gate
        self._interval = interval
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "kb-watch")
        self._in_force: Snapshot | None = None
        self._seen = NOTHING
        self._looks = 0
        self._complaints: set[str] = set()
        gate.shut(name)

    def __repr__(self) -> str:
        version = self._in_force.version if self._in_force is not None else None
        return f"<Watch {self._name} {version}>"

    def start(self) -> None:
        """Watch from now on."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        self._seen = await self._apart(lambda: self._folder.remembered() or NOTHING)
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                await self.look()
                self._complaints.clear()
            except Trouble as trouble:
                self._shut(str(trouble))
            except Exception as error:  # noqa: BLE001 - a fault of ours must not end it for ever
                self._shut(f"a fault in watching: {place_of(error)}")
            is_first = self._in_force is None and self._looks == 1
            pause = max(self._interval, REST * (clock() - began))
            await asyncio.sleep(min(AT_START, self._interval) if is_first else pause)

    def _shut(self, why: str) -> None:
        self._gate.shut(self._name)
        self._complain(f"{why}; what rests on it comes from the backend")

    def _complain(self, text: str) -> None:
        if text not in self._complaints:
            self._complaints.add(text)
            log.warning("a watched knowledge base: %s", text)

    async def look(self) -> None:
        """Look once, and do what follows. Raises `Trouble`."""
        look = await self._apart(self._look)
        self._seen = look.found
        self._looks += 1
        if look.is_in_force:
            self._looks = 0
            if look.is_marked_otherwise:
                await self._settle(look.found)  # files need not be read again that are at rest by now
        elif self._looks > 1 and (look.is_at_rest or self._looks >= RESTLESS):
            await self._publish(look.found)
            self._looks = 0
        if self._in_force is not None:
            self._gate.open(self._name)

    def _look(self) -> _Look:
        """Blocks, as all does here that goes through every file."""
        found, known = self._folder.scan(self._seen), self._in_force
        return _Look(
            found,
            is_at_rest=found.says_the_same(self._seen),
            is_in_force=known is not None and found.says_the_same(known),
            is_marked_otherwise=known is not None and found.files != known.files,
        )

    async def _publish(self, found: Snapshot) -> None:
        version = await self._apart(lambda: found.version)
        if (known := self._in_force) is not None:
            await self._tell(version, await self._apart(lambda: found.changed(known)))
        else:
            current = (await self._knowledge.versions()).get(self._name)
            if current is None or current.version != version or not current.settled:
                await self._tell(version, await self._apart(lambda: self._changed_since(current, found)))
        await self._settle(found)

    def _changed_since(self, current: Known | None, found: Snapshot) -> frozenset[str] | None:
        """The documents that changed since the version that is current; None if that is not certain. Blocks."""
        kept = self._folder.remembered()
        is_next = current is not None and current.settled and kept is not None and kept.version == current.version
        return found.changed(kept) if is_next and kept is not None else None

    async def _tell(self, version: str, documents: frozenset[str] | None) -> None:
        await self._knowledge.publish(Publication(self._name, version, documents))

    async def _settle(self, found: Snapshot) -> None:
        self._in_force = found
        try:
            await self._apart(lambda: self._folder.remember(found))
        except Trouble as trouble:
            self._complain(f"{trouble}; all of it will count as changed after a restart")

    async def _apart(self, work: Callable[[], T]) -> T:
        """In a thread: the disk may be slow. One look at a time, also when a caller leaves."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._thread.shutdown(wait=False, cancel_futures=True)
