"""What is called wrong is removed and barred, and what is called right is lifted; trouble is never taken for leave."""

import asyncio

import pytest

from cacheproxy.core import key
from cacheproxy.core.quarantine import Side
from cacheproxy.core.removal import Removals
from cacheproxy.engine import feedback as module
from cacheproxy.engine.feedback import Feedback, Heeded, Judgement, Verdict
from cacheproxy.engine.purge import Purge
from cacheproxy.engine.shelf import Alone
from cacheproxy.errors import Trouble
from cacheproxy.stores.memory import Memory
from cacheproxy.stores.quarantine import MemoryQuarantine
from tests.engine.fakes import Hands, Notes
from tests.rig import until
from tests.stores.entries import entry, key_of

P, Q = b"p" * 32, b"q" * 32
SECRET = b"s" * 32


def side(number: int, text: str = "") -> Side:
    return Side(key.entry_id(key_of(number)), text or f"question {number}")


ASKED, STORED, THIRD = side(1), side(2), side(3)


class Failing(MemoryQuarantine):
    """Fails, or hangs, when it is told to."""

    fails = hangs = False
    asked = 0

    async def _trouble(self) -> None:
        self.asked += 1
        await asyncio.sleep(0)
        if self.hangs:
            await asyncio.Event().wait()
        if self.fails:
            raise Trouble("no")

    async def put(self, notes) -> None:
        await self._trouble()
        await super().put(notes)

    async def lift(self, names) -> None:
        await self._trouble()
        await super().lift(names)

    async def among(self, names):
        await self._trouble()
        return await super().among(names)


class Slow(Memory):
    """Takes removals when it is let."""

    def __init__(self) -> None:
        super().__init__(10**7)
        self.let, self.removing, self.fails = asyncio.Event(), 0, False
        self.let.set()

    async def fell(self, felled, also=()):
        self.removing += 1
        await self.let.wait()
        if self.fails:
            raise Trouble("no")
        return await super().fell(felled, also)


class Bench:
    """Feedback over a store with the answer to question 2."""

    def __init__(self, quarantine=None) -> None:
        self.store, self.quarantine, self.notes = Slow(), quarantine or Failing(), Notes()
        self.heard: list[Judgement] = []
        self.store.keep(entry(2))
        self.removals = Removals()
        self.feedback = self.another()

    def another(self) -> Feedback:
        """As after a restart, or as on another replica."""
        purge = Purge(
            stock=self.store, removals=self.removals, epochs=Alone(self.removals), journal=self.notes, clock=Hands()
        )
        return Feedback(
            quarantine=self.quarantine, purge=purge, journal=self.notes, secret=SECRET, deadline=5.0,
            heard=self.heard.append,
        )  # fmt: skip

    async def say(self, verdict: str, asked: str | None = None, number: int = 2) -> Heeded | None:
        return await self.feedback.heed(Judgement(Verdict(verdict), side(number).entry_id, asked))

    async def is_barred(self, asked: Side = ASKED, stored: Side = STORED, partition: bytes = P) -> bool | Trouble:
        return await self.feedback.is_barred(partition, asked, stored)

    @property
    def has_it(self) -> bool:
        return self.store.peek(key_of(2)) is not None


@pytest.fixture
async def bench():
    made = Bench()
    yield made
    made.quarantine.fails = made.quarantine.hangs = False
    await made.feedback.close()


async def test_wrong_removes_the_answer_and_bars_the_pair_in_either_order(bench):
    assert await bench.is_barred() is False
    assert await bench.say("wrong", ASKED.text) == Heeded(removed=1, barred=1, lifted=0)
    assert not bench.has_it
    assert await bench.is_barred() is True
    assert await bench.is_barred(STORED, ASKED) is True


async def test_other_pairs_of_the_same_questions_are_not_barred(bench):
    await bench.say("wrong", ASKED.text)
    for pair in (ASKED, THIRD), (THIRD, STORED), (THIRD, ASKED), (STORED, THIRD):
        assert await bench.is_barred(*pair) is False


async def test_in_another_case_or_with_other_spaces_it_is_the_same_pair(bench):
    """Both questions, once they have met here, whatever the ids of their answers."""
    await bench.is_barred()
    await bench.say("wrong", ASKED.text)
    assert await bench.is_barred(side(4, "QUESTION  1"), side(5, "Question 2 ")) is True
    assert await bench.is_barred(side(4, "QUESTION  1"), side(5, "Question 2 "), partition=Q) is False


async def test_another_replica_bars_the_pair_that_it_has_never_seen(bench):
    bench.feedback = bench.another()
    await bench.say("wrong", ASKED.text)
    bench.feedback = bench.another()
    assert await bench.is_barred() is True
    assert await bench.is_barred(STORED, ASKED) is True


async def test_without_a_request_the_question_of_the_answer_is_like_no_other(bench):
    await bench.is_barred()
    assert await bench.say("wrong") == Heeded(1, 1, 0)
    for other in ASKED, THIRD:
        assert await bench.is_barred(other, STORED) is True
        assert await bench.is_barred(STORED, other) is True
        assert await bench.is_barred(other, side(5, "QUESTION 2")) is True
    assert await bench.is_barred(ASKED, THIRD) is False


async def test_a_request_without_a_question_bars_nothing(bench):
    assert await bench.say("wrong", "") == Heeded(1, 0, 0)
    assert not bench.has_it
    assert await bench.is_barred() is False


