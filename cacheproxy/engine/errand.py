"""Requests that the proxy asks itself on somebody's behalf: the way of any other, with the credential that was given
for them, and nobody but that credential gains by it.
"""

import logging
from collections.abc import Sequence

from cacheproxy.core import fields as http_fields
from cacheproxy.core import policy
from cacheproxy.core.model import Entry, Fields
from cacheproxy.core.outcome import Outcome, Source
from cacheproxy.engine.binder import Binder
from cacheproxy.engine.bound import Bound, Head
from cacheproxy.engine.jobs import Job, Work
from cacheproxy.engine.pipeline import Pipeline
from cacheproxy.engine.profile import Stages
from cacheproxy.engine.served import Served
from cacheproxy.engine.shelf import Shelf
from cacheproxy.engine.traffic import BadLine, Line
from cacheproxy.engine.warming import BROKEN_OFF, Budget, Said, Warming, fields_of, pause_of, tokens_of
from cacheproxy.errors import AnswerError, UpstreamCut, UpstreamTimeout, place_of
from cacheproxy.ports import Clock

log = logging.getLogger("cacheproxy.jobs")

MOST_READ = 16 * 2**20
"""Bytes of an answer that are looked into for what it cost."""
SHOWN = 1000
"""Lines that a job tells of one by one, at most."""


class Errand:
    """A `Call` whose body is here already."""

    method = "POST"

    def __init__(self, target: bytes, fields: Fields, body: bytes) -> None:
        self.target = target
        self.fields = fields
        self.stages = Stages()
        self.body = body

    async def whole(self) -> bytes:
        return self.body

    async def pieces(self, most: int = 0) -> bytes:  # noqa: ARG002 - it is whole
        return self.body


class Errands:
    """Runs them."""

    def __init__(self, *, pipeline: Pipeline, binder: Binder, shelf: Shelf, clock: Clock) -> None:
        self._pipeline = pipeline
        self._binder = binder
        self._shelf = shelf
        self._clock = clock

    def warming(
        self, lines: Sequence[Line], bad: Sequence[BadLine], *, usual: Fields, budget: Budget, concurrency: int
    ) -> Work:  # fmt: skip
        """What asks `lines` within `budget`. `usual`: header lines of every request that has none of the name itself;
        they are known to the work alone."""

        async def work(job: Job) -> None:
            def done(_line: Line, _whole: bool) -> None:
                found = warming.result
                job.counts["done"] += 1
                job.counts |= {
                    "asked": found.asked, "stored": found.stored, "present": found.present,
                    "failed": len(found.failed), "tokens": found.tokens,
                }  # fmt: skip

            job.counts = {"total": len(lines), "bad": len(bad), "done": 0}
            warming = Warming(lambda line: self.ask(line, usual), budget, self._clock.monotonic, done)
            try:
                await warming.run(lines, concurrency)
            finally:
                job.result = warming.result.plain(bad, SHOWN)

        return work

    async def ask(self, line: Line, usual: Fields) -> Said:
        """What became of `line`."""
        call = Errand(line.path.encode(), fields_of(line, usual), line.body)
        try:
            served = await self._pipeline.answer(call)
        except AnswerError as error:
            return Said(error.status, pause=error.retry_after)
        except Exception as error:  # noqa: BLE001 - whatever it is, the requests beside it go on
            log.error("a request failed inside the proxy: %s", place_of(error))
            return Said(500)
        try:
            body = await _read(served)
        except (UpstreamCut, UpstreamTimeout):
            return Said(BROKEN_OFF)
        finally:
            await served.close()
        if served.status != 200:
            return Said(served.status, pause=pause_of(_retry_after(served.lines)))
        return await self._said(call, call.stages.outcome, body)

    async def _said(self, call: Errand, outcome: Outcome | None, body: bytes) -> Said:
        if outcome is None:
            return Said(200)
        if outcome.source in (Source.HIT, Source.STALE) or outcome.collapsed:
            return Said(200, present=True)
        cost = tokens_of(body)
        if not outcome.stored:
            return Said(200, reason=outcome.reason.word if outcome.reason is not None else None, tokens=cost)
        # The head of a stream says what is meant to become of it: whether it was proven whole is seen afterwards.
        entry = await self._entry(call)
        if entry is None:
            return Said(200, tokens=cost)
        return Said(200, reason="", tokens=cost or (sum(entry.answer.tokens) if isinstance(entry, Entry) else 0))

    async def _entry(self, call: Errand) -> Entry | bool | None:
        """What is kept for `call`; None if nothing is, true if there are several answers."""
        head = Head(call.method, call.target, call.fields, self._binder.credential(call.fields))
        endpoint = policy.endpoint_of(call.method, call.target)
        bound = self._binder.bind(head, endpoint, call.body) if endpoint is not None else None
        if not isinstance(bound, Bound) or bound.items or bound.variants > 1:
            return True
        found = await self._shelf.get(bound.ask.key)
        return found if isinstance(found, Entry) else None


async def _read(served: Served) -> bytes:
    """The body, of one that is too long nothing. Raises `UpstreamCut`, `UpstreamTimeout`."""
    if isinstance(served.body, bytes):
        return served.body
    parts, size = [], 0
    async for data in served.body:
        size += len(data)
        if size <= MOST_READ:
            parts.append(data)
    return b"".join(parts) if size <= MOST_READ else b""


def _retry_after(lines: bytes) -> str:
    """The value of that field among lines as on the wire."""
    fields = tuple(line.partition(b": ")[::2] for line in lines.split(b"\r\n"))
    return (http_fields.first(fields, b"retry-after") or b"").strip().decode("latin-1")
