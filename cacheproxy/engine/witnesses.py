"""Who has confirmed an answer: how many credentials whose own answer said the same.

A name stands for one stored answer; a new one under the same key has another name, and so begins with nobody. Members
are pseudonyms that hold for one name alone.
"""

from collections.abc import Sequence
from typing import Protocol, cast

from cacheproxy.engine.breaker import Breaker
from cacheproxy.errors import Trouble
from cacheproxy.ports import Journal


class Witnesses(Protocol):
    """Sets of members (16 bytes) by name (16 bytes). Raises `Trouble`."""

    async def add(self, name: bytes, members: Sequence[bytes], until: float) -> int:
        """Add these members to the set, which may be forgotten after `until` (seconds since the epoch); how many it has
        now."""

    async def count(self, name: bytes) -> int:
        """How many members the set has."""


class GuardedWitnesses:
    """Witnesses who never raise and never take longer than `deadline` seconds; who cannot be asked is none."""

    def __init__(self, witnesses: Witnesses, deadline: float, journal: Journal) -> None:
        self._witnesses = witnesses
        self.reads = Breaker("witnesses (read)", deadline, journal)
        self.writes = Breaker("witnesses (write)", deadline, journal)

    def __repr__(self) -> str:
        return f"<GuardedWitnesses {self._witnesses!r} {self.reads!r} {self.writes!r}>"

    async def add(self, name: bytes, members: Sequence[bytes], until: float) -> int:
        found = await self.writes.call(lambda: self._witnesses.add(name, members, until))
        return 0 if isinstance(found, Trouble) else cast("int", found)

    async def count(self, name: bytes) -> int:
        found = await self.reads.call(lambda: self._witnesses.count(name))
        return 0 if isinstance(found, Trouble) else cast("int", found)

    async def close(self) -> None:
        """End what is being tried."""
        await self.reads.close()
        await self.writes.close()
