"""Running answers in Redis: one replica produces, the others follow it live.

Whoever claims a key leads, for as long as he says something once a lease. A recording can be joined only as long as no
removal was counted since it was begun: its claim holds the head of that moment. Every name expires: two leases after
the last word, or after the time that the producer gave it at its end.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from weakref import WeakSet

from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock
from cacheproxy.stores.lane import Lane
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_epochs import RedisEpochs
from cacheproxy.stores.redis_followers import Followers
from cacheproxy.stores.redis_keys import Keys
from cacheproxy.stores.redis_lead import Errands, LeadTerms, RedisLead, Speech, outcome, place, said
from cacheproxy.stores.redis_recording_scripts import CLAIM

LEASE = 2.0
MOST = 32 * 2**20
"""Bytes of the records of one recording."""
WIDTH = 2
"""Connections that are used at most at once for producing; following uses one of the bound, and one beside it."""
AT_ONCE = 32
"""Recordings of which something is said in one round trip."""
ATTEMPTS = 3
"""How often a claim is made anew because a removal was counted meanwhile."""
PARTING = 0.5
"""Seconds that closing waits for the last words."""


class RedisRecordings:
    """`Recordings` in the Redis behind `calls`, which is not closed here. `lease`: seconds; `most`: bytes of a
    recording above which it is given up."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, calls: Calls, keys: Keys, epochs: RedisEpochs, clock: Clock, *, lease: float = LEASE, most: int = MOST,
        width: int = WIDTH,
    ) -> None:  # fmt: skip
        self.lease = lease
        self._calls = calls
        self._keys = keys
        self._epochs = epochs
        channel = f"{keys.prefix}:f:"
        self._terms = LeadTerms(lease, most, channel)
        self._errands = Errands()
        self._speech: Speech = Lane(calls.scripts, width=width, most=AT_ONCE)
        self._led: WeakSet[RedisLead] = WeakSet()
        self._followers = Followers(calls, keys, epochs, clock, lease=lease, channel=channel)
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<RedisRecordings {self._errands!r} {self._followers!r}>"

    async def lead(self, key: bytes, identity: bytes) -> RedisLead | bytes:
        if self._is_closed:
            raise Trouble("closed", "closed")
        claiming = self._errands.start(self._claim(key, identity))
        try:
            return await outcome(claiming)
        except asyncio.CancelledError:
            self._errands.start(self._disclaim(claiming))
            raise

    async def _claim(self, key: bytes, identity: bytes) -> RedisLead | bytes:
        shard, at = self._keys.shard(key), place(self._keys, key, identity)
        for _ in range(ATTEMPTS):
            head = self._epochs.head(shard)
            if not head:
                await self._epochs.meet(shard, None)  # the first contact
                head = self._epochs.head(shard)
            lead = RedisLead(self._calls, at, self._terms, self._errands, self._speech)
            try:
                keys = [self._keys.head(shard), at.claim, at.stream, at.live]
                reply = await said(self._speech, (CLAIM, keys, [head, identity.hex(), int(self.lease * 1000)]))
                runs, told = await self._calls.understood(lambda: _claimed(reply))  # noqa: B023 - called at once
                # The server that answers may not be the one that wrote the head.
                await self._epochs.meet(shard, head if runs else told)
            except BaseException:
                self._errands.start(lead.abandon())
                raise
            if runs and self._epochs.head(shard) == head:
                if told != identity.hex().encode():
                    return bytes.fromhex((told or b"").decode())
                self._led.add(lead)
                return lead
            if runs:
                await lead.abandon()
        raise Trouble("removals are counted all the time", "busy")

    async def _disclaim(self, claiming: "asyncio.Task[RedisLead | bytes]") -> None:
        """Nobody is there any more who could lead."""
        await asyncio.wait([claiming])
        if not claiming.cancelled() and claiming.exception() is None:
            found = claiming.result()
            if isinstance(found, RedisLead):
                await found.abandon()

    async def follow(self, key: bytes, identity: bytes, after: int) -> AsyncGenerator[Sequence[bytes], None]:
        one = self._followers.join(place(self._keys, key, identity), after)
        try:
            await one.opened()
            yield one.take_now()
            while batch := await one.take():
                self._followers.taken(one)
                yield batch
        finally:
            self._followers.leave(one)

    async def close(self) -> None:
        self._is_closed = True
        await self._followers.close()
        for lead in list(self._led):
            self._errands.start(lead.abandon())
        await self._errands.close(PARTING)
        await self._speech.close()


def _claimed(reply: list[bytes | None]) -> tuple[bool, bytes | None]:
    """Whether a recording of the key runs and which; else the head that there is."""
    if not isinstance(reply, list):
        raise ValueError("not a pair")
    what, told = reply
    return what == b"runs", told
