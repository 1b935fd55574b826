"""A request on its way through the engine: its head, its body for the backend, and what it is bound to. Data."""

from dataclasses import dataclass, replace
from typing import Any

from cacheproxy.core import coding, key, resumption, rules, urgency
from cacheproxy.core.controls import Controls
from cacheproxy.core.embeddings import Item
from cacheproxy.core.extraction import NOTHING, Extracted
from cacheproxy.core.model import Ask, Fields
from cacheproxy.core.outcome import Reason
from cacheproxy.core.rates import NONE, Limits
from cacheproxy.core.resumption import Wish
from cacheproxy.core.rules import Mode, Settled
from cacheproxy.core.standing import Standing
from cacheproxy.core.urgency import LEAST, USUAL
from cacheproxy.engine.asked import Asked
from cacheproxy.engine.evidence import Candidate
from cacheproxy.engine.prefixed import Prefix


@dataclass(frozen=True, slots=True)
class Head:
    """A request's head, as far as binding needs it. `credential`: its fingerprint; `epoch`: how many removals were
    known when it came; `arrived`: when that was, by the monotonic clock; `priority`: 0 is the most urgent;
    `limits`: what its caller may use in a minute."""

    method: str
    target: bytes
    fields: Fields
    credential: bytes
    epoch: int = 0
    arrived: float = 0.0
    priority: int = USUAL
    limits: Limits = NONE

    def standing(self, model: str, size: int) -> Standing:
        """How it waits for a slot. `size`: bytes of its body."""
        return Standing(self.priority, self.credential, model=model, size=size, limits=self.limits)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A body for the backend: `plain` as it is read here, `codings` as the caller applied them, and `untouched` the
    very bytes that came, None once `plain` is no longer what they say."""

    plain: bytes
    codings: tuple[bytes, ...] = ()
    untouched: bytes | None = None

    def altered(self, plain: bytes) -> "Outgoing":
        """The same with another content."""
        return self if plain is self.plain else replace(self, plain=plain, untouched=None)

    @property
    def wire(self) -> bytes:
        """The bytes to send: those that came, if nothing was changed, else packed as they were."""
        if self.untouched is not None:
            return self.untouched
        return coding.pack_all(self.plain, self.codings) if self.codings else self.plain


@dataclass(frozen=True, slots=True)
class BoundItem:
    """One input of a batch, bound to the key that it has alone. `weight`: its share of the usage."""

    item: Item
    key: bytes

    @property
    def weight(self) -> int:
        return self.item.weight


@dataclass(frozen=True, slots=True)
class Bound:
    """A request that may be looked up.

    `body`: its parsed fields, as they are forwarded; `form`: their canonical bytes; `settled`: what the rules say,
    `rows` which ones matched; `variants`: how many different answers are kept for it, `slot` which of them this is the
    request for, `base` the key of the first; `items`: the inputs of a request that can be answered input by input;
    `extracted`: what its body names of what its answer rests on, all of it; `prefix`: what the backend reads first,
    where there is such a thing; `asked`: its question, where an answer to it
    may be found by meaning later; `witness`: a stored answer that gains or loses by what the backend says to it;
    `wish`: how its stream is to be given; `limits`: what its caller may use in a minute.
    """

    head: Head
    ask: Ask
    controls: Controls
    outgoing: Outgoing
    body: dict[str, Any]
    form: bytes
    mode: Mode
    settled: Settled = rules.NOTHING
    rows: tuple[int, ...] = ()
    variants: int = 1
    slot: int = 0
    base: bytes = b""
    items: tuple[BoundItem, ...] = ()
    extracted: Extracted = NOTHING
    prefix: Prefix | None = None
    asked: Asked | None = None
    witness: Candidate | None = None
    wish: Wish = resumption.NONE
    limits: Limits = NONE

    def in_slot(self, number: int) -> "Bound":
        """The same request, for its answer number `number`."""
        ask = replace(self.ask, key=key.variant(self.base, number))
        return replace(self, ask=ask, slot=number)

    @property
    def knowledge(self) -> tuple[str, ...]:
        """The knowledge bases its answer depends on, as in the canonical list."""
        return tuple(self.controls.knowledge.split(",")) if self.controls.knowledge else ()

    @property
    def tags(self) -> tuple[str, ...]:
        """The labels its answer is kept with, so far."""
        return tuple(sorted({*self.controls.tags, *self.settled.tags, *self.extracted.labels}))

    @property
    def basis(self) -> str:
        """What it rests on, as it belongs to its key."""
        return self.extracted.keyed(self.controls.knowledge)

    @property
    def priority(self) -> int:
        """0 is the most urgent."""
        return urgency.priority(self.controls.priority, self.settled.priority, self.body)

    def standing(self, *, background: bool = False) -> Standing:
        """How it waits for a slot. `background`: nobody waits for it, so that it takes one only if it is free."""
        ask, size = self.ask, len(self.outgoing.plain)
        if background:
            return Standing(LEAST, ask.credential, model=ask.model, size=size, patience=0)
        return Standing(
            self.priority, ask.credential, model=ask.model, size=size, name=ask.key, limits=self.limits
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unbound:
    """A request that must not be looked up."""

    reason: Reason
    outgoing: Outgoing
    controls: Controls
    rows: tuple[int, ...] = ()
    prefix: Prefix | None = None
    priority: int = USUAL
    limits: Limits = NONE


@dataclass(frozen=True, slots=True)
class Unlooked:
    """A request whose head alone keeps it from being looked up, as it goes to the backend."""

    outgoing: Outgoing
    priority: int
    limits: Limits
    prefix: Prefix | None = None
