"""What the watch over the gate makes of what it sees, in made-up time."""

import asyncio
from types import SimpleNamespace

import pytest

from cacheproxy.core.overload import Terms
from cacheproxy.core.queues import ClassTerms, Level, Queues, Waiter
from cacheproxy.core.queues import Terms as QueueTerms
from cacheproxy.engine.pressure import Pressure
from tests.rig import Clock, until


@pytest.fixture
def stage():
    queues = Queues(QueueTerms(tuple(ClassTerms(None, None, 1) for _ in range(3))))
    clock = Clock()
    clock.monotonic = lambda: clock.time
    clock.time = 100.0
    places = SimpleNamespace(slots=4, used=4)
    heard = []
    pressure = Pressure(
        terms=Terms(), places=places, queues=queues, clock=clock, utilisation=lambda: None,
        listen=lambda: heard.append(clock.time),
    )  # fmt: skip
    yield SimpleNamespace(pressure=pressure, queues=queues, clock=clock, places=places, heard=heard)
    pressure.close()


def wait(stage, priority: int = 0) -> Waiter:
    waiter = Waiter(priority, b"a", 0, 1, stage.clock.time)
    assert stage.queues.offer(waiter, Level.NORMAL) is None
    return waiter


async def test_p0_that_waits_too_long_at_a_busy_backend_keeps_p2_out_and_is_told_once(stage, caplog):
    wait(stage)
    assert stage.pressure.level() is Level.NORMAL
    stage.clock.time += 0.9
    assert stage.pressure.level() is Level.NORMAL
    stage.clock.time += 0.2
    for _ in range(3):
        assert stage.pressure.level() is Level.NO_NEW_P2
    assert caplog.text.count("new requests of P2 are refused (wait)") == 1


async def test_it_looks_again_by_itself_and_has_the_backends_asked_while_anything_waits(stage):
    wait(stage)
    stage.pressure.level()
    stage.clock.time += 1.1
    await until(lambda: stage.pressure.now is Level.NO_NEW_P2)
    assert stage.heard


async def test_where_p0_does_not_wait_nothing_is_kept_out_and_nobody_asked(stage):
    wait(stage, 1)
    for _ in range(20):
        stage.clock.time += 1
        assert stage.pressure.level() is Level.NORMAL
    await asyncio.sleep(0)
    assert len(stage.heard) <= 1


async def test_streams_of_p0_that_begin_too_late_are_a_reason_of_their_own(stage, caplog):
    stage.pressure.level()
    stage.pressure.began(1, 60.0)
    assert stage.pressure.level() is Level.NORMAL
    stage.pressure.began(0, 60.0)
    assert stage.pressure.level() is Level.NO_NEW_P2
    assert "(first_byte)" in caplog.text


async def test_what_waited_long_ago_is_not_taken_for_waiting_since(stage):
    """The look that sees the queue empty again is not left out."""
    gone = [wait(stage) for _ in range(8)]
    stage.pressure.level()
    stage.clock.time += 0.1
    for waiter in gone:
        stage.queues.leave(waiter)
    for _ in range(10):
        stage.pressure.level()
        stage.clock.time += 0.3
    wait(stage)
    assert stage.pressure.level() is Level.NORMAL
