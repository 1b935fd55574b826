"""What goes back to the caller: heads that are ours, and the shape in which the HTTP side gets an answer."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from uuid import uuid4

from cacheproxy.core import fields as http_fields
from cacheproxy.core import replay
from cacheproxy.core.model import Answer, Endpoint, Fields, Form
from cacheproxy.core.outcome import Outcome, Source, cache_status
from cacheproxy.engine.profile import Stages
from cacheproxy.ports import Journal


@dataclass(slots=True)
class Served:
    """An answer on its way out.

    `lines`: its fields as on the wire, framing excluded. `body`: all of it, or pieces as they come. `length`: the
    Content-Length to state, None if unknown. `chunked`: a known body is sent in chunks nevertheless (streams).
    `interim`: heads of 1xx answers that come before.
    """

    status: int
    phrase: bytes
    lines: bytes
    body: bytes | AsyncGenerator[bytes, None]
    length: int | None
    chunked: bool = False
    dated: bool = False
    interim: bytes = b""

    async def close(self) -> None:
        """Let go of the backend; cuts an answer that has not ended."""
        if not isinstance(self.body, bytes):
            await self.body.aclose()


PHRASES = {400: b"Bad Request", 404: b"Not Found", 422: b"Unprocessable Content"}
_OURS = frozenset({
    b"x-cache", b"x-cache-tier", b"x-cache-similarity", b"x-cache-threshold", b"x-cache-reason",
    b"x-cache-entry-id", b"x-cache-coalesced",
})  # fmt: skip


class Voice:
    """Writes heads. Everything that a caller learns of the cache is said here, and hidden here."""

    def __init__(self, journal: Journal, *, hide_hits: bool) -> None:
        self._journal = journal
        self._hide = hide_hits

    @property
    def hides(self) -> bool:
        """Nothing may tell a hit from a miss."""
        return self._hide

    def hit(  # noqa: PLR0913 - one head, every fact about it
        self, stages: Stages, outcome: Outcome, answer: Answer, endpoint: Endpoint, now: float, packed: bytes | None
    ) -> Served:
        """A stored answer, with an id and time of its own. `packed`: the content coding that its body, plain here, is
        yet to be packed in."""
        unique = uuid4().hex
        body = replay.refresh(answer, unique, int(now))
        stream = answer.form is Form.EVENTS
        lines = [b"Content-Type: ", answer.content_type.encode("ascii")]
        if not self._hide or answer.request_id:
            lines += (b"\r\nx-request-id: ", unique.encode())
        lines.append(b"\r\nCache-Control: private, no-store\r\nVary: Authorization\r\n")
        if stream:
            lines.append(b"X-Accel-Buffering: no\r\n")
        if packed is not None:
            lines.append(b"Content-Encoding: %b\r\nVary: Accept-Encoding\r\n" % packed)
        hit = outcome.source in (Source.HIT, Source.STALE)
        lines.append(self.ours(stages, outcome, endpoint, tier=hit))
        phrase = PHRASES.get(answer.status, b"OK")
        return Served(answer.status, phrase, b"".join(lines), body, len(body), chunked=stream)

    def opened(self) -> Served:
        """A stream that begins before anything is known of its answer."""
        lines = (
            b"Content-Type: text/event-stream\r\nCache-Control: private, no-store\r\nVary: Authorization\r\n"
            b"X-Accel-Buffering: no\r\n"
        )
        return Served(200, b"OK", lines, b"", None, chunked=True)

    def relayed(self, stages: Stages, outcome: Outcome, endpoint: Endpoint | None, fields: Fields) -> bytes:
        """The lines of a backend's answer that is passed on: its own, and ours."""
        kept = [line for line in fields if line[0].lower() not in _OURS]
        if endpoint is not None:
            kept = _guarded(kept)
            if (http_fields.first(fields, b"content-type") or b"").lower().startswith(b"text/event-stream"):
                kept = [line for line in kept if line[0].lower() != b"x-accel-buffering"]
                kept.append((b"X-Accel-Buffering", b"no"))
        return http_fields.render(tuple(kept)) + self.ours(stages, outcome, endpoint or "")

    def ours(self, stages: Stages, outcome: Outcome, endpoint: Endpoint | str, *, tier: bool = False) -> bytes:
        """Our own lines for `outcome`; tells the journal of it."""
        self._journal.note(outcome, str(endpoint), stages.total)
        stages.outcome = outcome
        if self._hide:
            return b""
        text = f"Cache-Status: {cache_status(outcome)}\r\nX-Cache: {outcome.source.value}\r\n"
        if outcome.source in (Source.HIT, Source.STALE):
            text += f"Age: {outcome.age}\r\n"
        if tier:
            text += f"X-Cache-Tier: {outcome.tier}\r\n"
        if outcome.likeness is not None:
            similarity, threshold = outcome.likeness
            text += f"X-Cache-Similarity: {similarity:.4f}\r\nX-Cache-Threshold: {threshold:.4f}\r\n"
        if outcome.reason is not None:
            text += f"X-Cache-Reason: {outcome.reason.word}\r\n"
        if outcome.entry_id is not None:
            text += f"X-Cache-Entry-Id: {outcome.entry_id}\r\n"
        if outcome.collapsed:
            text += "X-Cache-Coalesced: 1\r\n"
        return f"{text}Server-Timing: {stages.server_timing()}\r\n".encode("ascii")


def _guarded(lines: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """With `Cache-Control` and `Vary` that keep shared caches in front of us from storing the answer."""
    given = tuple(lines)
    kept = [line for line in lines if line[0].lower() not in (b"cache-control", b"vary")]
    control = b", ".join(http_fields.values(given, b"cache-control"))
    strict = b"no-store" in http_fields.tokens(given, b"cache-control")
    kept.append((b"Cache-Control", control if strict else b"private, no-store"))
    vary = b", ".join(http_fields.values(given, b"vary"))
    names = http_fields.tokens(given, b"vary")
    if b"*" not in names and b"authorization" not in names:
        vary = vary + b", Authorization" if vary else b"Authorization"
    kept.append((b"Vary", vary))
    return kept
