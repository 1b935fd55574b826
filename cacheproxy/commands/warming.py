"""Asks a running proxy the requests of a file, so that it has their answers: late and little, within a budget."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
from yarl import URL

from cacheproxy.commands.progress import Progress
from cacheproxy.commands.traffic import Asked
from cacheproxy.errors import ConfigurationError

ATTEMPTS = 5
LONGEST_PAUSE = 30.0
"""Seconds that a request waits which the proxy has put off, each time."""
PATIENCE = 900.0
NOT_SENT = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "x-priority"})
BROKEN_OFF = 0
"""In place of the status of an answer that did not come to its end."""
PUT_OFF = frozenset({429, 503})


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be asked of the backend; None: without bound. Tokens are known only afterwards."""

    requests: int | None = None
    tokens: int | None = None


@dataclass(slots=True)
class Result:
    """What came of it. `failed`: the numbers of lines, each with the status of its answer (`BROKEN_OFF`: it
    has none); `left`: requests for which the budget did not reach."""

    asked: int = 0
    present: int = 0
    bypassed: int = 0
    tokens: int = 0
    left: int = 0
    failed: list[tuple[int, int]] = field(default_factory=list)


class Warming:
    """Asks the proxy at `base`. `headers`: what every request has that does not have it itself."""

    def __init__(self, base: str, headers: dict[str, str], budget: Budget, progress: Progress) -> None:
        self._base = base
        self._headers = headers
        self._budget = budget
        self._progress = progress
        self._running = 0
        self._answered = asyncio.Condition()
        self.result = Result()

    async def run(self, wanted: Sequence[Asked], concurrency: int, done: Callable[[int], object]) -> None:
        """Ask all that the budget allows; `done` is told of each. Raises `ConfigurationError`."""
        left = iter(wanted)
        timeout = aiohttp.ClientTimeout(total=PATIENCE, sock_connect=10)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session,
                asyncio.TaskGroup() as group,
            ):
                for _ in range(concurrency):
                    group.create_task(self._work(session, left, done))
        except* OSError:
            raise ConfigurationError(f"cannot reach {self._base}; what was done so far is kept") from None
        self.result.left = sum(1 for _ in left)

    async def _work(self, session: aiohttp.ClientSession, left: Iterator[Asked], done: Callable[[int], object]) -> None:
        while await self._may_ask():
            one = next(left, None)
            if one is not None:
                await self._ask(session, one)
                done(1)
            await self._settle()
            if one is None:
                return

    async def _may_ask(self) -> bool:
        """Whether the budget reaches for one more, counting those that are being asked."""
        async with self._answered:
            while self._is_spent(self._running):
                if not self._running:
                    return False
                await self._answered.wait()
            self._running += 1
            return True

    def _is_spent(self, running: int) -> bool:
        told, result = self._budget, self.result
        if told.tokens is not None and result.tokens >= told.tokens:
            return True
        return (
            told.requests is not None and result.asked + result.bypassed + len(result.failed) + running >= told.requests
        )

    async def _settle(self) -> None:
        async with self._answered:
            self._running -= 1
            self._answered.notify_all()

    async def _ask(self, session: aiohttp.ClientSession, one: Asked) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with session.post(
                    URL(self._base + one.path, encoded=True), data=one.body, headers=self._fields(one)
                ) as answer:
                    body = await answer.read()
            except aiohttp.ClientConnectorError:
                raise
            except (aiohttp.ClientError, TimeoutError):
                self._note(one, BROKEN_OFF, "", b"")
                return
            if answer.status not in PUT_OFF or attempt == ATTEMPTS:
                break
            told = answer.headers.get("Retry-After", "")
            await asyncio.sleep(min(float(told) if told.isdigit() else attempt, LONGEST_PAUSE))
        self._note(one, answer.status, answer.headers.get("X-Cache", ""), body)

    def _fields(self, one: Asked) -> list[tuple[str, str]]:
        own = [(name, value) for name, value in one.headers if name.lower() not in NOT_SENT]
        names = {name.lower() for name, _ in own}
        usual = {"Content-Type": "application/json", **self._headers}
        given = [(name, value) for name, value in usual.items() if name.lower() not in names]
        return [*own, *given, ("X-Priority", "P2")]

    def _note(self, one: Asked, status: int, cache: str, body: bytes) -> None:
        result = self.result
        if status != 200:
            result.failed.append((one.number, status))
            return
        if cache in ("HIT", "STALE"):
            result.present += 1
        else:
            result.asked += cache != "BYPASS"
            result.bypassed += cache == "BYPASS"
            result.tokens += tokens_of(body)
        self._progress.add(one)


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
