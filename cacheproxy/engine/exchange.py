"""The way to the backend and back: relayed as it is, or read from the log of a flight that fetches and keeps it.

Under cancellation: once a head has been answered, the body generator is the only holder of the backend's reply, or of
the reader, and closes it in its ``finally``; it is started before it is handed out, since one that never started would
not run it.
"""

import contextlib
import itertools
from collections.abc import AsyncGenerator, AsyncIterator

from cacheproxy.core import following, policy, usage
from cacheproxy.core.following import Step
from cacheproxy.core.model import Endpoint, Form
from cacheproxy.core.outcome import Forward, Outcome, Reason, Source
from cacheproxy.core.standing import Standing
from cacheproxy.deadline import Deadline
from cacheproxy.engine import log
from cacheproxy.engine.authority import Authority
from cacheproxy.engine.bound import Bound, Head, Outgoing
from cacheproxy.engine.call import Call
from cacheproxy.engine.delivery import Delivery, Want
from cacheproxy.engine.flight import Flight, Flights
from cacheproxy.engine.ledger import Account, Ledger
from cacheproxy.engine.log import Reader
from cacheproxy.engine.passage import Passage
from cacheproxy.engine.prefixed import Prefix
from cacheproxy.engine.sender import Sender
from cacheproxy.engine.served import Served
from cacheproxy.errors import AnsweredMeanwhile, AnswerError, RateLimited
from cacheproxy.ports import Journal, Reply

FAILED = frozenset({500, 502, 503, 504})
"""Statuses that say the backend failed (RFC 5861 section 4)."""
ATTEND_SECONDS = 0.25
"""How long who goes on with an answer may be held up by the look for it."""


