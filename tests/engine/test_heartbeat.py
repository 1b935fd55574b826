"""Signs of life: comment lines until the answer begins, and what then goes wrong is told inside the stream."""

import asyncio
from collections.abc import AsyncGenerator

import orjson
import pytest

from cacheproxy.engine.heartbeat import BEAT, alive
from cacheproxy.engine.served import Served
from cacheproxy.errors import Draining, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from tests import rig

OFTEN = 0.01
EVENTS = b"Content-Type: text/event-stream; charset=utf-8\r\nX-Cache: MISS\r\n"
JSON = b"content-type: application/json\r\n"
PIECES = [b"data: 1\n\n", b"data: 2\n\n", b"data: [DONE]\n\n"]


class Body:
    """A body whose pieces come when they are let, and which knows that it was closed."""

    def __init__(
        self, pieces=tuple(PIECES), *, at_once: bool = True, hangs: bool = False, ends: BaseException | None = None
    ) -> None:
        self.let = asyncio.Event()
        self.begun = asyncio.Event()
        self.closed = 0
        self._pieces = pieces
        self._ends = ends
        self._hangs = hangs
        if at_once:
            self.let.set()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        try:
            yield b""
            self.begun.set()
            await self.let.wait()
            for piece in self._pieces:
                yield piece
            if self._hangs:
                await asyncio.Event().wait()
            if self._ends is not None:
                raise self._ends
        finally:
            self.closed += 1

    async def served(self, lines: bytes = EVENTS, status: int = 200) -> Served:
        """As the engine gives it: started, so that its end is run in every case."""
        body = self.pieces()
        await anext(body)
        return Served(status, b"OK", lines, body, None)


def opened() -> Served:
    return Served(200, b"OK", b"Content-Type: text/event-stream\r\n", b"", None, chunked=True)


async def later(event: asyncio.Event, served: Served | Exception) -> Served:
    await event.wait()
    if isinstance(served, Exception):
        raise served
    return served


async def read(served: Served) -> list[bytes]:
    assert not isinstance(served.body, bytes)
    return [data async for data in served.body if data]


def told(data: bytes) -> dict:
    """The error that an event tells."""
    assert data.startswith(b"data: ")
    assert data.endswith(b"\n\n")
    return orjson.loads(data[6:])["error"]


async def after_beats(served: Served, event: asyncio.Event, beats: int = 2) -> list[bytes]:
    """All that comes, where `event` is set after so many signs of life."""
    found = []
    assert not isinstance(served.body, bytes)
    async for data in served.body:
        if data:
            found.append(data)
        if found == [BEAT] * beats:
            event.set()
    while found and found[0] == BEAT:
        found.pop(0)
    assert BEAT not in found
    return found


async def time_for(beats: int) -> None:
    """Return once another stream, which begins now, has said so often that it is alive."""
    never = asyncio.Event()
    served = await alive(later(never, Draining("never")), OFTEN, opened)
    assert not isinstance(served.body, bytes)
    async for data in served.body:
        beats -= data == BEAT
        if not beats:
            break
    await served.close()


async def gather(served: Served, found: list[bytes]) -> None:
    """Put all that comes into `found`."""
    assert not isinstance(served.body, bytes)
    async for data in served.body:
        if data:
            found.append(data)


def test_a_sign_of_life_is_one_comment_line():
    """B25: no field, no data, nothing that a decoder dispatches."""
    lines = [line for line in BEAT.split(b"\n") if line]
    assert len(lines) == 1
    assert lines[0].startswith(b":")


async def test_what_comes_in_time_is_as_it_is():
    """B26: a real 429 passes with its head."""
    refused = Served(429, b"Too Many Requests", b"Retry-After: 30\r\n", b"{}", 2)
    assert await alive(later(set_event(), refused), 5, opened) is refused
    assert refused.body == b"{}"
    stored = Served(200, b"OK", EVENTS, b"".join(PIECES), 33)
    assert await alive(later(set_event(), stored), 5, opened) is stored
    assert stored.length == 33


def set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@pytest.mark.parametrize("lines", [JSON, b"X: text/event-stream\r\n", b""])
async def test_what_is_no_stream_is_never_written_into(lines):
    body = Body([b'{"a":', b"1}"], at_once=False)
    served = await alive(body.served(lines), OFTEN, opened)
    reading = asyncio.create_task(read(served))
    await time_for(4)
    body.let.set()
    assert await reading == [b'{"a":', b"1}"]


async def test_an_error_that_comes_in_time_is_raised():
    with pytest.raises(Draining):
        await alive(later(set_event(), Draining("closing")), 5, opened)


async def test_before_the_head_signs_of_life_and_then_the_answer():
    event, body = asyncio.Event(), Body()
    served = await alive(later(event, await body.served()), OFTEN, opened)
    assert (served.status, served.length) == (200, None)
    assert await after_beats(served, event) == PIECES
    assert body.closed == 1


async def test_between_the_head_and_the_first_bytes():
    """The backend's own head goes out."""
    body = Body(at_once=False)
    served = await alive(body.served(), OFTEN, opened)
    assert served.lines == EVENTS
    assert await after_beats(served, body.let) == PIECES
    assert body.closed == 1


async def test_on_both_sides_of_the_head():
    event, body = asyncio.Event(), Body(at_once=False)
    served = await alive(later(event, await body.served()), OFTEN, opened)
    found: list[bytes] = []
    reading = asyncio.create_task(gather(served, found))
    await rig.until(lambda: len(found) >= 2, 5, "signs of life before the head")
    event.set()
    await body.begun.wait()
    before = len(found)
    await rig.until(lambda: len(found) >= before + 2, 5, "signs of life before the first bytes")
    body.let.set()
    await reading
    beats = found.index(PIECES[0])
    assert found[:beats] == [BEAT] * beats
    assert found[beats:] == PIECES


