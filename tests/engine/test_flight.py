"""The table of running answers: who may join, what goes on for whom, and that nothing is left in it."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from cacheproxy.core.outcome import Reason
from cacheproxy.core.standing import Standing
from cacheproxy.engine.flight import ALONE_SECONDS, Flights, Terms
from cacheproxy.engine.log import Ending, Head, Log
from cacheproxy.engine.producer import Work
from cacheproxy.engine.record import Budget
from cacheproxy.errors import UpstreamCut
from tests import rig
from tests.engine.fakes import Hands, Notes

HEAD = Head(200, b"OK", ())
KEY, OTHER = b"k" * 32, b"o" * 32


@dataclass
class Backend:
    """Stands in for the producer: a test writes the log and says when it is done."""

    clock: Hands
    works: list[Work] = field(default_factory=list)
    over: list[asyncio.Event] = field(default_factory=list)
    cut: int = 0
    asked: int = 0

    def work(self, bound: Any, log: Log) -> Work:
        self.asked += 1
        return Work(bound, log, self.clock.now() + self.asked, self.clock.monotonic(), Standing(1, b""))

    async def produce(self, work: Work) -> None:
        number = len(self.works)
        self.works.append(work)
        self.over.append(asyncio.Event())
        ending = Ending(Reason.CLIENT_GONE, UpstreamCut("given up"))
        try:
            await self.over[number].wait()
            ending = Ending()
        except asyncio.CancelledError:
            self.cut += 1
            raise
        finally:
            work.log.end(ending)


@dataclass
class Airport:
    flights: Flights
    backend: Backend
    clock: Hands
    budget: Budget
    felled: set = field(default_factory=set)

    async def empty(self) -> None:
        await rig.until(lambda: self.flights.running == 0, 5, "an empty table")
        assert self.flights.waiting == 0
        assert self.flights.of(KEY) is None

    async def answered(self, number: int = 0, body: bytes = b"answer") -> None:
        """The backend of the call `number` has begun its answer."""
        await rig.until(lambda: len(self.backend.works) > number)
        self.backend.works[number].log.begin(HEAD)
        self.backend.works[number].log.append(body)

    def lands(self, number: int = 0) -> None:
        self.backend.over[number].set()


def asked(key: bytes = KEY) -> Any:
    return SimpleNamespace(ask=SimpleNamespace(key=key))


def airport(**terms: Any) -> Airport:
    clock = Hands()
    backend, budget, felled = Backend(clock), Budget(2**30), set()
    flights = Flights(
        producer=backend, journal=Notes(), clock=clock, budget=budget, terms=Terms(**terms),
        identify=lambda key, at: key[:8] + int(at).to_bytes(8, "big"),
        stands=lambda bound, fields: bound.ask.key not in felled and (fields, bound.ask.key) not in felled,
    )  # fmt: skip
    return Airport(flights, backend, clock, budget, felled)


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_one_call_for_all_who_come_before_its_end():
    port = airport()
    flight, first = port.flights.begin(asked(), shared=True)
    assert port.flights.of(KEY) is flight
    assert port.flights.of(OTHER) is None
    second = flight.reader()
    await port.answered()
    third = flight.reader()
    assert port.flights.waiting == 3
    port.lands()
    for reader in (first, second, third):
        assert await reader.read() == b"answer"
        assert await reader.read() == b""
        reader.close()
    await port.empty()
    assert len(port.backend.works) == 1
    assert port.budget.held == 0


async def test_an_answer_that_is_not_shared_is_met_by_nobody():
    port = airport()
    flight, reader = port.flights.begin(asked(), shared=False)
    assert port.flights.of(KEY) is None
    assert not flight.log.whole
    shared, other = port.flights.begin(asked(), shared=True)
    await turns()
    reader.close()
    await rig.until(lambda: port.flights.running == 1)
    assert port.flights.of(KEY) is shared
    other.close()
    await port.empty()


async def test_the_first_who_leaves_changes_nothing_for_the_others():
    """B57."""
    port = airport()
    flight, first = port.flights.begin(asked(), shared=True)
    second = flight.reader()
    await port.answered()
    first.close()
    await turns()
    assert port.flights.of(KEY) is flight
    port.lands()
    assert await second.read() == b"answer"
    assert await second.read() == b""
    second.close()
    await port.empty()
    assert port.backend.cut == 0


@pytest.mark.parametrize("begun", [False, True])
async def test_when_the_last_has_left_the_backend_is_stopped(begun):
    """B61: also before the producer's task has made its first step; who comes then is given a new call."""
    port = airport()
    flight, reader = port.flights.begin(asked(), shared=True)
    if begun:
        await port.answered()
    other = flight.reader()
    reader.close()
    other.close()
    assert port.flights.of(KEY) is None
    again, newcomer = port.flights.begin(asked(), shared=True)
    assert again is not flight
    await rig.until(lambda: port.flights.running == 1)
    assert port.flights.of(KEY) is again
    assert port.backend.cut == begun
    newcomer.close()
    await port.empty()
    assert port.budget.held == 0
    assert flight.log.ending is not None


