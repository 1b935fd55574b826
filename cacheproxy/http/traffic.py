"""The admin calls that take requests as lines (NDJSON): to have them asked, so that their answers are there, and to be
told what they would have hit. Both begin a job.

Answers are kept for the credential they were asked with, which is none of the admin API: each line has its own in its
`headers`, or the call says it for all in ``X-Warm-<name>``. Neither is written down anywhere.
"""

import io
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from aiohttp import web

from cacheproxy.core import fields as http_fields
from cacheproxy.core.model import Fields
from cacheproxy.engine.aside import aside
from cacheproxy.engine.errand import Errands
from cacheproxy.engine.jobs import Jobs, Work
from cacheproxy.engine.traffic import BadLine, Line, lines
from cacheproxy.engine.warming import MOST_AT_ONCE, USUAL_AT_ONCE, Budget
from cacheproxy.http.jobs import begin
from cacheproxy.http.replies import error_reply

WARM, REPLAY = "warm", "replay"
MOST_WARMED, MOST_REPLAYED = 100_000, 20_000
"""Lines of one call."""
GREATEST = 2**53
UNNAMED = "has no `Authorization`, and the call has no `X-Warm-Authorization`"
_MARK = "x-warm-"
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")

Replay = Callable[[Sequence[Line], int, bool | None], Work | None]
"""What replays these lines; how many others were no requests; whether by meaning, None for what is usual. None if it
is to be by meaning, and nothing can be."""


class Bad(NamedTuple):
    """What is wrong, and what it must be."""

    name: str
    expected: str


class Read(NamedTuple):
    """The lines of a body."""

    good: list[Line]
    bad: list[BadLine]


class Plan(NamedTuple):
    """How to warm."""

    budget: Budget
    concurrency: int
    anonymous: bool


def routes(jobs: Jobs, errands: Errands, replay: Replay) -> Sequence[web.AbstractRouteDef]:
    """``POST /admin/warm`` and ``POST /admin/replay``."""

    async def warm(request: web.Request) -> web.Response:
        plan = _plan(request)
        if isinstance(plan, Bad):
            return _refusal(plan)
        usual = _usual(request)
        body = await request.read()
        read = await aside(len(body), lambda: _read(body, MOST_WARMED, None if plan.anonymous else usual))
        if isinstance(read, Bad):
            return _refusal(read)
        work = errands.warming(
            read.good, read.bad, usual=usual, budget=plan.budget, concurrency=min(plan.concurrency, len(read.good))
        )
        return begin(jobs, WARM, work, len(body))

    async def look_back(request: web.Request) -> web.Response:
        given = _given(request, ("semantic",))
        if isinstance(given, Bad):
            return _refusal(given)
        wanted = given.get("semantic")
        if wanted not in (None, "on", "off"):
            return _refusal(Bad("semantic", "on or off"))
        body = await request.read()
        read = await aside(len(body), lambda: _read(body, MOST_REPLAYED, None))
        if isinstance(read, Bad):
            return _refusal(read)
        work = replay(read.good, len(read.bad), None if wanted is None else wanted == "on")
        if work is None:
            return _refusal(Bad("semantic", "left out: nothing is answered by meaning here"))
        return begin(jobs, REPLAY, work, len(body))

    return [web.post("/admin/warm", warm), web.post("/admin/replay", look_back)]


def _read(body: bytes, most: int, usual: Fields | None) -> Read | Bad:
    """The requests of a body. `usual`: the header lines of the call, of which, or of the line's, one has to say who
    asks; None where nobody has to."""
    read = Read([], [])
    for line in lines(io.BytesIO(body)):
        if len(read.good) + len(read.bad) == most:
            return Bad("body", f"{most} lines at most; send the others in another call")
        if isinstance(line, BadLine):
            read.bad.append(line)
        elif usual is not None and not (http_fields.token(line.fields) or http_fields.token(usual)):
            read.bad.append(BadLine(line.number, UNNAMED))
        else:
            read.good.append(line)
    if read.good:
        return read
    first = f"; line {read.bad[0].number} {read.bad[0].why}" if read.bad else ""
    return Bad("body", f"requests, one JSON object a line{first}")


def _plan(request: web.Request) -> Plan | Bad:
    names = ("budget_requests", "budget_tokens", "budget_seconds", "concurrency", "anonymous")
    given = _given(request, names)
    if isinstance(given, Bad):
        return given
    counts: dict[str, int | None] = {}
    for name, least, most in (
        ("budget_requests", 0, GREATEST), ("budget_tokens", 0, GREATEST), ("concurrency", 1, MOST_AT_ONCE),
    ):  # fmt: skip
        told = given.get(name)
        if told is not None and not (_is_whole(told) and least <= int(told) <= most):
            return Bad(name, f"a whole number from {least} to {most}")
        counts[name] = None if told is None else int(told)
    seconds = given.get("budget_seconds")
    if seconds is not None and not _SECONDS.fullmatch(seconds):
        return Bad("budget_seconds", "a number of seconds")
    if given.get("anonymous", "no") not in ("yes", "no"):
        return Bad("anonymous", "yes or no")
    budget = Budget(counts["budget_requests"], counts["budget_tokens"], None if seconds is None else float(seconds))
    return Plan(budget, counts["concurrency"] or USUAL_AT_ONCE, given.get("anonymous") == "yes")


def _is_whole(told: str) -> bool:
    return told.isascii() and told.isdecimal() and len(told) <= len(str(GREATEST))


def _given(request: web.Request, names: tuple[str, ...]) -> dict[str, str] | Bad:
    """The parameters of the query."""
    given: dict[str, str] = {}
    for name, value in request.query.items():
        if name not in names:
            return Bad(name[:64], f"left out: known are {', '.join(names)}")
        if name in given:
            return Bad(name, "given once")
        given[name] = value
    return given


def _usual(request: web.Request) -> Fields:
    """The header lines that every request has which does not have them itself."""
    sent = ((name[len(_MARK) :], value) for name, value in request.headers.items() if name.lower().startswith(_MARK))
    return tuple((name.encode(), value.strip().encode("utf-8", "surrogateescape")) for name, value in sent if name)


def _refusal(bad: Bad) -> web.Response:
    name = bad.name.encode("utf-8", "replace").decode()
    return error_reply(400, "invalid_request", f"{name} must be {bad.expected}.", name)
