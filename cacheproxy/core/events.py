"""Server-sent events: bytes <-> events (WHATWG HTML, section 9.2), never through text lines.

A `Splitter` may be fed the stream whole, byte by byte, or cut inside a character or a line end: the events are the
same. Line ends are LF, CRLF or CR, also mixed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_BLANK = re.compile(rb"(?>\r\n|\n|\r){2}")
_LINE = re.compile(rb"\r\n|\n|\r")
_PARTS = re.compile(rb"(\r\n|\n|\r)")
_DATA = re.compile(rb"data(?::[ ]?|$)")
_BOM = b"\xef\xbb\xbf"

DONE = b"[DONE]"


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `raw`: its block as it came, blank line included; `lines`: its field lines, comments left out."""

    raw: bytes
    lines: tuple[bytes, ...]

    def field(self, name: bytes) -> bytes | None:
        """The value of the last field `name`, None when there is none."""
        value = None
        for line in self.lines:
            if line.partition(b":")[0] == name:
                value = _value(line)
        return value

    @property
    def data(self) -> bytes | None:
        """The ``data`` lines joined by LF; None when the event has none and so is never dispatched."""
        values = [_value(line) for line in self.lines if line.partition(b":")[0] == b"data"]
        return b"\n".join(values) if values else None

    def with_data(self, data: bytes) -> bytes:
        """The event's bytes with another `data`; every other byte is kept if the event has one line of it."""
        others = [line for line in self.lines if line.partition(b":")[0] != b"data"]
        if len(self.lines) - len(others) != 1:
            return _block([*others, *(b"data: " + line for line in data.split(b"\n"))])
        # A mark at the start of the stream is no part of the line; anywhere else it is.
        marked = self.raw.startswith(_BOM) and self.lines[:1] != (_LINE.split(self.raw, maxsplit=1)[0],)
        parts = _PARTS.split(self.raw[len(_BOM) :] if marked else self.raw)
        kept = [_BOM] if marked else []
        for line, end in zip(parts[::2], [*parts[1::2], b""], strict=True):
            mark = _DATA.match(line)
            if mark is None:
                kept += (line, end)
                continue
            name = mark.group()
            for new in data.split(b"\n"):
                bare = name[-1:] == b":" and new[:1] != b" "
                kept.append((name if bare or name[-1:] == b" " else b"data: ") + new + (end or b"\n"))
        return b"".join(kept)

    @property
    def stored(self) -> bytes:
        """The event's bytes without its comments, line ends as LF."""
        return _block(self.lines)


def _block(lines: Sequence[bytes]) -> bytes:
    """The event with these field lines. A name that begins like the byte-order mark must not come to stand where it
    would be taken for one, at the start of the stream: an empty comment goes before it."""
    return b"\n".join([b":", *lines] if lines and lines[0].startswith(_BOM) else lines) + b"\n\n"


def _value(line: bytes) -> bytes:
    value = line.partition(b":")[2]
    return value[1:] if value[:1] == b" " else value


def event(data: bytes) -> bytes:
    """The bytes of an event with one line of `data`."""
    return b"data: " + data + b"\n\n"


class Splitter:
    """Cuts a byte stream into events. Holds at most the bytes of one unfinished event."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._scan = 0
        self._after_cr = False
        self._late_lf = b""
        self._started = False

    def feed(self, data: bytes) -> list[Event]:
        """The events that `data` completes, in order. Blocks of comments alone are events without fields."""
        if self._after_cr and data:
            # The CR that ended the last event may be the first half of a CRLF: its LF goes out with what follows.
            self._after_cr = False
            if data[:1] == b"\n":
                self._late_lf, data = b"\n", data[1:]
        held = self._held
        held += data
        found: list[Event] = []
        start = 0
        while mark := _BLANK.search(held, max(start, self._scan)):
            found.append(_parse(self._late_lf, bytes(held[start : mark.end()]), first=not self._started))
            self._started = True
            self._late_lf = b""
            start = mark.end()
            self._scan = 0
        if start:
            self._after_cr = start == len(held) and held[-1:] == b"\r"
            del held[:start]
        self._scan = max(0, len(held) - 3)
        return found

    @property
    def rest(self) -> bytes:
        """The bytes after the last complete event."""
        return self._late_lf + bytes(self._held)


def _parse(before: bytes, block: bytes, *, first: bool) -> Event:
    text = block[len(_BOM) :] if first and block.startswith(_BOM) else block
    lines = text.split(b"\n") if b"\r" not in text else _LINE.split(text)
    return Event(before + block, tuple(line for line in lines if line and line[:1] != b":"))


def split(raw: bytes) -> list[Event]:
    """The complete events of a whole stream."""
    return Splitter().feed(raw)
