"""The way to the backend and back: relayed as it is, or recorded while it passes and kept once proven complete.

Under cancellation: once a head has been answered, the body generator is the only holder of the backend's reply and
closes it in its ``finally``; it is started before it is handed out, since one that never started would not run it.
An answer that is over for its reader but whose framing is not yet read (a client that leaves at ``[DONE]``) is
finished in the background, for a short time.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from cacheproxy.core import key, policy, usage
from cacheproxy.core.model import Endpoint, Form
from cacheproxy.core.outcome import Forward, Outcome, Reason, Source
from cacheproxy.engine import keeper
from cacheproxy.engine.authority import Authority
from cacheproxy.engine.bound import Bound, Head, Outgoing
from cacheproxy.engine.call import Call
from cacheproxy.engine.fill import Fill
from cacheproxy.engine.keeper import Keeper
from cacheproxy.engine.ledger import Account, Ledger
from cacheproxy.engine.passage import Passage
from cacheproxy.engine.prefixed import Prefix
from cacheproxy.engine.record import Recording
from cacheproxy.engine.sender import Sender
from cacheproxy.engine.served import Served, Voice
from cacheproxy.errors import UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from cacheproxy.ports import Clock, Journal, Reply

FAILED = frozenset({500, 502, 503, 504})
"""Statuses that say the backend failed (RFC 5861 section 4)."""
HOLD_BYTES = 2**20
HOLD_SECONDS = 0.05
"""A JSON answer is held until it is whole, so that its head can say whether it is kept; at most so long."""
TERMINAL_SECONDS = 0.004
"""How long a stream's terminal event waits for the body's end, so that an immediate repeat finds the answer."""
LATE_SECONDS = 2.0
"""How long the end of a body is waited for after the caller left at the terminal event."""


Rescue = Callable[[], Awaitable[Served | None]]
"""Gives a stored answer for a request whose fetch has failed; None if none may be served."""


@dataclass(frozen=True, slots=True)
class _Fetch:
    """A fetch under way. `asked_at` is of the wall clock, `began` of the monotonic one."""

    bound: Bound
    reply: Reply
    account: Account
    recording: Recording
    passage: Passage
    sieve: usage.Filter | None
    asked_at: float
    began: float

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the body, for all that look at it as it passes."""
        self.account.feed(data)
        self.recording.feed(data)


