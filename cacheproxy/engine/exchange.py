"""The way to the backend and back: relayed as it is, or recorded while it passes and kept once proven complete.

Under cancellation: once a head has been answered, the body generator is the only holder of the backend's reply and
closes it in its ``finally``; it is started before it is handed out, since one that never started would not run it.
An answer that is over for its reader but whose framing is not yet read (a client that leaves at ``[DONE]``) is
finished in the background, for a short time.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, replace

from cachetools import LRUCache

from cacheproxy.core import coding, freshness, key, policy, usage
from cacheproxy.core import fields as http_fields
from cacheproxy.core.controls import Controls
from cacheproxy.core.model import Ask, Endpoint, Entry, Form
from cacheproxy.core.outcome import Forward, Outcome, Reason, Source
from cacheproxy.core.replay import EVENTS_TYPE, JSON_TYPE
from cacheproxy.engine.authority import Authority
from cacheproxy.engine.call import Call
from cacheproxy.engine.fill import Fill
from cacheproxy.engine.passage import Passage, forwarded, stated_length
from cacheproxy.engine.record import Budget, Recording
from cacheproxy.engine.served import Served, Voice
from cacheproxy.errors import UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from cacheproxy.ports import Backend, Clock, Journal, Outbound, Reply, Store

HOLD_BYTES = 2**20
HOLD_SECONDS = 0.05
"""A JSON answer is held until it is whole, so that its head can say whether it is kept; at most so long."""
TERMINAL_SECONDS = 0.004
"""How long a stream's terminal event waits for the body's end, so that an immediate repeat finds the answer."""
MODELS = 1024
LATE_SECONDS = 2.0
"""How long the end of a body is waited for after the caller left at the terminal event."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """What the configuration says about keeping answers. Seconds and bytes."""

    ttl: float
    max_ttl: float
    keep_stale: float
    answer_bytes: int
    ask_usage: bool


@dataclass(frozen=True, slots=True)
class Bound:
    """A request that may be looked up. `forward`: the body for the backend; `options`: its ``stream_options``."""

    ask: Ask
    controls: Controls
    forward: bytes
    options: object


@dataclass(frozen=True, slots=True)
class _Fetch:
    """A fetch under way. `began` is of the monotonic clock."""

    bound: Bound
    reply: Reply
    recording: Recording
    passage: Passage
    sieve: usage.Filter | None
    began: float


class Exchange:
    """Sends requests to the backend and hands its answers on."""

    def __init__(  # noqa: PLR0913 - the parts of the house, by name
        self, *, backend: Backend, store: Store, authority: Authority, fill: Fill, voice: Voice, journal: Journal,
        clock: Clock, keeping: Keeping, budget: Budget,
    ) -> None:  # fmt: skip
        self._backend = backend
        self._store = store
        self._authority = authority
        self._fill = fill
        self._voice = voice
        self._journal = journal
        self._clock = clock
        self._keeping = keeping
        self._budget = budget
        self._usage_taken: LRUCache[str, bool] = LRUCache(MODELS)
        """Models for which the backend is known to take, or to refuse, being asked for a stream's usage."""

    async def relay(
        self, call: Call, body: bytes | AsyncIterator[bytes] | None, credential: bytes, endpoint: Endpoint | None,
        reason: Reason,
    ) -> Served:  # fmt: skip
        """The backend's answer, neither looked up nor kept."""
        reply = await self._backend.send(Outbound(call.method, call.target, forwarded(call.fields), body))
        call.stages.lap("upstream")
        self._authority.heard(credential, reply.status, proves=endpoint is not None)
        outcome = Outcome(Source.BYPASS, reason, Forward.BYPASS)
        passage = Passage(call.fields, reply.fields, transparent=endpoint is None)
        return await self._serve(call, endpoint, outcome, reply, passage, _pass_on(reply, passage))

    async def fetch(self, call: Call, bound: Bound, reason: Reason, forward: Forward) -> Served:
        """The backend's answer, kept if it proves complete."""
        began = self._clock.monotonic()
        ask = bound.ask
        reply, asked_usage = await self._send(call, bound)
        call.stages.lap("upstream")
        self._authority.heard(ask.scope.credential, reply.status, proves=True)
        streamed = policy.form_of(reply.fields) is Form.EVENTS
        passage = Passage(call.fields, reply.fields, unpack=streamed and asked_usage)
        sieve = usage.Filter() if streamed and asked_usage else None
        fetch = _Fetch(bound, reply, self._recording(bound, reply), passage, sieve, began)
        outcome = Outcome(Source.MISS, fetch.recording.trouble or reason, forward)
        if not streamed:
            return await self._whole_or_live(call, fetch, outcome)
        outcome.stored = fetch.recording.trouble is None
        outcome.entry_id = key.entry_id(ask.key) if outcome.stored else None
        return await self._serve(
            call, ask.endpoint, outcome, reply, passage, self._live(fetch, []), sieved=sieve is not None
        )

    async def _send(self, call: Call, bound: Bound) -> tuple[Reply, bool]:
        """Send, asking for the usage of a stream that does not; back out once if the backend refuses that."""
        request = Outbound(call.method, call.target, forwarded(call.fields), bound.forward)
        may_ask = bound.ask.stream and not bound.ask.wants_usage and isinstance(bound.options, dict | None)
        model = bound.ask.model
        taken = self._usage_taken.get(model)
        if not (may_ask and self._keeping.ask_usage and taken is not False):
            return await self._backend.send(request), False
        body = usage.ask(bound.forward, bound.options)
        reply = await self._backend.send(Outbound(call.method, call.target, request.fields, body))
        if reply.status == 200:
            self._usage_taken[model] = True
        elif reply.status in (400, 422) and taken is None:
            # Nothing was generated. Only if the very same request passes without the field was the field at fault.
            reply.close()
            reply = await self._backend.send(request)
            if reply.status == 200:
                self._usage_taken[model] = False
            return reply, False
        return reply, True

    def _recording(self, bound: Bound, reply: Reply) -> Recording:
        codings = [c for c in http_fields.tokens(reply.fields, b"content-encoding") if c != b"identity"]
        plain = coding.plain_after(codings)
        decoder = coding.Decoder(codings, self._keeping.answer_bytes) if plain is False else None
        media = (http_fields.first(reply.fields, b"content-type") or b"").decode("latin-1")
        if not media.isascii() or not media.isprintable():
            media = EVENTS_TYPE if bound.ask.stream else JSON_TYPE
        recording = Recording(bound.ask, media, decoder, self._keeping.answer_bytes, self._budget)
        reason = policy.may_keep_head(bound.ask, reply.status, reply.fields)
        if reason is None and plain is None:
            reason = Reason.CONTENT_ENCODING
        if reason is None and self._ttl(bound.controls) <= 0:
            reason = Reason.ZERO_TTL
        if reason is None and (stated_length(reply.fields) or 0) > self._keeping.answer_bytes:
            reason = Reason.TOO_LARGE
        if reason is not None:
            recording.give_up(reason)
        return recording

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
            fetch.recording.feed(data)
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
                recording.feed(data)
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
                    fetch.recording.feed(data)
            await self._keep(fetch)
            fetch.reply.close()
        except (UpstreamCut, UpstreamTimeout, TimeoutError):
            self._gone(fetch, Reason.INCOMPLETE)
        except BaseException:
            self._gone(fetch, Reason.CLIENT_GONE)
            raise

    def _gone(self, fetch: _Fetch, reason: Reason) -> None:
        fetch.recording.give_up(reason)
        self._journal.count("not_kept", (fetch.recording.trouble or reason).word)
        fetch.reply.close()

    def _ttl(self, wishes: Controls) -> float:
        return min(self._keeping.ttl if wishes.ttl is None else wishes.ttl, self._keeping.max_ttl)

    async def _keep(self, fetch: _Fetch) -> Reason | None:
        """Keep the answer if it is proven complete; else why not."""
        answer = fetch.recording.conclude()
        if isinstance(answer, Reason):
            self._journal.count("not_kept", answer.word)
            return answer
        if http_fields.first(fetch.reply.fields, b"x-request-id") is not None:
            answer = replace(answer, request_id=True)
        ask, wishes = fetch.bound.ask, fetch.bound.controls
        # A lifetime that was asked for is kept to the letter; the usual one is spread.
        spread = random.uniform(-1.0, 1.0) if wishes.ttl is None else 0.0  # noqa: S311 - not a secret
        now = self._clock.now()
        fresh_until = now + min(freshness.lifetime(self._ttl(wishes), spread), self._keeping.max_ttl)
        await self._store.put(
            Entry(
                key=ask.key,
                credential=ask.scope.credential,
                namespace=ask.scope.namespace,
                endpoint=ask.endpoint,
                model=ask.model,
                answer=answer,
                stored_at=now,
                fresh_until=fresh_until,
                expires_at=fresh_until + self._keeping.keep_stale,
                took=self._clock.monotonic() - fetch.began,
            )
        )
        self._journal.count("kept")
        return None

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


async def _pass_on(reply: Reply, passage: Passage) -> AsyncGenerator[bytes, None]:
    try:
        yield b""
        while data := await reply.read():
            yield passage.carry(data)
    finally:
        reply.close()
