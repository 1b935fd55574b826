"""Hands a running answer on to one caller, as this one can read it: unpacked, without what only we asked for, with ids.

Under cancellation: whoever is given a reader closes it, or gives it to a body generator that does.
"""

import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from cacheproxy.core import key, policy, rates, usage
from cacheproxy.core.model import Endpoint, Form
from cacheproxy.core.outcome import Forward, Outcome, Reason, Source
from cacheproxy.core.resumption import Numbering
from cacheproxy.core.standing import Standing
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.call import Call
from cacheproxy.engine.flight import Flight
from cacheproxy.engine.log import Head, Reader
from cacheproxy.engine.passage import Passage
from cacheproxy.engine.rates import Rates
from cacheproxy.engine.served import Served, Voice
from cacheproxy.engine.tempo import Tempo
from cacheproxy.errors import UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from cacheproxy.ports import Clock, Journal

HOLD_BYTES = 2**20
HOLD_SECONDS = 0.05
"""A JSON answer is held until it is whole, so that its head can say whether it is kept; at most so long."""

Rescue = Callable[[Reason], Awaitable[Served | None]]
"""Gives a stored answer for a request whose fetch has failed in this way; None if none may be served."""


@dataclass(frozen=True, slots=True)
class Want:
    """Why an answer is fetched, and what may be served in its place. `shadow`: a stored answer could have been served;
    `rescue`: gives what to serve where the backend failed or has no room; `stored`: looks for a stored answer once
    more, None where the answer is not to be shared; `found`: whether there is one; `since`: when the first look was, by
    the monotonic clock; `unknown`: since when removals may have been acknowledged that are not known here, infinite for
    none."""

    reason: Reason
    forward: Forward
    shadow: bool = False
    rescue: Rescue | None = None
    stored: Callable[[], Awaitable[Served | None]] | None = None
    found: Callable[[], Awaitable[bool]] | None = None
    since: float = 0.0
    unknown: float = math.inf


@dataclass(slots=True)
class _Reading:
    """An answer on its way to one caller."""

    bound: Bound
    reader: Reader
    passage: Passage
    sieve: usage.Filter | None
    numbering: Numbering | None
    tempo: Tempo | None

    def carry(self, data: bytes) -> bytes:
        """The bytes that go to the caller for `data` of the log."""
        data = self.passage.carry(data)
        if self.numbering is not None:
            data = self.numbering.feed(data)
        return data if self.sieve is None else self.sieve.feed(data)

    def rest(self) -> bytes:
        """What is left of an unfinished event."""
        rest = b"" if self.numbering is None else self.numbering.rest
        return rest if self.sieve is None else self.sieve.feed(rest) + self.sieve.rest

    @property
    def rewritten(self) -> bool:
        """Its length is not the backend's."""
        return self.sieve is not None or self.numbering is not None


