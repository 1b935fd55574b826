"""Keeps answers that have proven complete: how long, under which key, with which labels. And says why not."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import orjson

from cacheproxy.core import coding, controls, embeddings, freshness, key, policy, replay
from cacheproxy.core import fields as http_fields
from cacheproxy.core.knowledge import stated
from cacheproxy.core.model import Answer, Endpoint, Entry, Fields, Form
from cacheproxy.core.outcome import Reason
from cacheproxy.core.recording import json_answer
from cacheproxy.core.replay import EVENTS_TYPE, JSON_TYPE
from cacheproxy.core.rules import Mode
from cacheproxy.engine.aside import aside
from cacheproxy.engine.bound import Bound, BoundItem
from cacheproxy.engine.knowledge import Knowledge
from cacheproxy.engine.passage import stated_length
from cacheproxy.engine.record import Budget, Recording
from cacheproxy.engine.semantic import Semantic
from cacheproxy.engine.shelf import Shelf
from cacheproxy.engine.variants import Variants
from cacheproxy.ports import Clock, Journal


@dataclass(frozen=True, slots=True)
class Keeping:
    """What the configuration says about keeping answers. Seconds and bytes."""

    ttl: float
    max_ttl: float
    models_ttl: float
    negative_ttl: float
    keep_stale: float
    honour_max_age: bool
    answer_bytes: int


@dataclass(frozen=True, slots=True)
class Source:
    """Where an answer to be kept comes from: the fields of its head, when it was asked for (seconds since the epoch),
    how long the backend took, in seconds, for how many answers, and to which family of prompts it belongs, if any."""

    fields: Fields
    asked_at: float
    took: float
    answers: int = 1
    prefix: str = ""


class Keeper:
    """Makes entries of answers and puts them into the store."""

    def __init__(  # noqa: PLR0913 - the parts of the house, by name
        self, *, shelf: Shelf, journal: Journal, clock: Clock, keeping: Keeping, budget: Budget,
        variants: Variants, semantic: Semantic | None = None, knowledge: Knowledge | None = None,
        draw: Callable[[float, float], float] = random.uniform,
    ) -> None:  # fmt: skip
        self._shelf = shelf
        self._journal = journal
        self._clock = clock
        self._keeping = keeping
        self._budget = budget
        self._variants = variants
        self._semantic = semantic
        self._knowledge = knowledge
        self._draw = draw

    def recording(self, bound: Bound, status: int, fields: Fields, *, anyway: bool = False) -> Recording:
        """A recording for an answer with this head; given up already if it cannot, or is not to, be kept. `anyway`:
        it is needed also where it is not to be kept."""
        codings = [c for c in http_fields.tokens(fields, b"content-encoding") if c != b"identity"]
        plain = coding.plain_after(codings)
        decoder = coding.Decoder(codings, self._keeping.answer_bytes) if plain is False else None
        media = (http_fields.first(fields, b"content-type") or b"").decode("latin-1")
        if not media.isascii() or not media.isprintable():
            media = EVENTS_TYPE if bound.ask.stream else JSON_TYPE
        recording = Recording(bound.ask, media, decoder, self._keeping.answer_bytes, self._budget, status)
        reason = self._unfit(bound, status, fields, plain)
        if reason is None and not anyway:
            reason = self._unwanted(bound, status, fields)
        if reason is not None:
            recording.give_up(reason)
        return recording

    def _unfit(self, bound: Bound, status: int, fields: Fields, plain: bool | None) -> Reason | None:
        reason = policy.may_keep_head(bound.ask, status, fields, negative=self._keeping.negative_ttl > 0)
        if reason is None and plain is None:
            reason = Reason.CONTENT_ENCODING
        if reason is None and (stated_length(fields) or 0) > self._keeping.answer_bytes:
            reason = Reason.TOO_LARGE
        return reason

    def _unwanted(self, bound: Bound, status: int, fields: Fields) -> Reason | None:
        if bound.mode is Mode.READ_ONLY:
            return Reason.READ_ONLY
        if _tags(bound, fields) is None or _knowledge(bound, fields) is None:
            return Reason.UNNAMED_DEPENDENCY
        return Reason.ZERO_TTL if self.lifetime(bound, status, fields) <= 0 else None

    def lifetime(self, bound: Bound, status: int, fields: Fields) -> float:
        """Seconds that an answer with this head is fresh for, before they are spread."""
        return lifetime(self._keeping, bound, status, _max_age(fields))

    async def keep(self, bound: Bound, recording: Recording, source: Source) -> Reason | None:
        """Keep what was recorded if it is proven complete; else why not."""
        answer = recording.conclude()
        if isinstance(answer, Answer):
            refused = await self._keep(bound, answer, source)
        else:
            refused = answer
        if refused is not None:
            self._journal.count("not_kept", refused.word)
        return refused

    async def _keep(self, bound: Bound, answer: Answer, source: Source) -> Reason | None:
        if len(bound.items) > 1 and answer.status == 200:
            weights = [item.weight for item in bound.items]
            singles = await aside(len(answer.body), lambda: embeddings.split(answer.body, weights))
            if isinstance(singles, Reason):
                return singles
            return await self.keep_items(bound, singles, source)
        if bound.mode is Mode.SHADOW:
            await self._compare(bound.ask.key, answer)
        if bound.slot and await self._is_known(bound, answer):
            self._variants.settle(bound.base, bound.slot, self.lifetime(bound, answer.status, source.fields))
            return Reason.SAME_ANSWER
        return await self.put(bound, answer, source)

    async def keep_items(self, bound: Bound, singles: list[bytes], source: Source) -> Reason | None:
        """Keep the answers to the inputs of a batch, each as the answer to a request for it alone; or why not."""
        refused = self._unwanted(bound, 200, source.fields)
        if refused is not None:
            return refused
        endpoint = bound.ask.endpoint
        answers = await aside(
            sum(map(len, singles)),
            lambda: [json_answer(endpoint, JSON_TYPE, body, orjson.loads(body)) for body in singles],
        )

        async def keep(item: BoundItem, answer: Answer) -> Reason | None:
            if bound.mode is Mode.SHADOW:
                await self._compare(item.key, answer)
            alone = replace(bound, ask=replace(bound.ask, key=item.key, choices=1))
            return await self.put(alone, answer, replace(source, answers=len(singles)))

        # All at once: a shared store is far away, and its deadline is that of the whole batch.
        kept = await asyncio.gather(*map(keep, bound.items, answers))
        return next((refused for refused in kept if refused is not None), None)

    async def _is_known(self, bound: Bound, answer: Answer) -> bool:
        """Whether one of the answers kept for the same request says the same."""
        for number in range(bound.slot):
            other = await self._shelf.get(key.variant(bound.base, number))
            if isinstance(other, Entry) and other.owner == bound.ask.scope.owner:
                if replay.same(other.answer, answer, other.endpoint):
                    return True
        return False

    async def _compare(self, name: bytes, answer: Answer) -> None:
        """Count whether the backend's new answer says the same as the stored one, if there is one."""
        found = await self._shelf.get(name)
        if isinstance(found, Entry) and found.answer.status == answer.status == 200:
            same = replay.same(found.answer, answer, found.endpoint)
            self._journal.count("shadow", "same" if same else "different")

    async def _agrees(self, bound: Bound, bases: tuple[str, ...], knowledge: Knowledge) -> bool:
        """Whether the versions that the backend states, beyond what the request declared and is kept under alone, are
        those that were asked for, and current."""
        beyond = [name for name in bases if name not in bound.knowledge and "@" in name]
        theirs, declared = stated(beyond), stated(bound.knowledge)
        if len(theirs) < len(beyond):
            return False  # two versions of one
        if any(declared.get(name, version) != version for name, version in theirs.items()):
            return False
        return await knowledge.agrees(theirs)

    async def put(self, bound: Bound, answer: Answer, source: Source) -> Reason | None:
        """Keep a proven answer as the one to `bound`; or why not."""
        tags, bases = _tags(bound, source.fields), _knowledge(bound, source.fields)
        if tags is None or bases is None:
            return Reason.UNNAMED_DEPENDENCY
        if self._knowledge is not None and not await self._agrees(bound, bases, self._knowledge):
            return Reason.OTHER_VERSION
        if http_fields.first(source.fields, b"x-request-id") is not None:
            answer = replace(answer, request_id=True)
        # A lifetime that was asked for is kept to the letter; the usual one is spread.
        spread = self._draw(-1.0, 1.0) if bound.controls.ttl is None and answer.status == 200 else 0.0
        now = self._clock.now()
        usual = freshness.lifetime(self.lifetime(bound, answer.status, source.fields), spread)
        fresh_until = now + min(usual, self._keeping.max_ttl)
        entry = Entry(
            key=bound.ask.key,
            owner=bound.ask.scope.owner,
            credential=bound.ask.credential,
            namespace=bound.ask.scope.namespace,
            endpoint=bound.ask.endpoint,
            model=bound.ask.model,
            answer=answer,
            stored_at=now,
            fresh_until=fresh_until,
            expires_at=fresh_until + (self._keeping.keep_stale if answer.status == 200 else 0.0),
            took=source.took / source.answers,
            asked_at=source.asked_at,
            prefix=source.prefix,
            tags=tags,
            knowledge=bases,
        )
        refused = await self._shelf.put(entry, bound.head.epoch, bound.head.arrived)
        if refused is None:
            self._journal.count("kept")
            if self._semantic is not None and bound.asked is not None:
                self._semantic.learn(bound.asked, entry, bound.witness)
        return refused

    def stands(self, bound: Bound, fields: Fields | None) -> bool:
        """Whether no removal since the request `bound` came means the answer to it, whose head has these fields; None
        if it has not come, so that what it rests on is not known."""
        entry = None
        tags = None if fields is None else _tags(bound, fields)
        bases = None if fields is None else _knowledge(bound, fields)
        if tags is not None and bases is not None:
            now, ask = self._clock.now(), bound.ask
            nothing = Answer(Form.JSON, JSON_TYPE, b"", has_usage=False)
            entry = Entry(
                ask.key, ask.scope.owner, ask.credential, ask.scope.namespace, ask.endpoint, ask.model, nothing,
                stored_at=now, fresh_until=now, expires_at=now, took=0.0, tags=tags, knowledge=bases,
            )  # fmt: skip
        return self._shelf.stands(entry, bound.head.epoch, bound.head.arrived)


