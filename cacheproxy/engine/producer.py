"""Fetches one answer from the backend into a log, recorded beside, and kept once it has proven complete.

Runs as a task of its own: no caller's leaving touches it, unless it was the last one. However it ends, cancelled too,
the log has an ending, the recording is let go and the connection is given back or cut.
"""

import logging
from dataclasses import dataclass

from cacheproxy.core import policy
from cacheproxy.core.model import Form
from cacheproxy.core.outcome import Reason
from cacheproxy.core.standing import Standing
from cacheproxy.engine.authority import Authority
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.keeper import Keeper, Source
from cacheproxy.engine.ledger import Account, Ledger
from cacheproxy.engine.log import Ending, Head, Log
from cacheproxy.engine.record import Recording
from cacheproxy.engine.sender import Sender
from cacheproxy.errors import AnswerError, UpstreamCut, place_of
from cacheproxy.ports import Clock, Journal, Reply

log = logging.getLogger("cacheproxy.flight")

TERMINAL_SECONDS = 0.004
"""How long a stream's terminal event waits for the body's end, so that an immediate repeat finds the answer."""


@dataclass(slots=True)
class Work:
    """An answer that is being fetched. `asked_at` is of the wall clock, `began` of the monotonic one; `recording`: as
    soon as the head has come; `standing`: how it waits for a slot."""

    bound: Bound
    log: Log
    asked_at: float
    began: float
    standing: Standing
    recording: Recording | None = None

    @property
    def spoken(self) -> bool:
        """The answer itself is over; its framing may not be."""
        return self.recording is not None and self.recording.ended


class Producer:
    """Sends requests to the backend and writes what it answers."""

    def __init__(  # noqa: PLR0913 - the parts of the house, by name
        self, *, sender: Sender, keeper: Keeper, authority: Authority, ledger: Ledger, journal: Journal, clock: Clock
    ) -> None:
        self._sender = sender
        self._keeper = keeper
        self._authority = authority
        self._ledger = ledger
        self._journal = journal
        self._clock = clock

    def work(self, bound: Bound, log: Log) -> Work:
        """The answer to `bound`, to be written to `log`, asked for now."""
        return Work(bound, log, self._clock.now(), self._clock.monotonic(), bound.standing())

    async def produce(self, work: Work) -> None:
        """Fetch it. Raises nothing but `CancelledError`."""
        account = self._ledger.open(work.bound.prefix, work.standing)
        reply: Reply | None = None
        ending = Ending(Reason.CLIENT_GONE, UpstreamCut("the answer was given up"))
        try:
            reply, sieved = await self._sender.send(work.bound, work.standing)
            self._authority.heard(work.bound.ask.credential, reply.status, proves=True)
            account.heard(reply)
            ending = Ending(await self._read(work, reply, account, sieved=sieved))
        except (UpstreamCut, AnswerError) as error:
            ending = Ending(Reason.INCOMPLETE, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, who waits for it is told
            log.error("an answer failed inside the proxy: %s", place_of(error))
            begun = work.log.head is not None
            ending = Ending(Reason.INCOMPLETE, (UpstreamCut if begun else AnswerError)("The proxy failed."))
        finally:
            if work.recording is not None:
                if ending.error is not None:
                    work.recording.give_up(ending.reason or Reason.INCOMPLETE)
                    self._journal.count("not_kept", (work.recording.trouble or Reason.INCOMPLETE).word)
                work.recording.give_up(Reason.INCOMPLETE)
            account.close(whole=False)
            if reply is not None:
                reply.close()
            work.log.end(ending)

    async def _read(self, work: Work, reply: Reply, account: Account, *, sieved: bool) -> Reason | None:
        """Write the answer as it comes; why it was not kept, None if it was. Kept before its last piece is written, so
        that who has read all of it finds it stored."""
        streamed = policy.form_of(reply.fields) is Form.EVENTS
        recording = work.recording = self._keeper.recording(work.bound, reply.status, reply.fields)
        unfit = recording.trouble
        counted = streamed and (sieved or work.bound.ask.wants_usage)
        work.log.begin(Head(reply.status, reply.phrase, reply.fields, reply.interim, counted, unfit))
        while data := await reply.read():
            account.feed(data)
            recording.feed(data)
            over = reply.ended or (
                streamed and recording.ended and await reply.settle(TERMINAL_SECONDS) and reply.ended
            )
            if over:
                refused = await self._keep(work, recording, reply, account)
                work.log.append(data)
                return refused
            work.log.append(data)
            await work.log.room()
        return await self._keep(work, recording, reply, account)

    async def _keep(self, work: Work, recording: Recording, reply: Reply, account: Account) -> Reason | None:
        account.close(whole=True)
        took = self._clock.monotonic() - work.began
        source = Source(reply.fields, work.asked_at, took, prefix=account.family)
        return await self._keeper.keep(work.bound, recording, source)
