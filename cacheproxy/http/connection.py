"""One connection to a backend: HTTP/1.1, one request at a time, the answer's bytes as they come.

Parsing is httptools' (llhttp); this file only keeps the order of things. State changes in callbacks, where nothing
awaits. What the reader has not taken is bounded: above `HIGH_WATER` bytes the socket is not read.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable
from typing import cast

import httptools

from cacheproxy.core.fields import end_to_end, render, tokens
from cacheproxy.core.model import Fields
from cacheproxy.errors import AnswerError, UpstreamCut, UpstreamTimeout

HIGH_WATER = 256 * 1024
HEAD_LIMIT = 256 * 1024
"""Bytes that may come before an answer's head is whole, interim answers included."""
_NO_BODY = (204, 304)
_BAD_PHRASE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class _Refused(Exception):
    """The parser takes it, a proxy must not pass it on."""


class Dropped(Exception):
    """The connection ended before a byte of the answer came."""


class Connection(asyncio.Protocol):
    """A connection to one backend. `reusable` once an exchange is over and both sides will keep it open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._drainer: asyncio.Future[None] | None = None
        self._lost: BaseException | None = None
        self._closed = False
        self._writing_paused = False
        self._reading_paused = False
        self.exchanges = 0
        self._begin(head_only=False)
        self._complete = True

    def __repr__(self) -> str:
        state = "closed" if self._closed else "idle" if self._complete else "busy"
        return f"<Connection {state} after {self.exchanges} exchanges, {self._buffered} bytes unread>"

    def _begin(self, *, head_only: bool) -> None:
        self._head_only = head_only
        self._lines: list[tuple[bytes, bytes]] = []
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self._have_head = False
        self._before_head = 0
        self._complete = False
        self._keep_alive = False
        self._until_close = False
        self.status = 0
        self.phrase = b""
        self.fields: Fields = ()
        self.touched = False
        self.upgraded_tail: bytes | None = None
        self.interim = b""

    # --- asyncio's side ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name

    def data_received(self, data: bytes) -> None:
        if self.upgraded_tail is not None:
            self.upgraded_tail += data
            return
        if self._complete:
            # Bytes that no request asked for: an answer to nobody must never meet the next request.
            self.abort()
            return
        self.touched = True
        self._before_head += 0 if self._have_head else len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.upgraded_tail = data[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            if self._framed():
                self._keep_alive = False
            else:
                self._fail(UpstreamCut(f"the answer is not HTTP: {error}"))
        if not self._have_head and self._before_head > HEAD_LIMIT:
            self._fail(UpstreamCut("the answer's head does not end"))
        self._wake()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: BaseException | None) -> None:
        self._closed = True
        self._keep_alive = False
        if self._have_head and self._until_close and exc is None:
            self._complete = True
        if not self._complete and self._lost is None:
            self._lost = UpstreamCut("the connection ended inside the answer") if self.touched else Dropped()
        self._wake()
        if self._drainer is not None and not self._drainer.done():
            self._drainer.set_result(None)

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        if self._drainer is not None and not self._drainer.done():
            self._drainer.set_result(None)

    # --- the parser's side ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if not self._have_head:
            self._lines = []
            self.phrase = b""

    def on_status(self, phrase: bytes) -> None:
        if not self._have_head:
            self.phrase += phrase

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._have_head:
            self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        if self._have_head:
            self._keep_alive = False  # a second answer to one request
            return
        status = self._parser.get_status_code()
        fields = tuple(self._lines)
        if status < 100 or _BAD_PHRASE.search(self.phrase):
            raise _Refused("a status line that is none")
        names = {name.lower() for name, _ in fields}
        if b"transfer-encoding" in names and set(tokens(fields, b"transfer-encoding")) != {b"chunked"}:
            raise _Refused("a transfer coding that was not asked for")
        if status < 200 and status != 101:
            if status != 100:  # that one was for us: RFC 9110 section 15.2
                self.interim += b"HTTP/1.1 %d %b\r\n%b\r\n" % (status, self.phrase, render(end_to_end(fields)))
            return
        self.status = status
        self.fields = fields
        self._have_head = True
        self._until_close = not names & {b"content-length", b"transfer-encoding"} and status not in _NO_BODY
        if self._head_only or status == 101:
            self._complete = True
            self._until_close = False

    def on_body(self, data: bytes) -> None:
        if self._head_only or self._complete:
            return
        self._pieces.append(data)
        self._buffered += len(data)
        if self._buffered > HIGH_WATER and not self._reading_paused and self.transport is not None:
            self._reading_paused = True
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._have_head and not self._complete:
            self._complete = True
            self._keep_alive = self._parser.should_keep_alive() and not self._head_only and self.status != 101

    # --- the exchange --------------------------------------------------------------------------------------------

    def start(self, head: bytes, *, head_only: bool) -> None:
        """Begin an exchange with the request bytes `head` (which may include the body)."""
        self._begin(head_only=head_only)
        self.exchanges += 1
        self.write(head)

    def write(self, data: bytes) -> None:
        """Send more of the request. A connection that is gone takes it silently; the answer's reader learns why."""
        if self.transport is not None and not self._closed:
            self.transport.write(data)

    async def drain(self) -> None:
        """Wait until the backend takes more."""
        while self._writing_paused and not self._closed:
            self._drainer = self._loop.create_future()
            await self._drainer

    async def head(self, seconds: float) -> None:
        """Wait for the answer's head. Raises `Dropped`, `UpstreamCut`, `UpstreamTimeout`."""
        await self._until(lambda: self._have_head, seconds)

    async def read(self, seconds: float) -> bytes:
        """The next bytes of the body; empty at its end. `seconds` is the longest silence borne."""
        if not self._pieces:
            if self._complete:
                return b""
            await self._until(lambda: bool(self._pieces) or self._complete, seconds)
            if not self._pieces:
                return b""
        data = self._pieces.popleft() if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._buffered = 0
        if self._reading_paused and self.transport is not None and not self._closed:
            self._reading_paused = False
            self.transport.resume_reading()
        return data

    async def settle(self, seconds: float) -> bool:
        """Wait until there is something to read or the body has ended or failed; False if time ran out."""
        if not self._pieces and not self._complete and self._lost is None:
            try:
                await self._until(lambda: bool(self._pieces) or self._complete, seconds)
            except UpstreamTimeout:
                return False
            except (UpstreamCut, Dropped):
                return True  # the next read tells
        return True

    def _framed(self) -> bool:
        return self._complete

    @property
    def ended(self) -> bool:
        return self._complete and not self._pieces

    @property
    def reusable(self) -> bool:
        return self.ended and self._keep_alive and not self._closed and self._lost is None and not self._writing_paused

    @property
    def closed(self) -> bool:
        return self._closed or self.transport is None or self.transport.is_closing()

    def abort(self, why: AnswerError | None = None) -> None:
        """Cut the connection now; the backend sees it at once. `why`: what the wait for the head is to raise."""
        if self.transport is not None and not self._closed:
            self.transport.abort()
        given_up = UpstreamCut("the exchange was given up")
        self._fail(given_up if why is None or self._have_head else why)

    def _fail(self, error: BaseException) -> None:
        if self._lost is None and not self._complete:
            self._lost = error
            if self.transport is not None and not self._closed:
                self.transport.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _until(self, met: Callable[[], bool], seconds: float) -> None:
        deadline = self._loop.time() + seconds
        while not met():
            if self._lost is not None:
                raise self._lost
            if self._loop.time() >= deadline:
                raise UpstreamTimeout(f"The backend was silent for {seconds:g} s.")
            self._waiter = self._loop.create_future()
            timer = self._loop.call_at(deadline, self._wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