class Exchange:
    """Sends requests to the backend and hands its answers on."""

    def __init__(  # noqa: PLR0913 - the parts of the house, by name
        self, *, sender: Sender, flights: Flights, delivery: Delivery, authority: Authority, ledger: Ledger,
        journal: Journal,
    ) -> None:  # fmt: skip
        self._sender = sender
        self._flights = flights
        self._delivery = delivery
        self._authority = authority
        self._ledger = ledger
        self._journal = journal

    async def relay(  # noqa: PLR0913 - one request, every fact about it
        self, call: Call, head: Head, body: Outgoing | AsyncIterator[bytes] | None, endpoint: Endpoint | None,
        reason: Reason, prefix: Prefix | None = None,
    ) -> Served:  # fmt: skip
        """The backend's answer, neither looked up nor kept. `prefix`: what the backend reads first, where known."""
        standing = self._sender.standing(head, body, prefix)
        account = self._ledger.open(prefix, standing)
        call.stages.standing = standing
        reply, sieved = await self._sender.pass_on(head, body, prefix, standing)
        call.stages.waited("upstream")
        self._authority.heard(head.credential, reply.status, proves=endpoint is not None)
        account.heard(reply)
        sieved = sieved and policy.form_of(reply.fields) is Form.EVENTS
        outcome = Outcome(Source.BYPASS, reason, Forward.BYPASS)
        return await self.hand_on(call, endpoint, reply, outcome, account, standing=standing, sieved=sieved)

    async def hand_on(  # noqa: PLR0913 - one reply, every fact about it
        self, call: Call, endpoint: Endpoint | None, reply: Reply, outcome: Outcome, account: Account | None = None,
        *, standing: Standing | None = None, sieved: bool = False,
    ) -> Served:  # fmt: skip
        """A reply whose head has come, unrecorded: as it is, or, if `sieved`, without the usage that only we asked
        for. `standing`: for what it was let through, None if it was not counted."""
        passage = Passage(call.fields, reply.fields, unpack=sieved, transparent=endpoint is None)
        body = _pass_on(reply, passage, account or self._ledger.open(None), usage.Filter() if sieved else None)
        head = log.Head(reply.status, reply.phrase, reply.fields, reply.interim)
        return await self._delivery.serve(
            call, endpoint, outcome, head, passage, body, unstated=sieved, standing=standing
        )  # fmt: skip

    async def fetch(self, call: Call, bound: Bound, want: Want) -> Served:
        """The backend's answer, kept if it proves complete; shared with who asks the same meanwhile. Raises
        `AnswerError`."""
        name = bound.ask.key
        shared = want.stored is not None and self._flights.shares(name)
        for failures in itertools.count():
            flight = self._flights.of(name, want.unknown) if shared else None
            if flight is None and shared and self._flights.landed_since(name, want.since):
                if (served := await _stored(want)) is not None:
                    return served
                flight = self._flights.of(name, want.unknown)
            if flight is None:
                flight, reader = self._flights.begin(
                    bound, shared=shared, numbered=bound.wish.ids, found=want.found if shared else None
                )
                call.stages.standing = flight.work.standing
                step = await self._lead(call, bound, want, flight, reader, failures)
            else:
                call.stages.standing = flight.work.standing
                flight.work.standing.urge(bound.priority)
                step = await self._follow(call, bound, want, flight, flight.reader(), failures)
            if isinstance(step, Served):
                return step
            if step is Step.LOOK and (served := await _stored(want)) is not None:
                return served
            shared = shared and step is Step.AGAIN
        raise AssertionError("a count has no end")

    async def resume(self, call: Call, bound: Bound) -> Served | None:
        """The rest of a running or a late answer after the event that the request names, if that is possible."""
        identity = bound.wish.identity
        if identity is None:
            return None
        flight = self._flights.resumable(bound.ask.key, identity)
        found = self._flights.attend(bound, identity) if flight is None else (flight, flight.reader())
        if found is None:
            return None
        flight, reader = found
        try:
            try:
                # Who was given ids has had the head: it is there at once, or not to be had.
                async with Deadline(ATTEND_SECONDS):
                    await reader.head()
            except (AnswerError, TimeoutError):
                reader.close()
                return None
            if not await self._granted(call, bound, flight):
                reader.close()
                return None
        except BaseException:
            reader.close()
            raise
        self._journal.count("coalesced", "resumed")
        want = Want(Reason.RESUMED, Forward.MISS)
        return await self._delivery.give(call, bound, want, flight, reader, collapsed=True)

    async def _follow(  # noqa: PLR0913 - one flight, every fact about it
        self, call: Call, bound: Bound, want: Want, flight: Flight, reader: Reader, failures: int
    ) -> Served | Step:
        """The answer that `flight` gives to `reader`, or what to do instead."""
        try:
            step = await self._wait(call, bound, flight, reader, failures)
            call.stages.waited("upstream")
            self._journal.count("coalesced", step.value)
            if step is Step.READ:
                return await self._read(call, bound, want, flight, reader, collapsed=True)
            if step is Step.AGAIN:
                self._flights.retire(flight)  # the rest of a failure may be long in coming
        except BaseException:
            reader.close()
            raise
        reader.close()
        return step

    async def _wait(self, call: Call, bound: Bound, flight: Flight, reader: Reader, failures: int) -> Step:
        """What to do about `flight`, as soon as that can be told. Raises what its producer met, where that is to be
        told."""
        try:
            head = await reader.head()
        except AnsweredMeanwhile:
            return Step.LOOK
        except AnswerError as error:
            limited = isinstance(error, RateLimited) and flight.work.bound.ask.credential != bound.ask.credential
            # What another caller has used up is nothing to tell this one.
            if limited or following.at_end(None, failed=True, failures=failures, same_form=True) is Step.AGAIN:
                return Step.AGAIN
            raise
        if not await self._granted(call, bound, flight):
            return Step.ALONE
        streamed = policy.form_of(head.fields) is Form.EVENTS
        lacking = bound.ask.wants_usage and not head.sieved and bound.ask.endpoint in policy.ASKED_FOR_USAGE
        step = following.at_head(
            head.status, head.unfit, failures, streamed=streamed, wants_stream=bound.ask.stream, lacking=lacking
        )  # fmt: skip
        if step is Step.ALONE and head.status == 200 and head.unfit is not None:
            self._flights.leave_alone(flight.key)
        if step is Step.WAIT:
            ending = await reader.outlast()
            if ending is None:
                return Step.ALONE
            same_form = streamed == bound.ask.stream
            step = following.at_end(
                ending.reason, failed=ending.error is not None, failures=failures, same_form=same_form
            )  # fmt: skip
            if step is Step.ALONE:
                self._flights.leave_alone(flight.key)
        return step

    async def _granted(self, call: Call, bound: Bound, flight: Flight) -> bool:
        """Whether the backend accepts this caller: it has just accepted the one whose answer this is."""
        if flight.work.bound.ask.credential == bound.ask.credential:
            return True
        return await self._authority.admit(bound.ask.credential, call.fields, float("-inf")) is not None

    async def _lead(  # noqa: PLR0913 - one flight, every fact about it
        self, call: Call, bound: Bound, want: Want, flight: Flight, reader: Reader, failures: int
    ) -> Served | Step:
        """The answer that is fetched for this caller; unless another replica fetches it already."""
        try:
            with contextlib.suppress(AnswerError):
                await reader.head()
            if flight.foreign:
                return await self._follow(call, bound, want, flight, reader, failures)
            try:
                await reader.head()
            except AnsweredMeanwhile:
                reader.close()
                return Step.LOOK
            call.stages.waited("upstream")
            return await self._read(call, bound, want, flight, reader)
        except BaseException:
            reader.close()
            raise

    async def _read(  # noqa: PLR0913 - one flight, every fact about it
        self, call: Call, bound: Bound, want: Want, flight: Flight, reader: Reader, *, collapsed: bool = False
    ) -> Served:
        """What `flight` gives to `reader`, which has seen the head; or what is served in place of a failure."""
        head = await reader.head()
        if want.rescue is not None and head.status in FAILED:
            if (served := await want.rescue(Reason.BACKEND_FAILED)) is not None:
                reader.close()
                return served
        return await self._delivery.give(call, bound, want, flight, reader, collapsed=collapsed)


async def _stored(want: Want) -> Served | None:
    return None if want.stored is None else await want.stored()


async def _pass_on(
    reply: Reply, passage: Passage, account: Account, sieve: usage.Filter | None = None
) -> AsyncGenerator[bytes, None]:
    try:
        yield b""
        while data := await reply.read():
            account.feed(data)
            if reply.ended:
                account.close(whole=True)
            data = passage.carry(data)
            yield data if sieve is None else sieve.feed(data)
        account.close(whole=True)
        if sieve is not None:
            yield sieve.rest
    finally:
        account.close(whole=False)
        reply.close()
