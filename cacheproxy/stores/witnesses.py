"""Witnesses in this process: bounded, the set that was added to longest ago first out. Not kept over a restart."""

from collections import OrderedDict
from collections.abc import Sequence

from cacheproxy.ports import Clock

MOST = 64
"""Members of a set; more are not needed by anybody."""


class LocalWitnesses:
    """At most `most` sets."""

    def __init__(self, clock: Clock, most: int = 65_536) -> None:
        self._clock = clock
        self._most = most
        self._sets: OrderedDict[bytes, tuple[float, set[bytes]]] = OrderedDict()

    def __repr__(self) -> str:
        return f"<LocalWitnesses {len(self._sets)} sets>"

    async def add(self, name: bytes, members: Sequence[bytes], until: float) -> int:
        found = self._standing(name)
        for member in members:
            if len(found) < MOST:
                found.add(member)
        self._sets[name] = until, found
        self._sets.move_to_end(name)
        while len(self._sets) > self._most:
            self._sets.popitem(last=False)
        return len(found)

    async def count(self, name: bytes) -> int:
        return len(self._standing(name))

    def _standing(self, name: bytes) -> set[bytes]:
        until, found = self._sets.get(name, (0.0, set[bytes]()))
        if until <= self._clock.now():
            self._sets.pop(name, None)
            return set()
        return found
