"""What the suites of the core draw from: JSON values, every way of writing one, places to cut bytes, keys."""

import json
import random
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from cacheproxy.core import canonical, key
from cacheproxy.core.model import Ask, Endpoint, Scope

CHAT_TARGET = b"/v1/chat/completions"
SECRET = b"s" * key.SECRET_BYTES
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Say hello."}]}

_AWKWARD = ("", '"', "\\", '\\"', ",", ":", "{}", "[", "]", '"id":"x"', "é", "\u2028", "漢字", "😀", "\0", "\n", "\x7f")
texts = st.sampled_from(_AWKWARD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
integers = st.sampled_from([0, 1, -1, 2**53, 2**63, 2**64 - 1, -(2**63)]) | st.integers(-(2**63), 2**64 - 1)
floats = st.sampled_from([0.0, 1.0, -0.0, 1e16, 1e300, 5e-324]) | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | integers | floats | texts
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
objects = st.dictionaries(texts, values, max_size=5)
randoms = st.randoms(use_true_random=False)


def plain(value: Any) -> bytes:
    """The usual writing of a value; unlike `==` it tells 1, 1.0 and true apart."""
    return json.dumps(value, sort_keys=True).encode()


def write(value: Any, rnd: random.Random, *, shuffle: bool = False) -> bytes:
    """One of the many ways to write `value` as JSON: any white space, any escapes and, if wanted, any order."""
    return _Writer(rnd, shuffle).value(value).encode()


class _Writer:
    def __init__(self, rnd: random.Random, shuffle: bool) -> None:
        self._rnd = rnd
        self._shuffle = shuffle

    def gap(self) -> str:
        return self._rnd.choice(("", "", "", " ", "\n", "\t", "\r\n", "  "))

    def value(self, value: Any) -> str:
        return self.gap() + self._bare(value) + self.gap()

    def _bare(self, value: Any) -> str:
        if isinstance(value, dict):
            members = list(value.items())
            if self._shuffle:
                self._rnd.shuffle(members)
            inner = ",".join(self.gap() + self.text(n) + self.gap() + ":" + self.value(v) for n, v in members)
            return "{" + (inner or self.gap()) + "}"
        if isinstance(value, list):
            return "[" + (",".join(map(self.value, value)) or self.gap()) + "]"
        return self.text(value) if isinstance(value, str) else json.dumps(value)

    def text(self, text: str) -> str:
        return '"' + "".join(map(self._letter, text)) + '"'

    def _letter(self, letter: str) -> str:
        choice = self._rnd.randrange(4)
        if choice == 0:
            return "".join(f"\\u{letter.encode('utf-16-be')[i : i + 2].hex()}" for i in range(0, _units(letter) * 2, 2))
        if choice == 1 and letter == "/":
            return "\\/"
        return json.dumps(letter, ensure_ascii=choice == 2)[1:-1]


def _units(letter: str) -> int:
    return 1 if ord(letter) < 0x10000 else 2


@st.composite
def pieces(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """`data` cut at some places, or after every byte."""
    if len(data) < 300 and draw(st.booleans()):
        return bytewise(data)
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=6)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def bytewise(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def form(body: dict[str, Any] | bytes, endpoint: Endpoint = Endpoint.CHAT) -> bytes | None:
    """The canonical form of a request body, as the pipeline makes it; None if it must not be keyed."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    read = canonical.read(raw)
    assert read is not None, "the body is JSON"
    return canonical.form(endpoint, raw, read.fields) if read.trouble is None else None


def exact(**parts: Any) -> bytes:
    """An exact key: a common one with `parts` changed."""
    common: dict[str, Any] = {
        "realm": b"realm", "owner": b"c" * 16, "namespace": "", "knowledge": "", "target": CHAT_TARGET,
        "fields": (), "body": b"{}",
    }  # fmt: skip
    return key.exact(SECRET, **{**common, **parts})


def ask(*, stream: bool = False, choices: int = 1, endpoint: Endpoint = Endpoint.CHAT) -> Ask:
    return Ask(endpoint, b"k" * 32, Scope(b"c" * 16), b"c" * 16, "m", stream, False, choices)


def events(documents: Iterable[Any], *, done: bool = True) -> bytes:
    """A stream of server-sent events, written by hand."""
    lines = [json.dumps(d, ensure_ascii=False).encode() for d in documents]
    return b"".join(b"data: " + line + b"\n\n" for line in [*lines, *([b"[DONE]"] if done else [])])
