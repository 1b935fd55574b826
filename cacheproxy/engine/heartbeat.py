"""Signs of life for who waits for a stream to begin: comment lines, which clients leave out (WHATWG HTML, section 9.2).

The head goes out before it is known what will come, so what then fails is told inside the stream.

Under cancellation: the answer is waited for in a task; whoever leaves cancels it, and closes what it may have brought.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

import orjson

from cacheproxy.core.events import event
from cacheproxy.engine.served import Served
from cacheproxy.errors import AnswerError

BEAT = b": waiting\n\n"
_LARGEST_ERROR = 64 * 1024
"""Bytes of a backend's error that are told inside a stream."""


def _unknown() -> int | None:
    return None


async def alive(
    answer: Coroutine[Any, Any, Served], seconds: float, opened: Callable[[], Served],
    place: Callable[[], int | None] = _unknown,
) -> Served:  # fmt: skip
    """What `answer` gives; if that takes longer than `seconds`, a stream that begins at once, says every so many
    seconds that it is alive, and goes on with it. `opened`: gives the head of such a stream; `place`: how many are
    before it, while it waits for its turn."""
    task = asyncio.get_running_loop().create_task(answer)
    try:
        if (await asyncio.wait({task}, timeout=seconds))[0]:
            served = task.result()
            if isinstance(served.body, bytes) or served.status != 200 or not _is_stream(served):
                return served
            body = _begun(served.body, seconds)
        else:
            served = opened()
            body = _beating(task, seconds, place)
        await anext(body)  # started: from here on its `finally` runs
    except BaseException:
        await _let_go(task)
        raise
    served.body, served.length = body, None
    return served


async def _beating(
    task: asyncio.Task[Served], seconds: float, place: Callable[[], int | None]
) -> AsyncGenerator[bytes, None]:
    try:
        yield b""
        while not (await asyncio.wait({task}, timeout=seconds))[0]:
            before = place()
            yield BEAT if before is None else b": waiting, %d before\n\n" % before
        try:
            served = task.result()
        except AnswerError as error:
            yield _told(error.message, error.kind, error.code)
            return
        async with aclosing(_inside(served, seconds)) as body:
            async for data in body:
                yield data
    finally:
        await _let_go(task)


async def _inside(served: Served, seconds: float) -> AsyncGenerator[bytes, None]:
    """What `served` says, inside a stream that has begun."""
    if served.status != 200:
        yield await _error_of(served)
    elif not _is_stream(served):
        yield _told("The backend answered with something else than a stream.", "upstream_error", "not_a_stream")
    elif isinstance(served.body, bytes):
        yield served.body
    else:
        async with aclosing(_begun(served.body, seconds)) as body:
            async for data in body:
                yield data


def _is_stream(served: Served) -> bool:
    return b"\r\ncontent-type: text/event-stream" in b"\r\n" + served.lines.lower()


async def _begun(body: AsyncGenerator[bytes, None], seconds: float) -> AsyncGenerator[bytes, None]:
    """`body`, with signs of life until its first bytes come."""
    try:
        yield b""
        first = asyncio.ensure_future(anext(body, b""))
        try:
            while not (await asyncio.wait({first}, timeout=seconds))[0]:
                yield BEAT
        except BaseException:
            first.cancel()
            await asyncio.wait({first})
            raise
        yield first.result()
        async for data in body:
            yield data
    finally:
        await body.aclose()


async def _error_of(served: Served) -> bytes:
    """An answer that is an error, as an event."""
    body = b""
    if isinstance(served.body, bytes):
        body = served.body
    else:
        async for data in served.body:
            body += data
            if len(body) > _LARGEST_ERROR:
                break
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict) or document.get("error") is None:
        return _told(f"The backend answered with status {served.status}.", "upstream_error", str(served.status))
    return event(orjson.dumps(document))


def _told(message: str, kind: str, code: str) -> bytes:
    return event(orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}))


async def _let_go(task: asyncio.Task[Served]) -> None:
    """End what `task` does, and close what it has brought."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled() and task.exception() is None:
        await task.result().close()
