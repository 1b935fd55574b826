"""Answers of a backend in which two hops could see different answers, each with its verdict.

`REFUSED`: a 502 of ours, or where the head has been passed on already a visible cut. `PASSED`: the first answer, as its
own framing says, and nothing behind it. Each is sent on a connection that the backend would keep, unless it is in
`CLOSED`.
"""

import json

from tests.fakes.backend import completion

DOCUMENT = json.dumps(completion("the first")).encode()
EVIL_DOCUMENT = json.dumps(completion("evil")).encode()
OK = b"HTTP/1.1 200 OK\r\n"
HEAD = OK + b"Content-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(DOCUMENT)
CODING = b"Transfer-Encoding: chunked\r\n"
EVIL = HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(EVIL_DOCUMENT), EVIL_DOCUMENT)
HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
CHUNK = b"%x\r\n%b\r\n" % (len(DOCUMENT), DOCUMENT)


def answer(lines: bytes = b"", first: bytes = OK) -> bytes:
    return first + HEAD.removeprefix(OK) + lines + LENGTH + b"\r\n" + DOCUMENT


def sized(value: bytes) -> bytes:
    return HEAD + b"Content-Length:" + value + b"\r\n\r\n" + DOCUMENT + EVIL


def coded(value: bytes, name: bytes = b"Transfer-Encoding") -> bytes:
    return HEAD + name + b":" + value + b"\r\n\r\n" + CHUNK + b"0\r\n\r\n" + EVIL


def chunks(data: bytes) -> bytes:
    return HEAD + CODING + b"\r\n" + data


REFUSED = {
    # framed twice, or in no way that is known
    "two lengths": HEAD + b"Content-Length: 5\r\n" + LENGTH + b"\r\n" + DOCUMENT,
    "the same length twice": HEAD + LENGTH + LENGTH + b"\r\n" + DOCUMENT,
    "length and chunks": HEAD + LENGTH + CODING + b"\r\n" + CHUNK + b"0\r\n\r\n",
    "chunks and length": HEAD + CODING + b"Content-Length: 5\r\n\r\n" + CHUNK + b"0\r\n\r\n",
    "chunks and no length": HEAD + CODING + b"Content-Length: 0\r\n\r\n" + CHUNK + b"0\r\n\r\n" + EVIL,
    "list of lengths": sized(b" 5, 5"),
    "negative length": sized(b" -1"),
    "signed length": sized(b" +5"),
    "hex length": sized(b" 0x5"),
    "empty length": sized(b""),
    "length over 64 bits": sized(b" 18446744073709551621"),
    "two numbers as a length": sized(b" 5 5"),
    "unknown coding": coded(b" xchunked"),
    "identity": coded(b" identity"),
    "gzip before chunked": coded(b" gzip, chunked"),
    "chunked not last": coded(b" chunked, gzip"),
    "space before the coding's colon": coded(b" chunked", b"Transfer-Encoding "),
    "folded coding": coded(b"\r\n chunked"),
    "identity and length": HEAD + b"Transfer-Encoding: identity\r\n" + LENGTH + b"\r\n" + DOCUMENT,
    # heads
    "bare CR in a value": answer(b"X: a\rSet-Cookie: evil=1\r\n"),
    "bare LF in a value": answer(b"X: a\nSet-Cookie: evil=1\r\n"),
    "NUL in a value": answer(b"X: a\x00b\r\n"),
    "escape in a value": answer(b"X: a\x1b[0m\r\n"),
    "folded line": answer(b"X: a\r\n b\r\n"),
    "white space before the first line": OK + b" X: y\r\n" + LENGTH + b"\r\n" + DOCUMENT,
    "bare LF as every end": answer().replace(b"\r\n", b"\n"),
    "no colon": answer(b"nonsense\r\n"),
    "no name": answer(b": a\r\n"),
    "space in a name": answer(b"X Y: a\r\n"),
    "letter beyond ASCII in a name": answer("\u00c9: a\r\n".encode()),
    "a line too long": answer(b"X: " + b"a" * 1_000_000 + b"\r\n"),
    "too many lines": answer(b"X: a\r\n" * 100_000),
    # status lines
    "HTTP/0.9": DOCUMENT,
    "other protocol": answer(first=b"ICY 200 OK\r\n"),
    "HTTP/1.2": answer(first=b"HTTP/1.2 200 OK\r\n"),
    "lower-case version": answer(first=b"http/1.1 200 OK\r\n"),
    "two spaces in the line": answer(first=b"HTTP/1.1  200 OK\r\n"),
    "status of four digits": answer(first=b"HTTP/1.1 2000 OK\r\n"),
    "status of two digits": answer(first=b"HTTP/1.1 20 OK\r\n"),
    "status of zeros": answer(first=b"HTTP/1.1 000 OK\r\n"),
    "status below 100": answer(first=b"HTTP/1.1 099 OK\r\n"),
    "status that is no number": answer(first=b"HTTP/1.1 abc OK\r\n"),
    "bare CR in the phrase": answer(first=b"HTTP/1.1 200 O\rSet-Cookie: evil=1\r\n"),
    "bare LF in the phrase": answer(first=b"HTTP/1.1 200 O\nSet-Cookie: evil=1\r\n"),
    "NUL in the phrase": answer(first=b"HTTP/1.1 200 O\x00K\r\n"),
    "control character in the phrase": answer(first=b"HTTP/1.1 200 O\x01K\r\n"),
    "letters before the line": b"x" + answer(),
    "space before the line": b" " + answer(),
    "request": b"GET /v1/hidden HTTP/1.1\r\nHost: x\r\n\r\n",
    # interim answers
    "flood of hints": HINT * 20_000 + answer(),
    "flood of 100": b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000 + answer(),
    "endless hints": HINT * 100_000,
    "hint with a body": HINT[:-2] + b"Content-Length: 5\r\n\r\nhello" + answer(),
    "bare CR in a hint": HINT.replace(b"</a>", b"a\rSet-Cookie: evil=1") + answer(),
    "switch to WebSocket": SWITCH + b"websocket\r\n\r\n" + EVIL,
    "switch to HTTP/2": SWITCH + b"h2c\r\n\r\n",
    "switch to nothing": b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + EVIL,
    # chunks
    "hex prefix in a chunk size": chunks(b"0x5\r\nhello\r\n0\r\n\r\n"),
    "negative chunk size": chunks(b"-5\r\nhello\r\n0\r\n\r\n"),
    "space behind a chunk size": chunks(b"5 \r\nhello\r\n0\r\n\r\n"),
    "bare LF behind a chunk size": chunks(b"5\nhello\r\n0\r\n\r\n"),
    "chunk size over 64 bits": chunks(b"10000000000000005\r\nhello\r\n0\r\n\r\n"),
    "LF in an extension": chunks(b"5;a\nb\r\nhello\r\n0\r\n\r\n"),
    "chunk longer than its size": chunks(b"5\r\nhelloo\r\n0\r\n\r\n"),
    "chunk shorter than its size": chunks(b"5\r\nhell\r\n0\r\n\r\n"),
    "junk as the last chunk": chunks(CHUNK + b"zz\r\n"),
    "bare LF as the last end": chunks(CHUNK + b"0\n\n"),
    "length as a trailer": chunks(CHUNK + b"0\r\nContent-Length: 5\r\n\r\n"),
    "space before a trailer's colon": chunks(CHUNK + b"0\r\nX : y\r\n\r\n"),
    "folded trailer": chunks(CHUNK + b"0\r\nX: y\r\n z\r\n\r\n"),
    "answer as a trailer": chunks(CHUNK + b"0\r\n" + EVIL),
}

