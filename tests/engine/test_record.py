"""Recordings under way: whatever passes, what they hold is bounded, given back on every way out, and nothing raises."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cacheproxy.core.coding import Decoder
from cacheproxy.core.model import Answer, Ask, Endpoint, Form, Scope
from cacheproxy.core.outcome import Reason
from cacheproxy.engine.record import Budget, Recording
from tests.fakes.backend import chunk, completion

ROOMY = 2**20
DONE = b"data: [DONE]\n\n"
BODY = json.dumps(completion()).encode()
STREAM = chunk({"role": "assistant", "content": "Hi"}) + chunk(finish="stop") + DONE


def recording(budget: Budget, *, stream: bool = False, largest: int = ROOMY, codings: tuple[bytes, ...] = ()):
    ask = Ask(Endpoint.CHAT, b"k" * 32, Scope(b"c" * 16), b"c" * 16, "m", stream, False, 1)
    media = "text/event-stream" if stream else "application/json"
    return Recording(ask, media, Decoder(codings, largest) if codings else None, largest, budget)


@pytest.fixture
def budget() -> Budget:
    return Budget(ROOMY)


@pytest.mark.parametrize(("stream", "body"), [(False, BODY), (True, STREAM)])
@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_a_whole_answer_is_concluded_and_nothing_is_held_after(budget, stream, body, step):
    """What is held is counted while it is held, whatever pieces it comes in."""
    taken = recording(budget, stream=stream)
    for at in range(0, len(body), step):
        taken.feed(body[at : at + step])
        assert budget.held == min(at + step, len(body))
    answer = taken.conclude()
    assert isinstance(answer, Answer)
    assert (answer.form, answer.body) == (Form.EVENTS if stream else Form.JSON, body)
    assert taken.trouble is None
    assert budget.held == 0


def test_a_coded_answer_is_kept_plain(budget):
    """B41: the stored form has no content coding; what counts is its plain size."""
    taken = recording(budget, codings=(b"gzip",))
    packed = gzip.compress(BODY)
    for byte in packed:
        taken.feed(bytes([byte]))
    assert budget.held == len(BODY)
    answer = taken.conclude()
    assert isinstance(answer, Answer)
    assert answer.body == BODY
    assert budget.held == 0


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda packed: packed[:-4], Reason.INCOMPLETE),
        (lambda packed: packed + b"more", Reason.CONTENT_ENCODING),
        (lambda packed: b"\0" + packed, Reason.CONTENT_ENCODING),
    ],
)
def test_a_broken_coding_is_a_reason(budget, spoil, reason):
    """B41: cut, followed by more, or not of its coding at all."""
    taken = recording(budget, codings=(b"gzip",))
    packed = spoil(gzip.compress(BODY))
    taken.feed(packed[:50])
    taken.feed(packed[50:])
    assert taken.conclude() is reason
    assert taken.trouble is reason
    assert budget.held == 0


def test_an_answer_larger_than_allowed_is_given_up_and_let_go(budget):
    """B78: one huge reply holds nothing once it is known to be too large."""
    taken = recording(budget, largest=1000)
    taken.feed(b"x" * 1000)
    assert taken.trouble is None
    taken.feed(b"x")
    assert taken.trouble is Reason.TOO_LARGE
    assert budget.held == 0
    for _ in range(100):
        taken.feed(b"x" * 100_000)
    assert budget.held == 0
    assert taken.conclude() is Reason.TOO_LARGE


def test_an_answer_that_unpacks_to_more_than_allowed_is_given_up(budget):
    """B78: a few kilobytes that unpack to gigabytes."""
    taken = recording(budget, largest=100_000, codings=(b"gzip",))
    taken.feed(gzip.compress(b"0" * 50_000_000))
    assert taken.conclude() in (Reason.TOO_LARGE, Reason.CONTENT_ENCODING)
    assert budget.held == 0


def test_all_recordings_together_stay_within_the_budget():
    """B78: who would exceed it is given up, the others go on, and what it held is there for the next."""
    budget = Budget(10 * len(BODY))
    under_way = [recording(budget) for _ in range(12)]
    for taken in under_way:
        taken.feed(BODY)
        assert budget.held <= budget.limit
    assert [t.trouble for t in under_way] == [None] * 10 + [Reason.RECORDING_BUDGET] * 2
    assert all(isinstance(t.conclude(), Answer) for t in under_way[:10])
    assert budget.held == 0
    again = recording(budget)
    again.feed(BODY)
    assert isinstance(again.conclude(), Answer)


def test_giving_up_keeps_the_first_reason_and_lets_go(budget):
    taken = recording(budget)
    taken.feed(BODY)
    taken.give_up(Reason.CLIENT_GONE)
    taken.give_up(Reason.STATUS)
    taken.feed(BODY)
    assert taken.trouble is Reason.CLIENT_GONE
    assert taken.conclude() is Reason.CLIENT_GONE
    assert budget.held == 0
    assert not taken.ended


def test_concluding_twice_gives_nothing_back_twice(budget):
    other = recording(budget)
    other.feed(BODY)
    taken = recording(budget)
    taken.feed(BODY)
    assert isinstance(taken.conclude(), Answer)
    assert isinstance(taken.conclude(), Reason)
    taken.give_up(Reason.CLIENT_GONE)
    assert budget.held == len(BODY)
    assert repr(budget) == f"<Budget {len(BODY)}/{ROOMY}>"


def test_the_end_of_a_stream_is_known_at_its_terminal_event(budget):
    taken = recording(budget, stream=True)
    taken.feed(STREAM[:-2])
    assert not taken.ended
    taken.feed(STREAM[-2:])
    assert taken.ended


def test_it_tells_how_it_stands(budget):
    taken = recording(budget)
    taken.feed(b"12345")
    assert repr(taken) == "<Recording 5 bytes going on>"
    taken.give_up(Reason.INCOMPLETE)
    assert repr(taken) == "<Recording 0 bytes incomplete>"


SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=4) | st.just("stop")
NAMES = st.sampled_from(
    [
        "choices",
        "index",
        "finish_reason",
        "delta",
        "message",
        "content",
        "tool_calls",
        "usage",
        "error",
        "id",
        "created",
    ]
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
PIECES = st.lists(
    st.binary(max_size=40)
    | VALUES.map(lambda v: json.dumps(v).encode())
    | VALUES.map(lambda v: b"data: " + json.dumps({"choices": [v]}).encode() + b"\n\n")
    | VALUES.map(lambda v: b"data: " + json.dumps(v).encode() + b"\n\n")
    | st.just(DONE)
    | st.just(chunk(finish="stop")),
    max_size=6,
)


@settings(max_examples=200, deadline=None)
@given(pieces=PIECES, stream=st.booleans(), codings=st.sampled_from([(), (b"gzip",), (b"deflate",)]))
def test_nothing_that_passes_makes_it_raise(pieces, stream, codings):
    """Whatever the backend sends: a recording ends as an answer or a reason, and holds nothing after."""
    budget = Budget(200)
    taken = recording(budget, stream=stream, largest=150, codings=codings)
    for piece in pieces:
        taken.feed(piece)
        assert 0 <= budget.held <= 150
    assert isinstance(taken.conclude(), Answer | Reason)
    assert budget.held == 0


@settings(max_examples=100, deadline=None)
@given(document=VALUES, choice=VALUES)
def test_no_document_makes_it_raise(document, choice):
    for value in (document, {"choices": [choice]}, {"choices": [{"message": choice, "finish_reason": "stop"}]}):
        budget = Budget(ROOMY)
        taken = recording(budget)
        taken.feed(json.dumps(value).encode())
        assert isinstance(taken.conclude(), Answer | Reason)
        assert budget.held == 0
