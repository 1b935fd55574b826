"""Requests that are nearly valid: recorded ones with a few seeded mutations, the same for the same seed and number."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.rig import ROOT

_OWN = {
    "/v1/completions": {"model": "m", "prompt": "Say hi", "max_tokens": 8, "stream": False},
    "/v1/rerank": {"model": "m", "query": "a", "documents": ["b", {"text": "c"}], "top_n": 2},
    "/v1/score": {"model": "m", "text_1": "a", "text_2": ["b", "c"]},
    "/v1/chat/completions": {
        "model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "Say hi"}]}], "n": 2, "stop": ["."],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}], "logit_bias": {"5": -1},
        "response_format": {"type": "json_object"}, "cache": {"ttl": 60, "namespace": "n"}, "seed": 1, "temperature": 0.5,
    },
}  # fmt: skip
_BYTES = [
    b"\r\n", b"\n", b"\r", b"\0", b":", b" ", b"\t", b";", b",", b"0\r\n\r\n", b"\r\n\r\n", b"%00", b"%0d%0a", b"#", b"?", b"\\", b"\xff", b"\xc3\x28",
    b"\xed\xa0\x80", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 0\r\n", b"Content-Length: 99999999999999999999\r\n", b"Expect: 100-continue\r\n",
    b"Connection: Upgrade\r\nUpgrade: websocket\r\n", b"Content-Encoding: gzip\r\n", b"Content-Encoding: identity, br\r\n", b"HTTP/1.0", b"HTTP/0.9", b"GET ", b"POST / HTTP/1.1\r\n\r\n",
    b"data: [DONE]\n\n", b'"', b"{", b"[", b"}", b"]", b"null", b"NaN", b"\\u0000", b"\\ud800", b"\xef\xbb\xbf", b"1e999", b"-0", b"9" * 400,
]  # fmt: skip
_JSON = [
    "null", "true", "false", "0", "-0", "-1", "1.0", "1e999", "-1e999", "1e-999", "NaN", "Infinity", "-Infinity", "9" * 30, "9" * 5000, "18446744073709551616", "0.1e1",
    '""', '"x"', '"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"', '"\ud7ff\\uFFFF"', '"' + "a" * 200_000 + '"', "[]", "{}", "[[]]", "[null]", "[1, 2.5]", '{"": null}', '{"a": 1, "a": 2}',
    "[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + "1" + "}" * 10_000, "[" * 10_000, '{"type": "text", "text": 5}', '{"role": "user", "content": null}', "'x'", "01", "+1", "0x1", "",
]  # fmt: skip
_NAMES = [
    "messages",
    "input",
    "prompt",
    "stream",
    "stream_options",
    "model",
    "n",
    "cache",
    "tools",
    "encoding_format",
    "documents",
    "query",
    "store",
    "previous_response_id",
    "\u0000",
    "",
    "__proto__",
]
_CONTROLS = [
    "X-Cache-Control", "Cache-Control", "X-Cache-TTL", "X-Cache-Namespace", "X-Cache-Tags", "X-Cache-KB", "X-Cache-Semantic", "X-Priority", "Priority", "Prefer",
    "Last-Event-ID", "Pragma", "Accept-Encoding", "Content-Encoding", "Content-Type", "Authorization", "Connection", "TE", "Expect", "If-None-Match", "Range",
]  # fmt: skip
_VALUES = [
    b"", b"0", b"-1", b"1e9", b"99999999999999999999", b"NaN", b"off", b"on", b"no-cache", b"no-store", b"no-cache=", b"max-age", b"max-age=-5", b'max-age="60', b"max-stale", b"=,=;=", b"a@b@c", b"%", b"%zz",
    b"%ff%fe", b"%00", b"\xff\xfe", "\u65e5\u672c".encode(), b"a" * 20_000, b",".join([b"a"] * 3000), b"P0", b"P9", b"u=9", b"u=0, i", b"u", b"gzip", b"zstd, br;q=0", b"*", b"identity;q=0", b"respond-async", b"bytes=0-1",
    b"close, content-length", b"only-if-cached, max-age=5", b"authorization", b"Bearer", b"Bearer \xe9", b"min-fresh=5, stale-if-error=x", b'"', b"(", b"0.95", b"1.5", b"text/event-stream",
]  # fmt: skip


@dataclass(frozen=True)
class Request:
    """A request in its parts; `text` is its body."""

    method: str
    target: str
    lines: tuple[tuple[bytes, bytes], ...]
    text: bytes

    def wire(self, *, chunks: int = 0) -> bytes:
        """Its bytes; in so many chunks, or with its length."""
        framing = [(b"Transfer-Encoding", b"chunked")] if chunks else [(b"Content-Length", b"%d" % len(self.text))]
        head = f"{self.method} {self.target} HTTP/1.1\r\n".encode()
        head += b"".join(b"%b: %b\r\n" % line for line in [*self.lines, *framing, (b"Connection", b"close")]) + b"\r\n"
        if not chunks:
            return head + self.text
        step = len(self.text) // chunks + 1
        parts = [self.text[i : i + step] for i in range(0, len(self.text), step)]
        return head + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def load() -> list[Request]:
    """The valid requests: the recorded ones, and our own for the operations that no recorded client asks."""
    found = []
    for place in ("data/recorded", "hostile/data"):
        for path in sorted((ROOT / "tests" / place).glob("*.json")):
            told = json.loads(path.read_text())
            drop = ("content-length", "connection")
            lines = tuple((n.encode(), v.encode()) for n, v in told["headers"] if n.lower() not in drop)
            found.append(Request(told["method"], told["path"], lines, (told.get("raw_body") or "").encode()))
    head = ((b"Host", b"x"), (b"Authorization", b"Bearer A"), (b"Content-Type", b"application/json"))
    own = [Request("POST", target, head, json.dumps(body).encode()) for target, body in _OWN.items()]
    return found + own * 4


def mutant(requests: list[Request], seed: str, number: int) -> bytes:
    """The bytes of mutant `number`."""
    rng = random.Random(f"{seed}:{number}")
    request = rng.choice(requests)
    kind = rng.random()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if kind < 0.45 and request.text:
            request = replace(request, text=_odd_json(rng, request.text))
        elif kind < 0.65:
            request = replace(request, lines=(*request.lines, (rng.choice(_CONTROLS).encode(), rng.choice(_VALUES))))
        elif kind < 0.7:
            request = replace(request, text=_odd_bytes(rng, request.text))
    data = request.wire(chunks=rng.choice((0, 0, 0, 1, 7)))
    if kind >= 0.7:
        for _ in range(rng.choice((1, 1, 2, 5))):
            data = _odd_bytes(rng, data)
    return data


def _odd_bytes(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    to = min(len(data), at + rng.choice((1, 2, 8, 40)))
    return rng.choice(_CHANGES)(rng, data, at, to)


def _flip(rng: random.Random, data: bytes, at: int, to: int) -> bytes:
    return data[:at] + bytes(b ^ (1 << rng.randrange(8)) for b in data[at : at + 1]) + data[at + 1 :]


def _swap(rng: random.Random, data: bytes, at: int, to: int) -> bytes:
    lines = data.split(b"\r\n")
    one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[two] = lines[two], lines[one]
    return b"\r\n".join(lines)


def _extreme(rng: random.Random, data: bytes, at: int, to: int) -> bytes:
    while at < len(data) and not data[at : at + 1].isdigit():
        at += 1
    number = rng.choice((b"0", b"-1", b"4294967296", b"9" * 20, b"00", b"0x1", b"1e9", b""))
    return data[:at] + number + data[at + 1 :]


_Change = Callable[[random.Random, bytes, int, int], bytes]
_CHANGES: list[_Change] = [
    _flip,
    _swap,
    _extreme,
    lambda rng, data, at, to: data[:at] + data[to:],
    lambda rng, data, at, to: data[:to] + data[at:],
    lambda rng, data, at, to: data[:at] + rng.choice(_BYTES) + data[at:],
    lambda rng, data, at, to: data[:at] + rng.choice(_BYTES) + data[to:],
    lambda rng, data, at, to: data[:at],
]


def _odd_json(rng: random.Random, text: bytes) -> bytes:
    """A body with something else at a random place: another value, another type, a name twice, an unknown name."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return _odd_bytes(rng, text)
    places = list(_places(document))
    mark = "@@odd@@"
    parent, key = rng.choice(places) if places else ({}, "")
    if isinstance(parent, dict) and rng.random() < 0.3:
        parent[rng.choice(_NAMES)] = mark
    elif places:
        parent[key] = mark
    odd = rng.choice(_JSON)
    written = json.dumps(document, ensure_ascii=rng.random() < 0.5).replace(f'"{mark}"', odd, 1)
    if rng.random() < 0.1:
        written = written.replace("{", '{"model":"x",', 1)
    return written.encode("utf-8", "surrogatepass") + rng.choice((b"", b"", b"", b" ", b"\n", b"x", b"\xff", b"{}"))


def _places(document: Any) -> Any:
    """Every container and key of a document."""
    keys = document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        yield document, key
        yield from _places(document[key])
