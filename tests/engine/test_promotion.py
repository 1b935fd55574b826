"""Who confirms a shared answer, and who does not."""

import json
from dataclasses import replace

import pytest

from cacheproxy.core.agreement import Agreement
from cacheproxy.core.model import Answer, Ask, Endpoint, Entry, Form, Scope
from cacheproxy.engine.comparison import Comparison
from cacheproxy.engine.evidence import Candidate, Evidence
from cacheproxy.engine.guard import GuardedEmbedder
from cacheproxy.engine.promotion import Promotion, is_smuggled
from cacheproxy.engine.truth import Truth
from cacheproxy.engine.witnesses import GuardedWitnesses
from cacheproxy.errors import Trouble
from cacheproxy.stores.witnesses import LocalWitnesses
from tests.engine.fakes import Hands, Notes
from tests.fakes.backend import completion

OWNER = b"o" * 16
A, B, C, D = (letter * 16 for letter in (b"a", b"b", b"c", b"d"))
SAID = "Open the settings and choose a new one."


def answer(text: str = SAID) -> Answer:
    return Answer(Form.JSON, "application/json", json.dumps(completion(text)).encode(), has_usage=True)


def entry(credential: bytes = A, text: str = SAID, stored_at: float = 1_000_000.0) -> Entry:
    return Entry(
        key=b"k" * 32, owner=OWNER, credential=credential, namespace="", endpoint=Endpoint.CHAT, model="m",
        answer=answer(text), stored_at=stored_at, fresh_until=1_000_100.0, expires_at=1_000_200.0, took=0.1,
    )  # fmt: skip


def ask(credential: bytes) -> Ask:
    return Ask(Endpoint.CHAT, b"x" * 32, Scope(OWNER), credential, "m", stream=False, wants_usage=False, choices=1)


class Moody(LocalWitnesses):
    """Witnesses who fail on demand, and are counted."""

    trouble = False
    asked = 0

    async def count(self, name):
        self.asked += 1
        if self.trouble:
            raise Trouble("down")
        return await super().count(name)


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def moody(hands) -> Moody:
    return Moody(hands)


@pytest.fixture
async def make(moody, notes):
    made = []

    def promotion(after: int = 2) -> Promotion:
        made.append(GuardedWitnesses(moody, 30.0, notes))
        return Promotion(made[-1], notes, after)

    yield promotion
    for one in made:
        await one.close()


async def found_by(promotion, stored, *credentials) -> list[bool]:
    return [await promotion.stands(ask(credential), stored) for credential in credentials]


async def test_who_fetched_it_finds_it_and_others_only_after_so_many(make, notes):
    promotion = make(3)
    stored = entry()
    assert await found_by(promotion, stored, A, B, C) == [True, False, False]
    await promotion.confirm(stored, B)
    assert await found_by(promotion, stored, A, B, C) == [True, False, False]
    await promotion.confirm(stored, C)
    assert await found_by(promotion, stored, A, B, C, D) == [True] * 4
    assert notes.counted == [("semantic_promoted", "")]


async def test_nobody_confirms_itself_or_twice(make):
    promotion = make(3)
    stored = entry()
    for credential in (A, A, B, B, A, B):
        await promotion.confirm(stored, credential)
    assert await found_by(promotion, stored, C) == [False]


@pytest.mark.parametrize(
    "other", [entry(stored_at=1_000_050.0), entry(text="Send it to mallory."), replace(entry(), key=b"l" * 32)]
)
async def test_what_is_stored_anew_begins_with_nobody(make, other):
    """A new answer under the key, the same one after a purge, another one."""
    promotion = make()
    await promotion.confirm(entry(), B)
    assert await found_by(promotion, entry(), C) == [True]
    assert await found_by(promotion, other, C) == [False]


async def test_a_confirmation_ends_with_the_answer(make, hands, moody):
    promotion = make()
    await promotion.confirm(entry(), B)
    hands.move(100)
    assert await moody.count(next(iter(moody._sets))) == 0


async def test_what_another_replica_saw_counts_and_is_asked_for_once(make, moody):
    here, there = make(), make()
    assert not await here.stands(ask(C), entry())
    await there.confirm(entry(), B)
    before = moody.asked
    assert [await here.stands(ask(C), entry()) for _ in range(10)] == [True] * 10
    assert moody.asked - before == 1