async def test_the_last_who_leaves_a_finished_flight_touches_nothing():
    port = airport()
    _, reader = port.flights.begin(asked(), shared=True)
    await port.answered()
    port.lands()
    await port.empty()
    reader.close()
    assert port.backend.cut == 0
    assert port.budget.held == 0


async def test_finished_for_nobody_where_that_is_configured():
    port = airport(finish=True)
    flight, reader = port.flights.begin(asked(), shared=True)
    await port.answered()
    reader.close()
    await turns()
    assert port.flights.of(KEY) is flight
    late = flight.reader()
    assert await late.read() == b"answer"
    late.close()
    port.lands()
    await port.empty()
    assert port.backend.cut == 0


async def test_waits_a_moment_for_the_end_of_a_body_whose_answer_is_over(monkeypatch):
    """A caller who leaves at the terminal event has the answer stored all the same."""
    monkeypatch.setattr("cacheproxy.engine.flight.LATE_SECONDS", 0.05)
    port = airport()
    _, reader = port.flights.begin(asked(), shared=True)
    await port.answered()
    port.backend.works[0].recording = SimpleNamespace(ended=True)
    reader.close()
    await turns()
    assert port.flights.running == 1
    port.lands()
    await port.empty()
    assert port.backend.cut == 0
    _, reader = port.flights.begin(asked(), shared=True)
    await port.answered(1)
    port.backend.works[1].recording = SimpleNamespace(ended=True)
    reader.close()
    await port.empty()
    assert port.backend.cut == 1


async def test_what_a_removal_has_felled_is_replaced():
    """Who reads it goes on; who comes later is given a new call."""
    port = airport()
    old, reader = port.flights.begin(asked(), shared=True)
    await port.answered()
    port.felled.add(KEY)
    assert port.flights.of(KEY) is None
    new, other = port.flights.begin(asked(), shared=True)
    port.felled.clear()
    assert port.flights.of(KEY) is new
    port.lands(0)
    assert await reader.read() == b"answer"
    assert await reader.read() == b""
    assert port.flights.of(KEY) is new, "the old one takes out itself alone"
    reader.close()
    other.close()
    await port.empty()
    assert old.log.ending == Ending()


async def test_what_its_head_says_it_rests_on_counts_too():
    port = airport()
    flight, reader = port.flights.begin(asked(), shared=True)
    port.felled.add(((), KEY))
    assert port.flights.of(KEY) is flight, "the head has not come"
    await port.answered()
    assert port.flights.of(KEY) is None
    reader.close()
    await port.empty()


async def test_one_that_has_let_go_of_its_beginning_takes_nobody_new():
    port = airport(most=1000)
    flight, reader = port.flights.begin(asked(), shared=True)
    await port.answered(body=bytes(900))
    assert port.flights.of(KEY) is flight
    await reader.read()
    flight.log.append(bytes(900))
    assert port.flights.of(KEY) is None
    assert await reader.read() == bytes(900)
    reader.close()
    await port.empty()


