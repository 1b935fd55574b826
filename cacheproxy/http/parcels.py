"""The admin calls that give out all that is stored, as lines (NDJSON), and take it in again. Both go on line by line,
however much there is. An export has the words of answers and questions: it is for full tokens only, and only where the
configuration allows them to be shown."""

import logging
import math
from collections.abc import AsyncIterator, Sequence
from typing import Any

from aiohttp import StreamReader, web

from cacheproxy.core import parcel
from cacheproxy.core.removal import Selector
from cacheproxy.engine.export import Export
from cacheproxy.engine.intake import BadParcel, Intake, Report
from cacheproxy.errors import Trouble, place_of
from cacheproxy.http.door import CLOSED
from cacheproxy.http.entries import SELECTS, Bad, parameters, refusal, selected
from cacheproxy.http.replies import error_reply, json_reply

log = logging.getLogger("cacheproxy.http")

LINES_TYPE = "application/x-ndjson"
LEAST_LINE = 2**20
"""Bytes of a line that may come in any case."""


def routes(export: Export, intake: Intake, *, texts: bool, answer_bytes: int) -> Sequence[web.AbstractRouteDef]:
    """``GET /admin/export`` and ``POST /admin/import``. `texts`: whether answers may be shown; `answer_bytes`: of one,
    at most."""
    longest = 2 * answer_bytes + LEAST_LINE

    async def give(request: web.Request) -> web.StreamResponse:
        given = parameters(request, SELECTS)
        if isinstance(given, Bad):
            return refusal(given)
        if not texts:
            return error_reply(
                403, "forbidden", "An export has the words of answers, which `admin.show_answers` keeps back."
            )
        return await _stream(request, export, selected(given))

    async def take(request: web.Request) -> web.Response:
        given = parameters(request, ("force",))
        if isinstance(given, Bad):
            return refusal(given)
        if given.get("force", "") not in ("", "yes", "no"):
            return refusal(Bad("force", "yes or no"))
        try:
            report = await intake.take(_lines(request.content, longest), vouched=given.get("force") == "yes")
        except BadParcel as bad:
            status, code = (409, "other_origin") if bad.elsewhere else (400, "invalid_request")
            return error_reply(status, code, str(bad))
        except Trouble as error:
            log.warning("an import was not begun: %s", error)
            reply = error_reply(503, "store_trouble", "What was removed cannot be told now; try again.")
            reply.headers["Retry-After"] = "1"
            return reply
        return json_reply(_told(report))

    return [web.get("/admin/export", give, allow_head=False), web.post("/admin/import", take)]


async def _stream(request: web.Request, export: Export, selector: Selector) -> web.StreamResponse:
    lines = export.lines(selector)
    try:
        first = await anext(lines)
    except Trouble as error:
        log.warning("what is stored cannot be exported: %s", error)
        return error_reply(503, "store_trouble", "The store cannot tell now; try again.")
    response = web.StreamResponse(headers={"Content-Type": LINES_TYPE, **CLOSED})
    await response.prepare(request)
    await response.write(first.data)
    try:
        async for some in lines:
            await response.write(some.data)
    except ConnectionError:
        raise
    except Exception as error:  # noqa: BLE001 - an answer has begun, and says itself that it is not whole
        log.warning("an export broke off: %s", error if isinstance(error, Trouble) else place_of(error))
        await response.write(parcel.broken_line())
    finally:
        await lines.aclose()
    await response.write_eof()
    return response


async def _lines(content: StreamReader, longest: int) -> AsyncIterator[bytes | None]:
    """The lines of a body, those with nothing in them left out; None for one that is too long, which is not held."""
    held, size = bytearray(), 0
    async for piece in content.iter_any():
        for number, part in enumerate(piece.split(b"\n")):
            if number:
                if size > longest:
                    yield None
                elif line := bytes(held).strip():
                    yield line
                held, size = bytearray(), 0
            size += len(part)
            if size <= longest:
                held += part
            else:
                held = bytearray()
    if size > longest:
        yield None
    elif line := bytes(held).strip():
        yield line


def _told(report: Report) -> dict[str, Any]:
    learnt = report.learnt
    since = report.known_since
    return {
        "complete": report.complete, "lines": report.lines,
        **{fate.value: count for fate, count in report.fates.items()},
        "questions_known": learnt.known, "questions_kept": learnt.kept, "questions_embedded": learnt.embedded,
        "questions_left_out": learnt.left_out, "known_since": since if math.isfinite(since) else None,
        "bad_lines": [{"line": number, "why": why} for number, why in report.bad],
    }  # fmt: skip
