"""The forms of request smuggling that are no refusals, and the words that all forms are made of.

`HIDDEN` is never to arrive as a request, whatever carries it. `TAKEN`: exactly the requests beside it, each well framed,
and then those that follow on the connection. `CLOSING`: the same, and the connection ends by itself. `UNFINISHED`: forms
that wait for more; none of it is a request yet.
"""

BODY = b'{"model":"m","messages":[{"role":"user","content":"x"}]}'
HIDDEN = b"GET /v1/hidden HTTP/1.1\r\nHost: x\r\n\r\n"
NEXT = b"GET /v1/next HTTP/1.1\r\nHost: x\r\n\r\n"
CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
POST = b"POST /v1/x HTTP/1.1\r\nHost: x\r\n"
GET = b"GET /v1/x HTTP/1.1\r\nHost: x\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
SOCKET = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"

Asked = tuple[bytes, bytes, bytes]
X: Asked = (b"GET", b"/v1/x", b"")
Y: Asked = (b"GET", b"/v1/next", b"")
ASKED: Asked = (b"POST", b"/v1/chat/completions", BODY)


def chunked(body: bytes = BODY, size: bytes = b"%x", extension: bytes = b"", trailers: bytes = b"") -> bytes:
    return size % len(body) + extension + b"\r\n" + body + b"\r\n0\r\n" + trailers + b"\r\n"


def whole(body: bytes = BODY) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def line(first: bytes) -> bytes:
    return first + b"\r\nHost: x\r\n\r\n"


def old(data: bytes) -> bytes:
    return data.replace(b"HTTP/1.1", b"HTTP/1.0", 1)


def coded(value: bytes, name: bytes = b"Transfer-Encoding") -> bytes:
    """A body in chunks behind a coding line that some hops read and others do not."""
    return CHAT + name + b":" + value + b"\r\n\r\n" + chunked() + HIDDEN


def sized(value: bytes, name: bytes = b"Content-Length") -> bytes:
    """A body of five bytes behind a length line that some hops read and others do not."""
    return CHAT + name + b":" + value + b"\r\n\r\nhello" + HIDDEN


def field(text: bytes) -> bytes:
    return GET + text + b"\r\n\r\n"


def host(value: bytes) -> bytes:
    return b"GET /v1/x HTTP/1.1\r\nHost:" + value + b"\r\n\r\n"


