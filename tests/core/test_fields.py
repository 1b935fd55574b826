"""Which header lines cross the proxy, which count for the key, and which codings a caller can read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import fields


def lines(*pairs: tuple[str, str]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.encode(), value.encode()) for name, value in pairs)


@pytest.mark.parametrize(
    "name",
    [
        "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "TE", "Trailer",
        "Transfer-Encoding", "Upgrade", "te", "UPGRADE",
    ],
)  # fmt: skip
def test_hop_by_hop_fields_end_here(name):
    """B48: RFC 9110 section 7.6.1."""
    kept = lines(("A", "1"), ("Content-Type", "x"))
    assert fields.end_to_end((kept[0], *lines((name, "x")), kept[1])) == kept


@pytest.mark.parametrize("connection", ["close, X-Hop", "x-hop", "close ,\tX-HOP,", ",,X-Hop", "keep-alive,X-Hop"])
def test_nominated_fields_end_here(connection):
    """B48: fields that a Connection line names belong to that connection, whatever case and spacing."""
    told = lines(("Connection", connection), ("X-Hop", "1"), ("x-hop", "2"), ("X-Other", "3"))
    assert fields.end_to_end(told) == lines(("X-Other", "3"))
    assert fields.end_to_end(told[1:] + told[:1]) == lines(("X-Other", "3"))


def test_several_connection_lines_count():
    told = lines(("Connection", "X-A"), ("A", "1"), ("connection", "X-B"), ("X-A", "1"), ("X-B", "1"))
    assert fields.end_to_end(told) == lines(("A", "1"))


@pytest.mark.parametrize(
    "name",
    [
        "Authorization", "Api-Key", "X-Api-Key", "OpenAI-Organization", "OpenAI-Project", "Cookie", "Host",
        "Content-Length",
        "Content-Type", "Content-Encoding", "Cache-Control",
    ],
)  # fmt: skip
def test_fields_meant_for_all_cannot_be_nominated(name):
    """B48: "Connection: close, Authorization" neither drops the credential nor changes the scope."""
    told = lines(("Connection", f"close, {name}"), (name, "x"))
    assert fields.end_to_end(told) == lines((name, "x"))
    assert fields.credential(told) == fields.credential(told[1:])


def test_what_crosses_keeps_its_bytes_and_order():
    """Repeated lines, odd case, odd bytes."""
    told = ((b"X-b", b"\xff \t2"), (b"x-A", b""), (b"X-B", b"1"), (b"x-a", b"\xc3\xa9"))
    assert fields.end_to_end(told) == told
    assert fields.render(told) == b"X-b: \xff \t2\r\nx-A: \r\nX-B: 1\r\nx-a: \xc3\xa9\r\n"
    assert fields.render(()) == b""


def test_the_credential_is_every_line_that_says_who_asks():
    """B30: in a fixed order, each line of a repeated one."""
    told = lines(
        ("OpenAI-Project", "p"), ("X-Api-Key", "k"), ("authorization", "Bearer A"), ("User", "u"),
        ("Authorization", "Bearer B"),
        ("OPENAI-ORGANIZATION", "o"), ("api-key", "a"),
    )  # fmt: skip
    assert fields.credential(told) == [
        (b"authorization", b"Bearer A"), (b"authorization", b"Bearer B"), (b"api-key", b"a"), (b"x-api-key", b"k"),
        (b"openai-organization", b"o"), (b"openai-project", b"p"),
    ]  # fmt: skip
    assert fields.credential(()) == []


@pytest.mark.parametrize(
    "name",
    [
        "User-Agent", "X-Stainless-Lang", "x-stainless-retry-count", "Accept", "Accept-Encoding", "Content-Length",
        "Host",
        "X-Request-Id", "traceparent", "X-Forwarded-For", "Sec-Fetch-Mode", "Cache-Control", "Pragma", "X-Cache-TTL",
        "X-Cache-Namespace", "X-Cache-KB", "X-Cache-Tags", "X-Cache-Semantic", "X-Cache-Control", "X-Priority",
        "Priority",
        "Authorization", "OpenAI-Project", "Connection", "Transfer-Encoding", "Idempotency-Key", "Last-Event-ID",
        "Prefer",
    ],
)  # fmt: skip
def test_transport_controls_and_credential_are_not_keyed_as_fields(name):
    assert fields.keyed(lines((name, "x"))) == []


@pytest.mark.parametrize(
    "name", ["OpenAI-Beta", "X-Future", "Cookie", "X-Model-Variant", "Accept-Language", "X-Cache-Other", "user"]
)
def test_every_other_field_is_keyed(name):
    """B03: an unknown header may change the answer."""
    assert fields.keyed(lines((name, "x"))) == [(name.lower().encode(), b"x")]


def test_keyed_fields_have_one_order():
    """Names sorted, the order among equal names kept, values untouched, nominated ones out."""
    told = lines(("X-B", "2"), ("x-a", "B"), ("X-A", " a"), ("User-Agent", "u"), ("Connection", "X-C"), ("X-C", "1"))
    assert fields.keyed(told) == [(b"x-a", b"B"), (b"x-a", b" a"), (b"x-b", b"2")]


@given(st.permutations([(b"X-A", b"1"), (b"x-b", b"2"), (b"X-C", b"3"), (b"x-d", b"4")]), st.booleans())
def test_order_and_case_of_fields_do_not_matter(told, lower):
    named = tuple((n.lower() if lower else n.upper(), v) for n, v in told)
    assert fields.keyed(named) == [(b"x-a", b"1"), (b"x-b", b"2"), (b"x-c", b"3"), (b"x-d", b"4")]


def test_values_and_tokens():
    told = lines(("X", "A, b"), ("y", "z"), ("x", ",C ,,"))
    assert fields.values(told, b"x") == [b"A, b", b",C ,,"]
    assert fields.first(told, b"x") == b"A, b"
    assert (fields.first(told, b"q"), fields.values(told, b"q")) == (None, [])
    assert fields.tokens(told, b"x") == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("accept", "readable"),
    [
        ("gzip", True), ("GZip", True), ("gzip, deflate", True), ("deflate, gzip", True), ("x-gzip", True), ("*", True),
        ("gzip;q=1", True), ("gzip;q=0.001", True), ("gzip; q=0.5", True), ("gzip;q=0", False), ("gzip;q=0.0", False),
        ("gzip;q=0.000", False), ("gzip; Q=0", False), ("gzip ; q = 0", False), ("gzip;q=0.", False),
        ("gzip;\tq=0", False),
        ("identity", False), ("", False), ("br", False), ("deflate", False), ("*;q=0", False), ("*, gzip;q=0", False),
        ("gzip;q=0, *", False), ("gzip, *;q=0", True), ("br, *;q=0.1", True), ("xgzip", False), ("gzipx", False),
    ],
)  # fmt: skip
def test_accepted_codings(accept, readable):
    """B41: RFC 9110 section 12.5.3, weights included."""
    assert fields.accepts_coding(lines(("Accept-Encoding", accept)), b"gzip") is readable


def test_without_the_field_only_the_plain_form_is_readable():
    """B41: a client that names no coding gets none."""
    assert not fields.accepts_coding((), b"gzip")
    assert fields.accepts_coding(lines(("Accept-Encoding", "br"), ("accept-encoding", "gzip")), b"gzip")


def test_the_old_name_of_a_coding_is_that_coding():
    """RFC 9110 section 8.4.1.3: x-gzip is equivalent to gzip."""
    assert fields.accepts_coding(lines(("Accept-Encoding", "gzip")), b"x-gzip")
    assert not fields.accepts_coding(lines(("Accept-Encoding", "deflate")), b"x-gzip")
