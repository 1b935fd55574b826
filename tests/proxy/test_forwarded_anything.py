"""With every rule that touches a request off, what the backend gets is what the caller sent, byte for byte: any body,
JSON or not, however framed; any target; any header lines, in their order, spelling and number."""

import json
import random
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests import rig
from tests.core import shapes
from tests.examples import tries
from tests.fakes.backend import Exchange, gives
from tests.proxy import wire

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of what a failing example was given

NUMERALS = [
    "-0", "-0.0", "0e0", "1E400", "-1e-400", "123456789012345678901234567890", "18446744073709551616", "1.0e+00",
    "0.1000000000000000055511151231257827", "NaN", "Infinity", "9" * 4400, "1" + "0" * 30,
]  # fmt: skip
PIECES = [
    b'"',
    b"\\ud800",
    b"\\u0000",
    b"\xff",
    b"\xc3",
    b"\xe6\xbc",
    b"\xef\xbb\xbf",
    b"{",
    b"}",
    b"[1]",
    b",",
    b" ",
    b"\0",
]


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """JSON objects in any writing: names twice, numbers of any size, halves of characters, any white space."""
    dice = random.Random(draw(st.integers(0, 2**32)))
    pairs = draw(
        st.lists(st.tuples(shapes.texts | st.sampled_from(["model", "stream", "messages"]), shapes.values), max_size=5)
    )
    pairs += draw(st.lists(st.sampled_from(pairs), max_size=1)) if pairs else []
    written = [shapes.write(name, dice) + b":" + shapes.write(value, dice) for name, value in pairs]
    written += [b'"x":' + draw(st.sampled_from(NUMERALS)).encode() for _ in range(draw(st.integers(0, 1)))]
    written += [b'"y":"\\udc00 \\ud83d"'] if draw(st.booleans()) else []
    dice.shuffle(written)
    return (
        draw(st.sampled_from([b"", b" ", b"\r\n\t"]))
        + b"{"
        + b",".join(written)
        + b"}"
        + draw(st.sampled_from([b"", b"\n "]))
    )


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    raw = draw(documents())
    at = draw(st.integers(0, len(raw)))
    return raw[:at] + draw(st.sampled_from(PIECES)) + raw[at + draw(st.integers(0, 2)) :]


anything = documents() | damaged() | st.binary(max_size=50) | shapes.values.map(shapes.plain) | st.just(b"")

_TOKEN = "abcXYZ019!#$%&'*+-.^_`|~"
TAKEN = {
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
    "content_length", "transfer_encoding", "content-encoding",
}  # fmt: skip
odd_names = st.text(_TOKEN, min_size=1, max_size=12).filter(lambda name: name.lower() not in TAKEN)
usual_names = st.sampled_from([
    "Accept", "ACCEPT", "accept-encoding", "Cookie", "cookie", "X-Request-ID", "Via", "X-Cached", "User-Agent", "Range",
    "If-None-Match", "Priority", "Authorization", "api-key", "Idempotency-Key", "OpenAI-Beta", "Content-Type", "Date",
])  # fmt: skip
letters = st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f") | st.just("\t")
line_values = st.text(letters, max_size=20).map(lambda text: text.strip(" \t").encode("latin-1"))
ONCE = {b"user-agent", b"content-type"}
"""What a message may have once; two of them are refused by the parser of HTTP."""


def once(line: tuple[bytes, bytes]) -> Any:
    name = line[0].lower()
    return name if name in ONCE else object()


header_lines = st.lists(st.tuples((odd_names | usual_names).map(str.encode), line_values), max_size=8, unique_by=once)
targets = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="#"), max_size=30).map(
    str.encode
)


def framed(body: bytes, sizes: list[int]) -> tuple[list[bytes], bytes]:
    """A framing line and the body as it stands on the wire: of a stated length, or in chunks of these `sizes`."""
    if not sizes:
        return [b"Content-Length: %d" % len(body)], body
    chunks, at = [], 0
    for size in [*sizes, len(body)]:
        if part := body[at : at + size]:
            chunks.append(b"%x\r\n%b\r\n" % (len(part), part))
        at += size
    return [b"Transfer-Encoding: chunked"], b"".join(chunks) + b"0\r\n\r\n"


