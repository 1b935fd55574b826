"""What has come of a recording to one who follows it, and was not taken yet. No IO: it is told."""

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import islice

from cacheproxy.errors import Trouble
from cacheproxy.stores.redis_lead import Place

AHEAD = 2**20
"""Bytes that are held for one who does not take them. What comes then is read later."""


class Followed:
    """One recording as one follower sees it: what has come and was not taken yet."""

    def __init__(self, place: Place, after: int, now: float) -> None:
        self.place = place
        self.number = after
        """Of the last record that has come."""
        self.is_opening = True
        self.is_behind = True
        """There may be more in the stream than has come."""
        self.heard = self.due = now
        """When its producer was certainly alive; when the stream is to be read again."""
        self.failures = 0
        """Reads in a row that went wrong."""
        self.changed = asyncio.Event()
        self._come: deque[bytes] = deque()
        self._held = 0
        self._over: Trouble | bool = False

    @property
    def room(self) -> int:
        """How many bytes more may be held."""
        return max(0, AHEAD - self._held)

    @property
    def is_over(self) -> bool:
        """Nothing comes any more."""
        return bool(self._over)

    def come(self, first: int, records: Sequence[bytes]) -> bool:
        """Take in records from number `first` on, those that are not known yet; whether there is no gap and room."""
        if first > self.number + 1 or self._held >= AHEAD:
            self.is_behind = True
            return False
        for record in islice(records, self.number + 1 - first, None):
            self._come.append(record)
            self._held += len(record)
        self.number = max(self.number, first + len(records) - 1)
        self.changed.set()
        return True

    def finish(self, trouble: Trouble | None = None) -> None:
        """Nothing comes after what has come."""
        if not self._over:
            self._over = trouble if trouble is not None else True
            self.is_opening = self.is_behind = False
            self.changed.set()

    async def take(self) -> Sequence[bytes]:
        """What has come, once there is something; nothing at the end. Raises `Trouble` if it came to no end."""
        while not self._come and not self._over:
            self.changed.clear()
            await self.changed.wait()
        batch = self.take_now()
        if not batch and isinstance(self._over, Trouble):
            raise Trouble(str(self._over), self._over.kind)
        return batch

    def take_now(self) -> Sequence[bytes]:
        """What has come."""
        batch = tuple(self._come)
        self._come.clear()
        self._held = 0
        return batch

    async def opened(self) -> None:
        """Return once it is known that there is such a recording. Raises `Trouble`."""
        while self.is_opening:
            self.changed.clear()
            await self.changed.wait()
        if isinstance(self._over, Trouble) and not self._come:
            raise Trouble(str(self._over), self._over.kind)
