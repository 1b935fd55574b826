"""Asks the requests that were kept, when there is room: the way of any other, as the least urgent.

Under cancellation: one that is being asked is given back, so that another replica or the next start asks it; where that
cannot be done its lease runs out. A process that is killed leaves leases, nothing else. State changes only where
nothing awaits.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cacheproxy.core import deferral
from cacheproxy.core import fields as http_fields
from cacheproxy.core.deferral import Order, Reply
from cacheproxy.engine.deferral import Known, Vault, error_of, told
from cacheproxy.engine.errand import Errand
from cacheproxy.engine.served import Served
from cacheproxy.engine.warming import pause_of
from cacheproxy.errors import (
    AnswerError,
    Refused,
    Trouble,
    UpstreamCut,
    UpstreamUnreachable,
    place_of,
)
from cacheproxy.ports import Clock, Journal

log = logging.getLogger("cacheproxy.jobs")

SOON, LATER = 0.1, 1.0
"""Seconds between two looks for one that is due: while some are known to wait, and else."""
LONGEST_REFUSAL = 30.0
"""Seconds after which one that was refused comes again at the latest."""
STOP_SECONDS = 5.0
WRITTEN_SECONDS = 2.0
WRITES = 3
"""How often it is tried to write down what came of one."""

Answer = Callable[[Errand], Awaitable[Served]]


@dataclass(frozen=True, slots=True)
class Terms:
    """`concurrency`: how many are asked at once; `attempts`: how often, where the backend fails; `pause`: seconds after
    the first failure; `lease`: seconds; `most`: bytes of an answer."""

    concurrency: int
    attempts: int
    pause: float
    lease: float
    most: int


@dataclass(frozen=True, slots=True)
class _Refused:
    """It was not let through; seconds to wait."""

    pause: float


class Deferring:
    """Asks them. `calm` says whether there is room for what nobody waits for; `written` waits until the answers stored
    so far outlive the process."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, *, answer: Answer, vault: Vault, calm: Callable[[], bool], written: Callable[[], Awaitable[object]],
        clock: Clock, journal: Journal, terms: Terms,
    ) -> None:  # fmt: skip
        self._answer = answer
        self._vault = vault
        self._calm = calm
        self._written = written
        self._clock = clock
        self._journal = journal
        self._terms = terms
        self._tasks: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._some = True
        self._draining = False
        self._in_trouble = False
        self.waiting = self.held = 0
        """How many had not ended at the last look, and the bytes that all held."""

    def __repr__(self) -> str:
        return f"<Deferring {len(self._tasks)} asked, {self._vault!r}>"

    @property
    def running(self) -> int:
        """How many are being asked."""
        return len(self._tasks)

    def start(self) -> None:
        """Look for those that are due, from now on."""
        if self._watch is None and not self._draining:
            self._watch = asyncio.get_running_loop().create_task(self._look())

    def nudge(self) -> None:
        """There is one more."""
        self._some = True
        self.waiting += 1
        self._wake.set()

    async def drain(self) -> None:
        """Ask none any more, and give back those that are being asked."""
        self._draining = True
        self._wake.set()
        if self._watch is not None:
            # It ends by itself: one that is being claimed in this moment is not to be left with its lease.
            if not (await asyncio.wait({self._watch}, timeout=STOP_SECONDS))[0]:
                self._watch.cancel()
            self._watch = None
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=STOP_SECONDS)

    async def _look(self) -> None:
        looked = float("-inf")
        while not self._draining:
            if self._clock.monotonic() - looked >= LATER:
                looked = self._clock.monotonic()
                self._some = await self._count() or self._some
            while not self._draining and len(self._tasks) < self._terms.concurrency and self._calm():
                token = secrets.token_hex(16)
                known = await self._claim(token)
                if known is None:
                    break
                self._begin(known, token)
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), SOON if self._some else LATER)
            except TimeoutError:
                continue

    async def _claim(self, token: str) -> Known | None:
        try:
            known = await self._vault.claim(token, self._terms.lease)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next look may go better
            self._troubled(error)
            known = None
        self._some = known is not None
        return known

    async def _count(self) -> bool:
        try:
            self.waiting, self.held = await self._vault.store.census()
        except Exception as error:  # noqa: BLE001 - whatever it is, the next look may go better
            self._troubled(error)
            return False
        if self._in_trouble:
            self._in_trouble = False
            log.info("requests that were kept for later are known again")
        return self.waiting > len(self._tasks)

    def _troubled(self, error: Exception) -> None:
        if not self._in_trouble:
            self._in_trouble = True
            why = str(error) if isinstance(error, Trouble) else place_of(error)
            log.warning("requests that were kept for later cannot be read: %s", why)

    def _begin(self, known: Known, token: str) -> None:
        task = asyncio.get_running_loop().create_task(self._run(known, token))
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._some = True
        self._wake.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a request that was kept failed inside the proxy: %s", place_of(error))

    async def _run(self, known: Known, token: str) -> None:
        row = known.row
        if known.order is None:
            await self._end(known, token, told(AnswerError("What was kept cannot be read.")), failed=True)
            return
        if row.attempts > self._terms.attempts:
            reply = told(AnswerError("The proxy ended each time that it was asked."))
            await self._end(known, token, reply, failed=True)
            return
        work = asyncio.get_running_loop().create_task(self._ask(known.order))
        try:
            kept = await self._keep(known, token, work)
        except asyncio.CancelledError:
            await _ended(work)
            await self._give_back(known, token, 0.0, row.attempts - 1, "released")
            return
        if not kept:
            await _ended(work)
            self._journal.count("deferred", "lost")
            return
        outcome = work.result()
        try:
            await self._settle(known, token, outcome)
        except asyncio.CancelledError:
            # Its answer is in the store of answers by now, if it may be.
            await self._give_back(known, token, 0.0, row.attempts - 1, "released")

    async def _keep(self, known: Known, token: str, work: "asyncio.Task[Reply | _Refused]") -> bool:
        """Hold the lease until `work` is done; false if it was lost."""
        lease, held = self._terms.lease, self._clock.monotonic()
        while not (await asyncio.wait({work}, timeout=lease / 3))[0]:
            asked = self._clock.monotonic()
            try:
                if not await self._vault.store.hold(known.row.id, token, lease):
                    return False
                held = asked
            except Trouble:
                if self._clock.monotonic() - held >= lease:
                    return False
        return True

    async def _settle(self, known: Known, token: str, outcome: Reply | _Refused) -> None:
        attempts, terms = known.row.attempts, self._terms
        if isinstance(outcome, _Refused):
            await self._give_back(known, token, outcome.pause, attempts - 1, "refused")
        elif outcome.is_lasting:
            with contextlib.suppress(Trouble, TimeoutError):
                # Who is told that it is done finds its answer in the cache, whatever happens to the process.
                async with asyncio.timeout(min(WRITTEN_SECONDS, terms.lease / 3)):
                    await self._written()
            await self._end(known, token, outcome, failed=False)
        elif attempts >= terms.attempts:
            await self._end(known, token, outcome, failed=outcome.status >= 500)
        else:
            said = http_fields.first(outcome.fields, b"retry-after")
            pause = deferral.pause(attempts, terms.pause, pause_of((said or b"").decode("latin-1")))
            await self._give_back(known, token, pause, attempts, "again")

    async def _end(self, known: Known, token: str, reply: Reply, *, failed: bool) -> None:
        """Write down what came of it. Where that cannot be done it is asked again, once its lease has run out."""
        for attempt in range(WRITES):
            try:
                ours = await self._vault.finish(known.row.id, token, reply, failed=failed)
            except Trouble as error:
                log.warning("what came of a request that was kept cannot be written: %s", error)
                await asyncio.sleep(min(0.2 * 2**attempt, self._terms.lease / 10))
                continue
            self._journal.count("deferred", ("failed" if failed else "done") if ours else "lost")
            return

    async def _give_back(self, known: Known, token: str, pause: float, attempts: int, course: str) -> None:
        try:
            async with asyncio.timeout(STOP_SECONDS / 2):
                await self._vault.store.release(known.row.id, token, pause, max(0, attempts))
        except (Trouble, TimeoutError) as error:
            log.warning("a request that was kept could not be given back: %s", error or "no answer")
        self._journal.count("deferred", course)

    async def _ask(self, order: Order) -> Reply | _Refused:
        """What comes of it now. Never raises, but for its end."""
        try:
            served = await self._answer(Errand(order.target, order.fields, order.body))
            try:
                body = await _read(served, self._terms.most)
            finally:
                await served.close()
        except Refused as error:
            return _Refused(min(float(error.retry_after or 1), LONGEST_REFUSAL))
        except AnswerError as error:
            return told(error)
        except UpstreamCut:
            return told(UpstreamUnreachable("The backend broke off inside its answer."))
        except Exception as error:  # noqa: BLE001 - whatever it is, the requests beside it go on
            log.error("a request that was kept failed inside the proxy: %s", place_of(error))
            return told(AnswerError("The proxy failed."))
        if body is None:
            return told(error_of(413, "answer_too_large", "The answer is larger than those that are kept."))
        return deferral.reply(served.status, served.lines, body)


async def _read(served: Served, most: int) -> bytes | None:
    """The body; None if it is longer. Raises `UpstreamCut`, `UpstreamTimeout`."""
    if isinstance(served.body, bytes):
        return served.body if len(served.body) <= most else None
    parts, size = [], 0
    async for data in served.body:
        size += len(data)
        if size > most:
            return None
        parts.append(data)
    return b"".join(parts)


async def _ended(work: "asyncio.Task[Reply | _Refused]") -> None:
    if not work.done():
        work.cancel()
        await asyncio.wait({work})
