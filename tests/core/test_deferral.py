"""What is kept of a deferred request and of its answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import deferral
from cacheproxy.core.deferral import Order, Reply
from cacheproxy.core.resumption import Wish
from cacheproxy.core.resumption import read as wish_of
from tests.examples import tries

NAMES = st.binary(min_size=1, max_size=20)
FIELDS = st.lists(st.tuples(NAMES, st.binary(max_size=40)), max_size=6).map(tuple)


def lines(*told: str) -> tuple[tuple[bytes, bytes], ...]:
    pairs = (line.encode().partition(b": ") for line in told)
    return tuple((name, value) for name, _, value in pairs)


@tries(200)
@given(st.binary(max_size=50), FIELDS, st.binary(max_size=200))
def test_an_order_is_read_as_it_was_written(target, fields, body):
    order = Order(target, fields, body)
    assert deferral.order_of(deferral.pack(order)) == order
    assert deferral.reply_of(deferral.pack(order)) is None


@tries(200)
@given(st.integers(200, 599), FIELDS, st.binary(max_size=200))
def test_a_reply_is_read_as_it_was_written(status, fields, body):
    reply = Reply(status, fields, body)
    assert deferral.reply_of(deferral.pack(reply)) == reply
    assert deferral.order_of(deferral.pack(reply)) is None


@tries(500)
@given(st.binary(max_size=100) | st.binary(max_size=60).map(lambda rest: b"\x01\0\0\0\x05" + rest))
def test_anything_else_is_read_as_nothing_or_as_what_it_says(data):
    for read in (deferral.order_of, deferral.reply_of):
        found = read(data)
        assert found is None or read(deferral.pack(found)) == found


@tries(200)
@given(st.integers(0, 400))
def test_a_form_that_is_cut_off_is_not_taken_for_another_request(end):
    data = deferral.pack(Order(b"/v1/chat/completions", lines("Authorization: Bearer A"), b""))
    assert end >= len(data) or deferral.order_of(data[:end]) is None


@pytest.mark.parametrize(
    ("told", "wants"),
    [
        (["Prefer: respond-async"], True),
        (["Prefer: RESPOND-ASYNC"], True),
        (["Prefer: respond-async; wait=5"], True),
        (["Prefer: wait=5, respond-async"], True),
        (["Prefer: return=minimal", "prefer: respond-async"], True),
        (["Prefer: respond-asynchronously"], False),
        (["Prefer: x=respond-async"], False),
        (["Prefer: x; respond-async"], False),
        (["X-Prefer: respond-async"], False),
        ([], False),
    ],
)
def test_who_wants_it(told, wants):
    assert deferral.wants(lines(*told)) is wants


def test_an_order_has_the_callers_credential_and_nothing_of_the_connection():
    order = deferral.order(
        b"/v1/x?y=1",
        lines(
            "Host: a", "Authorization: Bearer A", "Connection: close, X-Hop", "X-Hop: 1", "Content-Length: 5",
            "Content-Type: application/json", "X-Priority: P2", "Last-Event-ID: 1", "X-Cache-Heartbeat: 3",
            "Prefer: respond-async", "Prefer: return=minimal", "X-Cache-TTL: 60", "Expect: 100-continue",
        ),
        b"{}",
    )  # fmt: skip
    assert order.fields == lines(
        "Authorization: Bearer A", "Content-Type: application/json", "Prefer: return=minimal", "X-Cache-TTL: 60",
        "X-Priority: P2", "X-Cache-Heartbeat: 0",
    )  # fmt: skip
    assert wish_of(order.fields) == Wish(heartbeat=0.0)


def test_a_reply_says_nothing_of_the_cache_or_of_that_moment():
    told = (
        b"Content-Type: application/json\r\nDate: now\r\nX-Cache: MISS\r\nCache-Status: x\r\nserver-timing: x\r\n"
        b"x-request-id: 7\r\nRetry-After: 5\r\nx-ratelimit-remaining-requests: 1\r\nCache-Control: private, no-store\r\n"
    )
    reply = deferral.reply(200, told, b"body")
    assert reply.fields == lines(
        "Content-Type: application/json", "x-request-id: 7", "Cache-Control: private, no-store"
    )


@pytest.mark.parametrize(("status", "lasting"), [(200, True), (400, True), (404, True), (429, False), (503, False)])
def test_what_would_be_the_same_again(status, lasting):
    assert Reply(status, (), b"").is_lasting is lasting


def test_pauses_grow_and_heed_the_backend_and_have_a_bound():
    assert [deferral.pause(n, 2.0) for n in (1, 2, 3, 99)] == [2.0, 4.0, 8.0, deferral.LONGEST_PAUSE]
    assert deferral.pause(1, 2.0, 60.0) == 60.0
    assert deferral.pause(1, 2.0, 1e9) == deferral.LONGEST_PAUSE
