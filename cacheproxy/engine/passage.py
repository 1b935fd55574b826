"""What crosses between caller and backend: which fields go on, and which content coding has to be taken off."""

from cacheproxy.core import coding
from cacheproxy.core import fields as http_fields
from cacheproxy.core.model import Fields
from cacheproxy.errors import UpstreamCut

_UNLIMITED = 2**62
_ANSWERED_HERE = http_fields.CONTROLS | {b"expect"}


def forwarded(fields: Fields) -> Fields:
    """The request fields that go to the backend. ``Expect`` is answered by us, our own controls end here."""
    return tuple(line for line in http_fields.end_to_end(fields) if not _ends_here(*line))


def _ends_here(name: bytes, value: bytes) -> bool:
    low = name.lower()
    # RFC 7240: the wish to be answered later is one to us.
    return low in _ANSWERED_HERE or (low == b"prefer" and b"respond-async" in value.lower())


class Passage:
    """One answer's way to its caller: its fields and its body as this caller can read them.

    `unpack`: the body must be plain, whatever the caller accepts (because something looks inside).
    """

    def __init__(self, asked: Fields, answered: Fields, *, unpack: bool = False, transparent: bool = False) -> None:
        codings = [c for c in http_fields.tokens(answered, b"content-encoding") if c != b"identity"]
        readable = transparent or all(http_fields.accepts_coding(asked, c) for c in codings)
        self._decoder: coding.Decoder | None = None
        if codings and (unpack or not readable) and coding.plain_after(codings) is False:
            self._decoder = coding.Decoder(codings, _UNLIMITED)
        self._answered = answered

    @property
    def unpacks(self) -> bool:
        return self._decoder is not None

    @property
    def fields(self) -> Fields:
        """The answer's fields that go to the caller; its framing is stated anew."""
        drop = (b"content-length", b"content-encoding") if self._decoder is not None else (b"content-length",)
        return tuple(line for line in http_fields.end_to_end(self._answered) if line[0].lower() not in drop)

    @property
    def length(self) -> int | None:
        """The length of the body as it goes to the caller, where the backend stated it."""
        return None if self._decoder is not None else stated_length(self._answered)

    @property
    def dated(self) -> bool:
        return http_fields.first(self._answered, b"date") is not None

    def carry(self, data: bytes) -> bytes:
        """The bytes that go to the caller for `data` of the backend."""
        if self._decoder is None:
            return data
        try:
            return self._decoder.feed(data)
        except coding.BadCoding as error:
            raise UpstreamCut("the body is not of its content coding") from error


def stated_length(fields: Fields) -> int | None:
    """The value of ``Content-Length``."""
    value = http_fields.first(fields, b"content-length")
    return int(value) if value is not None and value.isdigit() else None