async def test_who_cannot_be_asked_confirms_nothing(make, moody):
    promotion = make()
    await make().confirm(entry(), B)
    moody.trouble = True
    assert await found_by(promotion, entry(), A, C) == [True, False]


async def test_one_is_enough_where_the_operator_says_so(make, moody):
    assert await found_by(make(1), entry(), A, B) == [True, True]
    assert moody.asked == 0


async def test_what_confirms_can_be_told_before_it_costs_anything(make):
    promotion = make()
    assert not promotion.wants(ask(A), entry())
    assert promotion.wants(ask(B), entry())
    await promotion.confirm(entry(), B)
    assert not promotion.wants(ask(C), entry())
    assert not make(1).wants(ask(B), entry())


def test_what_is_smuggled_is_so_only_to_others():
    asked, stored = "How do I reset my password?", "How do I reset my password? zx qv wj"
    assert is_smuggled(ask(B), entry(), asked, stored)
    assert not is_smuggled(ask(A), entry(), asked, stored)
    assert not is_smuggled(ask(B), entry(), asked, asked)


async def test_no_credential_can_be_told_from_what_is_kept(make, moody):
    await make().confirm(entry(), B)
    await make().confirm(entry(stored_at=5.0), B)
    (_, one), (_, other) = moody._sets.values()
    assert {A, B}.isdisjoint(one | other)
    assert one.isdisjoint(other), "nor that two answers have the same witness"


@pytest.mark.parametrize(
    ("own", "confirms"),
    [
        (SAID, True),
        (SAID.upper(), True),
        ("Something else.", False),
        (SAID + " Or see https://a.example/help", False),
    ],
)
async def test_only_who_is_told_the_same_is_a_witness(make, notes, hands, own, confirms):
    promotion = make()
    evidence = Evidence(Comparison(_alike(notes)), Truth(notes, hands, 0.02, 0.92), promotion)
    await evidence.weigh(None, Candidate(entry()), entry(B, own))
    assert await found_by(promotion, entry(), C) == [confirms]


@pytest.mark.parametrize("lure", ["evil.example", "https://evil.example/x", "m@evil.example", "+49 30 1234567"])
async def test_an_answer_that_sends_its_reader_elsewhere_has_no_witness(make, notes, hands, lure):
    """However like the two are in all else; and whichever the lure is in, only the stored one's counts."""
    promotion = make()
    evil = SAID * 20 + f" Or ask {lure} for help."
    evidence = Evidence(Comparison(_alike(notes)), Truth(notes, hands, 0.02, 0.92), promotion)
    assert await evidence.compare(entry(text=evil), answer(SAID * 20)) is Agreement.AGREE
    await evidence.weigh(None, Candidate(entry(text=evil)), entry(B, SAID * 20))
    assert await found_by(promotion, entry(text=evil), C) == [False]
    await evidence.weigh(None, Candidate(entry(text=SAID * 20)), entry(B, evil))
    assert await found_by(promotion, entry(text=SAID * 20), C) == [True]


def _alike(notes) -> GuardedEmbedder:
    """Gives all texts one vector, and those that begin otherwise another."""
    import numpy as np

    from cacheproxy.core.model import Identity

    class Alike:
        identity = Identity("alike", "1", 2)

        async def embed(self, text, scope):
            return np.array([1.0, 0.0] if text.casefold().startswith("open") else [0.0, 1.0], np.float32)

    return GuardedEmbedder(Alike(), 30.0, notes)


async def test_what_does_not_count_for_the_estimate_is_not_counted(make, notes, hands):
    truth = Truth(notes, hands, 0.02, 0.92)
    evidence = Evidence(Comparison(_alike(notes)), truth, make())
    await evidence.weigh(None, Candidate(entry(), 0.95, "?"), entry(B, "Something else."))
    assert truth.estimate.of == 0
    await evidence.weigh(None, Candidate(entry(), 0.95, "?", counts=True), entry(B, "Something else."))
    assert (truth.estimate.wrong, truth.estimate.of) == (1, 1)
