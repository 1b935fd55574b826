"""Follows the events of a stream that replicas share: each is carried out once, in the order of the stream.

Until everything that was told before the start is in force, and while the stream cannot be read, the gate is shut for
all that rests on a knowledge base. An event that cannot be read is done with.
"""

import asyncio
import logging

from cacheproxy.core import streamed
from cacheproxy.core.knowledge import Publication
from cacheproxy.engine.gate import Gate
from cacheproxy.engine.knowledge import Knowledge
from cacheproxy.errors import Trouble, place_of
from cacheproxy.ports import Journal, Notice, Notices

log = logging.getLogger("cacheproxy.purge")

PAUSE = 0.5
"""Seconds between two looks when nothing is told."""
HOLDING = 3.0
"""Seconds after which it is said again that an event is being carried out, which can take long."""
WHO = "events"


class Follower:
    """Follows from `start` to `close`."""

    def __init__(self, notices: Notices, *, knowledge: Knowledge, gate: Gate, journal: Journal) -> None:
        self._notices = notices
        self._knowledge = knowledge
        self._gate = gate
        self._journal = journal
        self._held: dict[bytes, Notice] = {}
        self._is_behind = True
        self._complaint = ""
        self._task: asyncio.Task[None] | None = None
        gate.shut_for_all(WHO)

    def __repr__(self) -> str:
        return f"<Follower {self._notices!r} {len(self._held)} held>"

    def start(self) -> None:
        """Follow from now on."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            went_on = False
            try:
                went_on = await self.turn()
                self._complaint = ""
            except Trouble as trouble:
                self._fall_behind(str(trouble))
            except Exception as error:  # noqa: BLE001 - a fault of ours must not end it for ever
                self._fall_behind(f"a fault in following: {place_of(error)}")
            await asyncio.sleep(0 if went_on else PAUSE)

    def _fall_behind(self, why: str) -> None:
        self._is_behind = True
        self._gate.shut_for_all(WHO)
        if why != self._complaint:
            self._complaint = why
            log.warning(
                "the stream of events is not followed: %s; what rests on a knowledge base comes from the backend", why
            )

    async def turn(self) -> bool:
        """Take what is there, and carry out what is next; whether anything was. Raises `Trouble`."""
        self._held |= {notice.identity: notice for notice in await self._notices.take()}
        went_on = False
        for identity in sorted(self._held, key=streamed.place):
            oldest = await self._notices.oldest()
            if oldest is not None and streamed.place(oldest) < streamed.place(identity):
                break  # another replica is at it: what was told first is done first
            if oldest == identity:
                await self._carry_out(self._held[identity])
                await self._notices.done(identity)
            del self._held[identity]
            went_on = True
        if self._is_behind and not went_on and not self._held and await self._notices.oldest() is None:
            self._is_behind = False
            self._gate.open_for_all(WHO)
        return went_on

    async def _carry_out(self, notice: Notice) -> None:
        told = streamed.read(notice.fields)
        if isinstance(told, Publication):
            await self._publish(notice.identity, told)
        elif told is not None:
            self._journal.count("knowledge", "unreadable")
            log.warning("event %s of the stream cannot be read: %s", notice.identity.decode("latin-1"), told.name)

    async def _publish(self, identity: bytes, told: Publication) -> None:
        publishing = asyncio.get_running_loop().create_task(self._knowledge.publish(told))
        try:
            while not (await asyncio.wait([publishing], timeout=HOLDING))[0]:
                await self._notices.hold(identity)
        finally:
            publishing.cancel()
            await asyncio.wait([publishing])
            failed = None if publishing.cancelled() else publishing.exception()
        if failed is not None:
            raise failed

    async def close(self) -> None:
        """Stop following: what is held is taken over by another replica, or after the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
