"""Two answers compared with an embedder that does what it is told: what fails is not known, and nothing is guessed."""

import json

import pytest

from cacheproxy.core import agreement
from cacheproxy.core.agreement import BEGINNINGS, Agreement
from cacheproxy.core.model import Answer, Endpoint, Form, Unfit
from cacheproxy.engine import comparison as module
from cacheproxy.engine.comparison import Comparison
from cacheproxy.engine.guard import GuardedEmbedder
from cacheproxy.errors import Trouble
from tests.engine.fakes import Notes
from tests.fakes.backend import completion
from tests.fakes.embedder import Chosen

AGREE, DIFFER, UNKNOWN = Agreement.AGREE, Agreement.DIFFER, Agreement.UNKNOWN
ONE, OTHER = "You find it in the menu.", "Look into the menu."
OWNER = b"o" * 16


def answer(document) -> Answer:
    document = completion(document) if isinstance(document, str) else document
    return Answer(Form.JSON, "application/json", json.dumps(document).encode(), has_usage=True)


class Reader(Chosen):
    """Reads texts of so many characters."""

    window = 10_000

    async def embed(self, text: str, scope: bytes):
        if len(text) > self.window:
            self.asked.append((text, scope))
            return Unfit.TOO_LONG
        return await super().embed(text, scope)


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
async def compare(reader):
    guarded = GuardedEmbedder(reader, 30.0, Notes())

    async def compared(one, other, opinion=None) -> Agreement:
        return await Comparison(guarded, opinion=opinion).compare(answer(one), answer(other), Endpoint.CHAT, OWNER)

    yield compared
    await guarded.close()


@pytest.mark.parametrize(("similarity", "verdict"), [(0.9, AGREE), (0.7, UNKNOWN), (0.3, DIFFER)])
async def test_their_vectors_decide(compare, reader, similarity, verdict):
    reader.near(ONE, 1.0)
    reader.near(OTHER, similarity)
    assert await compare(ONE, OTHER) is verdict
    assert reader.asked == [(ONE, OWNER), (OTHER, OWNER)], "and what is remembered of them is their owner's"


async def test_what_is_equal_needs_no_vector(compare, reader):
    assert await compare("Yes. ", "YES.") is AGREE
    assert reader.asked == []


@pytest.mark.parametrize("given", [Trouble("down"), Unfit.UNKNOWN_TOKENS, Unfit.EMPTY])
async def test_without_vectors_only_the_same_words_agree(compare, reader, given):
    reader.given = given
    assert await compare(ONE, OTHER) is UNKNOWN
    assert len(reader.asked) <= 2, "what has no vector has none when it is cut"
    assert await compare("in the menu", "The menu: in") is AGREE


async def test_of_long_ones_the_beginnings_are_compared(compare, reader):
    reader.window = BEGINNINGS[0]
    one, other = [text + f" The rest goes on, and on, and {text[0]}." * 100 for text in (ONE, OTHER)]
    heads = [agreement.beginning(text, BEGINNINGS[0]) for text in (one, other)]
    reader.near(heads[0], 1.0)
    reader.near(heads[1], 0.9)
    assert await compare(one, other) is AGREE
    reader.near(heads[1], 0.2)
    assert await compare(one, other) is DIFFER
    assert [text for text, _ in reader.asked[-2:]] == heads
    reader.window = 10
    assert await compare(one, other) is UNKNOWN, "not even their beginnings fit"


async def test_one_long_one_is_enough_for_both_to_be_cut(compare, reader):
    """A beginning is compared with a beginning."""
    reader.window = 1000
    other = "Short words. " * 60
    await compare(ONE * 100, other)
    assert max(len(text) for text, _ in reader.asked[-2:]) <= BEGINNINGS[0]


async def test_what_is_more_than_words_or_too_large_is_not_compared(compare, reader, monkeypatch):
    tool, refused, other = completion(ONE), completion(ONE), completion(ONE)
    tool["choices"][0]["message"]["tool_calls"] = [{"id": "c", "type": "function", "function": {"name": "f"}}]
    refused["choices"][0]["message"]["refusal"] = "No."
    for document in (tool, refused):
        assert await compare(document, ONE) is UNKNOWN
        assert await compare(ONE, document) is UNKNOWN
    monkeypatch.setattr(module, "LARGEST", 10)
    assert await compare(other, ONE) is UNKNOWN
    assert reader.asked == []


@pytest.mark.parametrize(
    ("probability", "verdict"),
    [(0.95, AGREE), (0.9, AGREE), (0.5, UNKNOWN), (0.05, DIFFER), (Trouble("down"), UNKNOWN)],
)
async def test_an_opinion_is_asked_only_where_vectors_do_not_decide(compare, reader, probability, verdict):
    asked = []

    async def opinion(one, other, cosine):
        asked.append((one, other, round(cosine, 3)))
        return probability

    reader.near(ONE, 1.0)
    reader.near(OTHER, 0.7)
    assert await compare(ONE, OTHER, opinion) is verdict
    assert asked == [(ONE, OTHER, 0.7)]
    reader.near(OTHER, 0.9)
    assert await compare(ONE, OTHER, opinion) is AGREE
    reader.near(OTHER, 0.1)
    assert await compare(ONE, OTHER, opinion) is DIFFER
    assert len(asked) == 1