def lifetime(keeping: Keeping, bound: Bound, status: int = 200, stated: float | None = None) -> float:
    """Seconds that an answer to `bound` is fresh for. `stated`: the lifetime that the backend gives it."""
    wished = bound.controls.ttl
    if status != 200:
        return min(keeping.negative_ttl, keeping.max_ttl if wished is None else wished)
    if bound.ask.endpoint is Endpoint.MODELS:
        return min(keeping.models_ttl, keeping.max_ttl if wished is None else wished)
    ttl = wished if wished is not None else bound.settled.ttl if bound.settled.ttl is not None else keeping.ttl
    if keeping.honour_max_age and stated is not None:
        ttl = min(ttl, stated)
    return min(ttl, keeping.max_ttl)


def _max_age(fields: Fields) -> float | None:
    """The lifetime that the backend states (RFC 9111 section 5.2.2), in seconds."""
    told = {}
    for token in http_fields.tokens(fields, b"cache-control"):
        name, equals, value = token.partition(b"=")
        if equals and value.strip(b'" ').isdigit():
            told[name.strip()] = min(float(value.strip(b'" ')), controls.GREATEST)
    return told.get(b"s-maxage", told.get(b"max-age"))


def _tags(bound: Bound, fields: Fields) -> tuple[str, ...] | None:
    """The labels of an answer: the request's, the rules', and those that the backend gave it; None if those cannot all
    be told."""
    given = [
        *http_fields.values(fields, b"cache-tag"),
        *(b",".join(value.split()) for value in http_fields.values(fields, b"surrogate-key")),
    ]
    theirs = controls.labels(b",".join(given))
    return None if theirs is None else tuple(sorted({*bound.tags, *theirs}))


def _knowledge(bound: Bound, fields: Fields) -> tuple[str, ...] | None:
    """The knowledge bases that an answer depends on: the request's, the rules', and those that the backend names; None
    if those cannot all be told."""
    theirs = controls.bases(b",".join(http_fields.values(fields, b"x-cache-kb")))
    return None if theirs is None else tuple(sorted({*bound.knowledge, *theirs}))
