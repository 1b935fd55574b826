"""Reads off a backend's answer, as it passes, how many tokens its prompt had and how many of them came from a cache.

Law: holds only the end of the body, never stops or slows it, and counts only what the backend itself says: what the
model or the caller wrote stands inside strings, or deeper in the body, and is never taken for it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from cacheproxy.core import coding, events, tokens
from cacheproxy.core import fields as http_fields
from cacheproxy.core.model import Fields, Form

KEPT = 16 * 1024
"""Bytes of a body's end that are looked at. The usage stands there, whatever came before."""
MOST_UNPACKED = 16 * 2**20
"""Bytes up to which a packed body is unpacked for this."""
TRIES = 8
"""Events that are looked at, and places at which a document whose beginning is not held may begin to say it."""

# A quotation mark inside a string has a backslash before it, so what looks like the name of a member is one.
_NAME = re.compile(rb'(?<!\\)"(?:usage|timings)"[ \t\r\n]*:')
_BLANK = re.compile(rb"(?>\r\n|\n|\r){2}")
_BEGINNINGS = (b"{", b'{"response":{')
"""What may stand before the usage, other members left out. Nothing else: deeper, callers' own words are repeated."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens of a prompt. `cached`: those that the backend had from a cache, None if it does not say; `written`: those
    of the answer so far."""

    prompt: int
    cached: int | None
    written: int = 0


class Meter:
    """Is fed the body of one answer, cut anywhere. `decoder` takes its content coding off."""

    def __init__(self, form: Form, decoder: coding.Decoder | None = None) -> None:
        self._form = form
        self._decoder = decoder
        self._end = bytearray()
        self._cut = False
        self._lost = False

    def __repr__(self) -> str:
        return f"<Meter {len(self._end)} bytes{' after others' if self._cut else ''}>"

    def feed(self, data: bytes) -> None:
        """Take the next bytes as they came from the backend."""
        if self._lost:
            return
        if self._decoder is not None:
            try:
                data = self._decoder.feed(data)
            except coding.BadCoding:
                self._lost = True
                return
        if len(self._end) + len(data) > KEPT:
            self._cut = True
            # What is too much goes in one go, when there is as much of it again.
            if len(self._end) + len(data) > 2 * KEPT:
                data = data[-KEPT:]
                del self._end[: max(0, len(self._end) + len(data) - KEPT)]
        self._end += data

    def counts(self) -> Counts | None:
        """What the backend has said so far, None if nothing."""
        end = bytes(self._end[-KEPT:])
        if self._lost or not _tells(end):
            return None
        for document in self._documents(end):
            found = _counts(document, within=self._form is Form.EVENTS)
            if found is not None:
                return found
        return None

    def _documents(self, end: bytes) -> Iterator[Any]:
        """The body's documents, the last one first; the earliest may lack its beginning."""
        if self._form is Form.JSON:
            yield _document(end, whole=not self._cut)
            return
        # The beginning may stand in the middle of a line, and no blank line need end the last event.
        text = (b"data:" if self._cut else b"") + end
        blocks = _BLANK.split(text) if b"\r" in text else text.split(b"\n\n")
        telling = [number for number, block in enumerate(blocks) if _tells(block)]
        for number in telling[: -TRIES - 1 : -1]:
            for event in events.split(blocks[number] + b"\n\n"):
                if event.data is not None:
                    yield _document(event.data, whole=bool(number) or not self._cut)


def meter(fields: Fields, form: Form) -> Meter | None:
    """A meter for an answer with these fields; None if its content coding is not understood."""
    codings = [c for c in http_fields.tokens(fields, b"content-encoding") if c != b"identity"]
    plain = coding.plain_after(codings)
    if plain is None:
        return None
    return Meter(form, None if plain else coding.Decoder(codings, MOST_UNPACKED))


def _tells(text: bytes) -> bool:
    """Whether there may be something in it to be read. Quickly."""
    return b'"usage"' in text or b'"timings"' in text


def _document(text: bytes, *, whole: bool) -> Any:
    """What `text` says; None if that is nothing. Of a document that lacks its beginning: from one of its own members
    on, or of the response in it."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        names = [] if whole else list(_NAME.finditer(text))[-TRIES:]
    for name in names:
        for beginning in _BEGINNINGS:
            try:
                return orjson.loads(beginning + text[name.start() :])
            except orjson.JSONDecodeError:
                continue  # deeper in the document, or the document has not ended
    return None


def _counts(document: Any, *, within: bool) -> Counts | None:
    """The counts that a document tells: a completion, a chunk of one, or, if `within`, an event around a response."""
    if not isinstance(document, dict):
        return None
    if within and isinstance(response := document.get("response"), dict):
        document = response
    usage, timings = _object(document.get("usage")), _object(document.get("timings"))
    prompt, written = tokens.tokens_of(usage)
    details = _object(usage.get("prompt_tokens_details")) or _object(usage.get("input_tokens_details"))
    said = (details.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), timings.get("cache_n"))
    cached = next((value for value in said if type(value) is int and value >= 0), None)
    if cached is not None and not prompt and type(fresh := timings.get("prompt_n")) is int:
        prompt = max(0, fresh) + cached
    if not written and type(told := timings.get("predicted_n")) is int:
        written = max(0, told)
    if not 0 < prompt < 2**53:
        return None
    return Counts(prompt, None if cached is None else min(cached, prompt), written)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