async def test_a_retired_one_takes_nobody_new():
    """A failure whose body is long in coming must not be met again by who waits for another try."""
    port = airport()
    flight, reader = port.flights.begin(asked(), shared=True)
    port.flights.retire(flight)
    assert port.flights.of(KEY) is None
    new, other = port.flights.begin(asked(), shared=True)
    port.flights.retire(flight)
    assert port.flights.of(KEY) is new
    reader.close()
    other.close()
    await port.empty()


async def test_what_could_not_be_shared_is_remembered_for_a_while():
    port = airport()
    assert port.flights.shares(KEY)
    flight, reader = port.flights.begin(asked(), shared=True)
    port.flights.leave_alone(KEY)
    assert not port.flights.shares(KEY)
    assert port.flights.of(KEY) is None
    assert port.flights.shares(OTHER)
    port.clock.move(ALONE_SECONDS - 1)
    assert not port.flights.shares(KEY)
    port.clock.move(2)
    assert port.flights.shares(KEY)
    assert port.flights.of(KEY) is flight
    reader.close()
    await port.empty()


async def test_switched_off_nothing_is_shared():
    assert not airport(shared=False).flights.shares(KEY)


async def test_knows_what_has_landed_since_a_look():
    """A look that found nothing may be older than the answer that was stored meanwhile."""
    port = airport()
    looked = port.clock.monotonic()
    port.clock.move(1)
    assert not port.flights.landed_since(KEY, looked)
    _, reader = port.flights.begin(asked(), shared=True)
    await port.answered()
    assert not port.flights.landed_since(KEY, looked)
    port.lands()
    await port.empty()
    assert port.flights.landed_since(KEY, looked)
    assert not port.flights.landed_since(OTHER, looked)
    port.clock.move(1)
    assert not port.flights.landed_since(KEY, port.clock.monotonic())
    reader.close()


# --- resuming --------------------------------------------------------------------------------------------------------


async def test_who_reads_with_ids_may_come_back_while_it_runs():
    """It is generated for nobody meanwhile, and only for so long."""
    port = airport(resume=0.1)
    flight, reader = port.flights.begin(asked(), shared=True, numbered=True)
    await port.answered()
    reader.close()
    later, nobody = port.flights.begin(asked(OTHER), shared=True, numbered=True)
    await port.answered(1)
    nobody.close()
    assert port.flights.resumable(KEY, flight.identity) is flight
    back = flight.reader()
    assert await back.read() == b"answer"
    await rig.until(lambda: later.given_up, 5, "the end of the window of one that was deserted later")
    assert flight.running, "somebody reads it again"
    await rig.until(lambda: port.backend.cut == 1)
    back.close()
    await port.empty()
    assert port.backend.cut == 2
    assert port.flights.resumable(KEY, flight.identity) is None
    assert port.budget.held == 0


async def test_who_reads_with_ids_may_come_back_after_its_end_and_then_it_is_forgotten():
    """Coming back keeps nothing any longer."""
    port = airport(resume=0.1)
    flight, reader = port.flights.begin(asked(), shared=True, numbered=True)
    await port.answered()
    port.lands()
    reader.close()
    await port.empty()
    for _ in range(3):
        assert port.flights.resumable(KEY, flight.identity) is flight
        back = flight.reader()
        assert await back.read() == b"answer"
        assert await back.read() == b""
        back.close()
    await rig.until(lambda: port.flights.resumable(KEY, flight.identity) is None, 5, "the end of the window")
    await rig.until(lambda: port.budget.held == 0, 5, "an empty memory")
    assert repr(port.flights) == "<Flights 0 running, 0 resumable>"