CLOSED = {
    "nothing": b"",
    "only a hint": HINT,
    "half a head": HEAD,
    "half a body": HEAD + b"Content-Length: 9999\r\n\r\n" + DOCUMENT,
    "no last chunk": chunks(CHUNK),
    "half a chunk": chunks(CHUNK[:-20]),
}
"""Refused too; the backend closes behind them."""

PASSED = {
    "another answer behind it": (answer() + EVIL, 200, DOCUMENT),
    "another answer behind the chunks": (chunks(CHUNK + b"0\r\n\r\n") + EVIL, 200, DOCUMENT),
    "junk behind it": (answer() + b"junk", 200, DOCUMENT),
    "body longer than its length": (sized(b" 5"), 200, DOCUMENT[:5]),
    "head inside the head": (HEAD + b"X: a\r\nContent-Length: 0\r\n\r\n" + EVIL, 200, b""),
    "body of a 204": (b"HTTP/1.1 204 No Content\r\n\r\n" + EVIL, 204, b""),
    "body of a 304": (b"HTTP/1.1 304 Not Modified\r\n\r\n" + EVIL, 304, b""),
    "coding of a 204": (b"HTTP/1.1 204 No Content\r\n" + CODING + b"\r\n" + CHUNK + b"0\r\n\r\n", 204, b""),
    "chunked twice": (HEAD + CODING + CODING + b"\r\n" + CHUNK + b"0\r\n\r\n" + EVIL, 200, DOCUMENT),
    "underscored coding": (answer(b"Transfer_Encoding: chunked\r\n") + EVIL, 200, DOCUMENT),
    "framing named as hop-by-hop": (answer(b"Connection: transfer-encoding, content-length\r\n") + EVIL, 200, DOCUMENT),
    "coding of a hint": (HINT[:-2] + CODING + b"\r\n" + answer() + EVIL, 200, DOCUMENT),
    "offer to upgrade": (answer(b"Connection: Upgrade\r\nUpgrade: h2c\r\n") + EVIL, 200, DOCUMENT),
    "cookie as a trailer": (
        chunks(CHUNK + b"0\r\nSet-Cookie: evil=1\r\nContent-Type: text/html\r\n\r\n") + EVIL,
        200,
        DOCUMENT,
    ),
}
