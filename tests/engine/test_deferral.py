"""Asking what was kept: what becomes of leases, refusals and failures, with a pipeline that does as it is told."""

import asyncio
import time

import pytest

from cacheproxy.core.deferral import Bounds, Order, State
from cacheproxy.engine.deferral import Vault
from cacheproxy.engine.deferring import Deferring, Terms
from cacheproxy.engine.served import Served
from cacheproxy.errors import InvalidJson, RateLimited, Shed, Trouble, UpstreamCut, UpstreamTimeout
from cacheproxy.stores.deferral_memory import MemoryDeferrals
from cacheproxy.stores.sealing import Sealing
from cacheproxy.wiring.house import SystemClock
from tests.engine.fakes import Notes
from tests.rig import until

OWNER = b"o" * 16
ORDER = Order(b"/v1/chat/completions", ((b"Authorization", b"Bearer A"),), b"{}")
LONG = 60.0


def served(status: int = 200, body: bytes = b"answer") -> Served:
    return Served(status, b"X", b"Content-Type: text/plain\r\n", body, len(body))


class Stage:
    """What asks, and what it asks. `script`: what is given or raised, one after the other; the last again and again."""

    def __init__(self, **terms) -> None:
        clock = SystemClock()
        self.store = MemoryDeferrals(clock)
        self.vault = Vault(self.store, Sealing(lambda: b"s" * 32), Bounds(10**6, 1000, 600, 600))
        self.script: list = [served()]
        self.asked = 0
        self.most = self.running = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.calm = True
        self.looks = 0
        self.notes = Notes()
        told = {"concurrency": 4, "attempts": 3, "pause": 0.01, "lease": LONG, "most": 1000, **terms}
        self.deferring = Deferring(
            answer=self._answer, vault=self.vault, calm=self._calm, written=self._written, clock=clock,
            journal=self.notes, terms=Terms(**told),
        )  # fmt: skip

    def _calm(self) -> bool:
        self.looks += 1
        return self.calm

    async def _written(self) -> None:
        pass

    async def _answer(self, call) -> Served:
        assert (call.method, call.target, call.body) == ("POST", ORDER.target, ORDER.body)
        self.asked += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.gate.wait()
        finally:
            self.running -= 1
        said = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(said, BaseException):
            raise said
        return said

    async def keep(self, count: int = 1) -> list[str]:
        names = [await self.vault.put(OWNER, ORDER) for _ in range(count)]
        self.deferring.nudge()
        return names

    async def known(self, name: str):
        return await self.vault.find(name)

    async def ended(self, name: str):
        async with asyncio.timeout(10):
            while (known := await self.known(name)).reply is None:
                await asyncio.sleep(0.005)
        return known

    def courses(self) -> list[str]:
        return [label for event, label in self.notes.counted if event == "deferred"]


@pytest.fixture
async def stage():
    made: list[Stage] = []

    def begin(**terms) -> Stage:
        made.append(Stage(**terms))
        made[-1].deferring.start()
        return made[-1]

    yield begin
    for one in made:
        one.gate.set()
        await one.deferring.drain()
        assert one.running == 0 == one.deferring.running


async def test_an_answer_is_kept(stage):
    on = stage()
    (name,) = await on.keep()
    known = await on.ended(name)
    assert (known.row.state, known.reply.status, known.reply.body) == (State.DONE, 200, b"answer")
    assert (on.asked, on.courses()) == (1, ["done"])


async def test_nothing_is_asked_without_room_and_never_more_at_once_than_is_allowed(stage):
    on = stage(concurrency=3)
    on.calm = False
    on.gate.clear()
    names = await on.keep(10)
    looks = on.looks
    await until(lambda: on.looks >= looks + 3)
    assert on.asked == 0
    on.calm = True
    await until(lambda: on.running == 3)
    on.gate.set()
    for name in names:
        await on.ended(name)
    assert (on.asked, on.most) == (10, 3)


@pytest.mark.parametrize("refusal", [Shed("no"), RateLimited("no", 1)])
async def test_one_that_is_refused_goes_on_waiting_and_that_is_no_attempt(stage, refusal):
    on = stage(attempts=1)
    on.script = [refusal, refusal, served()]
    (name,) = await on.keep()
    await until(lambda: on.asked == 1)
    await until(lambda: on.courses() == ["refused"])
    assert (await on.known(name)).row.state is State.QUEUED
    known = await on.ended(name)
    assert (known.row.state, on.asked, on.courses()) == (State.DONE, 3, ["refused", "refused", "done"])


