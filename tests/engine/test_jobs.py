"""Long work: its states, its end, and how long and how much of it is remembered."""

import asyncio

import pytest

from cacheproxy.engine.jobs import Job, Jobs, Refusal, State
from cacheproxy.errors import Trouble
from tests.rig import Clock, until


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def make(clock):
    """Makes them: ``jobs = make(most=2)``."""
    made = []

    def begin(**told) -> Jobs:
        usual = {"lanes": {"a": 1, "b": 1}, "ttl": 60.0, "most": 10, "most_bytes": 1000}
        made.append(Jobs(**{**usual, **told}, clock=clock))
        return made[-1]

    yield begin
    for jobs in made:
        await jobs.drain()


class Held:
    """Work that goes on until it is let go."""

    def __init__(self) -> None:
        self.go, self.at = asyncio.Event(), []

    async def __call__(self, job: Job) -> None:
        self.at.append(job.id)
        try:
            await self.go.wait()
        finally:
            job.result = {"went": len(self.at)}


async def nothing(job: Job) -> None:
    job.result = {"n": 1}


async def ended(*jobs: Job) -> None:
    await until(lambda: all(job.ended_at is not None for job in jobs))


async def test_a_job_waits_runs_and_is_done(make, clock):
    jobs, first, second = make(), Held(), Held()
    one, two, other = jobs.begin("a", first, 10), jobs.begin("a", second, 10), jobs.begin("b", nothing, 10)
    await ended(other)
    assert (one.state, two.state, other.state) == (State.RUNNING, State.QUEUED, State.DONE)
    assert (one.started_at, two.started_at, other.ended_at) == (clock.time, None, clock.time)
    clock.time += 5
    first.go.set()
    await until(lambda: two.state is State.RUNNING)
    second.go.set()
    await ended(one, two)
    assert (one.result, one.ended_at, two.started_at) == ({"went": 1}, clock.time, clock.time)
    assert [job.id for job in jobs.all()] == [other.id, two.id, one.id]
    assert len({job.id for job in jobs.all()}) == 3
    assert all(len(job.id) >= 24 for job in jobs.all())


@pytest.mark.parametrize(
    ("error", "told"),
    [(Trouble("no model"), ("trouble", "no model")), (RuntimeError("SECRET-7"), ("internal_error", "The proxy failed."))],
)  # fmt: skip
async def test_what_fails_says_so(make, caplog, error, told):
    async def fails(job: Job) -> None:
        job.counts["done"] = 3
        raise error

    job = make().begin("a", fails, 1)
    await ended(job)
    assert (job.state, job.error, job.counts) == (State.FAILED, told, {"done": 3})
    assert "SECRET-7" not in caplog.text


async def test_one_that_runs_or_waits_is_cancelled_and_one_that_has_ended_is_forgotten(make):
    jobs, held = make(), Held()
    one, two = jobs.begin("a", held, 1), jobs.begin("a", held, 1)
    await until(lambda: held.at)
    for job, result in ((two, None), (one, {"went": 1})):
        assert await jobs.cancel(job.id) is job
        assert (job.state, job.error, job.result) == (State.FAILED, ("cancelled", "It was cancelled."), result)
        assert job.ended_at is not None
    assert await jobs.cancel(one.id) is one
    assert jobs.find(one.id) is None
    assert await jobs.cancel(one.id) is None
    three = jobs.begin("a", nothing, 1)  # its lane is free again
    await ended(three)
    assert three.state is State.DONE


async def test_work_that_ends_though_it_is_cancelled_is_done(make):
    started = asyncio.Event()

    async def stubborn(_job: Job) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    jobs = make()
    job = jobs.begin("a", stubborn, 1)
    await started.wait()
    await jobs.cancel(job.id)
    assert (job.state, job.error) == (State.DONE, None)


async def test_a_drain_ends_all_and_takes_none_any_more(make):
    jobs, held = make(), Held()
    one, two = jobs.begin("a", held, 1), jobs.begin("a", held, 1)
    await until(lambda: held.at)
    await jobs.drain()
    for job in (one, two):
        assert (job.state, job.error) == (State.FAILED, ("draining", "The proxy shut down."))
        assert jobs.find(job.id) is job
    assert jobs.begin("a", held, 1) is Refusal.DRAINING


async def test_one_that_has_ended_is_known_for_a_while(make, clock):
    jobs, held = make(), Held()
    done, runs = jobs.begin("b", nothing, 1), jobs.begin("a", held, 1)
    await ended(done)
    clock.time += 59
    assert jobs.find(done.id) is done
    clock.time += 1
    assert jobs.find(done.id) is None
    assert jobs.all() == [runs]


async def test_those_that_ended_first_make_room_and_those_that_go_on_do_not(make, clock):
    jobs, held = make(most=3), Held()
    runs = jobs.begin("a", held, 1)
    first = jobs.begin("b", nothing, 1)
    await ended(first)
    clock.time += 1
    second = jobs.begin("b", nothing, 1)
    await ended(second)
    third = jobs.begin("b", held, 1)
    assert [job.id for job in jobs.all()] == [third.id, second.id, runs.id]
    assert isinstance(jobs.begin("a", held, 1), Job)
    assert jobs.begin("a", held, 1) is Refusal.FULL
    assert jobs.find(second.id) is None


async def test_the_bytes_that_they_hold_are_bounded(make):
    """What was given counts until the end, and what came of it from then on."""
    jobs, held = make(), Held()
    assert jobs.begin("a", held, 1001) is Refusal.TOO_LARGE
    one = jobs.begin("a", held, 600)
    assert jobs.begin("a", held, 401) is Refusal.FULL
    held.go.set()
    await ended(one)
    assert one.size == len('{"went":1}')
    large = jobs.begin("a", held, 990)
    assert jobs.find(one.id) is one
    await ended(large)

    async def much(job: Job) -> None:
        job.result = "x" * 2000

    two = jobs.begin("b", much, 1)
    await ended(two)
    assert jobs.all() == []


async def test_no_more_is_forgotten_than_has_to_be(make, clock):
    async def some(job: Job) -> None:
        job.result = "x" * 398

    jobs, ends = make(), []
    for _ in range(2):
        ends.append(jobs.begin("b", some, 1))
        await ended(ends[-1])
        clock.time += 1
    runs = jobs.begin("a", Held(), 300)
    assert jobs.all() == [runs, ends[1]]


async def test_it_says_how_much_goes_on(make):
    jobs = make()
    jobs.begin("a", Held(), 1)
    assert (repr(jobs), jobs.running) == ("<Jobs 1 of 1 go on>", 1)