async def test_once_it_has_begun_there_are_no_more():
    """B25: none inside the stream, however long the pauses."""
    events = [asyncio.Event() for _ in PIECES]

    async def slow() -> AsyncGenerator[bytes, None]:
        yield b""
        for event, piece in zip(events, PIECES, strict=True):
            await event.wait()
            yield piece

    body = slow()
    await anext(body)
    events[0].set()
    served = await alive(later(set_event(), Served(200, b"OK", EVENTS, body, None)), OFTEN, opened)
    reading = asyncio.create_task(read(served))
    for event in events:
        await time_for(3)
        event.set()
    assert await reading == PIECES


async def test_a_stored_answer_that_was_waited_for():
    event = asyncio.Event()
    served = await alive(later(event, Served(200, b"OK", EVENTS, b"".join(PIECES), 33)), OFTEN, opened)
    assert await after_beats(served, event) == [b"".join(PIECES)]


@pytest.mark.parametrize(
    ("error", "code"),
    [(UpstreamUnreachable("gone"), "upstream_unreachable"), (UpstreamTimeout("late"), "upstream_timeout")],
)
async def test_an_error_of_ours_is_told_inside(error, code):
    """B26: no [DONE] that would make a success of it."""
    event = asyncio.Event()
    served = await alive(later(event, error), OFTEN, opened)
    found = await after_beats(served, event)
    assert len(found) == 1
    assert told(found[0]) == {"message": str(error), "type": "upstream_error", "param": None, "code": code}


@pytest.mark.parametrize("live", [False, True])
async def test_the_backends_own_error_is_told_inside_as_it_is(live):
    error = {"message": "slow down", "type": "rate_limit", "param": None, "code": "rate_limit_exceeded", "more": [1]}
    text = orjson.dumps({"error": error})
    body = Body([text[:9], text[9:]])
    served = await body.served(JSON, 429) if live else Served(429, b"", JSON, text, len(text))
    event = asyncio.Event()
    found = await after_beats(await alive(later(event, served), OFTEN, opened), event)
    assert [told(data) for data in found] == [error]
    assert body.closed == live


@pytest.mark.parametrize("text", [b"<html>Bad Gateway</html>", b"", b"[1]", b'{"error":null}', b"\xff", b"x" * 200_000])
async def test_an_error_that_cannot_be_read_is_told_by_its_status(text):
    event = asyncio.Event()
    found = await after_beats(await alive(later(event, Served(502, b"", JSON, text, len(text))), OFTEN, opened), event)
    assert [told(data)["code"] for data in found] == ["502"]
    assert b"html" not in found[0]


@pytest.mark.parametrize("live", [False, True])
async def test_an_answer_that_is_no_stream_is_an_error_inside_one(live):
    text = b'{"choices":[]}'
    body = Body([text])
    served = await body.served(JSON) if live else Served(200, b"OK", JSON, text, len(text))
    event = asyncio.Event()
    found = await after_beats(await alive(later(event, served), OFTEN, opened), event)
    assert [told(data)["type"] for data in found] == ["upstream_error"]
    assert body.closed == live


@pytest.mark.parametrize("before", [False, True])
async def test_a_cut_stays_a_cut(before):
    """It breaks the stream off, as it would without signs of life."""
    event, body = asyncio.Event(), Body(PIECES[:1], ends=UpstreamCut("it broke"))
    if not before:
        event.set()
    served = await alive(later(event, await body.served()), OFTEN, opened)
    found = []
    with pytest.raises(UpstreamCut):
        async for data in served.body:
            found.append(data)
            if data == BEAT:
                event.set()
    assert found[-1] == PIECES[0]
    assert body.closed == 1


# --- who leaves ------------------------------------------------------------------------------------------------------


async def test_leaving_before_anything_has_come_ends_what_is_done():
    ended = asyncio.Event()

    async def answer() -> Served:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    waiting = asyncio.create_task(alive(answer(), 60, opened))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()


@pytest.mark.parametrize("how", ["cancelled", "closed"])
@pytest.mark.parametrize("where", ["before the head", "before the first bytes", "before both", "within"])
async def test_leaving_anywhere_lets_go_of_everything(how, where):
    """B61: while it waits (the handler is cancelled), and between two pieces (the body is closed)."""
    event, ended = asyncio.Event(), asyncio.Event()
    body = Body(at_once=where == "within", hangs=True)
    if where in ("before the first bytes", "within"):
        event.set()

    async def answer() -> Served:
        try:
            await event.wait()
            return await body.served()
        finally:
            ended.set()

    served = await alive(answer(), OFTEN, opened)
    if where == "before both":
        event.set()
    found: list[bytes] = []

    async def take(most: int) -> None:
        assert not isinstance(served.body, bytes)
        async for data in served.body:
            found.append(data)
            if len([data for data in found if data]) >= most and (where != "before both" or body.begun.is_set()):
                return

    if how == "closed":
        await take(2)
    else:
        reading = asyncio.create_task(take(1000))
        await rig.until(lambda: len(found) >= 2 and (where != "before both" or body.begun.is_set()))
        reading.cancel()
        await asyncio.wait({reading})
        assert reading.cancelled()
    await served.close()
    assert ended.is_set()
    assert body.closed == (where != "before the head")
    await asyncio.sleep(0)
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_who_has_left_when_the_answer_comes_closes_it():
    body = Body()
    served = await body.served()
    waiting = asyncio.create_task(alive(later(set_event(), served), 60, opened))
    for _ in range(2):
        await asyncio.sleep(0)
    waiting.cancel()
    found = (await asyncio.gather(waiting, return_exceptions=True))[0]
    if isinstance(found, Served):
        await found.close()
    assert body.closed == 1
