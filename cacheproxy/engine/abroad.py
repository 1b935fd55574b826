"""Running answers that replicas share: one of them fetches, the others follow what it says and hand it to their own
callers from a log like any other.

Law: sharing is an extra. What goes wrong with it costs a second call to the backend at most, never an answer. A flight
that is followed elsewhere runs on for as long as it is.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import orjson

from cacheproxy.core.outcome import Reason
from cacheproxy.engine.flight import Flight
from cacheproxy.engine.log import Ending, Head
from cacheproxy.engine.producer import Work
from cacheproxy.engine.recordings import Lead, Recordings
from cacheproxy.errors import AnswerError, CacheproxyError, Trouble, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from cacheproxy.ports import Journal

_HEAD, _BODY, _END = b"h", b"b", b"e"
_REASONS = {reason.word: reason for reason in Reason}
_ERRORS: dict[str, type[CacheproxyError]] = {
    "cut": UpstreamCut, "unreachable": UpstreamUnreachable, "timeout": UpstreamTimeout, "failed": AnswerError,
}  # fmt: skip
LARGEST = 64 * 2**10
"""Bytes of a body in one record."""


class Abroad:
    """Shares flights through `recordings`. `resume`: seconds for which one that is read with ids can be followed after
    its end."""

    def __init__(self, recordings: Recordings, journal: Journal, resume: float) -> None:
        self._recordings = recordings
        self._journal = journal
        self._resume = resume

    def __repr__(self) -> str:
        return f"<Abroad {self._recordings!r}>"

    async def run(self, flight: Flight, produce: Callable[[Work], Coroutine[Any, Any, None]], work: Work) -> None:
        """The answer of `flight`: what `produce` fetches, told to the others, or what another replica fetches."""
        try:
            lead = await self._recordings.lead(flight.key, flight.identity)
        except Trouble:
            await produce(work)
            return
        if isinstance(lead, bytes):
            self._journal.count("flights_shared", "followed")
            await self.follow(flight, lead)
            return
        self._journal.count("flights_shared", "led")
        flight.followers = lambda: _followers(lead)
        telling = asyncio.get_running_loop().create_task(self._tell(flight, lead))
        try:
            await produce(work)
            await telling
        finally:
            telling.cancel()
            flight.followers = None
            await asyncio.shield(lead.abandon())

    async def follow(self, flight: Flight, identity: bytes) -> None:
        """The answer of `flight`, as the replica says it that fetches it as `identity`."""
        flight.identity, flight.foreign = identity, True
        ending = Ending(Reason.INCOMPLETE, UpstreamCut("another replica's answer broke off"))
        try:
            async with contextlib.aclosing(self._recordings.follow(flight.key, identity, 0)) as batches:
                async for batch in batches:
                    for record in batch:
                        if (end := _hear(flight, record)) is not None:
                            ending = end
                    await flight.log.room()
        except (Trouble, ValueError, KeyError, TypeError):
            if flight.log.head is None:
                ending = Ending(Reason.INCOMPLETE, UpstreamUnreachable("Another replica's answer cannot be read."))
        finally:
            flight.log.end(ending)

    async def _tell(self, flight: Flight, lead: Lead) -> None:
        """Tell the others what `flight` brings, until it ends."""
        reader = flight.log.listener()
        try:
            await self._alive(reader.head(), lead)
            head = flight.log.head
            if head is None:
                return
            records = [_HEAD + _head(head)]
            while True:
                data = await self._alive(reader.read(), lead)
                if not data:
                    break
                records += [_BODY + data[at : at + LARGEST] for at in range(0, len(data), LARGEST)]
                await lead.append(records)
                records = []
            await self._end(flight, lead, records)
        except Trouble:
            return
        except CacheproxyError:
            with contextlib.suppress(Trouble):
                await self._end(flight, lead, [])
        finally:
            reader.close()

    async def _end(self, flight: Flight, lead: Lead, records: Sequence[bytes]) -> None:
        ending = flight.log.ending or Ending(Reason.INCOMPLETE, UpstreamCut("the answer was given up"))
        stays = self._resume if flight.numbered else self._recordings.lease
        await lead.end([*records, _END + _ending(ending)], stays)

    async def _alive(self, awaited: Any, lead: Lead) -> Any:
        """What is awaited, with a sign of life while it does not come."""
        task = asyncio.ensure_future(awaited)
        try:
            while not (await asyncio.wait({task}, timeout=self._recordings.lease / 3))[0]:
                await lead.renew()
        except BaseException:
            task.cancel()
            raise
        return task.result()


async def _followers(lead: Lead) -> int:
    """How many follow it now. Never raises."""
    try:
        await lead.renew()
    except Trouble:
        return 0
    return lead.followers


def _hear(flight: Flight, record: bytes) -> Ending | None:
    """Take a record of another replica; how the answer ended, if it says so."""
    kind, told = record[:1], record[1:]
    if kind == _BODY:
        flight.log.append(told)
    elif kind == _HEAD:
        said = orjson.loads(told)
        fields = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in said["fields"])
        unfit = None if said["unfit"] is None else _REASONS[said["unfit"]]
        head = Head(said["status"], said["phrase"].encode("latin-1"), fields, b"", said["sieved"], unfit)
        flight.log.begin(head)
    elif kind == _END:
        said = orjson.loads(told)
        reason = None if said["reason"] is None else _REASONS[said["reason"]]
        error = None if said["error"] is None else _ERRORS[said["error"]](said["message"])
        return Ending(reason, error)
    return None


def _head(head: Head) -> bytes:
    fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.fields]
    unfit = None if head.unfit is None else head.unfit.word
    return orjson.dumps({
        "status": head.status, "phrase": head.phrase.decode("latin-1"), "fields": fields, "sieved": head.sieved,
        "unfit": unfit,
    })  # fmt: skip


def _ending(ending: Ending) -> bytes:
    error = None
    if ending.error is not None:
        error = next((name for name, kind in _ERRORS.items() if type(ending.error) is kind), "failed")
    return orjson.dumps({
        "reason": None if ending.reason is None else ending.reason.word, "error": error,
        "message": "" if ending.error is None else str(ending.error),
    })  # fmt: skip