async def broken():
    yield b"half"
    raise UpstreamCut("gone")


@pytest.mark.parametrize("failure", ["status", "timeout", "cut", "fault"])
async def test_a_failure_is_tried_so_often_and_then_it_has_failed(stage, failure):
    on = stage()
    said = {"status": served(500), "timeout": UpstreamTimeout("late"), "fault": ValueError("a secret")}
    on.script = [said[failure]] if failure in said else [Served(200, b"", b"", broken(), None) for _ in range(3)]
    (name,) = await on.keep()
    known = await on.ended(name)
    status = {"status": 500, "timeout": 504, "cut": 502, "fault": 500}[failure]
    assert (known.row.state, known.reply.status, on.asked) == (State.FAILED, status, 3)
    assert b"secret" not in known.reply.body
    assert on.courses() == ["again", "again", "failed"]


async def test_what_the_caller_did_wrong_is_the_answer(stage):
    on = stage()
    on.script = [InvalidJson("no JSON")]
    (name,) = await on.keep()
    known = await on.ended(name)
    assert (known.row.state, known.reply.status, on.asked) == (State.DONE, 400, 1)


async def test_an_answer_that_is_too_long_is_not_kept(stage):
    on = stage(most=3)
    (name,) = await on.keep()
    assert (await on.ended(name)).reply.status == 413


async def test_an_answer_for_which_there_is_no_room_says_so(stage):
    on = stage(most=10**7)
    on.script = [served(body=b"x" * 10**6)]
    (name,) = await on.keep()
    known = await on.ended(name)
    assert (known.row.state, known.reply.status) == (State.FAILED, 500)
    assert (await on.store.census())[1] < 1000


async def test_a_lease_is_renewed_while_it_is_asked(stage):
    on = stage(lease=0.3)
    on.gate.clear()
    held, hold = [], on.store.hold

    async def counted(*told) -> bool:
        held.append(time.monotonic())
        return await hold(*told)

    on.store.hold = counted
    (name,) = await on.keep()
    await until(lambda: on.running == 1)
    began = time.monotonic()
    await until(lambda: len(held) >= 3 and held[-1] - began > 0.6)  # two leases later
    assert await on.store.claim("other", LONG) is None
    on.gate.set()
    assert (await on.ended(name)).row.attempts == 1


async def test_who_has_lost_it_stops_asking_and_writes_nothing(stage):
    on = stage(lease=0.3)
    on.gate.clear()
    (name,) = await on.keep()
    await until(lambda: on.running == 1)
    on.calm = False
    on.store._kept[name].token = "another's"
    await until(lambda: on.running == 0)
    await until(lambda: on.courses() == ["lost"])
    on.gate.set()
    assert (await on.known(name)).reply is None


async def test_a_store_in_trouble_costs_no_request_and_it_is_heard_when_it_works_again(stage):
    on = stage()
    real, failures = on.store.claim, []

    async def claim(token, lease):
        if len(failures) < 3:
            failures.append(1)
            raise Trouble("no store")
        return await real(token, lease)

    on.store.claim = claim
    (name,) = await on.keep()
    assert (await on.ended(name)).row.state is State.DONE
    assert len(failures) == 3


async def test_what_came_of_one_is_written_though_the_store_fails_at_first(stage):
    on = stage()
    real, failures = on.store.finish, []

    async def finish(*args, **options):
        if not failures:
            failures.append(1)
            raise Trouble("no store")
        return await real(*args, **options)

    on.store.finish = finish
    (name,) = await on.keep()
    assert (await on.ended(name)).row.state is State.DONE
    assert on.asked == 1


async def test_whoever_stops_gives_back_what_it_asks_as_no_attempt(stage):
    on = stage()
    on.gate.clear()
    names = await on.keep(3)
    await until(lambda: on.running == 3)
    await on.deferring.drain()
    assert (on.running, on.courses()) == (0, ["released"] * 3)
    for name in names:
        row = (await on.known(name)).row
        assert (row.state, row.attempts) == (State.QUEUED, 0)


async def test_one_during_which_the_process_ended_too_often_has_failed(stage):
    on = stage(attempts=2)
    on.calm = False
    (name,) = await on.keep()
    for number in range(2):
        await on.store.claim(f"t{number}", -1)
    on.calm = True
    known = await on.ended(name)
    assert (known.row.state, on.asked) == (State.FAILED, 0)
