"""Round trips that many share: nobody who leaves disturbs one, and nobody waits for ever."""

import asyncio
import gc
import random

import pytest

from cacheproxy.errors import Trouble
from cacheproxy.stores.lane import Lane
from tests.rig import until


class Road:
    """Trips that end when they are let go; each gives ten times what it was asked."""

    def __init__(self) -> None:
        self.parties: list[list[int]] = []
        self.gates: list[asyncio.Future[None]] = []
        self.cancelled = 0

    async def trip(self, party: list[int]) -> list[int]:
        gate = asyncio.get_running_loop().create_future()
        self.parties.append(party)
        self.gates.append(gate)
        try:
            await gate
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return [10 * number for number in party]

    def go(self, number: int = -1) -> None:
        self.gates[number].set_result(None)


@pytest.fixture
def road() -> Road:
    return Road()


@pytest.fixture
async def lane(road):
    made = Lane(road.trip, width=2, most=3)
    yield made
    await made.close()


def asked(lane: Lane, *numbers: int) -> list[asyncio.Task]:
    return [asyncio.create_task(lane.ask(number)) for number in numbers]


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_who_comes_alone_goes_at_once(lane, road):
    [task] = asked(lane, 7)
    await turns()
    assert road.parties == [[7]]
    road.go()
    assert await task == 70


async def test_what_is_asked_while_all_trips_are_under_way_goes_together(lane, road):
    tasks = asked(lane, *range(8))
    await turns()
    assert road.parties == [[0], [1]]
    assert repr(lane) == "<Lane 6 waiting, 2 under way>"
    road.go(1)
    await turns()
    assert road.parties == [[0], [1], [2, 3, 4]], "at most three together"
    road.go(0)
    await turns()
    assert road.parties[3] == [5, 6, 7]
    road.go(2)
    road.go(3)
    assert await asyncio.gather(*tasks) == [10 * n for n in range(8)]
    assert repr(lane) == "<Lane 0 waiting, 0 under way>"


async def test_who_leaves_before_the_trip_is_not_asked_for(lane, road):
    tasks = asked(lane, *range(5))
    await turns()
    tasks[3].cancel()
    await turns()
    road.go(0)
    await turns()
    assert road.parties[2] == [2, 4]
    road.go(1)
    road.go(2)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(result, asyncio.CancelledError) or result for result in results] == [0, 10, 20, True, 40]


async def test_who_leaves_during_the_trip_does_not_disturb_it(lane, road):
    tasks = asked(lane, *range(5))
    await turns()
    road.go(0)
    road.go(1)
    await turns()
    assert road.parties[2] == [2, 3, 4]
    tasks[2].cancel()
    tasks[4].cancel()
    await turns()
    assert road.cancelled == 0
    road.go(2)
    assert await tasks[3] == 30
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(result, asyncio.CancelledError) for result in results] == [False, False, True, False, True]


async def test_a_trip_that_all_have_left_goes_on_to_its_end(lane, road):
    """Its connection is given back whole, and the next set off when it is."""
    first = asked(lane, 0, 1)
    await turns()
    later = asked(lane, 2)
    for task in first:
        task.cancel()
    await turns()
    assert road.parties == [[0], [1]]
    assert road.cancelled == 0
    road.go(0)
    await turns()
    assert road.parties[2] == [2]
    road.go(1)
    road.go(2)
    assert await asyncio.gather(*later) == [20]


@pytest.mark.parametrize("steps", range(12))
async def test_who_leaves_in_any_moment_harms_nobody(road, steps):
    """One leaves at every turn of the loop between its question and its result."""

    async def trip(party: list[int]) -> list[int]:
        await turns(4)
        return [10 * number for number in party]

    lane = Lane(trip, width=1, most=2)
    tasks = asked(lane, *range(6))
    await turns(steps)
    tasks[2].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[2], asyncio.CancelledError) or results[2] == 20
    assert [result for n, result in enumerate(results) if n != 2] == [0, 10, 30, 40, 50]
    assert repr(lane) == "<Lane 0 waiting, 0 under way>"
    await lane.close()


