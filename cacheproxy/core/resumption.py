"""Ids of the events of a stream, and going on after one of them (WHATWG HTML, section 9.2). Pure.

An id is the identity of the answer, which cannot be guessed, and the number of the event in it, from 1. Events are
counted as they came from the backend, blocks of comments alone left out, so that the live stream and the stored one
have the same numbers.
"""

import re
from dataclasses import dataclass

from cacheproxy.core.controls import GREATEST, BadControl
from cacheproxy.core.events import Event, Splitter
from cacheproxy.core.fields import values
from cacheproxy.core.model import Fields

IDENTITY_BYTES = 16
SHORTEST_BEAT = 0.1
"""Seconds; a request that wants signs of life more often gets them so often."""
_ID = re.compile(rb"([0-9a-f]{32})-([0-9]{1,9})")
_LINE_END = re.compile(rb"\r\n?")
_SECONDS = re.compile(rb"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_NAMES = frozenset({b"last-event-id", b"x-cache-event-ids", b"x-cache-heartbeat"})


@dataclass(frozen=True, slots=True)
class Wish:
    """How a stream is to be given: with ids; going on after event `after` of the answer `identity`, where one is named;
    with a sign of life every so many seconds before it begins, 0 for none, None if the request does not say."""

    ids: bool = False
    identity: bytes | None = None
    after: int = 0
    heartbeat: float | None = None

    def after_in(self, identity: bytes) -> int:
        """The number of the event to go on after, in the answer `identity`."""
        return self.after if identity == self.identity else 0


NONE = Wish()


def is_ours(value: bytes) -> bool:
    """Whether `value` is an id that is given here."""
    return _ID.fullmatch(value.strip()) is not None


def read(fields: Fields) -> Wish | BadControl:
    """How the request with these fields wants its stream."""
    if not any(name.lower() in _NAMES for name, _ in fields):
        return NONE
    last = values(fields, b"last-event-id")
    found = _ID.fullmatch(last[-1].strip()) if last else None
    identity, after = (bytes.fromhex(found[1].decode()), int(found[2])) if found else (None, 0)
    asked = [value.strip().lower() for value in values(fields, b"x-cache-event-ids")]
    if not set(asked) <= {b"on", b"off", b"1", b"0"}:
        return BadControl("X-Cache-Event-Ids", "on or off")
    beats = [value.strip() for value in values(fields, b"x-cache-heartbeat")]
    if not all(map(_SECONDS.fullmatch, beats)):
        return BadControl("X-Cache-Heartbeat", "a number of seconds, 0 for none")
    heartbeat = min(float(beats[-1]), GREATEST) if beats else None
    if heartbeat:
        heartbeat = max(heartbeat, SHORTEST_BEAT)
    return Wish(bool(last) or bool(asked and asked[-1] in (b"on", b"1")), identity, after, heartbeat)


class Numbering:
    """Gives the events of the answer `identity` their ids, and leaves out the first `after` of them."""

    def __init__(self, identity: bytes, after: int = 0) -> None:
        self._name = identity.hex().encode()
        self._after = after
        self._splitter = Splitter()
        self._after_cr = False
        self._number = 0

    def feed(self, data: bytes) -> bytes:
        """The bytes to pass on, now that `data` has come."""
        return b"".join([self._pass(event) for event in self._splitter.feed(data)])

    def _pass(self, event: Event) -> bytes:
        late, self._after_cr = self._after_cr, event.raw[-1:] == b"\r"
        if not event.lines:  # an LF that came late belongs to the line end before, which has gone out
            raw = event.raw.removeprefix(b"\n") if late else event.raw
            return _LINE_END.sub(b"\n", raw) if self._number >= self._after else b""
        self._number += 1
        if self._number <= self._after:
            return b""
        others = [line for line in event.lines if line.partition(b":")[0] != b"id"]
        return b"\n".join([b"id: %b-%d" % (self._name, self._number), *others]) + b"\n\n"

    @property
    def rest(self) -> bytes:
        """What an unfinished last event has so far; to be passed on when the stream ends there."""
        rest = self._splitter.rest
        rest = rest.removeprefix(b"\n") if self._after_cr else rest
        return rest if self._number >= self._after else b""