async def send(
    proxy: rig.InProcess, method: bytes, target: bytes, lines: list, body: bytes, sizes: list[int]
) -> wire.Wire:
    framing, data = framed(body, sizes)
    head = [b"%b %b HTTP/1.1" % (method, target), b"Host: proxy.example", *(b"%b: %b" % line for line in lines)]
    return await wire.ask(proxy.port, b"\r\n".join([*head, *framing, b"Connection: close", b"", data]))


def is_json(raw: bytes) -> bool:
    try:
        json.loads(raw, parse_int=float if len(raw) < 4000 else len)
    except ValueError:
        return False
    return True


@pytest.fixture
async def plain(start) -> rig.InProcess:
    """The exact layer on, and every rule that touches a request off."""
    return await start(stream__ask_usage=False, compat__litellm_body=False)


@pytest.fixture
async def bare(start) -> rig.InProcess:
    """Every layer off."""
    return await start(exact__mode="off", compat__litellm_body=False)


async def quick(exchange: Exchange) -> None:
    await exchange.json(b"{}")


chunk_sizes = st.lists(st.integers(1, 40), max_size=4)


@tries(150)
@given(
    anything,
    chunk_sizes,
    st.sampled_from(["chat/completions", "completions", "embeddings", "responses", "rerank", "score"]),
)
async def test_any_body_of_a_cached_operation(plain, bare, backend, body, sizes, operation):
    """CONTRACT 6.1. What is JSON to any parser passes untouched; what is none is refused, and only where it is read."""
    backend.script = quick
    target = f"/v1/{operation}".encode()
    for number, proxy in enumerate((bare, plain)):
        backend.seen.clear()
        lines = [
            (b"Authorization", b"Bearer %d" % number),
            (b"Cache-Control", b"no-cache"),
            (b"content-TYPE", b"application/json"),
        ]
        answer = await send(proxy, b"POST", target, lines, body, sizes)
        if proxy is plain and not is_json(body):
            assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, "invalid_json")
            assert backend.seen == []
            continue
        assert answer.status == 200
        [seen] = backend.seen
        assert (seen.line, seen.body) == (b"POST %b HTTP/1.1" % target, body)
        assert [
            line for line in seen.headers if line[0].lower() in (b"authorization", b"cache-control", b"content-type")
        ] == lines
    event(f"JSON: {is_json(body)}")


@tries(80)
@given(
    header_lines,
    targets,
    anything,
    chunk_sizes,
    st.sampled_from([b"GET", b"POST", b"PUT", b"DELETE", b"PATCH", b"QUERY"]),
)
async def test_any_head(plain, bare, backend, lines, tail, body, sizes, method):
    """CONTRACT 6.1: request line and header lines pass in order, spelling and number; only the host is the backend's,
    and framing is each hop's own."""
    backend.script = quick
    host = b"127.0.0.1:%d" % backend.port
    for proxy in (bare, plain):
        for target in (b"/" + tail, b"/v1/chat/completions?" + tail):
            backend.seen.clear()
            sent = body if b"chat/completions" not in target or is_json(body) else b"{}"
            lines_here = [line for line in lines if line[0].lower() != b"cache-control"]
            answer = await send(proxy, method, target, lines_here, sent, sizes)
            assert answer.status == 200, answer
            [seen] = [s for s in backend.seen if s.target != b"/v1/models" or target == b"/v1/models"]
            assert seen.line == b"%b %b HTTP/1.1" % (method, target)
            assert seen.body == sent
            kept = [line for line in seen.headers if line[0].lower() not in (b"content-length", b"transfer-encoding")]
            assert kept == [(b"Host", host), *lines_here]
            await proxy.house.store.close()  # forgets all


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 5 * 2**20 + 1])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/files"])
async def test_large_bodies_of_any_bytes(plain, backend, size, chunked, path):
    """Around the size from which a body is streamed, and megabytes of text in every kind of letter."""
    backend.script = gives({})
    filler = '\\u00e9é漢😀\\\\\\"/ '.encode()
    body = b'{"messages":"' + filler * (size // len(filler)) + b'"}'
    body += b" " * (size - len(body)) if len(body) < size else b""
    answer = await send(plain, b"POST", path, [], body, [1, 7, 65_536, 2**20] if chunked else [])
    assert (answer.status, [s.body == body for s in backend.seen]) == (200, [True])


def test_the_oracle_of_what_is_json():
    samples: dict[bytes, Any] = {b"{}": True, b"": False, b"9" * 5000: True, b"NaN": True, b"{": False, b"\xff": False}
    assert {raw: is_json(raw) for raw in samples} == samples
