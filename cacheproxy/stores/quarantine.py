"""The quarantine of one process: in memory, bounded in names, those not used for longest out first."""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

log = logging.getLogger("cacheproxy.store")

MOST = 300_000
"""Names; some 60 MB."""


class MemoryQuarantine:
    """A `Quarantine` of at most `most` names."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._notes: OrderedDict[bytes, bytes] = OrderedDict()
        self._full = False

    def __repr__(self) -> str:
        return f"<MemoryQuarantine {len(self._notes)}/{self._most} names>"

    def __len__(self) -> int:
        return len(self._notes)

    async def put(self, notes: Mapping[bytes, bytes]) -> None:
        self.keep(notes)

    async def lift(self, names: Iterable[bytes]) -> None:
        self.forget(names)

    async def among(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        found = {name: self._notes[name] for name in names if name in self._notes}
        for name in found:
            self._notes.move_to_end(name)
        return found

    async def close(self) -> None:
        self._notes.clear()

    def keep(self, notes: Mapping[bytes, bytes]) -> list[bytes]:
        """Keep these names, without waiting; those for which there is no room any more."""
        for name, note in notes.items():
            self._notes[name] = note
            self._notes.move_to_end(name)
        gone = [self._notes.popitem(last=False)[0] for _ in range(len(self._notes) - self._most)]
        if gone and not self._full:
            self._full = True
            log.warning("more than %d names are in quarantine: those not used for longest are forgotten", self._most)
        return gone

    def forget(self, names: Iterable[bytes]) -> None:
        """Forget these names, without waiting."""
        for name in names:
            self._notes.pop(name, None)

    @property
    def notes(self) -> Mapping[bytes, bytes]:
        """All names with their notes, that used last at the end."""
        return self._notes