TAKEN: dict[str, tuple[bytes, list[Asked]]] = {
    "length with zeros": (CHAT + b"Content-Length: 00056\r\n\r\n" + BODY, [ASKED]),
    "white space around the length": (CHAT + b"Content-Length: \t56\t \r\n\r\n" + BODY, [ASKED]),
    "request as a body": (POST + whole(HIDDEN), [(b"POST", b"/v1/x", HIDDEN)]),
    "request as a body of GET": (GET + whole(HIDDEN), [(b"GET", b"/v1/x", HIDDEN)]),
    "request as a body of the models": (
        b"GET /v1/models HTTP/1.1\r\nHost: x\r\n" + whole(HIDDEN),
        [(b"GET", b"/v1/models", HIDDEN)],
    ),
    "request as a body of HEAD": (b"HEAD /v1/x HTTP/1.1\r\nHost: x\r\n" + whole(HIDDEN), [(b"HEAD", b"/v1/x", HIDDEN)]),
    "request as a body of DELETE": (
        b"DELETE /v1/x HTTP/1.1\r\nHost: x\r\n" + whole(HIDDEN),
        [(b"DELETE", b"/v1/x", HIDDEN)],
    ),
    "request as a body of OPTIONS": (
        b"OPTIONS /v1/x HTTP/1.1\r\nHost: x\r\n" + whole(HIDDEN),
        [(b"OPTIONS", b"/v1/x", HIDDEN)],
    ),
    "no length and another request": (POST + b"Content-Length: 0\r\n\r\n" + NEXT, [(b"POST", b"/v1/x", b""), Y]),
    "no framing and another request": (POST + b"\r\n" + NEXT, [(b"POST", b"/v1/x", b""), Y]),
    "expectation of GET": (GET + b"Expect: 100-continue\r\n\r\n" + NEXT, [X, Y]),
    "expectation and its body at once": (
        POST + b"Expect: 100-continue\r\n" + whole(HIDDEN),
        [(b"POST", b"/v1/x", HIDDEN)],
    ),
    "expectation of no body": (
        POST + b"Expect: 100-continue\r\nContent-Length: 0\r\n\r\n" + NEXT,
        [(b"POST", b"/v1/x", b""), Y],
    ),
    "expectation of something else": (
        POST + b"Expect: y 100-continue\r\n" + whole(HIDDEN),
        [(b"POST", b"/v1/x", HIDDEN)],
    ),
    "expectation in a list": (POST + b"Expect: \t100-CONTINUE, x\r\n" + whole(HIDDEN), [(b"POST", b"/v1/x", HIDDEN)]),
    "WebSocket of POST": (POST + b"X: websocket\r\n" + whole(HIDDEN), [(b"POST", b"/v1/x", HIDDEN)]),
    "CRLF before the line": (b"\r\n" + line(b"GET /v1/x HTTP/1.1"), [X]),
    "two CRLF before the line": (b"\r\n\r\n" + line(b"GET /v1/x HTTP/1.1"), [X]),
    "LF before the line": (b"\n" + line(b"GET /v1/x HTTP/1.1"), [X]),
    "CRLF between two requests": (NEXT + b"\r\n" + line(b"GET /v1/x HTTP/1.1"), [Y, X]),
    "two spaces in the line": (line(b"GET  /v1/x  HTTP/1.1"), [X]),
    "asterisk form": (line(b"OPTIONS * HTTP/1.1"), [(b"OPTIONS", b"*", b"")]),
    "method of the parser's list": (line(b"M-SEARCH /v1/x HTTP/1.1"), [(b"M-SEARCH", b"/v1/x", b"")]),
    **{
        name: (line(b"GET " + target + b" HTTP/1.1"), [(b"GET", target, b"")])
        for name, target in {
            "target with two slashes": b"//host/v1/x",
            "target with dots": b"/v1/../x",
            "encoded NUL": b"/v1/%00",
            "encoded CRLF": b"/v1/x%0d%0aHost:%20y%0d%0a%0d%0aGET%20/v1/hidden",
            "encoded junk": b"/v1/%zz%",
            "encoded fragment": b"/v1/x%23y",
            "backslash in the target": b"/v1\\..\\x",
            "at sign in the target": b"/@other.example",
            "URL in the path": b"/http://other.example/",
            "target of the greatest length": b"/" + b"a" * 60_000,
        }.items()
    },
    **{
        name: (host(value), [X])
        for name, value in {
            "empty host": b"",
            "host without a space": b"x",
            "host with a port": b" x:99999",
            "host with an empty port": b" x:",
            "address as a host": b" [::1]:8800",
            "underscored host": b" my_service:80",
            "host in capitals": b" X.Example.",
        }.items()
    },
    **{
        name: (field(text), [X])
        for name, text in {
            "colon in a value": b"X:Y: b",
            "white space around a value": b"X: \t  a b \t ",
            "bytes beyond ASCII in a value": b"X: \xe9\x85\xff",
            "most lines": b"\r\n".join(b"X%d: a" % i for i in range(250)),
            "name that imitates a connection": b"Connection_: close",
            "other target in a header": b"X-Original-URL: /v1/hidden\r\nX-Rewrite-URL: /v1/hidden",
            "other host in a header": b"X-Forwarded-Host: y\r\nForwarded: host=y",
            "coding offered for the answer": b"TE: trailers, chunked",
            "connection that is kept": b"Keep-Alive: timeout=0",
        }.items()
    },
    "other method in a header": (POST + b"X-HTTP-Method-Override: DELETE\r\n" + whole(), [(b"POST", b"/v1/x", BODY)]),
    "content coding that is not true": (POST + b"Content-Encoding: gzip\r\n" + whole(), [(b"POST", b"/v1/x", BODY)]),
    **{
        name: (CHAT + b"Connection:" + value + b"\r\n" + whole(), [ASKED])
        for name, value in {
            "length named as hop-by-hop": b" content-length",
            "host named as hop-by-hop": b" host",
            "coding and content type named as hop-by-hop": b" content-encoding, content-type, transfer-encoding",
            "nothing named as hop-by-hop": b"",
            "junk named as hop-by-hop": b" ,,;=",
        }.items()
    },
}

