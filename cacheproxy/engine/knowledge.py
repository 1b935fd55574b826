"""New versions of knowledge bases: what they made wrong is gone, on every replica, before they are acknowledged.

First the version is remembered, so that no answer that states another is kept; then the answers are removed; then it is
remembered that this was done. What fails in between is not acknowledged, and is done whole when anything is told again.
A version that is told after a later one changes no version, but what it made wrong falls all the same.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cacheproxy.core import knowledge
from cacheproxy.core.knowledge import Course, Known, Publication
from cacheproxy.core.removal import Order, Removal
from cacheproxy.engine.purge import Purge, Purged
from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock, Journal, Registry

log = logging.getLogger("cacheproxy.purge")


@dataclass(frozen=True, slots=True)
class Published:
    """What came of a publication: what followed, the version that is current now, and what was removed."""

    course: Course
    version: str
    purged: Purged | None = None


class Knowledge:
    """Takes publications, one after the other."""

    def __init__(self, *, registry: Registry, purge: Purge, journal: Journal, clock: Clock) -> None:
        self._registry = registry
        self._purge = purge
        self._journal = journal
        self._clock = clock
        self._turn = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<Knowledge {self._registry!r}>"

    async def publish(self, told: Publication) -> Published:
        """Do what follows from `told`. Raises `Trouble` if it could not be done to its end: then it has to be told
        again."""
        async with self._turn:
            known = (await self._registry.versions()).get(told.name)
            course = knowledge.course(known, told)
            self._journal.count("knowledge", course.value)
            if known is not None and course is Course.OUTDATED and knowledge.is_missing(known, told):
                return Published(course, known.version, await self._make_up(known, told))
            if course is not Course.PUBLISHED:
                return Published(course, known.version if known is not None else told.version)
            after = knowledge.after(known, told, self._clock.now())
            await self._registry.keep(told.name, replace(after, events=known.events if known is not None else ()))
            purged = await self._purge.carry_out(Order(knowledge.selector(told, known), Removal.HARD))
            await self._registry.keep(told.name, replace(after, settled=True))
        log.info("a knowledge base has a new version: %d answers removed", purged.purged)
        return Published(course, told.version, purged)

    async def _make_up(self, known: Known, told: Publication) -> Purged:
        purged = await self._purge.carry_out(Order(knowledge.selector(told, known), Removal.HARD))
        await self._registry.keep(told.name, knowledge.made_up(known, told))
        log.info("a version of a knowledge base came late: %d answers removed", purged.purged)
        return purged

    async def agrees(self, stated: Mapping[str, str]) -> bool:
        """Whether an answer that states these versions of knowledge bases is of the current ones. What is not known is
        taken to be current; where nothing can be told, nothing is."""
        if not stated:
            return True
        try:
            known = await self._registry.versions()
        except Trouble:
            return False
        return all(name not in known or known[name].version == version for name, version in stated.items())

    async def versions(self) -> dict[str, Known]:
        """What is known, by name. Raises `Trouble`."""
        return await self._registry.versions()

    async def close(self) -> None:
        """Let go."""
        await self._registry.close()
