"""Second opinions: what of a verifier and a judge is a yes, and that trouble with either is never one."""

import asyncio

import pytest

from cacheproxy.engine import breaker
from cacheproxy.engine.verdict import MOST_JUDGED, Bounds, Finding, GuardedJudge, GuardedVerifier, Verdicts
from cacheproxy.errors import Trouble
from tests.engine.fakes import Notes
from tests.engine.test_judge import bound
from tests.rig import until

DEADLINE = 0.05


class Spoken:
    """A verifier, and a judge, that says what it is told to."""

    name = "spoken"

    def __init__(self, given: object) -> None:
        self.given = given
        self.hangs = False
        self.asked: list[tuple] = []
        self.closed = 0

    async def _say(self, *asked):
        self.asked.append(asked)
        if self.hangs:
            await asyncio.Event().wait()
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given

    async def agreement(self, asked, stored, similarity):
        return await self._say(asked, stored, similarity)

    async def agrees(self, bound, asked, stored):
        return await self._say(asked, stored)

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
def never(monkeypatch) -> None:
    """No trial comes while the test lasts."""
    monkeypatch.setattr(breaker, "FIRST_GAP", 1000.0)


@pytest.fixture
async def court():
    made = []

    def make(verifier, judge=None, bounds=Bounds(0.25), deadline=DEADLINE):  # noqa: B008 - frozen
        notes = Notes()
        guarded = GuardedVerifier(verifier, deadline, notes)
        found = Verdicts(guarded, judge and GuardedJudge(judge, deadline, notes), bounds, notes)
        made.append(found)
        return found, notes

    yield make
    for verdicts in made:
        await verdicts.close()


@pytest.mark.parametrize(
    ("probability", "finding"),
    [(0.0, "disagreed"), (0.2499, "disagreed"), (0.25, "agreed"), (1.0, "agreed"), (0, "disagreed"), (1, "agreed")],
)
async def test_from_the_least_probability_on_they_agree(court, probability, finding):
    verifier = Spoken(probability)
    verdicts, notes = court(verifier)
    assert await verdicts.hearing(bound(), "a").agrees("b", 0.93) == finding
    assert verifier.asked == [("a", "b", 0.93)]
    assert notes.counted == [("verified", finding)]


@pytest.mark.parametrize("said", [Trouble("no", "x"), ValueError("a bug"), float("nan"), 1.1, -0.1, "0.9"])
async def test_trouble_is_not_agreement(court, never, said):
    """B67: and it is counted, and the verifier is left alone until it works."""
    verifier = Spoken(said)
    verdicts, notes = court(verifier)
    hearing = verdicts.hearing(bound(), "a")
    assert await hearing.agrees("b", 0.99) is Finding.TROUBLE
    verifier.given = 1.0
    assert await hearing.agrees("c", 0.99) is Finding.TROUBLE
    assert len(verifier.asked) == 1
    assert notes.counted[0][:2] == ("trouble", "verifier")


async def test_a_verifier_that_hangs_costs_its_deadline_once_and_is_tried_again(court, monkeypatch):
    monkeypatch.setattr(breaker, "FIRST_GAP", 0.0)
    verifier = Spoken(1.0)
    verifier.hangs = True
    verdicts, _ = court(verifier)
    hearing = verdicts.hearing(bound(), "a")
    assert await hearing.agrees("b", 0.99) is Finding.TROUBLE
    verifier.hangs = False
    await until(lambda: verdicts._verifier.breaker.closed)
    assert await hearing.agrees("c", 0.99) is Finding.AGREED


async def test_a_verifier_that_is_not_loaded_is_trouble_until_it_is(court):
    verdicts, notes = court(None)
    hearing = verdicts.hearing(bound(), "a")
    assert await hearing.agrees("b", 0.99) is Finding.TROUBLE
    verdicts._verifier.exchange(Spoken(1.0))
    assert await hearing.agrees("b", 0.99) is Finding.AGREED
    assert notes.counted == [("verified", "trouble"), ("verified", "agreed")]