@pytest.mark.parametrize("seed", range(5))
async def test_many_who_leave_at_random_get_their_own_result_or_none(seed):
    dice = random.Random(seed)
    under_way = most = widest = 0

    async def trip(party: list[int]) -> list[int]:
        nonlocal under_way, most, widest
        under_way, widest = under_way + 1, max(widest, len(party))
        most = max(most, under_way)
        await turns(dice.randrange(6))
        under_way -= 1
        if dice.random() < 0.1:
            raise Trouble("down", "timeout")
        return [10 * number for number in party]

    lane = Lane(trip, width=3, most=7)
    tasks: list[asyncio.Task] = []
    for number in range(600):
        tasks += asked(lane, number)
        await turns(dice.randrange(2))
        if dice.random() < 0.5:
            dice.choice(tasks[-40:]).cancel()
    async with asyncio.timeout(30):
        results = await asyncio.gather(*tasks, return_exceptions=True)
    good = [number for number, result in enumerate(results) if result == 10 * number]
    others = [result for number, result in enumerate(results) if result != 10 * number]
    assert all(isinstance(result, asyncio.CancelledError | Trouble) for result in others)
    assert (len(good) > 100, most, widest) == (True, 3, 7)
    await lane.close()


async def test_trouble_is_that_of_all_who_asked_together_and_of_no_other(road):
    async def trip(party: list[int]) -> list[int]:
        await turns()
        if 1 in party:
            raise Trouble("no answer in time", "timeout")
        return party

    lane = Lane(trip, width=1, most=2)
    tasks = asked(lane, 0, 1, 2, 3)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert (results[0], results[3]) == (0, 3)
    for result in results[1:3]:
        assert isinstance(result, Trouble)
        assert (str(result), result.kind) == ("no answer in time", "timeout")
    assert results[1] is not results[2], "each its own: one that is raised in many places gathers their tracebacks"
    await lane.close()


async def short(party: list[int]) -> list[int]:
    return party[:-1]


async def long(party: list[int]) -> list[int]:
    return [*party, 99]


async def broken(party: list[int]) -> list[int]:
    raise LookupError("SECRET-77")


async def nothing(party: list[int]) -> None:
    return None


@pytest.mark.parametrize("trip", [short, long, broken, nothing])
async def test_a_bug_in_a_trip_is_trouble_for_all_and_one_line_and_the_next_go(trip, caplog):
    """Nobody waits for ever for a result that does not come."""
    lane = Lane(trip, width=1, most=9)
    async with asyncio.timeout(5):
        results = await asyncio.gather(*asked(lane, 1, 2, 3), return_exceptions=True)
    assert [isinstance(result, Trouble) and result.kind for result in results] == ["fault"] * 3
    await until(lambda: not lane._trips, what="the second trip")
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["a round trip failed"]
    assert "SECRET-77" not in caplog.text + "".join(map(str, results))
    await lane.close()


async def test_closing_ends_what_is_under_way_and_who_waits_is_told(lane, road):
    tasks = asked(lane, *range(4))
    await turns()
    await lane.close()
    assert road.cancelled == 2
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, Trouble) for result in results)
    assert repr(lane) == "<Lane 0 waiting, 0 under way>"
    await lane.close()


async def test_nothing_is_said_of_results_that_nobody_takes(caplog):
    """Who asked has left: trouble with his question is nobody's."""

    async def trip(party: list[int]) -> list[int]:
        await turns(2)
        raise Trouble("down")

    lane = Lane(trip, width=1, most=1)
    for steps in range(8):
        [task] = asked(lane, steps)
        await turns(steps)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await turns(5)
    del task
    gc.collect()
    assert caplog.records == []
    await lane.close()
