r"""One request's way, top to bottom.

refuse? -> parse, bind -> may look? -> store -> granted? -> HIT
                                 \-> backend -> recorded while it passes -> proven complete? -> kept
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from cacheproxy.core import canonical, controls, fields, freshness, key, policy, replay, splice
from cacheproxy.core.controls import Controls
from cacheproxy.core.freshness import Freshness
from cacheproxy.core.model import Ask, Endpoint, Entry, Fields, Scope
from cacheproxy.core.outcome import Forward, Outcome, Reason, Source
from cacheproxy.engine.authority import Authority, Grant
from cacheproxy.engine.call import Call
from cacheproxy.engine.exchange import Bound, Exchange
from cacheproxy.engine.replays import Replays
from cacheproxy.engine.served import Served, Voice
from cacheproxy.errors import CacheMiss, InvalidHeader, InvalidJson
from cacheproxy.ports import Clock, Store


@dataclass(frozen=True, slots=True)
class Rules:
    """What the configuration says about the exact layer."""

    enabled: bool
    realm: bytes
    litellm_body: bool


@dataclass(frozen=True, slots=True)
class _Unbound:
    """A request that must not be looked up."""

    reason: Reason
    forward: bytes
    controls: Controls


@dataclass(frozen=True, slots=True)
class _Look:
    """What the store had: an entry to serve, or why not."""

    entry: Entry | None
    freshness: Freshness
    reason: Reason
    forward: Forward


class Pipeline:
    """Answers requests: from the store where that is right, else from the backend."""

    def __init__(  # noqa: PLR0913 - the parts of the house, by name
        self, *, store: Store, authority: Authority, exchange: Exchange, voice: Voice, clock: Clock, secret: bytes,
        rules: Rules,
    ) -> None:  # fmt: skip
        self._store = store
        self._authority = authority
        self._exchange = exchange
        self._voice = voice
        self._clock = clock
        self._secret = secret
        self._rules = rules
        self._replays = Replays()

    async def answer(self, call: Call) -> Served:
        """The answer to `call`. Raises `AnswerError`; the caller of this must close what it gets."""
        credential = key.fingerprint(self._secret, fields.credential(call.fields))
        endpoint = policy.endpoint_of(call.method, call.target)
        if endpoint is None:
            return await self._exchange.relay(call, await call.pieces(), credential, None, Reason.UNCACHEABLE_PATH)
        wishes = _wishes(call.fields, None)
        refusal = policy.may_look(call.fields, wishes, enabled=self._rules.enabled)
        if refusal is not None:
            _refuse_if_only_cached(wishes)
            body = self._without_litellm(await call.pieces())
            return await self._exchange.relay(call, body, credential, endpoint, refusal)
        raw = await call.whole()
        call.stages.skip()
        bound = self._bind(call, endpoint, credential, raw)
        if isinstance(bound, _Unbound):
            _refuse_if_only_cached(bound.controls)
            return await self._exchange.relay(call, bound.forward, credential, endpoint, bound.reason)
        call.stages.lap("parse")
        look = await self._look(bound)
        call.stages.lap("exact")
        reason = look.reason
        if look.entry is not None:
            # Accepted when the answer began at the latest: a refusal while it was generated is later than that.
            accepted_at = look.entry.stored_at - look.entry.took
            grant = await self._authority.admit(credential, call.fields, accepted_at)
            call.stages.lap("auth")
            if grant is not None:
                return self._hit(call, bound, look.entry, look.freshness, grant)
            reason = Reason.UNPROVEN_CREDENTIAL
        _refuse_if_only_cached(bound.controls)
        return await self._exchange.fetch(call, bound, reason, look.forward)

    def _without_litellm(self, body: bytes | AsyncIterator[bytes] | None) -> bytes | AsyncIterator[bytes] | None:
        """A body that passes unread, without LiteLLM's field if it is at hand as a whole."""
        if not self._rules.litellm_body or not isinstance(body, bytes) or b"cache" not in body:
            return body
        parsed = canonical.read(body)
        return splice.remove(body, b"cache") if parsed and controls.understands(parsed.fields.get("cache")) else body

    def _bind(self, call: Call, endpoint: Endpoint, credential: bytes, raw: bytes) -> "Bound | _Unbound":
        """The request bound to its key, or why it must not be looked up."""
        body = canonical.read(raw)
        if body is None:
            raise InvalidJson("The request body is not valid JSON.")
        litellm = body.fields.get("cache") if self._rules.litellm_body else None
        if not controls.understands(litellm):
            litellm = None
        wishes = _wishes(call.fields, litellm)
        forward = raw
        if litellm is not None:
            forward = splice.remove(raw, b"cache")
            body.fields.pop("cache")
        if wishes.no_store:
            return _Unbound(Reason.NO_STORE, forward, wishes)
        form = canonical.form(endpoint, forward, body.fields) if body.trouble is None else None
        if form is None:
            return _Unbound(body.trouble or Reason.UNKEYABLE, forward, wishes)
        scope = Scope(credential, wishes.namespace)
        exact = key.exact(
            self._secret,
            realm=self._rules.realm,
            credential=credential,
            namespace=scope.namespace,
            knowledge=wishes.knowledge,
            target=call.target,
            fields=fields.keyed(call.fields),
            body=form,
        )
        stream = body.fields.get("stream") is True
        ask = Ask(
            endpoint,
            exact,
            scope,
            canonical.model_of(body.fields),
            stream,
            stream and canonical.wants_usage(body.fields),
            canonical.choices_of(body.fields, endpoint),
        )
        return Bound(ask, wishes, forward, body.fields.get("stream_options"))

    async def _look(self, bound: Bound) -> _Look:
        if bound.controls.no_cache:
            return _Look(None, Freshness.EXPIRED, Reason.NO_CACHE, Forward.REQUEST)
        entry = await self._store.get(bound.ask.key)
        if entry is None or entry.key != bound.ask.key or entry.credential != bound.ask.scope.credential:
            return _Look(None, Freshness.EXPIRED, Reason.ABSENT, Forward.MISS)
        state = freshness.judge(entry, bound.controls, self._clock.now())
        if state is Freshness.EXPIRED:
            return _Look(None, state, Reason.EXPIRED, Forward.STALE)
        if state is Freshness.TOO_OLD:
            return _Look(None, state, Reason.TOO_OLD, Forward.REQUEST)
        if not replay.can_give(entry.answer, stream=bound.ask.stream, wants_usage=bound.ask.wants_usage):
            return _Look(None, state, Reason.USAGE_MISSING, Forward.MISS)
        return _Look(entry, state, Reason.ABSENT, Forward.MISS)

    def _hit(self, call: Call, bound: Bound, entry: Entry, state: Freshness, grant: Grant) -> Served:
        if grant.credential != entry.credential:
            raise AssertionError("a grant of one credential for an entry of another")
        now = self._clock.now()
        outcome = Outcome(
            Source.HIT if state is Freshness.FRESH else Source.STALE,
            ttl=int(entry.fresh_until - now),
            age=max(0, int(now - entry.stored_at)),
            entry_id=key.entry_id(entry.key),
        )
        answer = self._replays.render(entry, stream=bound.ask.stream, wants_usage=bound.ask.wants_usage)
        return self._voice.hit(call.stages, outcome, answer, entry.endpoint, now)


def _wishes(call_fields: Fields, body_field: object) -> Controls:
    wishes = controls.read(call_fields, body_field)
    if isinstance(wishes, controls.BadControl):
        raise InvalidHeader(f"{wishes.name} must be {wishes.expected}.", wishes.name)
    return wishes


def _refuse_if_only_cached(wishes: Controls) -> None:
    if wishes.only_if_cached:
        raise CacheMiss("No stored answer may be served, and the request says only-if-cached.")
