"""Requests asked so that their answers are there: late and little, within a budget. Who asks, and how, is said by
whoever warms: the proxy itself, or a command that calls one.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from cacheproxy.core import fields as http_fields
from cacheproxy.core import policy
from cacheproxy.core.model import Fields
from cacheproxy.core.outcome import Reason
from cacheproxy.engine.traffic import BadLine, Line

ATTEMPTS = 5
LONGEST_PAUSE = 30.0
"""Seconds that a request waits which has been put off, each time."""
PUT_OFF = frozenset({429, 503})
BROKEN_OFF = 0
"""In place of the status of an answer that did not come to its end."""
PRIORITY = b"P2"
NOT_SENT = frozenset({
    b"host", b"content-length", b"transfer-encoding", b"connection", b"accept-encoding", b"x-priority", b"priority",
    b"expect", b"content-encoding", b"content_length", b"transfer_encoding",
})  # fmt: skip
"""Fields of a line that are not its own to say."""
MOST_AT_ONCE, USUAL_AT_ONCE = 256, 4


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be asked of the backend, and for how long anything is begun; None: without bound. Tokens are known
    only afterwards."""

    requests: int | None = None
    tokens: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What became of one request. `present`: its answer was there, or on its way, already; `reason`: why the answer is
    not kept, empty if it is, None if that cannot be told; `tokens` that it cost; `pause`: seconds after which one that
    was put off may come again, None if that is not said."""

    status: int
    present: bool = False
    reason: str | None = None
    tokens: int = 0
    pause: float | None = None


@dataclass(slots=True)
class Result:
    """What came of it. `asked` of the backend: what was `stored`, what was `not_kept`, by reason, and what is not
    known; `failed`: the numbers of lines, each with the status of its answer (`BROKEN_OFF`: it has none); `left`:
    requests for which the budget did not reach."""

    asked: int = 0
    stored: int = 0
    present: int = 0
    tokens: int = 0
    left: int = 0
    not_kept: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[int, int]] = field(default_factory=list)

    @property
    def spent(self) -> int:
        """Requests that cost the budget."""
        return self.asked + len(self.failed)

    def plain(self, bad: Iterable[BadLine], most: int | None = None) -> dict[str, Any]:
        """As plain data, with the lines that were no requests; of each list `most` members."""
        return {
            "asked": self.asked, "stored": self.stored, "not_kept": dict(self.not_kept), "present": self.present,
            "left": self.left, "tokens": self.tokens,
            "failed": [{"line": number, "status": status} for number, status in sorted(self.failed)[:most]],
            "bad": [{"line": one.number, "why": one.why} for one in list(bad)[:most]],
        }  # fmt: skip


Ask = Callable[[Line], Awaitable[Said]]
"""Asks, once."""


class Warming:
    """One run. `ask`: asks; `now`: of a monotonic clock; `done` is told of each request that is over, and whether it
    may be left out next time."""

    def __init__(
        self, ask: Ask, budget: Budget, now: Callable[[], float],
        done: Callable[[Line, bool], object] = lambda _line, _whole: None,
    ) -> None:  # fmt: skip
        self._ask = ask
        self._budget = budget
        self._now = now
        self._done = done
        self._running = self._over = 0
        self.result = Result()

    async def run(self, wanted: Sequence[Line], concurrency: int) -> None:
        """Ask all that the budget allows, `concurrency` at once. Raises what `ask` does; what has been done so far
        stands in `result` then too."""
        left, until = iter(wanted), None
        if self._budget.seconds is not None:
            until = self._now() + self._budget.seconds
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(self._work(left, until))
        except* Exception as group:  # noqa: BLE001 - the first is as good as all
            raise group.exceptions[0] from None
        finally:
            self.result.left = len(wanted) - self._over

    async def _work(self, left: Iterator[Line], until: float | None) -> None:
        """One of those that ask. It ends where the budget does not reach for one more beside those that are being
        asked: they go on if they turn out to cost nothing."""
        while not self._is_spent(until) and (one := next(left, None)) is not None:
            self._running += 1
            try:
                said = await self._asked(one)
            finally:
                self._running -= 1
            self._note(one, said)

    def _is_spent(self, until: float | None) -> bool:
        told, result = self._budget, self.result
        if told.tokens is not None and result.tokens >= told.tokens:
            return True
        if until is not None and self._now() >= until:
            return True
        return told.requests is not None and result.spent + self._running >= told.requests

    async def _asked(self, one: Line) -> Said:
        if policy.endpoint_of("POST", one.path.encode()) is None:
            return Said(200, reason=Reason.UNCACHEABLE_PATH.word)
        attempt = 1
        while (said := await self._ask(one)).status in PUT_OFF and attempt < ATTEMPTS:
            await asyncio.sleep(min(attempt if said.pause is None else said.pause, LONGEST_PAUSE))
            attempt += 1
        return said

    def _note(self, one: Line, said: Said) -> None:
        result, whole = self.result, said.status == 200
        self._over += 1
        if not whole:
            result.failed.append((one.number, said.status))
        elif said.present:
            result.present += 1
        elif said.reason == Reason.UNCACHEABLE_PATH.word:
            result.not_kept[said.reason] += 1
        else:
            result.asked += 1
            result.tokens += said.tokens
            result.stored += said.reason == ""
            if said.reason:
                result.not_kept[said.reason] += 1
        self._done(one, whole)


def fields_of(one: Line, usual: Fields) -> Fields:
    """The header lines to ask `one` with. `usual`: those of every request that has none of the name itself; of who asks
    they say nothing where it does."""
    own = [(name, value) for name, value in one.fields if name.lower() not in NOT_SENT]
    if http_fields.token(one.fields) is not None:
        usual = tuple(line for line in usual if line[0].lower() not in http_fields.CREDENTIALS)
    for some in (usual, ((b"Content-Type", b"application/json"),)):
        names = {name.lower() for name, _ in own} | NOT_SENT
        own += [(name, value) for name, value in some if name.lower() not in names]
    return (*own, (b"X-Priority", PRIORITY))


def pause_of(told: str) -> float | None:
    """The seconds that a ``Retry-After`` names; None if it names none."""
    return float(told) if told.isascii() and told.isdigit() and len(told) < 10 else None


def tokens_of(body: bytes) -> int:
    """The tokens that an answer says it cost, streamed or not; 0 if it does not say."""
    pieces = [line[5:] for line in body.splitlines() if line.startswith(b"data:")] or [body]
    for piece in reversed(pieces):
        try:
            told: Any = orjson.loads(piece)
            count = told["usage"]["total_tokens"]
        except (ValueError, LookupError, TypeError):
            continue
        if type(count) is int:
            return count
    return 0