class Delivery:
    """Gives callers what flights bring. `stall`: the pause, in seconds, from which on a stream counts as stalled."""

    def __init__(
        self, *, voice: Voice, journal: Journal, clock: Clock, stall: float, rates: Rates | None = None
    ) -> None:
        self._voice = voice
        self._rates = rates
        self._journal = journal
        self._clock = clock
        self._stall = stall

    async def give(  # noqa: PLR0913 - one answer, every fact about it
        self, call: Call, bound: Bound, want: Want, flight: Flight, reader: Reader, *, collapsed: bool = False
    ) -> Served:
        """The answer of `flight` for one caller, from `reader`, which has seen the head."""
        try:
            head = await reader.head()
            streamed = policy.form_of(head.fields) is Form.EVENTS
            numbered = streamed and bound.wish.ids and flight.log.whole
            sieved = head.sieved and not bound.ask.wants_usage
            passage = Passage(call.fields, head.fields, unpack=sieved or numbered or bool(bound.wish.heartbeat))
            reading = _Reading(
                bound, reader, passage,
                usage.Filter() if sieved else None,
                Numbering(flight.identity, bound.wish.after_in(flight.identity)) if numbered else None,
                Tempo(self._journal, "coalesced" if collapsed else "live", self._stall, call.stages.began)
                if streamed else None,
            )  # fmt: skip
            flight.numbered = flight.numbered or numbered
            standing = None if collapsed else flight.work.standing
            source = Source.SHADOW if want.shadow else Source.MISS
            outcome = Outcome(source, head.unfit or want.reason, want.forward, collapsed=collapsed)
            if not streamed:
                return await self._whole_or_live(call, reading, head, outcome, standing)
            outcome.stored = head.unfit is None and not collapsed
            outcome.entry_id = key.entry_id(bound.ask.key) if head.unfit is None else None
            return await self.serve(
                call, bound.ask.endpoint, outcome, head, passage, _live(reading, []), unstated=reading.rewritten,
                standing=standing,
            )  # fmt: skip
        except BaseException:
            reader.close()
            raise

    async def _whole_or_live(
        self, call: Call, reading: _Reading, head: Head, outcome: Outcome, standing: Standing | None
    ) -> Served:
        """An answer that is no stream: whole if it comes at once, so that its head tells what became of it."""
        held: list[bytes] = []
        bound, reader = reading.bound, reading.reader
        try:
            if await self._gather(reader, held):
                refused = (await reader.end()).reason
                outcome.reason = refused or outcome.reason
                outcome.stored = refused is None and not outcome.collapsed
                outcome.entry_id = key.entry_id(bound.ask.key) if refused is None else None
                whole = reading.passage.carry(b"".join(held))
                reader.close()
                return await self.serve(
                    call, bound.ask.endpoint, outcome, head, reading.passage, whole, standing=standing
                )  # fmt: skip
        except UpstreamCut as error:
            raise UpstreamUnreachable("The backend broke off its answer.") from error
        body = _live(reading, held)
        return await self.serve(call, bound.ask.endpoint, outcome, head, reading.passage, body, standing=standing)

    async def _gather(self, reader: Reader, held: list[bytes]) -> bool:
        """Read into `held` until the body has ended (true), or is too slow or too long to be held."""
        size = 0
        until = None
        while size < HOLD_BYTES:
            data = await reader.read()
            if not data:
                return True
            held.append(data)
            size += len(data)
            if reader.ended:
                return True
            until = until or self._clock.monotonic() + HOLD_SECONDS
            if not await reader.settle(max(0.0, until - self._clock.monotonic())):
                return False
        return False

    async def serve(  # noqa: PLR0913 - one head, every fact about it
        self, call: Call, endpoint: Endpoint | None, outcome: Outcome, head: Head, passage: Passage,
        body: bytes | AsyncGenerator[bytes, None], *, unstated: bool = False, standing: Standing | None = None,
    ) -> Served:  # fmt: skip
        """`unstated`: the length of the body is not known; `standing`: for what it was let through, None if it was not
        counted for this caller."""
        fields = passage.fields
        if outcome.collapsed:
            fields = tuple(line for line in fields if line[0].lower() != b"set-cookie")  # it was for another caller
        if self._rates is not None and standing is not None:
            fields = rates.merged(fields, self._rates.fields(standing))
        lines = self._voice.relayed(call.stages, outcome, endpoint, fields)
        length = None if unstated else passage.length
        if isinstance(body, bytes):
            length = length if call.method == "HEAD" else len(body)
        else:
            await anext(body)  # started: from here on its `finally` runs, whatever becomes of the caller
        return Served(head.status, head.phrase, lines, body, length, dated=passage.dated, interim=head.interim)


async def _live(reading: _Reading, held: list[bytes]) -> AsyncGenerator[bytes, None]:
    """The body as it comes."""
    reader, tempo = reading.reader, reading.tempo
    try:
        yield b""
        for data in held:
            yield reading.carry(data)
        while data := await reader.read():
            if tempo is not None:
                tempo.note()
            yield reading.carry(data)
        yield reading.rest()
    except (UpstreamCut, UpstreamTimeout):
        yield reading.rest()
        raise
    finally:
        reader.close()
