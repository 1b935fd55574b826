"""Running answers that replicas share: one process produces, the others follow what it has said and what it says.

A recording is a list of records, numbered from 1. The store does not know what they mean: also that an answer failed is
a record, the producer's last one.
"""

import contextlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol, cast

from cacheproxy.deadline import Deadline
from cacheproxy.engine.breaker import FAULT, Breaker
from cacheproxy.errors import Trouble
from cacheproxy.ports import Journal


class Lead(Protocol):
    """A recording that this process produces. One that has raised `Trouble` is over: those who follow it are told
    within the lease, and everything else that is asked of it raises."""

    identity: bytes
    """16 bytes that nobody can guess, of this recording alone."""

    @property
    def followers(self) -> int:
        """How many other processes followed it when something was last said; 0 once it is over."""

    async def append(self, records: Sequence[bytes]) -> None:
        """Its next records, in order. They are sent also if the caller leaves. Raises `Trouble`: ``lost`` if it was
        taken for dead, ``too_large`` if it has more bytes than a recording may have."""

    async def renew(self) -> None:
        """It is still being produced though nothing came; also learns anew how many follow. Raises `Trouble`."""

    async def end(self, records: Sequence[bytes], seconds: float) -> None:
        """The last records. It can be followed for `seconds` more, and its key is free at once. Raises `Trouble`."""

    async def abandon(self) -> None:
        """Its producer stops without an end: who follows is told ``lost`` at once if possible, else within the lease.
        Never raises; may be called whatever happened before."""


class Recordings(Protocol):
    """The recordings of all who share a store. Raises `Trouble`."""

    lease: float
    """Seconds without a word from its producer after which a recording is taken for dead. A producer says something
    three times as often."""

    async def lead(self, key: bytes, identity: bytes) -> Lead | bytes:
        """The right to produce the answer to the request of this exact key, under an `identity` that was never used
        before; or the identity of the recording that runs already and was begun after every removal so far. Of all who
        ask at once one leads."""

    def follow(self, key: bytes, identity: bytes, after: int) -> AsyncGenerator[Sequence[bytes], None]:
        """The records of a recording after number `after` (0: all), in order, none twice: batches as they come. The
        first batch comes at once and may be empty; after the last record it returns. Close it (`aclose`) when leaving
        early. Raises `Trouble`: ``gone`` if there is no such recording of this key, or a removal was counted since it
        was begun; ``lost`` if it came to no end, within the lease after its producer died; others if the store cannot
        be read for that long."""

    async def close(self) -> None:
        """Let go: recordings that are led are abandoned, who follows gets `Trouble`."""


class GuardedLead:
    """A `Lead` whose words take no longer than `deadline` seconds. What goes wrong is what `tell` makes of it."""

    def __init__(self, lead: Lead, deadline: float, tell: Callable[[Exception], Trouble]) -> None:
        self.identity = lead.identity
        self._lead = lead
        self._deadline = deadline
        self._tell = tell

    def __repr__(self) -> str:
        return f"<GuardedLead {self._lead!r}>"

    @property
    def followers(self) -> int:
        return self._lead.followers

    async def append(self, records: Sequence[bytes]) -> None:
        await self._say(self._lead.append(records))

    async def renew(self) -> None:
        await self._say(self._lead.renew())

    async def end(self, records: Sequence[bytes], seconds: float) -> None:
        await self._say(self._lead.end(records, seconds))

    async def abandon(self) -> None:
        with contextlib.suppress(Trouble):
            await self._say(self._lead.abandon())

    async def _say(self, words: Awaitable[None]) -> None:
        try:
            async with Deadline(self._deadline):
                await words
        except Exception as error:  # noqa: BLE001 - whatever it is, it is trouble
            raise self._tell(error) from None


class GuardedRecordings:
    """Recordings that are let alone while there is trouble with them, and raise nothing but `Trouble`. `deadline`:
    seconds that a claim may take. Nothing is forgiven: who leads or follows has to know when nobody hears him, or when
    nothing comes any more."""

    def __init__(self, recordings: Recordings, name: str, deadline: float, journal: Journal) -> None:
        self.lease = recordings.lease
        self.breaker = Breaker(f"{name} (recordings)", deadline, journal)
        self._recordings = recordings
        self._journal = journal

    def __repr__(self) -> str:
        return f"<GuardedRecordings {self._recordings!r} {self.breaker!r}>"

    async def lead(self, key: bytes, identity: bytes) -> Lead | bytes:
        is_waited_for = True

        async def claim() -> Lead | bytes:
            if is_waited_for:
                return await self._recordings.lead(key, identity)
            # A trial in the background claims what nobody wants, and gives it up.
            found = await self._recordings.lead(secrets.token_bytes(len(key)), secrets.token_bytes(len(identity)))
            if not isinstance(found, bytes):
                await found.abandon()
            return found

        try:
            found = await self.breaker.call(claim)
        finally:
            is_waited_for = False
        if isinstance(found, Trouble):
            raise found
        return found if isinstance(found, bytes) else GuardedLead(cast("Lead", found), self.lease, self._told)

    async def follow(self, key: bytes, identity: bytes, after: int) -> AsyncGenerator[Sequence[bytes], None]:
        batches = self._recordings.follow(key, identity, after)
        try:
            async for batch in batches:
                yield batch
        except Exception as error:  # noqa: BLE001 - whatever it is, it is trouble
            raise self._told(error) from None
        finally:
            await batches.aclose()

    def _told(self, error: Exception) -> Trouble:
        """The trouble that it is, counted."""
        if isinstance(error, Trouble):
            trouble = error
        elif isinstance(error, TimeoutError):
            trouble = Trouble("it took too long", "timeout")
        else:
            self.breaker.tell(error)
            trouble = Trouble(type(error).__name__, FAULT)
        self._journal.add("trouble", 1, self.breaker.name, trouble.kind)
        return trouble

    async def close(self) -> None:
        """End what is being tried, and let go."""
        await self.breaker.close()
        await self._recordings.close()
