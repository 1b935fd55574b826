r"""One request's way, top to bottom.

refuse? -> parse, bind -> may look? -> store -> granted? -> HIT
                                 \-> backend -> recorded while it passes -> proven complete? -> kept
                                       \-> failed, and a stale answer may be used -> STALE
"""

import random
from dataclasses import dataclass, replace

from cacheproxy.core import freshness, policy, resumption
from cacheproxy.core.controls import BadControl, Controls
from cacheproxy.core.freshness import Allowance, Freshness
from cacheproxy.core.model import Endpoint, Entry
from cacheproxy.core.outcome import Forward, Reason
from cacheproxy.core.resumption import Wish
from cacheproxy.core.rules import Mode
from cacheproxy.core.urgency import LEAST
from cacheproxy.engine.authority import Authority, Grant
from cacheproxy.engine.batch import Batch
from cacheproxy.engine.binder import Binder, wishes_of
from cacheproxy.engine.bound import Bound, Head, Outgoing, Unbound
from cacheproxy.engine.call import Call
from cacheproxy.engine.delivery import Want
from cacheproxy.engine.evidence import Candidate
from cacheproxy.engine.exchange import Exchange
from cacheproxy.engine.heartbeat import alive
from cacheproxy.engine.look import Look, Looks
from cacheproxy.engine.refresh import Refresher
from cacheproxy.engine.sampler import Sampler
from cacheproxy.engine.semantic import Heard, Semantic, candidate_of
from cacheproxy.engine.served import Served
from cacheproxy.engine.serving import Serving
from cacheproxy.engine.shelf import Shelf
from cacheproxy.engine.twins import Twins
from cacheproxy.engine.variants import Variants
from cacheproxy.errors import (
    CacheMiss,
    InvalidHeader,
    RateLimited,
    Refused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from cacheproxy.ports import Clock

_MAY_BE_LIKE = frozenset({Reason.ABSENT, Reason.EXPIRED, Reason.USAGE_MISSING, Reason.ONE_FORM})
"""Why the exact layer did not answer, where an answer to a like question may."""
_ALONE = frozenset({Reason.SHADOW, Reason.UNPROVEN_CREDENTIAL})
"""Why a request is answered with an answer of its own."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """What the configuration says about answers past their lifetime, and shortly before its end.

    `refresh`: the last share of a lifetime in which a use may have the answer fetched anew; 0 for never;
    `shed_threshold`: the similarity that does for batch work in place of a refusal, None for none.
    """

    allowance: Allowance
    refresh: float
    shed_threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Streaming:
    """What the configuration says about streams. `heartbeat`: seconds between signs of life, 0 for none."""

    ids: bool = False
    heartbeat: float = 0.0


class Pipeline:
    """Answers requests: from the store where that is right, else from the backend."""

    def __init__(  # noqa: PLR0913 - the parts of the house, by name
        self, *, binder: Binder, shelf: Shelf, authority: Authority, exchange: Exchange, refresher: Refresher,
        serving: Serving, semantic: Semantic | None, twins: Twins | None, sampler: Sampler | None,
        batch: Batch, variants: Variants, clock: Clock, lasting: Lasting, streaming: Streaming,
    ) -> None:  # fmt: skip
        self._binder = binder
        self._shelf = shelf
        self._looks = Looks(shelf, authority, clock, lasting.allowance)
        self._exchange = exchange
        self._refresher = refresher
        self._serving = serving
        self._semantic = semantic
        self._twins = twins
        self._sampler = sampler
        self._batch = batch
        self._variants = variants
        self._clock = clock
        self._lasting = lasting
        self._streaming = streaming

    async def answer(self, call: Call) -> Served:
        """The answer to `call`. Raises `AnswerError`; the caller of this must close what it gets."""
        epoch, arrived = self._shelf.epoch, self._clock.monotonic()
        credential = self._binder.credential(call.fields)
        endpoint = policy.endpoint_of(call.method, call.target)
        body = await call.pieces() if endpoint is None or endpoint is Endpoint.MODELS else None
        if endpoint is None or body is not None:
            outgoing = Outgoing(body, (), body) if isinstance(body, bytes) else body
            head = self._binder.ranked(Head(call.method, call.target, call.fields, credential))
            return await self._exchange.relay(call, head, outgoing, None, Reason.UNCACHEABLE_PATH)
        wishes = wishes_of(call.fields, None)
        refusal = policy.may_look_head(call.fields, wishes, off=self._binder.off)
        if refusal is not None:
            head = Head(call.method, call.target, call.fields, credential, epoch, arrived)
            return await self._pass(call, endpoint, head, wishes, refusal)
        raw = b"" if endpoint is Endpoint.MODELS else await call.whole()
        call.stages.skip()
        head = Head(call.method, call.target, call.fields, credential, epoch, arrived)
        bound = self._binder.bind(head, endpoint, raw, parsed=lambda: call.stages.lap("parse"))
        call.stages.lap("normalise")
        if isinstance(bound, Unbound):
            _refuse_if_only_cached(bound.controls)
            head = replace(head, priority=bound.priority, limits=bound.limits)
            return await self._exchange.relay(call, head, bound.outgoing, endpoint, bound.reason, bound.prefix)
        if len(bound.items) > 1:
            return await self._batch.answer(call, bound)
        if bound.variants > 1:
            bound = await self._in_turn(bound)
        if not bound.ask.stream:
            return await self._found_or_fetched(call, bound)
        return await self._streamed(call, replace(bound, wish=self._wish(call)))

    def _wish(self, call: Call) -> Wish:
        """How the stream that `call` asks for is to be given. Raises `InvalidHeader`."""
        wish = resumption.read(call.fields)
        if isinstance(wish, BadControl):
            raise InvalidHeader(f"{wish.name} must be {wish.expected}.", wish.name)
        heartbeat = self._streaming.heartbeat if wish.heartbeat is None else wish.heartbeat
        return replace(wish, ids=wish.ids or self._streaming.ids, heartbeat=heartbeat)

    async def _streamed(self, call: Call, bound: Bound) -> Served:
        """The answer as a stream: the rest of one that was cut off, with signs of life until it begins, or plain."""
        wish = bound.wish
        if wish.identity is not None and await self._shelf.is_current():  # no look has told of removals yet
            if (resumed := await self._exchange.resume(call, bound)) is not None:
                return resumed
        if not wish.heartbeat:
            return await self._found_or_fetched(call, bound)
        found = self._found_or_fetched(call, bound)
        return await alive(found, wish.heartbeat, self._serving.voice.opened, call.stages.place)

    async def _in_turn(self, bound: Bound) -> Bound:
        """`bound` for the answer whose turn it is; of those that are there, if none may be fetched."""
        turn = self._variants.turn(bound.base, bound.variants)
        if bound.controls.only_if_cached:
            for number in range(turn, turn + bound.variants):
                other = bound.in_slot(number % bound.variants)
                if (await self._looks.look(other)).usable:
                    return other
        return bound.in_slot(turn)

    async def _pass(self, call: Call, endpoint: Endpoint, head: Head, wishes: Controls, refusal: Reason) -> Served:
        """A request that its head alone keeps out of the cache: its body is read only if its length is known, and only
        where the backend's own cache gains by it."""
        _refuse_if_only_cached(wishes)
        body = await call.pieces(self._binder.terms.body_bytes if self._binder.reads(endpoint) else 0)
        if not isinstance(body, bytes):
            head = self._binder.ranked(head, wishes)
            return await self._exchange.relay(call, head, body, endpoint, refusal)
        found = self._binder.unread(head, endpoint, body, wishes)
        head = replace(head, priority=found.priority, limits=found.limits)
        return await self._exchange.relay(call, head, found.outgoing, endpoint, refusal, found.prefix)

    async def _found_or_fetched(self, call: Call, bound: Bound) -> Served:
        look = await self._looks.look(bound)
        call.stages.lap("exact")
        reason = look.reason
        if look.usable and look.entry is not None:
            grant = await self._looks.admit(call, bound, look.entry)
            stands = await self._shelf.holds(look.mark, look.entry)
            if grant is not None and stands and bound.mode is not Mode.SHADOW:
                return await self._hit(call, bound, look.entry, look.state, grant)
            reason = Reason.SHADOW if stands else Reason.PURGED
            reason = reason if grant is not None else Reason.UNPROVEN_CREDENTIAL
        if look.reason in _MAY_BE_LIKE and reason is look.reason and self._semantic is not None:
            heard = await self._heard(call, bound, self._semantic)
            if isinstance(heard, Served):
                return heard
            bound = replace(bound, asked=heard.asked, witness=heard.witness)
            reason = heard.reason if reason is Reason.ABSENT else reason
        _refuse_if_only_cached(bound.controls)
        spare = look.entry
        if spare is None or not freshness.may_rescue(
            spare, bound.controls, self._clock.now(), self._lasting.allowance
        ):  # fmt: skip
            spare = None
        return await self._fetched(call, bound, reason, look, spare)

    async def _heard(self, call: Call, bound: Bound, semantic: Semantic) -> Served | Heard:
        """The answer to a like question, or why there is none."""
        if not semantic.may_look(bound):
            return Heard(Reason.ABSENT)
        heard = await semantic.look(bound, call.stages)
        like = heard.like
        if like is None and self._twins is not None and heard.asked is not None and bound.mode is Mode.ON:
            like = await self._twins.wait(bound, heard.asked)
            call.stages.lap("upstream")
        if like is None:
            return heard
        grant = await self._looks.admit(call, bound, like.entry)
        if grant is None:
            return replace(heard, reason=Reason.UNPROVEN_CREDENTIAL)
        if not await self._shelf.holds(like.mark, like.entry):
            return replace(heard, reason=Reason.PURGED)
        if self._sampler is not None:
            self._sampler.offer(replace(bound, asked=heard.asked), candidate_of(like))
        likeness = (like.similarity, like.threshold)
        return await self._serving.hit(call, bound, like.entry, grant, stale=False, likeness=likeness)

    async def _fetched(self, call: Call, bound: Bound, reason: Reason, look: Look, spare: Entry | None) -> Served:
        """The backend's answer, or the one it is giving to another caller of the same; if the backend fails or has no
        room, the stored one in `spare` (RFC 5861 section 4)."""
        want = await self._want(call, bound, reason, look, spare)
        try:
            return await self._exchange.fetch(call, bound, want)
        except (UpstreamUnreachable, UpstreamTimeout, Refused) as error:
            why = Reason.OVERLOADED if isinstance(error, Refused) else Reason.BACKEND_FAILED
            served = None
            if want.rescue is not None and not isinstance(error, RateLimited):
                served = await want.rescue(why)
            if served is None and why is Reason.OVERLOADED:
                served = await self._roughly(call, bound)
            if served is None:
                raise
            return served

    async def _want(self, call: Call, bound: Bound, reason: Reason, look: Look, spare: Entry | None) -> Want:
        async def rescued(why: Reason) -> Served | None:
            if spare is None or (grant := await self._looks.admit(call, bound, spare)) is None:
                return None
            if not await self._shelf.holds(look.mark, spare):
                return None
            return await self._serving.hit(call, bound, spare, grant, stale=True, reason=why)

        async def found() -> bool:
            return (await self._looks.look(bound)).usable

        async def stored() -> Served | None:
            again = await self._looks.look(bound)
            if not again.usable or again.entry is None:
                return None
            if (grant := await self._looks.admit(call, bound, again.entry)) is None:
                return None
            if not await self._shelf.holds(again.mark, again.entry):
                return None
            return await self._serving.hit(call, bound, again.entry, grant, stale=False, collapsed=True)

        # Who wants a newer answer than the stored one, or has not been accepted by the backend, asks for himself.
        shares = bound.mode is Mode.ON and look.forward is not Forward.REQUEST and reason not in _ALONE
        unknown = await self._shelf.acknowledged_since(look.mark, looked=look.reason is not Reason.STORE_TROUBLE)
        return Want(
            reason, look.forward, shadow=reason is Reason.SHADOW, rescue=rescued, stored=stored if shares else None,
            found=found, since=look.mark.at, unknown=unknown,
        )  # fmt: skip

    async def _roughly(self, call: Call, bound: Bound) -> Served | None:
        """For batch work that is refused: the answer to a question that is less like it, where that is allowed."""
        least = bound.settled.shed_threshold or self._lasting.shed_threshold
        if least is None or bound.priority < LEAST or self._semantic is None or bound.asked is None:
            return None
        heard = await self._heard(call, replace(bound, settled=replace(bound.settled, threshold=least)), self._semantic)
        return heard if isinstance(heard, Served) else None

    async def _hit(self, call: Call, bound: Bound, entry: Entry, state: Freshness, grant: Grant) -> Served:
        renewed = False
        if bound.priority < LEAST and bound.mode is not Mode.READ_ONLY and not bound.controls.only_if_cached:
            draw = 1.0 - random.random()  # noqa: S311 - not a secret
            due = state is Freshness.FRESH and freshness.is_due(entry, self._clock.now(), draw, self._lasting.refresh)
            if due or state is Freshness.REVALIDATE:
                renewed = self._refresher.refresh(bound)
        if self._sampler is not None and not renewed:
            self._sampler.offer(bound, Candidate(entry))
        reason = Reason.REFRESHED if renewed else None
        return await self._serving.hit(call, bound, entry, grant, stale=state is not Freshness.FRESH, reason=reason)


def _refuse_if_only_cached(wishes: Controls) -> None:
    if wishes.only_if_cached:
        raise CacheMiss("No stored answer may be served, and the request says only-if-cached.")
