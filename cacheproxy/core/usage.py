"""Token usage of streams: asked of the backend for every stream that is recorded, given only to who asked for it.

A stream recorded without its usage could not be replayed to a caller who wants it, nor as a complete JSON answer.
"""

import orjson

from cacheproxy.core import splice
from cacheproxy.core.events import DONE, Event, Splitter

_KNOWN = frozenset({
    "id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier", "obfuscation",
})  # fmt: skip


def ask(raw: bytes, options: object) -> bytes:
    """The request body `raw` with ``stream_options.include_usage`` on; no other byte differs. `options`: the
    ``stream_options`` it has, None for none."""
    wanted = {**options, "include_usage": True} if isinstance(options, dict) else {"include_usage": True}
    return splice.replace(raw, b"stream_options", orjson.dumps(wanted))


class Filter:
    """Takes what was only added because we asked out of a stream that passes: the usage event, and ``usage: null``.

    Everything else leaves byte for byte, as soon as its event is complete.
    """

    def __init__(self) -> None:
        self._splitter = Splitter()
        self._after_cr: bool | None = None
        """Whether the last event ended with a CR whose LF may still come; true: that CR was passed on."""

    def feed(self, data: bytes) -> bytes:
        """The bytes to pass on, now that `data` has come."""
        return b"".join([self._pass(event) for event in self._splitter.feed(data)])

    def _pass(self, event: Event) -> bytes:
        out = _without_usage(event)
        passed = out[-1:] == b"\r"
        late = self._late_lf(event.raw)
        if late is not None:
            out = late + out.removeprefix(b"\n")
        self._after_cr = passed if event.raw[-1:] == b"\r" else None
        return out

    def _late_lf(self, raw: bytes) -> bytes | None:
        """The LF that belongs to the event before `raw`, if `raw` begins with it: as it is to be passed on."""
        if self._after_cr is None or raw[:1] != b"\n":
            return None
        return b"\n" if self._after_cr else b""

    @property
    def rest(self) -> bytes:
        """What an unfinished last event has so far; to be passed on when the stream ends there."""
        rest = self._splitter.rest
        late = self._late_lf(rest)
        return rest if late is None else late + rest.removeprefix(b"\n")


def _without_usage(event: Event) -> bytes:
    if b'"usage"' not in event.raw:
        return event.raw
    data = event.data
    if data is None or data.strip() == DONE:
        return event.raw
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return event.raw
    if not isinstance(document, dict) or "usage" not in document:
        return event.raw
    if document["usage"] is None:
        return event.with_data(splice.remove(data, b"usage"))
    usage, pieces = document["usage"], document.get("choices")
    if pieces or (pieces is None and not (isinstance(usage, dict) and usage)):
        return event.raw
    if document.keys() <= _KNOWN:
        return b""
    if pieces is None:
        return event.with_data(splice.remove(data, b"usage"))
    # The backend put more than usage here (llama.cpp: timings). The caller would have had it on another event;
    # clients that index choices[0] need one, and a delta without anything changes nothing.
    document.pop("usage")
    nothing: dict[str, object] = {"text": ""} if document.get("object") == "text_completion" else {"delta": {}}
    document["choices"] = [{"index": 0, **nothing, "finish_reason": None}]
    return event.with_data(orjson.dumps(document))