BOUNDS = Bounds(0.25, doubtful=0.1, sure=0.9, certain=0.97)


@pytest.mark.parametrize(
    ("probability", "similarity", "judged", "agrees"),
    [
        (0.05, 0.99, False, False),
        (0.1, 0.99, True, True),
        (0.5, 0.99, True, True),
        (0.95, 0.9699, True, True),
        (0.95, 0.97, False, True),
        (0.9, 1.0, False, True),
        (0.8999, 1.0, True, True),
    ],
)
async def test_the_judge_is_asked_in_doubt_alone(court, probability, similarity, judged, agrees):
    judge = Spoken(True)
    verdicts, _ = court(Spoken(probability), judge, BOUNDS)
    assert (await verdicts.hearing(bound(), "a").agrees("b", similarity) is Finding.AGREED) == agrees
    assert judge.asked == ([("a", "b")] if judged else [])


async def test_what_the_judge_says_is_what_counts(court):
    judge = Spoken(False)
    verdicts, notes = court(Spoken(0.95), judge, BOUNDS)
    assert await verdicts.hearing(bound(), "a").agrees("b", 0.93) is Finding.DISAGREED
    assert notes.counted == [("verified", "disagreed")]


@pytest.mark.parametrize("said", [Trouble("no", "status"), KeyError("a bug")])
async def test_trouble_of_the_judge_is_not_agreement(court, never, said):
    judge = Spoken(said)
    verdicts, _ = court(Spoken(0.95), judge, BOUNDS)
    assert await verdicts.hearing(bound(), "a").agrees("b", 0.93) is Finding.TROUBLE
    assert verdicts._verifier.breaker.closed


async def test_a_judge_is_tried_again_with_a_caller_of_that_moment_only(court, monkeypatch):
    """A request that failed is not sent again later, with the credential of a caller who may be gone."""
    monkeypatch.setattr(breaker, "FIRST_GAP", 0.0)
    judge = Spoken(Trouble("no", "status"))
    verdicts, _ = court(Spoken(0.95), judge, BOUNDS)
    await verdicts.hearing(bound(), "a").agrees("b", 0.93)
    judge.given = True
    for _ in range(20):
        await asyncio.sleep(0)
    assert judge.asked == [("a", "b")]
    await verdicts.hearing(bound(), "c").agrees("d", 0.93)
    await until(lambda: verdicts._judge.breaker.closed)
    assert judge.asked == [("a", "b"), ("c", "d")]


async def test_one_look_asks_the_judge_a_few_times_at_most(court):
    judge = Spoken(False)
    verdicts, _ = court(Spoken(0.95), judge, BOUNDS)
    hearing = verdicts.hearing(bound(), "a")
    for number in range(MOST_JUDGED + 3):
        assert await hearing.agrees(str(number), 0.93) is Finding.DISAGREED
    assert len(judge.asked) == MOST_JUDGED
    assert await hearing.agrees("sure", 0.99) is Finding.AGREED
    assert await verdicts.hearing(bound(), "b").agrees("b", 0.93) is Finding.DISAGREED
    assert len(judge.asked) == MOST_JUDGED + 1


async def test_a_caller_who_leaves_is_no_trouble_of_the_verifier(court):
    verifier = Spoken(1.0)
    verifier.hangs = True
    verdicts, notes = court(verifier, deadline=1000.0)
    task = asyncio.create_task(verdicts.hearing(bound(), "a").agrees("b", 0.99))
    await until(lambda: verifier.asked)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert verdicts._verifier.breaker.closed
    assert notes.counted == []


async def test_closing_closes_the_verifier():
    verifier = Spoken(1.0)
    verdicts = Verdicts(GuardedVerifier(verifier, 1, Notes()), GuardedJudge(Spoken(True), 1, Notes()), BOUNDS, Notes())
    assert "verifier closed" in repr(verdicts)
    assert "judge closed" in repr(verdicts)
    await verdicts.close()
    assert verifier.closed == 1
