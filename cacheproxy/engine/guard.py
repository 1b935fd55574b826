"""The one place that forgives: a deadline and a breaker around a port, so that trouble there costs at most a miss.

After `FAILURES` failures in a row the port is left alone for `PAUSE` seconds, then tried by one call. One log line
for each change of state.
"""

import asyncio
import logging

from cacheproxy.core.model import Census, Entry
from cacheproxy.core.removal import Removal, Selector
from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock, Journal, Stocked

log = logging.getLogger("cacheproxy.guard")

FAILURES = 5
PAUSE = 1.0


class Breaker:
    """Closed while calls succeed; open for a pause after too many failures in a row; then one trial."""

    def __init__(self, name: str, clock: Clock, journal: Journal) -> None:
        self._name = name
        self._clock = clock
        self._journal = journal
        self._failures = 0
        self._retry_at = 0.0

    def __repr__(self) -> str:
        return f"<Breaker {self._name} {'open' if self.open else 'closed'}>"

    @property
    def open(self) -> bool:
        return self._failures >= FAILURES

    def admits(self) -> bool:
        """Whether a call may be made now. While open, true once a pause: that call is the trial."""
        if not self.open:
            return True
        now = self._clock.monotonic()
        if now < self._retry_at:
            return False
        self._retry_at = now + PAUSE
        return True

    def succeeded(self) -> None:
        if self.open:
            log.warning("%s works again", self._name)
        self._failures = 0

    def failed(self, why: str) -> None:
        self._journal.count("trouble", self._name)
        self._failures += 1
        if self._failures == FAILURES:
            self._retry_at = self._clock.monotonic() + PAUSE
            log.warning("%s left alone after %d failures: %s", self._name, FAILURES, why)


class GuardedStore:
    """A `Store` that never raises and never takes longer than `deadline` seconds to answer; removals excepted."""

    def __init__(self, store: Stocked, name: str, deadline: float, clock: Clock, journal: Journal) -> None:
        self._store = store
        self._deadline = deadline
        self._reads = Breaker(f"{name} (read)", clock, journal)
        self._writes = Breaker(f"{name} (write)", clock, journal)

    def __repr__(self) -> str:
        return f"<GuardedStore {self._store!r} {self._reads!r} {self._writes!r}>"

    async def get(self, key: bytes) -> Entry | None:
        if not self._reads.admits():
            return None
        try:
            async with asyncio.timeout(self._deadline):
                entry = await self._store.get(key)
        except (Trouble, TimeoutError) as error:
            self._reads.failed(str(error) or "deadline exceeded")
            return None
        self._reads.succeeded()
        return entry

    async def put(self, entry: Entry) -> None:
        if not self._writes.admits():
            return
        try:
            async with asyncio.timeout(self._deadline):
                await self._store.put(entry)
        except (Trouble, TimeoutError) as error:
            self._writes.failed(str(error) or "deadline exceeded")
            return
        self._writes.succeeded()

    async def sweep(self, now: float) -> int:
        try:
            return await self._store.sweep(now)
        except Trouble:
            return 0

    async def remove(self, selector: Selector, removal: Removal, now: float) -> set[bytes]:
        """Not forgiven: what could not be removed must not be reported as gone. Raises `Trouble`."""
        return await self._store.remove(selector, removal, now)

    def census(self) -> Census:
        return self._store.census()

    async def close(self) -> None:
        await self._store.close()
