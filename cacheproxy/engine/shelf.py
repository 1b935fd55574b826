"""What is stored, as the engine sees it: nothing is taken from it, or laid on it, that a removal has felled.

A look gives an entry that stands when it is given. Whoever waits before serving it asks `holds` last, with nothing
awaited between that and the serving.
"""

from dataclasses import dataclass

from cacheproxy.core.model import Entry
from cacheproxy.core.outcome import Reason
from cacheproxy.core.removal import Removals, Selector
from cacheproxy.engine.gate import Gate
from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock, Epochs, Kept, Store

ATTEMPTS = 5
"""How often an entry is put that removals outrun which do not mean it."""


_REFUSALS = {Kept.YES: None, Kept.TOO_LARGE: Reason.TOO_LARGE, Kept.TROUBLE: Reason.STORE_TROUBLE}


@dataclass(frozen=True, slots=True)
class Mark:
    """When a look began: the removals that were settled, and the time of the monotonic clock."""

    settled: int
    at: float


class Shelf:
    """A guarded store, and the removals that all who share it know."""

    def __init__(
        self, store: Store, removals: Removals, epochs: Epochs, clock: Clock, gate: Gate | None = None
    ) -> None:
        self._store = store
        self._removals = removals
        self._epochs = epochs
        self._clock = clock
        self._gate = gate or Gate()

    def __repr__(self) -> str:
        return f"<Shelf {self._store!r} {self._removals!r}>"

    @property
    def epoch(self) -> int:
        """How many removals are known now."""
        return self._removals.epoch

    def mark(self) -> Mark:
        """To be taken before a look."""
        return Mark(self._removals.settled, self._clock.monotonic())

    async def get(self, key: bytes) -> Entry | Trouble | None:
        """The entry of `key`; why that cannot be told; None if there is none."""
        entry = await self._store.get(key)
        if isinstance(entry, Entry) and entry.knowledge and not self._gate.passes(entry.knowledge):
            return Trouble("the versions of its knowledge bases are not known yet", "version")
        return entry

    async def holds(self, mark: Mark, *entries: Entry) -> bool:
        """Whether `entries`, looked up since `mark`, may still be served, now."""
        if lease := self._epochs.lease:
            asked = self._clock.monotonic()
            if asked - mark.at < lease:
                return True
            try:
                await self._epochs.current()
            except Trouble:
                return False
            if self._clock.monotonic() - asked >= lease:
                return False  # what it told may be as old as that
        removals = self._removals
        return removals.epoch == mark.settled or all(removals.stands(entry, mark.settled) for entry in entries)

    async def put(self, entry: Entry, epoch: int, arrived: float) -> Reason | None:
        """Keep `entry`, whose request came at this epoch and time; or why not."""
        for _ in range(ATTEMPTS):
            # Some of the removals that were not known here yet may have been before the request all the same.
            if not self._removals.stands(entry, max(epoch, self._removals.epoch_at(arrived))):
                return Reason.PURGED
            kept = await self._store.put(entry, self._removals.epoch)
            if kept is not Kept.OUTRUN:
                return _REFUSALS[kept]
        return Reason.STORE_TROUBLE


class Alone:
    """The epochs of a store that this process has for itself."""

    lease = 0.0

    def __init__(self, removals: Removals) -> None:
        self._removals = removals

    async def begin(self, selector: Selector, now: float) -> int:
        return self._removals.begin(selector, now)

    async def finish(self, number: int, *, carried_out: bool) -> None:  # noqa: ARG002 - what was given up is as good
        self._removals.finish(number)

    async def current(self) -> None:
        """They are known."""