async def test_who_has_begun_to_read_again_reads_on_after_the_window():
    port = airport(resume=0.02)
    flight, reader = port.flights.begin(asked(), shared=True, numbered=True)
    await port.answered()
    port.lands()
    reader.close()
    await port.empty()
    back = flight.reader()
    await rig.until(lambda: port.flights.resumable(KEY, flight.identity) is None)
    assert await back.read() == b"answer"
    assert await back.read() == b""
    back.close()
    assert port.budget.held == 0


async def test_an_identity_is_good_for_its_own_request_alone():
    """Neither a guessed one nor one of another request, which may be another caller's, gives anything."""
    port = airport()
    flight, reader = port.flights.begin(asked(), shared=True, numbered=True)
    other, second = port.flights.begin(asked(OTHER), shared=True, numbered=True)
    assert port.flights.resumable(KEY, flight.identity) is flight
    assert port.flights.resumable(OTHER, other.identity) is other
    assert port.flights.resumable(OTHER, flight.identity) is None
    assert port.flights.resumable(KEY, other.identity) is None
    assert port.flights.resumable(KEY, bytes(16)) is None
    port.felled.add(KEY)
    assert port.flights.resumable(KEY, flight.identity) is None, "a removal holds for who comes back, too"
    reader.close()
    second.close()
    await port.flights.close(0)
    await port.empty()


async def test_one_that_takes_nobody_new_is_gone_on_with_beside_the_next():
    port = airport()
    old, reader = port.flights.begin(asked(), shared=True, numbered=True)
    port.flights.retire(old)
    new, other = port.flights.begin(asked(), shared=True, numbered=True)
    assert port.flights.resumable(KEY, old.identity) is old
    assert port.flights.resumable(KEY, new.identity) is new
    for one in (reader, other):
        one.close()
    await port.flights.close(0)
    await port.empty()


@pytest.mark.parametrize("how", ["cut", "refused", "given up"])
async def test_what_has_failed_is_not_gone_on_with(how):
    """Who comes back for it is given a new call, not the same failure for as long as it is known."""
    port = airport(resume=60 if how != "given up" else 0.01)
    flight, reader = port.flights.begin(asked(), shared=True, numbered=True)
    await rig.until(lambda: port.backend.works)
    flight.log.begin(Head(429, b"Too Many Requests", ()) if how == "refused" else HEAD)
    flight.log.append(b"answer")
    if how == "cut":
        flight.log.end(Ending(Reason.INCOMPLETE, UpstreamCut("it broke")))
    if how != "given up":
        port.lands()
    reader.close()
    await port.empty()
    assert port.flights.resumable(KEY, flight.identity) is None
    assert port.budget.held == 0


# --- the end of the process ------------------------------------------------------------------------------------------


async def test_closing_waits_and_then_cuts():
    port = airport()
    _, one = port.flights.begin(asked(), shared=True)
    cut, two = port.flights.begin(asked(OTHER), shared=True)
    await port.answered(0)
    await port.answered(1)
    closing = asyncio.create_task(port.flights.close(0.1))
    await turns()
    assert not port.flights.shares(KEY)
    port.lands(0)
    await closing
    assert port.backend.cut == 1
    assert port.flights.running == 0
    assert await one.read() == b"answer"
    assert await one.read() == b""
    assert await two.read() == b"answer"
    with pytest.raises(UpstreamCut):
        await two.read()
    assert cut.log.ending is not None


async def test_closing_forgets_what_could_be_gone_on_with():
    port = airport()
    flight, reader = port.flights.begin(asked(), shared=True, numbered=True)
    await port.answered()
    port.lands()
    reader.close()
    await port.empty()
    assert port.budget.held > 0
    await port.flights.close(0)
    assert port.budget.held == 0
    assert flight.timer is None


async def test_names_that_tell_the_state():
    port = airport()
    flight, reader = port.flights.begin(asked(), shared=True, numbered=True)
    assert repr(port.flights) == "<Flights 1 running, 0 resumable>"
    assert repr(flight) == "<Flight numbered <Log running, 0 bytes, 0 held, 1 readers>>"
    reader.close()
    await port.flights.close(0)
