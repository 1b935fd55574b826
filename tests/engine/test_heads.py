"""Who asks, where and in which cache is part of the question: two heads share a key if and only if they tell the same,
and answers are shared by exactly those whom a scope is for."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.key import digest
from cacheproxy.core.model import Endpoint
from cacheproxy.core.rules import Share
from cacheproxy.engine.binder import Binder, Terms
from cacheproxy.engine.bound import Bound, Head
from tests.core import shapes
from tests.engine import asked
from tests.engine.test_questions import POSTED, SECRET, TARGETS, keys_of
from tests.examples import tries

LINES = [
    *[("Authorization", f"Bearer {who}") for who in "AB"], ("authorization", "bearer A"), ("api-key", "A"),
    ("X-Api-Key", "A"), ("OpenAI-Organization", "o"), ("OpenAI-Project", "p"), ("X-Cache-Namespace", "n"),
    ("x-cache-namespace", "%6E"), ("X-Cache-Namespace", "N"), ("X-Cache-KB", "k, l"), ("X-Cache-KB", "l,%6b"),
    ("X-Cache-KB", "k@1"), ("X-Cache-KB", "k%401"), ("X-App", "a"), ("x-app", "a"), ("X-App", "b"), ("OpenAI-Beta", "x"),
    ("Accept-Language", "*"), ("Accept-Language", "de"), ("Cookie", "__cf_bm=1"), ("Cookie", "AWSALB=1; s=2"),
    ("cookie", "s=2"), ("Connection", "X-App"), ("User-Agent", "u"), ("X-Stainless-Lang", "python"), ("TE", "trailers"),
    ("Traceparent", "00-1"), ("X-Forwarded-For", "10.0.0.1"), ("Accept", "*/*"), ("X-Cache-TTL", "5"),
    ("X-Cache-Tags", "t"), ("Cache-Control", "max-age=1"), ("X-Request-ID", "1"), ("Priority", "u=1"), ("Date", "x"),
]  # fmt: skip
heads = st.lists(st.sampled_from(LINES), max_size=5)


def bound_with(
    binder: Binder, lines: list[tuple[str, str]], endpoint: Endpoint = Endpoint.CHAT, raw: bytes = b"{}"
) -> Bound:
    fields = tuple((name.encode(), value.encode()) for name, value in lines)
    bound = binder.bind(Head("POST", TARGETS[endpoint], fields, binder.credential(fields)), endpoint, raw)
    assert isinstance(bound, Bound)
    return bound


@tries(120)
@given(st.lists(heads, min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_heads_share_a_key_exactly_if_they_tell_the_same(asked_with, dice):
    """B30, B32, B48, CONTRACT 6.4: credentials, namespaces, knowledge bases and every other line."""
    binder = Binder(SECRET, Terms())
    shuffled = [dice.sample(lines, len(lines)) for lines in asked_with]
    told = [(asked.head(lines), bound_with(binder, lines).ask) for lines in [*asked_with, *shuffled]]
    for form, ask in told:
        for other, another in told:
            assert (form == other) == (ask.key == another.key)
            assert (form[0] == other[0]) == (ask.credential == another.credential)


@tries(60)
@given(st.lists(st.tuples(shapes.texts.map(str.encode), st.binary(max_size=2)), min_size=2, max_size=6))
def test_realms_and_secrets_are_apart(houses):
    """Answers of one backend are never another's; nobody without the secret can make a key."""
    keys = [keys_of(Endpoint.CHAT, b"{}", binder=Binder(SECRET + s, Terms(realm=realm))) for realm, s in houses]
    for house, key in zip(houses, keys, strict=True):
        for other, another in zip(houses, keys, strict=True):
            assert (house == other) == (key == another)


@pytest.mark.parametrize("share", list(Share))
@tries(100)
@given(st.lists(st.tuples(heads, st.sampled_from(POSTED)), min_size=2, max_size=6))
def test_a_scope_is_shared_by_exactly_those_it_is_for(share, callers):
    """CONTRACT 6.4: what is the caller's own is shared in no scope, and a group is one within one account."""
    binder = Binder(SECRET, Terms(share=share, key_groups={digest("A"): "g", digest("B"): "g"}))
    owners = {}
    for lines, endpoint in callers:
        raw = json.dumps({"input": "x"}).encode()
        ask = bound_with(binder, lines, endpoint, raw).ask
        who = asked.head(lines)[0]
        secret = next((v.removeprefix("Bearer ").removeprefix("bearer ") for n, v in who if not n.startswith("o")), "")
        account = [line for line in who if line[0].startswith("openai")]
        if share is Share.CREDENTIAL or endpoint is Endpoint.RESPONSES:
            owner: Any = ("credential", who)
        elif share is Share.SHARED:
            owner = "everybody"
        else:
            owner = ("group", account) if secret in ("A", "B") else ("credential", who)
        owners.setdefault(ask.scope.owner, owner)
        assert owners[ask.scope.owner] == owner
    assert len({json.dumps(o) for o in owners.values()}) == len(owners)


@tries(40)
@given(shapes.texts, shapes.texts, shapes.texts)
def test_a_namespace_in_the_body_is_one_inside_that_of_the_head(outer, inner, other):
    """B32: LiteLLM's form; no name spells out two that are nested."""
    binder = Binder(SECRET, Terms())

    def key(head: str, body: str) -> bytes:
        lines = [("X-Cache-Namespace", "".join(f"%{byte:02x}" for byte in head.encode()))] if head else []
        return bound_with(binder, lines, raw=json.dumps({"cache": {"namespace": body}}).encode()).ask.key

    spelled = [(outer, inner), (outer, other), (outer + inner, ""), ("", outer + inner), (inner, outer), ("", "")]
    spelled += [(f"{outer}\0\1{inner}", ""), (f"{outer}\0", f"\1{inner}")]
    for one in spelled:
        for another in spelled:
            # One name alone is the same whichever way it is said.
            same = tuple(n for n in one if n) == tuple(n for n in another if n)
            assert same == (key(*one) == key(*another)), (one, another)
