"""What is not cached passes: the request line, every header line, the status line, as they came."""

import pytest

from tests import rig
from tests.fakes.backend import gives, sends
from tests.proxy import wire

TARGETS = [
    b"/", b"/v1/models", b"/v1/%7Efoo?", b"/v1/~foo", b"//a/../b;x?q=%2F&&=", b"/?", b"/?a=b&a=c&=&&", b"/a%2Fb", b"/./x",
    b"/v1/%E4%BD%A0%e5%a5%bd?q=%ff%00", b"/v1/a+b?c+d=%20", b"/v1/files/a%0Ab", b"/x?y?z=/a//b", b"/v1/chat/completions/",
    b"/V1/Chat/Completions", b"/v1//chat/completions", b"/v1/%63hat/completions", b"/livez", b"/metrics", b"/admin/stats",
    b"/a|b^c`d{e}\"<>\\?\"'[]", b"/" + b"a" * 8000 + b"?" + b"b" * 8000, b"/v1/%", b"/v1/%zz?%",
    b"/@x:y/http://other.example/", b"/*",
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: repr(t[:30])[2:-1])
async def test_target_passes_byte_for_byte(proxy, backend, target):
    """The whole path space is the backend's; nothing of a target is decoded, folded or dropped."""
    data = b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = await wire.ask(proxy.port, data)
    assert (answer.status, [s.target for s in backend.seen]) == (200, [target])


async def test_target_of_a_cached_operation_passes_byte_for_byte(proxy, backend):
    for target in ("/v1/chat/completions?", "/v1/chat/completions?a=%2F&&=b", "/v1/completions?%"):
        answer = await wire.ask(proxy.port, wire.request({"messages": [], "prompt": ""}, path=target))
        assert answer.get(b"x-cache") == b"MISS"
        assert backend.seen[-1].target == target.encode()


async def test_base_path_of_the_backend_is_put_before(start, backend):
    """An upstream with a path, with or without /v1 at its end."""
    for url in ("/base", "/base/", "/base/v1", "/base/v1/"):
        proxy = await start(upstream=backend.url + url)
        answer = await wire.ask(proxy.port, b"GET /v1/models?x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (answer.status, backend.seen[-1].target) == (200, b"/base/v1/models?x")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE", "PROPFIND", "QUERY"])
@pytest.mark.parametrize("body", [None, b"", b"\x00\xff a body"])
async def test_every_method_passes_with_and_without_a_body(proxy, backend, method, body):
    backend.script = gives({})
    answer = await wire.ask(proxy.port, wire.request(body, method=method, path="/v1/x"))
    assert (answer.status, answer.get(b"x-cache")) == (200, b"BYPASS")
    seen = backend.seen[0]
    assert (seen.method, seen.body) == (method.encode(), body or b"")
    assert seen.all(b"content-length") == ([] if body is None else [b"%d" % len(body)])
    assert seen.get(b"transfer-encoding") is None


