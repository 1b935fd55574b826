"""A request bound to its key, its scope and the terms that hold for it; or the reason why it must not be looked up.

Calls nobody and waits for nothing: the same request always gets the same answer here, so that what is served can be
explained without serving it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cacheproxy.core import canonical, coding, controls, embeddings, fields, key, policy, rules, splice
from cacheproxy.core.canonical import Ignored
from cacheproxy.core.controls import Controls
from cacheproxy.core.embeddings import Item
from cacheproxy.core.model import STREAMED, Ask, Endpoint, Fields, Scope
from cacheproxy.core.outcome import Reason
from cacheproxy.core.rules import Facts, Mode, Rule, Settled, Share
from cacheproxy.errors import InvalidHeader, InvalidJson, RequestTooLarge, UnsupportedEncoding


@dataclass(frozen=True, slots=True)
class Terms:
    """What the configuration says about binding. `key_groups`: names by the SHA-256 digest of a key."""

    realm: bytes = b""
    mode: Mode = Mode.ON
    share: Share = Share.CREDENTIAL
    litellm_body: bool = True
    ignored: Ignored = canonical.USUAL
    volatile_headers: frozenset[bytes] = frozenset()
    rules: tuple[Rule, ...] = ()
    key_groups: Mapping[bytes, str] = field(default_factory=dict)
    variants: int = 1
    body_bytes: int = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Head:
    """A request's head, as far as binding needs it. `credential`: its fingerprint; `epoch`: how many removals there had
    been when it came."""

    method: str
    target: bytes
    fields: Fields
    credential: bytes
    epoch: int = 0


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

    `body`: its parsed fields; `form`: their canonical bytes; `settled`: what the rules say, `rows` which ones matched;
    `variants`: how many different answers are kept for it, `slot` which of them this is the request for, `base` the
    key of the first; `items`: the inputs of a request that can be answered input by input.
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
        return tuple(sorted({*self.controls.tags, *self.settled.tags}))

    @property
    def priority(self) -> int:
        """0 is the most urgent; a rule can only lower it."""
        return max(self.controls.priority, self.settled.priority or 0)


@dataclass(frozen=True, slots=True)
class Unbound:
    """A request that must not be looked up."""

    reason: Reason
    outgoing: Outgoing
    controls: Controls
    rows: tuple[int, ...] = ()


class Binder:
    """Binds requests under fixed `terms`; `secret` keys every hash."""

    def __init__(self, secret: bytes, terms: Terms) -> None:
        self._secret = secret
        self.terms = terms

    def credential(self, call_fields: Fields) -> bytes:
        """The fingerprint of who asks."""
        return key.fingerprint(self._secret, fields.credential(call_fields))

    @property
    def off(self) -> bool:
        """Nothing in any request could switch the exact layer on."""
        return self.terms.mode is Mode.OFF and not self.terms.rules

    def unread(self, body: bytes) -> bytes:
        """A body that passes without being looked up, without LiteLLM's field if it has it."""
        if not self.terms.litellm_body or b"cache" not in body:
            return body
        parsed = canonical.read(body)
        return splice.remove(body, b"cache") if parsed and controls.understands(parsed.fields.get("cache")) else body

    def bind(self, head: Head, endpoint: Endpoint, raw: bytes) -> Bound | Unbound:
        """The request bound to its key, or why it must not be looked up. Raises `AnswerError`."""
        outgoing = self._unpacked(head.fields, raw)
        body = canonical.read(outgoing.plain) if endpoint is not Endpoint.MODELS else canonical.Body({})
        if body is None:
            raise InvalidJson("The request body is not valid JSON.")
        litellm = body.fields.get("cache") if self.terms.litellm_body else None
        if not controls.understands(litellm):
            litellm = None
        wishes = wishes_of(head.fields, litellm)
        if litellm is not None:
            outgoing = outgoing.altered(splice.remove(outgoing.plain, b"cache"))
            body.fields.pop("cache")
        settled, rows = self._settled(head, body.fields, wishes)
        mode = settled.exact or self.terms.mode
        refusal = policy.may_look(endpoint, body.fields, wishes, mode) or body.trouble
        items = embeddings.items(outgoing.plain, body.fields) if endpoint is Endpoint.EMBEDDINGS else None
        form = self._form(endpoint, outgoing.plain, body.fields, items) if refusal is None else None
        if refusal is not None or form is None or (items is None and endpoint is Endpoint.EMBEDDINGS):
            return Unbound(refusal or Reason.UNKEYABLE, outgoing, wishes, rows)
        wishes = replace(wishes, knowledge=controls.joined(wishes.knowledge, settled.kb)) if settled.kb else wishes
        personal = policy.is_personal(endpoint, body.fields)
        scope = Scope(head.credential if personal else self._owner(head, settled), wishes.namespace)
        ask = self._ask(head, endpoint, scope, wishes, body.fields, form)
        variants = self._variants(endpoint, body.fields, settled)
        bound = Bound(head, ask, wishes, outgoing, body.fields, form, mode, settled, rows, variants, base=ask.key)
        return self._itemised(bound, items) if items else bound

    def _form(self, endpoint: Endpoint, plain: bytes, body: dict[str, Any], items: list[Item] | None) -> bytes | None:
        if endpoint is Endpoint.MODELS:
            return b""
        form = canonical.form(endpoint, plain, body, self.terms.ignored)
        if form is not None and items is not None and len(items) == 1:
            return canonical.reduced(endpoint, embeddings.alone(body, items[0]), self.terms.ignored)
        return form

    def _itemised(self, bound: Bound, items: list[Item]) -> Bound:
        """With each input bound to the key that it has alone."""
        bound = replace(bound, ask=replace(bound.ask, choices=len(items)))
        if len(items) == 1:
            return replace(bound, items=(BoundItem(items[0], bound.ask.key),))
        found = []
        for item in items:
            form = canonical.reduced(bound.ask.endpoint, embeddings.alone(bound.body, item), self.terms.ignored)
            found.append(BoundItem(item, self.key_of(bound.head, bound.ask.scope, bound.controls.knowledge, form)))
        return replace(bound, items=tuple(found))

    def _unpacked(self, call_fields: Fields, raw: bytes) -> Outgoing:
        codings = tuple(c for c in fields.tokens(call_fields, b"content-encoding") if c != b"identity")
        if not codings:
            return Outgoing(raw, (), raw)
        try:
            plain = coding.unpack(raw, codings, self.terms.body_bytes)
        except coding.TooLarge:
            raise RequestTooLarge(f"The request body unpacks to more than {self.terms.body_bytes} bytes.") from None
        except coding.BadCoding:
            raise UnsupportedEncoding("The request body is not of its Content-Encoding.") from None
        return Outgoing(plain, codings, raw)

    def _settled(self, head: Head, body: dict[str, Any], wishes: Controls) -> tuple[Settled, tuple[int, ...]]:
        if not self.terms.rules:
            return rules.NOTHING, ()
        path = head.target.partition(b"?")[0].decode("latin-1")
        group = self._key_group(head.fields)
        return rules.settle(
            self.terms.rules, Facts(path, canonical.model_of(body), head.fields, wishes.tags, group or "")
        )

    def _key_group(self, call_fields: Fields) -> str | None:
        token = fields.token(call_fields)
        if not self.terms.key_groups or token is None:
            return None
        return self.terms.key_groups.get(hashlib.sha256(token).digest())

    def _owner(self, head: Head, settled: Settled) -> bytes:
        """Whose answers these are: derived here from the credential and the configuration, never from what a
        caller spells."""
        share = settled.scope or self.terms.share
        if share is Share.SHARED:
            return key.group_owner(self._secret, share, "")
        group = self._key_group(head.fields) if share is Share.TENANT else None
        if group is None:
            return head.credential
        account = b"\0".join(b"%b:%b" % line for line in fields.account(head.fields))
        return key.group_owner(self._secret, share, f"{group}\0{account.decode('latin-1')}")

    def key_of(self, head: Head, scope: Scope, knowledge: str, form: bytes) -> bytes:
        """The exact key of a body in canonical form."""
        return key.exact(
            self._secret,
            realm=self.terms.realm,
            owner=scope.owner,
            namespace=scope.namespace,
            knowledge=knowledge,
            target=head.target,
            fields=fields.keyed(head.fields, self.terms.volatile_headers),
            body=form,
        )

    def _ask(  # noqa: PLR0913 - what a key is made of
        self, head: Head, endpoint: Endpoint, scope: Scope, wishes: Controls, body: dict[str, Any], form: bytes
    ) -> Ask:
        stream = endpoint in STREAMED and body.get("stream") is True
        return Ask(
            endpoint=endpoint,
            key=self.key_of(head, scope, wishes.knowledge, form),
            scope=scope,
            credential=head.credential,
            model=canonical.model_of(body),
            stream=stream,
            wants_usage=stream and canonical.wants_usage(body),
            choices=canonical.choices_of(body, endpoint),
            most_tokens=canonical.most_tokens_of(body, endpoint),
            given=body if endpoint in (Endpoint.RERANK, Endpoint.SCORE) else None,
        )

    def _variants(self, endpoint: Endpoint, body: dict[str, Any], settled: Settled) -> int:
        """How many different answers are kept: one, where the request itself wants the same every time."""
        wanted = settled.variants or self.terms.variants
        steady = body.get("temperature") == 0 or body.get("seed") is not None
        return 1 if steady or endpoint not in STREAMED else wanted


def wishes_of(call_fields: Fields, body_field: object) -> Controls:
    """The controls of a request. Raises `InvalidHeader`."""
    wishes = controls.read(call_fields, body_field)
    if isinstance(wishes, controls.BadControl):
        raise InvalidHeader(f"{wishes.name} must be {wishes.expected}.", wishes.name)
    return wishes