CLOSING: dict[str, tuple[bytes, list[Asked]]] = {
    "HTTP/1.0": (old(GET) + b"\r\n", [X]),
    "HTTP/1.0 without a host": (b"GET /v1/x HTTP/1.0\r\n\r\n", [X]),
    "HTTP/1.0 with a body": (old(CHAT) + whole(), [ASKED]),
    "close and keep-alive": (GET + b"Connection: close, keep-alive\r\n\r\n", [X]),
    "keep-alive and close": (GET + b"Connection: keep-alive\r\nConnection: close\r\n\r\n", [X]),
    "close in mixed case": (GET + b"Connection: ClOsE\r\n\r\n", [X]),
    "h2c": (GET + OFFER + b"\r\n" + HIDDEN, [X]),
    "h2c with a body": (CHAT + OFFER + whole() + HIDDEN, [ASKED]),
    "h2c with HTTP/1.0 that is kept": (old(GET) + OFFER.replace(b"Upgrade,", b"Upgrade, keep-alive,") + b"\r\n", [X]),
    "TLS": (
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\nUpgrade: TLS/1.0\r\nConnection: Upgrade\r\n\r\n" + HIDDEN,
        [(b"OPTIONS", b"*", b"")],
    ),
    "offer without a connection": (GET + b"Upgrade: websocket\r\n\r\n", [X]),
    "WebSocket declined": (GET + SOCKET + b"\r\n" + HIDDEN, [X]),
    "WebSocket of another version": (GET + SOCKET + b"Sec-WebSocket-Version: 1777\r\n\r\n" + HIDDEN, [X]),
    "WebSocket and h2c": (GET + b"Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n\r\n" + HIDDEN, [X]),
    "WebSocket of POST that offers": (CHAT + SOCKET + whole() + HIDDEN, [ASKED]),
    "WebSocket with HTTP/1.0": (old(GET) + SOCKET + b"\r\n", [X]),
    "WebSocket without a body": (GET + SOCKET + b"Content-Length: 0\r\n\r\n", [X]),
    "coding in capitals": (coded(b" cHuNkEd"), [ASKED]),
    "tab before the coding": (coded(b"\tchunked"), [ASKED]),
    "request as a chunk of GET": (GET + CHUNKED + chunked(HIDDEN), [(b"GET", b"/v1/x", HIDDEN)]),
    "expectation and chunks": (
        POST + b"Expect: 100-continue\r\n" + CHUNKED + chunked(HIDDEN),
        [(b"POST", b"/v1/x", HIDDEN)],
    ),
    "chunks named as hop-by-hop": (
        CHAT
        + b"Connection: transfer-encoding, authorization, host\r\nAuthorization: Bearer A\r\n"
        + CHUNKED
        + chunked(),
        [ASKED],
    ),
    **{
        name: (CHAT + CHUNKED + body + HIDDEN, [ASKED])
        for name, body in {
            "chunk size in capitals and zeros": chunked(size=b"0000%X"),
            "extension": chunked(extension=b";a=b"),
            "quoted extension": chunked(extension=b';a="b;c"'),
            "zeros as the last chunk": chunked()[:-5] + b"000\r\n\r\n",
            "extension of the last chunk": chunked()[:-5] + b"0;a=b\r\n\r\n",
            "trailer": chunked(trailers=b"X-T: 1\r\n"),
            "credential as a trailer": chunked(trailers=b"Authorization: Bearer B\r\nX-Cache-Namespace: n\r\n"),
            "one byte a chunk": b"".join(b"1\r\n%c\r\n" % c for c in BODY) + b"0\r\n\r\n",
        }.items()
    },
}

UNFINISHED = {
    "head that ends early": CHAT[:-2],
    "body that ends early": POST + b"Content-Length: 100\r\n\r\n" + HIDDEN,
    "body of a cached path that ends early": CHAT + b"Content-Length: 100\r\n\r\n" + HIDDEN,
    "chunks that end early": POST + CHUNKED + b"5\r\nhello\r\n",
    "chunks of a cached path that end early": CHAT + CHUNKED + b"%x\r\n%b\r\n" % (len(BODY), BODY),
    "chunk size that ends early": POST + CHUNKED + b"5",
    "last chunk that ends early": POST + CHUNKED + b"5\r\nhello\r\n0\r\n",
    "chunk size of 33 bits": POST + CHUNKED + b"100000005\r\nhello\r\n0\r\n\r\n" + HIDDEN,
    "chunk size of 64 bits": POST + CHUNKED + b"ffffffffffffffff\r\nhello\r\n0\r\n\r\n" + HIDDEN,
    "greatest length": POST + b"Content-Length: 9223372036854775807\r\n\r\nhello",
}
