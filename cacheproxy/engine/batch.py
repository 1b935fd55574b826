"""A batch of inputs answered input by input: what is stored is served, and the backend is asked only for the rest.

Each input is stored as the answer to a request for it alone, so batches of any make-up share what they know. When
nothing of a batch is known, or its parts do not fit together, it goes its way as any other request.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import orjson

from cacheproxy.core import embeddings, freshness
from cacheproxy.core import fields as http_fields
from cacheproxy.core.freshness import Freshness
from cacheproxy.core.model import Answer, Entry
from cacheproxy.core.outcome import Forward, Outcome, Reason, Source
from cacheproxy.core.recording import json_answer
from cacheproxy.core.replay import JSON_TYPE
from cacheproxy.core.rules import Mode
from cacheproxy.engine import keeper
from cacheproxy.engine.aside import aside
from cacheproxy.engine.authority import Authority, accepted_at
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.call import Call
from cacheproxy.engine.delivery import Want
from cacheproxy.engine.exchange import Exchange
from cacheproxy.engine.keeper import Keeper
from cacheproxy.engine.ledger import Account, Ledger
from cacheproxy.engine.rates import Rates
from cacheproxy.engine.sender import Sender
from cacheproxy.engine.served import Served
from cacheproxy.engine.serving import Serving
from cacheproxy.engine.shelf import Mark, Shelf
from cacheproxy.errors import CacheMiss, Trouble, UpstreamCut
from cacheproxy.ports import Clock, Reply

_UNKNOWN = frozenset({Reason.ABSENT, Reason.STORE_TROUBLE})
_SERVED = frozenset({Freshness.FRESH, Freshness.STALE})


class Batch:
    """Answers bound requests of several inputs."""

    def __init__(  # noqa: PLR0913 - the parts of the house, by name
        self, *, shelf: Shelf, authority: Authority, exchange: Exchange, sender: Sender,
        keeper: Keeper, serving: Serving, ledger: Ledger, clock: Clock, rates: Rates | None = None,
    ) -> None:  # fmt: skip
        self._shelf = shelf
        self._authority = authority
        self._exchange = exchange
        self._sender = sender
        self._keeper = keeper
        self._serving = serving
        self._ledger = ledger
        self._rates = rates
        self._clock = clock

    async def answer(self, call: Call, bound: Bound) -> Served:
        """The answer to `call`, which is `bound`. Raises `AnswerError`."""
        mark = self._shelf.mark()
        known, reason = await self._known(bound)
        call.stages.lap("exact")
        if known:
            made_at = max(accepted_at(entry, bound.ask.credential) for entry in known.values())
            grant = await self._authority.admit(bound.ask.credential, call.fields, made_at)
            call.stages.lap("auth")
            if grant is None:
                known, reason = {}, Reason.UNPROVEN_CREDENTIAL
            known = {name: entry for name, entry in known.items() if await self._shelf.holds(mark, entry)}
        missing = [i for i, item in enumerate(bound.items) if item.key not in known]
        if not missing and bound.mode is not Mode.SHADOW:
            entries = [known[item.key] for item in bound.items]
            answer = await _composed(bound, [entry.answer.body for entry in entries])
            if answer is not None and await self._shelf.holds(mark, *entries):
                return await self._serving.composed(call, bound, entries, answer)
            missing = [*range(len(bound.items))]
        if bound.controls.only_if_cached:
            raise CacheMiss("No stored answer may be served, and the request says only-if-cached.")
        if bound.mode is not Mode.SHADOW and 0 < len(missing) < len(bound.items):
            served = await self._completed(call, bound, mark, known, missing)
            if served is not None:
                return served
        shadow = bound.mode is Mode.SHADOW and not missing
        forward = Forward.MISS if reason in _UNKNOWN else Forward.REQUEST
        want = Want(Reason.SHADOW if shadow else reason, forward, shadow=shadow)
        return await self._exchange.fetch(call, bound, want)

    async def _known(self, bound: Bound) -> tuple[dict[bytes, Entry], Reason]:
        """The stored answers that may be served, by key; and why not the others."""
        if bound.mode is Mode.WRITE_ONLY:
            return {}, Reason.WRITE_ONLY
        if bound.controls.no_cache:
            return {}, Reason.NO_CACHE
        keys = list({item.key for item in bound.items})
        found = await asyncio.gather(*map(self._shelf.get, keys))
        now = self._clock.now()
        known = {
            name: entry
            for name, entry in zip(keys, found, strict=True)
            if isinstance(entry, Entry)
            and entry.key == name
            and entry.owner == bound.ask.scope.owner
            and entry.answer.status == 200
            and freshness.judge(entry, bound.controls, now) in _SERVED
        }
        troubled = any(isinstance(entry, Trouble) for entry in found)
        return known, Reason.STORE_TROUBLE if troubled else Reason.ABSENT

    async def _completed(
        self, call: Call, bound: Bound, mark: Mark, known: dict[bytes, Entry], missing: Sequence[int]
    ) -> Served | None:
        """The answer with what was missing fetched; None if that failed in a way that asking for all may not."""
        asked_at, began = self._clock.now(), self._clock.monotonic()
        wanted = list({bound.items[i].key: i for i in reversed(missing)}.values())[::-1]
        body = embeddings.ask_for(bound.outgoing.plain, [item.item for item in bound.items], wanted)
        part = replace(
            bound,
            ask=replace(bound.ask, choices=len(wanted)),
            outgoing=bound.outgoing.altered(body),
            items=tuple(bound.items[i] for i in wanted),
        )
        standing = part.standing()
        account = self._ledger.open(None, standing)
        reply, _ = await self._sender.send(part, standing)
        account.heard(reply)
        call.stages.lap("upstream")
        self._authority.heard(bound.ask.credential, reply.status, proves=True)
        if reply.status != 200:
            outcome = Outcome(Source.MISS, Reason.STATUS, Forward.PARTIAL)
            return await self._exchange.hand_on(call, bound.ask.endpoint, reply, outcome, standing=standing)
        singles = await self._singles(part, reply, account)
        if isinstance(singles, Reason):
            return None
        bodies = {name: entry.answer.body for name, entry in known.items()}
        bodies.update({item.key: single for item, single in zip(part.items, singles, strict=True)})
        whole = await _composed(bound, [bodies[item.key] for item in bound.items])
        if whole is None:
            return None
        source = keeper.Source(reply.fields, asked_at, self._clock.monotonic() - began)
        refused = await self._keeper.keep_items(part, singles, source)
        if not await self._shelf.holds(mark, *known.values()):
            return None
        outcome = Outcome(Source.MISS, refused or Reason.PARTLY_STORED, Forward.PARTIAL, stored=refused is None)
        spared = [known[item.key] for item in bound.items if item.key in known]  # as often as each is given
        served = await self._serving.partly(call, bound, spared, whole, outcome)
        told = () if self._rates is None else self._rates.fields(standing)
        return replace(served, lines=served.lines + http_fields.render(told)) if told else served

    async def _singles(self, part: Bound, reply: Reply, account: Account) -> list[bytes] | Reason:
        """The answers to the inputs of `part`, one by one, from the whole of the backend's reply."""
        recording = self._keeper.recording(part, reply.status, reply.fields, anyway=True)
        try:
            while recording.trouble is None and (data := await reply.read()):
                account.feed(data)
                recording.feed(data)
            answer = recording.conclude()
        except UpstreamCut:
            return Reason.INCOMPLETE
        finally:
            recording.give_up(Reason.CLIENT_GONE)
            account.close(whole=False)
            reply.close()
        if isinstance(answer, Reason):
            return answer
        weights = [item.weight for item in part.items]
        return await aside(len(answer.body), lambda: embeddings.split(answer.body, weights))


async def _composed(bound: Bound, bodies: list[bytes]) -> Answer | None:
    """One answer from those to the single inputs, in the order asked."""

    def compose() -> Answer | None:
        body = embeddings.compose(bodies)
        return None if body is None else json_answer(bound.ask.endpoint, JSON_TYPE, body, orjson.loads(body))

    return await aside(sum(map(len, bodies)), compose)
