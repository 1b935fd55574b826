"""A request bound to its key, its scope and the terms that hold for it; or the reason why it must not be looked up.

Calls nobody and waits for nothing: the same request always gets the same answer here, so that what is served can be
explained without serving it.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cacheproxy.core import (
    canonical,
    coding,
    controls,
    embeddings,
    extraction,
    fields,
    key,
    policy,
    prefix,
    rules,
    splice,
    urgency,
)
from cacheproxy.core.canonical import Ignored
from cacheproxy.core.controls import Controls
from cacheproxy.core.embeddings import Item
from cacheproxy.core.extraction import Extracted, Place
from cacheproxy.core.model import STREAMED, Ask, Endpoint, Fields, Scope
from cacheproxy.core.outcome import Reason
from cacheproxy.core.question import Question, question
from cacheproxy.core.rates import NONE, Limits
from cacheproxy.core.rules import Facts, Mode, Rule, Settled, Share
from cacheproxy.engine.bound import Bound, BoundItem, Head, Outgoing, Unbound, Unlooked
from cacheproxy.engine.prefixed import Prefix
from cacheproxy.errors import AnswerError, InvalidHeader, InvalidJson, RequestTooLarge, UnsupportedEncoding


@dataclass(frozen=True, slots=True)
class Terms:
    """What the configuration says about binding. `key_groups`: names by the SHA-256 digest of a key; `prefix_rules`:
    rules for what is forwarded, None for none whatever the table of rules says."""

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
    prefix_rules: prefix.Rules | None = prefix.NONE
    limits: Limits = NONE
    extract: tuple[Place, ...] = ()
    extract_bytes: int = 2**20


class Binder:
    """Binds requests under fixed `terms`; `secret` keys every hash."""

    def __init__(self, secret: bytes, terms: Terms) -> None:
        self._secret = secret
        self.terms = terms

    def rekey(self, secret: bytes) -> None:
        """From now on every hash is made with `secret`: what is stored under another will not be found."""
        self._secret = secret

    def credential(self, call_fields: Fields) -> bytes:
        """The fingerprint of who asks."""
        return key.fingerprint(self._secret, fields.credential(call_fields))

    @property
    def off(self) -> bool:
        """Nothing in any request could switch the exact layer on."""
        return self.terms.mode is Mode.OFF and not self.terms.rules

    def reads(self, endpoint: Endpoint) -> bool:
        """Whether bodies to `endpoint` are read even if nothing will be looked up."""
        return endpoint in STREAMED

    def urgency(self, head: Head, wishes: Controls | None = None, body: dict[str, Any] | None = None) -> int:
        """The priority of a request, as far as its head, or its body too, tell."""
        settled, _ = self._settled(head, body or {}, wishes or controls.NONE)
        said = controls.urgency(head.fields) if wishes is None else wishes.priority
        return urgency.priority(None if said == controls.UNKNOWN_URGENCY else said, settled.priority, body)

    def ranked(self, head: Head, wishes: Controls | None = None) -> Head:
        """`head` with how urgent it is and what its caller may use, as far as it tells."""
        settled, _ = self._settled(head, {}, wishes or controls.NONE)
        return replace(head, priority=self.urgency(head, wishes), limits=self._limits(settled))

    def _limits(self, settled: Settled) -> Limits:
        requests, tokens = settled.requests_per_minute, settled.tokens_per_minute
        if requests is None and tokens is None:
            return self.terms.limits
        usual = self.terms.limits
        return Limits(usual.requests if requests is None else requests, usual.tokens if tokens is None else tokens)

    def unread(self, head: Head, endpoint: Endpoint, raw: bytes, wishes: Controls) -> Unlooked:
        """A body that passes without being looked up: without LiteLLM's field if it has it, its prefix made stable.
        What cannot be read passes as it is."""
        head = self.ranked(head, wishes)
        as_it_is = Unlooked(Outgoing(raw, (), raw), head.priority, head.limits)
        if not (self.reads(endpoint) or (self.terms.litellm_body and b"cache" in raw)):
            return as_it_is
        try:
            outgoing = self._unpacked(head.fields, raw)
        except AnswerError:
            return as_it_is
        body = canonical.read(outgoing.plain)
        if body is None:
            return as_it_is
        outgoing, _ = self._own_removed(outgoing, body.fields)
        if not canonical.is_clear(outgoing.plain, body.fields):
            return replace(as_it_is, outgoing=outgoing)
        settled, _ = self._settled(head, body.fields, wishes)
        priority = self.urgency(head, wishes, body.fields)
        outgoing, _, found = self._stabilised(head, endpoint, outgoing, body.fields, settled)
        return Unlooked(outgoing, priority, self._limits(settled), found)

    def bind(
        self, head: Head, endpoint: Endpoint, raw: bytes, *, parsed: Callable[[], None] = lambda: None
    ) -> Bound | Unbound:
        """The request bound to its key, or why it must not be looked up. `parsed` is told when it has been read and not
        yet been brought into its normal form. Raises `AnswerError`."""
        outgoing = self._unpacked(head.fields, raw)
        body = canonical.read(outgoing.plain) if endpoint is not Endpoint.MODELS else canonical.Body({})
        if body is None:
            raise InvalidJson("The request body is not valid JSON.")
        outgoing, litellm = self._own_removed(outgoing, body.fields)
        wishes = wishes_of(head.fields, litellm)
        parsed()
        settled, rows = self._settled(head, body.fields, wishes)
        mode = settled.exact or self.terms.mode
        refusal = policy.may_look(endpoint, body.fields, wishes, mode) or body.trouble
        items = embeddings.items(outgoing.plain, body.fields) if endpoint is Endpoint.EMBEDDINGS else None
        clear = endpoint is Endpoint.MODELS or canonical.is_clear(outgoing.plain, body.fields)
        # Of what the caller says: rules of the prefix layer may move or drop a document's name.
        extracted = self._extracted(body.fields, settled) if refusal is None and clear else extraction.NOTHING
        refusal = refusal or (None if extracted.whole else Reason.UNNAMED_DEPENDENCY)
        found = None
        if clear:
            outgoing, told, found = self._stabilised(head, endpoint, outgoing, body.fields, settled)
            body = body if told is body.fields else replace(body, fields=told)
        if refusal is not None or not clear or (items is None and endpoint is Endpoint.EMBEDDINGS):
            priority = urgency.priority(wishes.priority, settled.priority, body.fields)
            limits = self._limits(settled)
            return Unbound(refusal or Reason.UNKEYABLE, outgoing, wishes, rows, found, priority, limits)
        form = self._form(endpoint, body.fields, items)
        if bases := (*settled.kb, *extracted.kb):
            wishes = replace(wishes, knowledge=controls.joined(wishes.knowledge, bases))
        personal = policy.is_personal(endpoint, body.fields)
        scope = Scope(head.credential if personal else self._owner(head, settled), wishes.namespace)
        name = self.key_of(head, scope, extracted.keyed(wishes.knowledge), form)
        ask = self._ask(name, head, endpoint, scope, body.fields)
        variants = self._variants(endpoint, body.fields, settled)
        bound = Bound(
            head, ask, wishes, outgoing, body.fields, form, mode, settled, rows, variants, base=name,
            extracted=extracted, prefix=found, limits=self._limits(settled),
        )  # fmt: skip
        return self._itemised(bound, items) if items else bound

    def _extracted(self, body: dict[str, Any], settled: Settled) -> Extracted:
        places = (*self.terms.extract, *settled.extract)
        return extraction.extract(places, body, self.terms.extract_bytes) if places else extraction.NOTHING

    def _own_removed(self, outgoing: Outgoing, body: dict[str, Any]) -> tuple[Outgoing, Any]:
        """Without LiteLLM's field, which is taken out of `body` too; and what that said, None if it is not there."""
        said = body.get("cache") if self.terms.litellm_body else None
        if said is None or not controls.understands(said):
            return outgoing, None
        body.pop("cache")
        return outgoing.altered(splice.remove(outgoing.plain, b"cache")), said

    def _stabilised(
        self, head: Head, endpoint: Endpoint, outgoing: Outgoing, body: dict[str, Any], settled: Settled
    ) -> tuple[Outgoing, dict[str, Any], Prefix | None]:
        """The body with the rules of the prefix layer applied: its bytes, its fields, and what the backend reads
        first."""
        if endpoint not in STREAMED:
            return outgoing, body, None
        told = body
        changes: tuple[prefix.Change, ...] = ()
        if self.terms.prefix_rules is not None:
            wanted: Any = dict(settled.prefix)
            in_force = replace(self.terms.prefix_rules, **wanted) if wanted else self.terms.prefix_rules
            stable = prefix.stabilise(endpoint, outgoing.plain, body, in_force)
            outgoing, told, changes = outgoing.altered(stable.plain), stable.fields, stable.changes
        found = Prefix(endpoint, told, changes, self._owner(head, settled), canonical.model_of(told))
        return outgoing, told, found

    def _form(self, endpoint: Endpoint, body: dict[str, Any], items: list[Item] | None) -> bytes:
        if endpoint is Endpoint.MODELS:
            return b""
        if items is not None and len(items) == 1:
            return canonical.reduced(endpoint, embeddings.alone(body, items[0]), self.terms.ignored)
        return canonical.reduced(endpoint, body, self.terms.ignored)

    def _itemised(self, bound: Bound, items: list[Item]) -> Bound:
        """With each input bound to the key that it has alone."""
        bound = replace(bound, ask=replace(bound.ask, choices=len(items)))
        if len(items) == 1:
            return replace(bound, items=(BoundItem(items[0], bound.ask.key),))
        found = []
        for item in items:
            form = canonical.reduced(bound.ask.endpoint, embeddings.alone(bound.body, item), self.terms.ignored)
            found.append(BoundItem(item, self.key_of(bound.head, bound.ask.scope, bound.basis, form)))
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
        tier, metadata = body.get("service_tier"), body.get("metadata")
        facts = Facts(
            path, canonical.model_of(body), head.fields, wishes.tags, group or "",
            tier if isinstance(tier, str) else "", metadata if isinstance(metadata, dict) else {},
        )  # fmt: skip
        return rules.settle(self.terms.rules, facts)

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

    def identify(self, exact_key: bytes, asked_at: float) -> bytes:
        """The identity of the answer to the request of this key that was asked for at that time; 16 bytes that nobody
        can guess."""
        return key.identity(self._secret, exact_key, asked_at)

    def question(self, bound: Bound) -> Question | Reason:
        """What of `bound` may be asked in other words, or why nothing may."""
        return question(bound.ask.endpoint, bound.body, self.terms.ignored)

    def partition(self, bound: Bound, asked: Question) -> bytes:
        """Within which `asked`, the question of `bound`, is compared with others."""
        return key.partition(
            self._secret,
            realm=self.terms.realm,
            owner=bound.ask.scope.owner,
            namespace=bound.ask.scope.namespace,
            knowledge=bound.basis,
            target=bound.head.target,
            fields=fields.keyed(bound.head.fields, self.terms.volatile_headers),
            frame=asked.frame,
        )

    def _ask(self, name: bytes, head: Head, endpoint: Endpoint, scope: Scope, body: dict[str, Any]) -> Ask:
        stream = endpoint in STREAMED and body.get("stream") is True
        return Ask(
            endpoint=endpoint,
            key=name,
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