class Exchange:
    """Sends requests to the backend and hands its answers on."""

    def __init__(  # noqa: PLR0913 - the parts of the house, by name
        self, *, sender: Sender, keeper: Keeper, authority: Authority, fill: Fill, voice: Voice,
        ledger: Ledger, journal: Journal, clock: Clock,
    ) -> None:  # fmt: skip
        self._sender = sender
        self._keeper = keeper
        self._authority = authority
        self._fill = fill
        self._voice = voice
        self._ledger = ledger
        self._journal = journal
        self._clock = clock

    async def relay(  # noqa: PLR0913 - one request, every fact about it
        self, call: Call, body: Outgoing | AsyncIterator[bytes] | None, credential: bytes, endpoint: Endpoint | None,
        reason: Reason, prefix: Prefix | None = None,
    ) -> Served:  # fmt: skip
        """The backend's answer, neither looked up nor kept. `prefix`: what the backend reads first, where known."""
        account = self._ledger.open(prefix)
        head = Head(call.method, call.target, call.fields, credential)
        reply = await self._sender.pass_on(head, body, prefix)
        call.stages.lap("upstream")
        self._authority.heard(credential, reply.status, proves=endpoint is not None)
        account.heard(reply)
        return await self.hand_on(call, endpoint, reply, Outcome(Source.BYPASS, reason, Forward.BYPASS), account)

    async def hand_on(
        self, call: Call, endpoint: Endpoint | None, reply: Reply, outcome: Outcome, account: Account | None = None
    ) -> Served:
        """A reply whose head has come, as it is, unrecorded."""
        passage = Passage(call.fields, reply.fields, transparent=endpoint is None)
        body = _pass_on(reply, passage, account or self._ledger.open(None))
        return await self._serve(call, endpoint, outcome, reply, passage, body)

    async def fetch(  # noqa: PLR0913 - one fetch, every fact about it
        self, call: Call, bound: Bound, reason: Reason, forward: Forward, *, shadow: bool = False,
        rescue: Rescue | None = None,
    ) -> Served:  # fmt: skip
        """The backend's answer, kept if it proves complete. `shadow`: a stored answer could have been served; `rescue`
        gives what to serve in place of a status that says the backend failed, if there is anything."""
        asked_at, began = self._clock.now(), self._clock.monotonic()
        ask = bound.ask
        account = self._ledger.open(bound.prefix)
        reply, asked_usage = await self._sender.send(bound)
        call.stages.lap("upstream")
        self._authority.heard(ask.credential, reply.status, proves=True)
        if rescue is not None and reply.status in FAILED and (served := await _in_place_of(reply, rescue)) is not None:
            return served
        account.heard(reply)
        streamed = policy.form_of(reply.fields) is Form.EVENTS
        passage = Passage(call.fields, reply.fields, unpack=streamed and asked_usage)
        sieve = usage.Filter() if streamed and asked_usage else None
        recording = self._keeper.recording(bound, reply.status, reply.fields)
        fetch = _Fetch(bound, reply, account, recording, passage, sieve, asked_at, began)
        source = Source.SHADOW if shadow else Source.MISS
        outcome = Outcome(source, recording.trouble or reason, forward)
        if not streamed:
            return await self._whole_or_live(call, fetch, outcome)
        outcome.stored = recording.trouble is None
        outcome.entry_id = key.entry_id(ask.key) if outcome.stored else None
        return await self._serve(
            call, ask.endpoint, outcome, reply, passage, self._live(fetch, []), sieved=sieve is not None
        )

    async def _whole_or_live(self, call: Call, fetch: _Fetch, outcome: Outcome) -> Served:
        """An answer that is no stream: whole if it comes at once, so that its head tells what became of it."""
        held: list[bytes] = []
        try:
            if await self._gather(fetch, held):
                refused = await self._keep(fetch)
                outcome.reason = refused or outcome.reason
                outcome.stored = refused is None
                outcome.entry_id = key.entry_id(fetch.bound.ask.key) if refused is None else None
                body = fetch.passage.carry(b"".join(held))
                fetch.reply.close()
                return await self._serve(call, fetch.bound.ask.endpoint, outcome, fetch.reply, fetch.passage, body)
        except UpstreamCut as error:
            self._gone(fetch, Reason.INCOMPLETE)
            raise UpstreamUnreachable("The backend broke off its answer.") from error
        except BaseException:
            self._gone(fetch, Reason.CLIENT_GONE)
            raise
        return await self._serve(
            call, fetch.bound.ask.endpoint, outcome, fetch.reply, fetch.passage, self._live(fetch, held)
        )

    async def _gather(self, fetch: _Fetch, held: list[bytes]) -> bool:
        """Read into `held` until the body has ended (true), or is too slow or too long to be held."""
        size = 0
        until = None
        while size < HOLD_BYTES:
            data = await fetch.reply.read()
            if not data:
                return True
            fetch.feed(data)
            held.append(data)
            size += len(data)
            if fetch.reply.ended:
                return True
            until = until or self._clock.monotonic() + HOLD_SECONDS
            if not await fetch.reply.settle(max(0.0, until - self._clock.monotonic())):
                return False
        return False

    async def _live(self, fetch: _Fetch, held: list[bytes]) -> AsyncGenerator[bytes, None]:
        """The body as it comes, recorded beside. Kept before its last piece leaves, so that a repeat finds it."""
        reply, recording, sieve = fetch.reply, fetch.recording, fetch.sieve
        concluded = False
        reason = Reason.CLIENT_GONE
        try:
            yield b""
            for data in held:
                yield fetch.passage.carry(data)
            while data := await reply.read():
                fetch.feed(data)
                if reply.ended or (recording.ended and await reply.settle(TERMINAL_SECONDS) and reply.ended):
                    await self._keep(fetch)
                    concluded = True
                out = fetch.passage.carry(data)
                yield out if sieve is None else sieve.feed(out)
            if not concluded:
                await self._keep(fetch)
                concluded = True
            if sieve is not None:
                yield sieve.rest
        except (UpstreamCut, UpstreamTimeout):
            reason = Reason.INCOMPLETE
            if sieve is not None:
                yield sieve.rest
            raise
        finally:
            if concluded:
                reply.close()
            elif not (reason is Reason.CLIENT_GONE and recording.ended and self._fill.offer(self._finish_late(fetch))):
                self._gone(fetch, reason)

    async def _finish_late(self, fetch: _Fetch) -> None:
        """The caller left at the terminal event: see the body's own end, keep, and free the connection."""
        try:
            async with asyncio.timeout(LATE_SECONDS):
                while data := await fetch.reply.read():
                    fetch.feed(data)
            await self._keep(fetch)
            fetch.reply.close()
        except (UpstreamCut, UpstreamTimeout, TimeoutError):
            self._gone(fetch, Reason.INCOMPLETE)
        except BaseException:
            self._gone(fetch, Reason.CLIENT_GONE)
            raise

    def _gone(self, fetch: _Fetch, reason: Reason) -> None:
        fetch.recording.give_up(reason)
        fetch.account.close(whole=False)
        self._journal.count("not_kept", (fetch.recording.trouble or reason).word)
        fetch.reply.close()

    async def _keep(self, fetch: _Fetch) -> Reason | None:
        """The body has ended: keep the answer if it is proven complete; else why not."""
        fetch.account.close(whole=True)
        source = keeper.Source(fetch.reply.fields, fetch.asked_at, self._clock.monotonic() - fetch.began)
        return await self._keeper.keep(fetch.bound, fetch.recording, source)

    async def _serve(  # noqa: PLR0913 - one head, every fact about it
        self, call: Call, endpoint: Endpoint | None, outcome: Outcome, reply: Reply, passage: Passage,
        body: bytes | AsyncGenerator[bytes, None], *, sieved: bool = False,
    ) -> Served:  # fmt: skip
        lines = self._voice.relayed(call.stages, outcome, endpoint, passage.fields)
        length = None if sieved else passage.length
        if isinstance(body, bytes):
            length = length if call.method == "HEAD" else len(body)
        else:
            await anext(body)  # started: from here on its `finally` runs, whatever becomes of the caller
        return Served(reply.status, reply.phrase, lines, body, length, dated=passage.dated, interim=reply.interim)


async def _in_place_of(reply: Reply, rescue: Rescue) -> Served | None:
    """What `rescue` gives; then, or if it fails, `reply` is let go."""
    try:
        served = await rescue()
    except BaseException:
        reply.close()
        raise
    if served is not None:
        reply.close()
    return served


async def _pass_on(reply: Reply, passage: Passage, account: Account) -> AsyncGenerator[bytes, None]:
    try:
        yield b""
        while data := await reply.read():
            account.feed(data)
            if reply.ended:
                account.close(whole=True)
            yield passage.carry(data)
        account.close(whole=True)
    finally:
        account.close(whole=False)
        reply.close()
