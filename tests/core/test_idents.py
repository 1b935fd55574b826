"""Identifiers of requests, sessions and traces that a text says."""

from itertools import pairwise

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from cacheproxy.core import quoted
from cacheproxy.core.idents import idents

UUID = "550e8400-e29b-41d4-a716-446655440000"
HEX = "d41d8cd98f00b204e9800998ecf8427e"


def said(text: str) -> list[str]:
    return [text[start:end] for start, end in idents(text)]


WHOLE = [
    UUID, UUID.upper(), "550E8400-e29b-41d4-A716-446655440000", "01020304-aaaa-bbbb-cccc-deadbeefdead", f"urn:uuid:{UUID}",
    f"URN:UUID:{UUID.upper()}", f"{{{UUID}}}", f"urn:uuid:{{{UUID}}}",
    HEX, HEX.upper(), HEX + "01234567", HEX + "0123456789abcdef01234567", HEX * 2, HEX * 3, HEX * 4,
    "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01arz3ndektsv4rrffq69g5fav", f"00-{HEX}-00f067aa0ba902b7-01",
    "req_abc12345", "req-abc12345", "sess_12345678", "chatcmpl-9f8e7d6c5b4a", f"chatcmpl-{UUID}", "msg_01AbCdEfGhIjKlMn",
    "run_abc123def456", "thread_abc12345", "trace_0123456789", "thread_abc12345_x-y", "resp_68af4030592c81938ec0a5fbab4a3e9f",
    "1772359201", "1000000001", "1999999999", "1772359201123", "1772359201123456",
    "1772359201.123", "1772359201.1234567",
]  # fmt: skip


@pytest.mark.parametrize("ident", WHOLE)
@pytest.mark.parametrize(("before", "after"), [
    ("", ""), ("x ", " y"), ("(", ")"), ("id=", ","), ("Begun: ", ".\nNext"), ("**", "**"), ("\n", "\n"), ("<a>", "</a>"), ("[", "]"),
    ("'", "'"), ("é ", " 漢"),
])  # fmt: skip
def test_identifiers_that_speak_for_themselves(ident, before, after):
    assert idents(before + ident + after) == [(len(before), len(before) + len(ident))]


@pytest.mark.parametrize("text", [
    "x" + UUID, UUID + "x", UUID + "-x", "x-" + UUID, "_" + UUID, UUID[:-1], UUID + "0", UUID.replace("-", "_"), "é" + UUID, UUID + "漢",
    "user_" + UUID, "$" + UUID, f"/{UUID}", f"{UUID}/x", f"a.{UUID}", f"{UUID}.json",
    HEX[:-1], HEX + "0", HEX + "-x", "x" + HEX, HEX[:-1] + "g", "1" * 32, "a" * 32, "0" * 40, f"{HEX}@x", f"git+{HEX}",
    "81ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAU", "01ARZ3NDEKTSV4RRFFQ69G5Fav", "0" * 26, "ABCDEFGHJKMNPQRSTVWXYZABCD",
    "01ARZ3NDEKTSV4RRFFQ69G5FAVX",
    "req_abc", "req_abcdefgh", "run_abcdefgh-1", "myreq_abc12345", "thread_pool_executor2", "call_abc12345", "file-abc12345",
    "asst_abc12345", "run-time", "req_abc12345é",
    "2772359201", "772359201", "17723592011", "177235920112", "17723592011234567", "1772359201.5", "1772359201.12", "1772359201.123.4", "1.1772359201", "1,1772359201",
    "-1772359201", "+1772359201", "$1772359201", "1772359201%", "1772359201€", "x1772359201", "1772359201x", "1772359201-1", "#1772359201",
    "1000000000", "1000000000000", "1234567890", "1772359201 bytes", "1772359201 EUR", "Tel: 1772359201", "phone (1772359201)",
    "call us at 1772359201", "+49 1772359201", "WhatsApp 1772359201", "1_772_359_201", "1772359201:x",
])  # fmt: skip
def test_what_only_looks_like_one(text):
    """Names, versions, amounts, telephone numbers, placeholders."""
    assert idents(text) == []
    assert idents(f"a {text}, b") == []


@pytest.mark.parametrize("label", [
    "request id", "Request ID", "request_id", "request-id", "requestId", "RequestID", "X-Request-Id", "x_request_id", "session id",
    "sessionId", "user session id", "userSessionId", "Trace-ID", "conversation id", "Conversation UUID", "correlation id", "span id",
    "parent_span_id", "run id", "thread id", "message id", "chat id", "transaction id", "invocation id", "requestguid",
])  # fmt: skip
@pytest.mark.parametrize("sign", [": ", "=", " = ", ":", " is ", " #", ":** ", "** : ", " (", ">", ": '"])
def test_labels(label, sign):
    """Only the value is the identifier."""
    start = len(label) + len(sign)
    assert idents(f"{label}{sign}abc-123") == [(start, start + 7)]
    assert idents(f"The {label}{sign}abc-123.") == [(start + 4, start + 11)]


@pytest.mark.parametrize("value", [
    "7", "abc123", "a_b-c.d:1", "deadbeef", "ABCDEFAB", "aBcDeFgHi", "YWJjZGVmZ2g=", "2026-03-01/7", "a" * 200 + "1", "0xdeadbeef", UUID,
    "req_abc12345", "1772359201", "x/y1", "u1@host", "1772359201=5",
])  # fmt: skip
def test_values(value):
    assert said(f"request id: {value}") == [value]
    assert said(f"request id: {value}, and") == [value]
    assert said(f"request id: {value}.\n") == [value]