@pytest.mark.parametrize("asked", [ASKED.text, None])
async def test_right_lifts_what_wrong_has_barred(bench, asked):
    await bench.is_barred()
    await bench.say("wrong", asked)
    bench.feedback = bench.another()
    assert await bench.say("right", asked) == Heeded(0, 0, 1)
    assert await bench.is_barred() is False
    assert await bench.is_barred(STORED, ASKED) is False
    assert await bench.is_barred(side(4, "QUESTION  1"), side(5, "Question 2 ")) is False


async def test_right_lifts_no_other_pair(bench):
    await bench.say("wrong", ASKED.text)
    assert await bench.say("right", THIRD.text) == Heeded(0, 0, 0)
    assert await bench.say("right") == Heeded(0, 0, 0)
    assert await bench.is_barred() is True


async def test_right_of_an_answer_that_is_there_leaves_it(bench):
    assert await bench.say("right", ASKED.text) == Heeded(0, 0, 0)
    assert bench.has_it
    assert bench.removals.epoch == 0


async def test_said_again_it_holds_for_another_question_too(bench):
    """The answer is gone by then, and known all the same."""
    assert await bench.say("wrong", ASKED.text) == Heeded(1, 1, 0)
    assert await bench.say("wrong", THIRD.text) == Heeded(0, 1, 0)
    assert await bench.is_barred() is True
    assert await bench.is_barred(THIRD, STORED) is True


async def test_an_answer_of_which_nothing_is_known(bench):
    for verdict in Verdict:
        for asked in ASKED.text, None:
            assert await bench.say(verdict, asked, number=9) is None
    assert bench.heard == []
    assert not any(name == "feedback" for name, *_ in bench.notes.counted)


async def test_of_two_that_say_the_same_at_once_none_is_told_that_it_is_unknown(bench):
    bench.store.let.clear()
    both = asyncio.gather(bench.say("wrong", ASKED.text), bench.say("wrong", ASKED.text))
    await until(lambda: bench.store.removing)
    bench.store.let.set()
    assert await both == [Heeded(1, 1, 0), Heeded(0, 1, 0)]
    assert await bench.is_barred() is True


async def test_barred_before_it_is_removed(bench):
    """Whoever looks while the store is still at it is served nothing of it."""
    bench.store.let.clear()
    saying = asyncio.create_task(bench.say("wrong", ASKED.text))
    await until(lambda: bench.store.removing)
    assert await bench.is_barred() is True
    bench.store.let.set()
    await saying


async def test_who_leaves_while_it_is_removed_leaves_it_barred_and_it_can_be_said_again(bench):
    bench.store.let.clear()
    saying = asyncio.create_task(bench.say("wrong", ASKED.text))
    await until(lambda: bench.store.removing)
    saying.cancel()
    await asyncio.wait([saying])
    bench.store.let.set()
    assert await bench.is_barred() is True
    assert await bench.say("wrong", ASKED.text) == Heeded(0, 1, 0)


async def test_a_store_in_trouble_is_told_and_it_can_be_said_again(bench):
    bench.store.fails = True
    with pytest.raises(Trouble):
        await bench.say("wrong", ASKED.text)
    assert bench.heard == []
    bench.store.fails = False
    assert await bench.say("wrong", ASKED.text) == Heeded(0, 1, 0)


@pytest.mark.parametrize("verdict", Verdict)
async def test_a_quarantine_in_trouble_is_told(bench, verdict):
    bench.quarantine.fails = True
    with pytest.raises(Trouble):
        await bench.say(verdict, ASKED.text)
    assert bench.has_it


@pytest.mark.parametrize("way", ["fails", "hangs"])
async def test_as_long_as_the_quarantine_cannot_tell_it_is_trouble_never_leave(bench, way, monkeypatch):
    monkeypatch.setattr(bench.feedback.breaker, "_deadline", 0.01)
    setattr(bench.quarantine, way, True)
    assert isinstance(await bench.is_barred(), Trouble)
    assert isinstance(await bench.is_barred(), Trouble)
    setattr(bench.quarantine, way, False)
    await until(lambda: bench.feedback.breaker.closed)
    assert await bench.is_barred() is False


async def test_all_candidates_in_one_round_trip_and_none_without_any(bench):
    await bench.say("wrong", ASKED.text)
    bench.quarantine.asked = 0
    many = [side(n) for n in range(2, 22)]
    assert await bench.feedback.barred(P, ASKED, many) == {STORED.entry_id}
    assert bench.quarantine.asked == 1
    assert await bench.feedback.barred(P, ASKED, []) == frozenset()
    assert bench.quarantine.asked == 1


async def test_each_judgement_is_counted_and_passed_on(bench):
    await bench.say("right", ASKED.text)
    await bench.say("wrong", ASKED.text)
    assert [(one.verdict, one.asked) for one in bench.heard] == [("right", ASKED.text), ("wrong", ASKED.text)]
    assert [label for name, *label in bench.notes.counted if name == "feedback"] == [["right"], ["wrong"]]


async def test_with_another_secret_nothing_is_found(bench):
    await bench.say("wrong", ASKED.text)
    bench.feedback.rekey(b"t" * 32)
    assert await bench.is_barred() is False


async def test_what_is_kept_has_one_size_and_no_word_of_a_question(bench):
    await bench.is_barred()
    await bench.say("wrong", ASKED.text)
    await bench.say("wrong")
    kept = bench.quarantine.notes
    assert {len(name) for name in kept} == {32}
    assert {len(note) for note in kept.values()} <= {0, 64}
    assert not any(b"question" in part for pair in kept.items() for part in pair)


async def test_of_questions_that_met_a_bounded_number_is_remembered(bench, monkeypatch):
    monkeypatch.setattr(module, "REMEMBERED", 3)
    bench.feedback = bench.another()
    await bench.feedback.barred(P, ASKED, [side(n) for n in range(10)])
    assert len(bench.feedback._met) == 3