async def test_asterisk_form_passes(proxy, backend):
    answer = await wire.ask(proxy.port, b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert (answer.status, backend.seen[0].line) == (200, b"OPTIONS * HTTP/1.1")


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_other_methods_on_a_cached_path_pass(proxy, backend, method):
    answer = await wire.ask(proxy.port, wire.request({"messages": []}, method=method))
    assert (answer.get(b"x-cache"), answer.get(b"x-cache-reason")) == (b"BYPASS", b"uncacheable_path")


LINES = [
    (b"x-First", b"1"), (b"AUTHORIZATION", b"Bearer A"), (b"X-Twice", b"b"), (b"accept", b"a/b;q=0.5,  c/d"), (b"X-Twice", b"a"),
    (b"X-Latin", b"caf\xe9 \xff"), (b"x-utf8", "日本".encode()), (b"X-Empty", b""), (b"Cookie", b"a=1"), (b"cookie", b"b=2"),
    (b"X-TAB", b"a\tb"), (b"x_under_score", b"1"), (b"X-!#$%&'*+-.^_`|~9", b"odd"), (b"User-Agent", b'me/1 (x; "y")'),
    (b"Accept-Encoding", b"zstd, br;q=0"), (b"Via", b"1.1 other"), (b"X-Forwarded-For", b"10.0.0.1, 10.0.0.2"),
    (b"Cache-Control", b"max-age=5"), (b"Priority", b"u=1"), (b"If-None-Match", b'W/"x"'), (b"Range", b"bytes=0-1"),
    (b"X-Long", b"l" * 16_000), (b"X-Colon", b"a: b: c"), (b"Content-Type", b'x/y; charset="z"'), (b"Content-Encoding", b"rot13"),
]  # fmt: skip


def lines(headers: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(b"%b: %b\r\n" % line for line in headers)


@pytest.mark.parametrize("path", [b"/v1/x", b"/v1/chat/completions"])
async def test_request_lines_pass_in_their_order_and_spelling(proxy, backend, path):
    """Repeated ones too, whatever bytes the values have; the host is the backend's, where it stood."""
    body = b'{"messages":[]}'
    head = b"POST %b HTTP/1.1\r\n%bhOST: proxy.example\r\ncontent-LENGTH: %d\r\nX-Last: z\r\nConnection: close\r\n\r\n"
    answer = await wire.ask(proxy.port, head % (path, lines(LINES), len(body)) + body)
    assert answer.status == 200
    host = b"127.0.0.1:%d" % backend.port
    framing = [(b"hOST", host), (b"content-LENGTH", b"%d" % len(body)), (b"X-Last", b"z")]
    assert backend.seen[0].raw == b"POST %b HTTP/1.1\r\n%b\r\n%b" % (path, lines([*LINES, *framing]), body)


CONTROLS = [
    b"X-Cache-Control: max-age=5", b"X-Cache-TTL: 5", b"X-Cache-Namespace: n", b"X-Cache-Tags: a", b"X-Cache-KB: k",
    b"X-Cache-Semantic: off", b"X-Priority: P2",
]  # fmt: skip


@pytest.mark.parametrize("path", ["/v1/x", rig.CHAT])
async def test_our_controls_end_here(proxy, backend, path):
    """The contract's request headers are removed before forwarding; `Cache-Control` and `Priority` are not."""
    kept = [b"Cache-Control: max-age=5", b"Priority: u=5", b"X-Cached: yes"]
    answer = await wire.ask(proxy.port, wire.request({"messages": []}, *CONTROLS, *kept, path=path))
    assert answer.status == 200
    names = [n.lower() for n, _ in backend.seen[0].headers]
    assert not {line.partition(b":")[0].lower() for line in CONTROLS} & set(names)
    assert [b"%b: %b" % line for line in backend.seen[0].headers][-3:] == kept


BACK = [
    (b"x-Back", b"1"), (b"SERVER", b"uvicorn"), (b"Set-Cookie", b"a=1; Path=/"), (b"date", b"Mon, 01 Jan 2001 00:00:00 GMT"),
    (b"Set-Cookie", b"b=2"), (b"X-Latin", b"caf\xe9 \xff"), (b"x-utf8", "日本".encode()), (b"X-Empty", b""), (b"etag", b'W/"1"'),
    (b"Cache-Control", b"public, max-age=60"), (b"Vary", b"Accept"), (b"Content-Type", b"application/weird"), (b"X-TAB", b"a\tb"),
    (b"WWW-Authenticate", b"Basic"), (b"WWW-Authenticate", b"Bearer"), (b"Retry-After", b"1"), (b"X-Long", b"l" * 16_000),
    (b"Location", b"http://elsewhere.example/a?b#c"), (b"Server-Timing", b"app;dur=1"), (b"Age", b"7"), (b"Via", b"1.1 b"),
]  # fmt: skip
OURS = [b"Cache-Status", b"X-Cache", b"X-Cache-Reason", b"Server-Timing", b"Content-Length", b"Connection"]


async def test_answer_lines_pass_in_their_order_and_spelling(proxy, backend):
    """Another path than the cached ones keeps its headers, `Cache-Control` and `Vary` too; ours come after."""
    backend.script = sends(b"HTTP/1.1 200 OK\r\n" + lines(BACK) + b"Content-Length: 2\r\n\r\nhi")
    answer = await wire.ask(proxy.port, wire.request(method="GET", path="/v1/x"))
    assert answer.headers[: len(BACK)] == BACK
    assert [name for name, _ in answer.headers[len(BACK) :]] == OURS
    assert (answer.body, answer.whole, answer.rest) == (b"hi", True, b"")


STATUSES = [
    b"200 Very Fine",
    b"299 ",
    b"404 Gibt's nicht \xe4\xff",
    b"400 ",
    b"502 ",
    b"418 I'm a teapot",
    b"599 x",
    b"301 Moved",
]


@pytest.mark.parametrize("path", ["/v1/x", rig.CHAT])
@pytest.mark.parametrize("status", STATUSES)
async def test_status_line_passes_with_its_own_phrase(proxy, backend, status, path):
    backend.script = sends(b"HTTP/1.1 " + status + b"\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi")
    answer = await wire.ask(proxy.port, wire.request({"messages": []}, path=path))
    assert (answer.line, answer.body) == (b"HTTP/1.1 " + status, b"hi")


HOP_REQUEST = [
    b"Connection: X-Hop, x-other-hop", b"X-Hop: 1", b"X-Other-Hop: 2", b"Proxy-Authorization: Basic x", b"TE: trailers",
    b"Keep-Alive: timeout=5", b"Upgrade: h2c", b"Proxy-Connection: keep-alive", b"Trailer: X-T", b"Proxy-Authenticate: x",
]  # fmt: skip


@pytest.mark.parametrize("path", ["/v1/x", rig.CHAT])
async def test_hop_by_hop_lines_of_a_request_end_here(proxy, backend, path):
    """B48: those of the protocol and those that `Connection` names; the others stay."""
    data = wire.request({"messages": []}, *HOP_REQUEST, b"X-Stays: 1", path=path)
    answer = await wire.ask(proxy.port, data)
    assert answer.status == 200
    names = [n.lower() for n, _ in backend.seen[0].headers]
    assert names == [b"host", b"authorization", b"content-type", b"content-length", b"x-stays"]


@pytest.mark.parametrize("path", ["/v1/x", rig.CHAT])
async def test_hop_by_hop_lines_of_an_answer_end_here(proxy, backend, path):
    """B48: the same the other way; a backend cannot have framing or cookies taken away by naming them."""
    hops = (
        b"Connection: X-Res, Set-Cookie, Content-Type\r\nX-Res: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\n"
        b"Proxy-Connection: close\r\nTrailer: X-T\r\nUpgrade: h2c\r\nSet-Cookie: a=1\r\nX-Stays: 1\r\n"
    )
    backend.script = gives({"x": 1}, extra=hops)
    answer = await wire.ask(proxy.port, wire.request({"messages": []}, path=path))
    names = {n.lower() for n, _ in answer.headers}
    assert {b"set-cookie", b"x-stays", b"content-type"} <= names
    hop_by_hop = {b"x-res", b"keep-alive", b"proxy-authenticate", b"proxy-connection", b"trailer", b"upgrade"}
    assert not names & hop_by_hop
    assert answer.all(b"connection") == [b"close"]  # ours, since the caller asked for it
    assert answer.body == b'{"x": 1}'


async def test_nominated_line_is_no_part_of_the_question(proxy, backend):
    """B48: what ends at this hop cannot tell two questions apart, since the backend never sees it."""
    found = []
    for value in (b"1", b"2"):
        data = wire.request({"messages": []}, b"Connection: X-Hop", b"X-Hop: " + value, close=False)
        async with wire.dial(proxy.port) as caller:
            await caller.write(data)
            found.append((await caller.whole()).get(b"x-cache"))
    assert (found, backend.calls) == ([b"MISS", b"HIT"], 1)


async def test_backends_claims_about_our_cache_do_not_pass(proxy, backend):
    """A cache behind us may say HIT; what a caller reads in these headers is ours."""
    extra = b"X-Cache: HIT from cdn\r\nX-Cache-Tier: other\r\nX-Cache-Entry-Id: 1\r\nCache-Status: cdn; hit\r\n"
    backend.script = gives({"x": 1}, extra=extra)
    answer = await wire.ask(proxy.port, wire.request(method="GET", path="/v1/x"))
    assert answer.all(b"x-cache") == [b"BYPASS"]
    assert answer.get(b"x-cache-tier") is None and answer.get(b"x-cache-entry-id") is None
    assert answer.all(b"cache-status") == [b"cdn; hit", b"cacheproxy; fwd=bypass; detail=uncacheable_path"]