@pytest.mark.parametrize("text", [
    "request id: none", "request id: unavailable", "request id: unknown/none", "request id:", "request id: {{request_id_1}}",
    "request id: <id>", "request id is required", "request id: uuid4", "request id: UUIDv4", "request id: v7", "request id: SHA-256",
    "request id: 32-character text", "request id abc123", "user id: abc123", "customer id: 42", "id: abc123", "identity: abc123",
    "the void: abc123", "prequest id: abc123", "request identifier abc123", "request id: deadbee", "request id: SomeValue",
    "request id: " + "a1" * 200, "request id: abc1é", "request id: é1", "request id,: abc123", "request\nid: abc123", "request id: _a1",
    "session: 3 of 5", "session: a1", "request id: " + "a1" * 128 + "=x", "session: morning", "session: 12345678", "possession of ab12cd", "sessions: ab12cd", "Session 12",
])  # fmt: skip
def test_labels_without_an_identifier(text):
    assert idents(text) == []


@pytest.mark.parametrize(
    "text", ["session: ab12cd", "session=ab12cd", "user session: ab12cd", "Session: ab12cd.", "session #ab12cd"]
)
def test_sessions_without_id(text):
    assert said(text) == ["ab12cd"]


@pytest.mark.parametrize("text", [
    f"https://example.org/{UUID}", f"https://example.org/?request_id={UUID}&ts=1772359201 ", f"redis://{HEX}@host", f"https://{HEX}.org/a",
    f"see (https://example.org/a?b,{UUID}) ", "x://a/request_id=abc123", f"a{UUID[1:]}://host",
])  # fmt: skip
def test_addresses_are_left_alone(text):
    assert idents(text) == []
    assert said(f"{text} {UUID}") == [UUID]


@pytest.mark.parametrize("frame", [
    "`{}`", "a\n```\n{}\n```", "a\n```\n{}", "> {}", 'say "{}"', "\u201c{}\u201d", "<log>\n{}\n</log>", "a\n\n    {}", "# Example\n{}",
    "2026-03-01 10:00:01 INFO {}", "e.g. {}", "Example:\n{}", '{"request_id": "{}"}',
])  # fmt: skip
@pytest.mark.parametrize("ident", WHOLE)
def test_what_is_shown_is_left_alone(frame, ident):
    text = frame.replace("{}", ident)
    assert idents(text) == []
    assert idents(f"{ident}\n\n{text}") == [(0, len(ident))]


def test_what_does_not_belong_to_it_is_left():
    assert idents(f"{{{UUID} x") == [(1, 37)]
    assert idents(f"urn:{UUID}") == [(4, 40)]


def test_several_are_sorted_and_apart():
    """A label's value that is an identifier by itself is one."""
    text = f"Request ID: {UUID}, session_id={HEX} at 1772359201; trace id: req_abc12345 run id: {{{UUID}}}"
    assert said(text) == [UUID, HEX, "1772359201", "req_abc12345", f"{{{UUID}}}"]


PIECES = (
    "word", " ", "  ", "\n", "\n\n    ", "`", "```", '"', "\u201c", "> ", "<log>", "</log>", UUID, HEX, "req_abc12345", "1772359201", "urn:uuid:",
    "{", "}", "-", "_", ".", ",", ":", "=", "request id", "session", "request id: ", "session_id=", "abc123", "none", "://", "https://a/",
    "00-", "a" * 26, "0", "1", "é", "漢", "\ud800", "\0", "İ", "ß", "e.g. ", "Tel ", "+", "01ARZ3NDEKTSV4RRFFQ69G5FAV",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=20).map("".join)


@given(texts)
def test_identifiers_are_sorted_apart_and_set_off(text):
    found = idents(text)
    event(f"{min(len(found), 2)} found")
    regions = quoted.regions(text)
    assert all(one[1] <= other[0] for one, other in pairwise(found))
    for start, end in found:
        assert 0 <= start < end <= len(text)
        assert not quoted.touches(regions, start, end)
        for neighbour in (text[:start][-1:], text[end:][:1]):
            assert not (neighbour.isalnum() or neighbour == "_")


@given(texts, st.sampled_from(WHOLE), texts)
def test_a_planted_identifier_is_found_with_its_own_bounds(before, ident, after):
    """Set off by spaces, in any text that does not show it."""
    whole = f"{before}\nxyz {ident} xyz {after}"
    start = len(before) + 5
    assume(not quoted.touches(quoted.regions(whole), start, start + len(ident)))
    assert (start, start + len(ident)) in idents(whole)


@given(
    texts,
    st.sampled_from(WHOLE),
    st.sampled_from(["`{}`", '"{}"', "\u201c{}\u201d", "<log>{}</log>", "\n> {}\n", "\n```\n{}\n```\n"]),
)
def test_a_planted_identifier_that_is_shown_is_not_found(before, ident, frame):
    before = before.replace("`", "").replace('"', "").replace("\u201c", "")
    whole = before + "\n" + frame.replace("{}", ident) + " after"
    assert not any(start > len(before) for start, _ in idents(whole))
