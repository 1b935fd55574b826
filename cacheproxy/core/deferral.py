"""Requests that are kept and asked later: who wants that, what is kept of them, and what of their answers. Pure.

A stored form is a byte of its version, the length of a head (4 bytes), the head as JSON, and the body as it came.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from cacheproxy.core import fields as http_fields
from cacheproxy.core.model import Fields

PREFERENCE = b"respond-async"
"""RFC 7240 section 4.1."""
_VERSION = b"\x01"
_NOT_KEPT = frozenset({
    # of one connection, or of the wait that is over
    b"host", b"content-length", b"expect", b"x-priority", b"last-event-id", b"x-cache-event-ids", b"x-cache-heartbeat",
})  # fmt: skip
_NOT_TOLD = frozenset({
    b"date", b"content-length", b"cache-status", b"age", b"server-timing", b"x-cache", b"x-cache-tier",
    b"x-cache-similarity", b"x-cache-threshold", b"x-cache-reason", b"x-cache-entry-id", b"x-cache-coalesced",
    b"set-cookie", b"retry-after", b"x-should-retry",
})  # fmt: skip
_NOT_TOLD_PREFIX = b"x-ratelimit-"
LATER = frozenset({408, 425, 429})
"""Client errors by name that speak of this moment alone."""
LONGEST_PAUSE = 600.0


class State(StrEnum):
    """How far a kept request is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked later: a POST to `target`, with the caller's header lines and body."""

    target: bytes
    fields: Fields
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of it: an answer as its caller would have been given it, or an error of ours."""

    status: int
    fields: Fields
    body: bytes

    @property
    def is_lasting(self) -> bool:
        """Whether asking again would give the same."""
        return self.status < 500 and self.status not in LATER


@dataclass(frozen=True, slots=True)
class Row:
    """What a store tells of a request. `owner`: the fingerprint (16 bytes) of its credential; `sealed`: the order, or
    once it has ended the reply, empty where there is neither any more; `attempts`: how often it was claimed; times in
    seconds since the epoch, 0 for not yet."""

    id: str
    owner: bytes
    state: State
    sealed: bytes
    attempts: int = 0
    created_at: float = 0.0
    started_at: float = 0.0
    ended_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """`most_bytes` that all hold together, `most` of one owner that have not ended; seconds that one waits at most
    (`max_age`), and that one which has ended is known (`ttl`)."""

    most_bytes: int
    most: int
    max_age: float
    ttl: float


def wants(fields: Fields) -> bool:
    """Whether the request would rather be answered later than not at all (``Prefer``, RFC 7240 section 2)."""
    return any(_name(part) == PREFERENCE for part in http_fields.tokens(fields, b"prefer"))


def order(target: bytes, fields: Fields, body: bytes) -> Order:
    """What is kept of a request: its lines that belong to no connection; it is asked as what nobody waits for."""
    kept = [line for line in http_fields.end_to_end(fields) if line[0].lower() not in _NOT_KEPT]
    kept = [line for line in kept if line[0].lower() != b"prefer" or not wants((line,))]
    return Order(target, (*kept, (b"X-Priority", b"P2"), (b"X-Cache-Heartbeat", b"0")), body)


def reply(status: int, lines: bytes, body: bytes) -> Reply:
    """What is kept of an answer with these header lines: what says something of the cache, or of this moment, is not
    told later."""
    split = [line.partition(b":") for line in lines.split(b"\r\n") if line]
    fields = tuple((name, value.strip(b" \t")) for name, _, value in split)
    return Reply(status, tuple(line for line in fields if _is_told(line[0].lower())), body)


def pause(attempts: int, first: float, told: float | None = None) -> float:
    """Seconds after which what has failed `attempts` times is asked again; `told`: by the backend."""
    return min(max(first * 2.0 ** min(attempts - 1, 30), told or 0.0), LONGEST_PAUSE)


def pack(kept: Order | Reply) -> bytes:
    """The stored form."""
    first: object = kept.target.decode("latin-1") if isinstance(kept, Order) else kept.status
    lines = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in kept.fields]
    head = orjson.dumps([first, lines])
    return b"".join([_VERSION, len(head).to_bytes(4, "big"), head, kept.body])


def order_of(data: bytes) -> Order | None:
    """The request that `data` is the stored form of; None if it is none."""
    found = _unpacked(data)
    if found is None or not isinstance(found[0], str):
        return None
    try:
        return Order(found[0].encode("latin-1"), found[1], found[2])
    except UnicodeError:
        return None


def reply_of(data: bytes) -> Reply | None:
    """The answer that `data` is the stored form of; None if it is none."""
    found = _unpacked(data)
    if found is None or type(found[0]) is not int or not 200 <= found[0] <= 599:
        return None
    return Reply(found[0], found[1], found[2])


def _unpacked(data: bytes) -> tuple[Any, Fields, bytes] | None:
    if data[:1] != _VERSION:
        return None
    end = 5 + int.from_bytes(data[1:5], "big")
    try:
        first, lines = orjson.loads(data[5:end])
        fields = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in lines)
    except (ValueError, TypeError, AttributeError):
        return None
    return first, fields, data[end:]


def _name(part: bytes) -> bytes:
    """The name of a preference, without its value and parameters."""
    return part.partition(b";")[0].partition(b"=")[0].strip()


def _is_told(name: bytes) -> bool:
    return name not in _NOT_TOLD and not name.startswith(_NOT_TOLD_PREFIX)
