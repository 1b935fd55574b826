"""The second opinion: a probability of any two texts, symmetric, and what it says of pairs that it has not learnt."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import contrast, likeness, opinion_weights
from cacheproxy.core.opinion import SHIPPED, Opinion, read
from tests.examples import tries
from tests.rig import ROOT

LEAST = 0.15
OWN = ROOT / "tests" / "data" / "likeness"
similarities = st.floats(-1, 1)
WORDS = "how do i you enable disable 2FA my the not to from Paris Bob 10 mg ? . what is where 你好"
THINGS = "visa mortgage harbour violin pepper lantern granite"
likely = st.lists(st.sampled_from(WORDS.split()), max_size=9).map(" ".join)
texts = st.text(max_size=60) | likely


def probability(a: str, b: str, similarity: float = 0.95) -> float:
    return SHIPPED.probability(read(a), read(b), similarity)


@tries(150)
@given(texts, texts, similarities)
def test_any_two_texts_have_a_probability_the_same_both_ways_round(a, b, similarity):
    one = probability(a, b, similarity)
    assert 0 <= one <= 1
    assert one == pytest.approx(probability(b, a, similarity), abs=1e-9)


@tries(100)
@given(st.permutations(THINGS.split()), similarities)
def test_order_is_compared_the_same_both_ways_round(words, similarity):
    a, b = THINGS, " ".join(words)
    assert contrast.measures(read(a), read(b), similarity) == contrast.measures(read(b), read(a), similarity)


@tries(60)
@given(texts)
def test_a_text_is_like_itself(text):
    assert probability(text, text, 1.0) > 0.9


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("What do you call me?", "What do I call you?"),
        ("Can I freeze my account?", "Can I freeze your account?"),
        ("How do I close my account?", "How do I close my joint account?"),
        ("Is it wrong to hate my mother?", "Is it wrong to hate your mother?"),
        ("What is the best medical university?", "Where is the best medical university?"),
        ("How do I enable 2FA?", "How do I disable 2FA?"),
    ],
)
def test_questions_that_differ_in_a_small_word_are_not_the_same(a, b):
    assert probability(a, b, 0.97) < LEAST


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("How do I reset my password?", "How can I reset my password?"),
        ("How do I change my address?", "How do you change my address?"),
        ("What is a VPN?", "Please tell me what a VPN is."),
        ("Is Alexis dating Matthew?", "Is Matthew dating Alexis?"),
        ("When will my card arrive?", "Hi, when will my card arrive? Thanks"),
        ("What is the capital of Peru?", "what's the capital of Peru"),
    ],
)
def test_questions_in_other_words_are_the_same(a, b):
    assert probability(a, b, 0.94) > 0.7


def test_the_closer_the_likelier():
    found = [probability("How do I reset my password?", "How can one reset a password?", s) for s in (0.9, 0.95, 0.99)]
    assert found == sorted(found)
    assert found[0] < found[-1]


def lines(name: str) -> list[dict]:
    return [json.loads(line) for line in (OWN / name).read_text("utf-8").splitlines()]


def labelled() -> list[dict]:
    return [row for name in ("own", "adversarial") for row in lines(f"{name}.jsonl")]


def banking() -> list[dict]:
    known = {row["id"]: row for row in lines("banking_texts.jsonl")}
    pairs = lines("banking_pairs.jsonl")
    return [
        {"a": one["text"], "b": two["text"], "same": one["intent"] == two["intent"], "similarity": row["similarity"]}
        for row in pairs
        for one, two in [(known[row["a"]], known[row["b"]])]
    ]


def passed(rows: list[dict]) -> list[dict]:
    return [row for row in rows if row["similarity"] >= 0.92 and likeness.judge(row["a"], row["b"]) is None]


def kept(rows: list[dict]) -> float:
    """The share of true pairs that the guards pass which the classifier keeps."""
    same = [row for row in passed(rows) if row["same"]]
    return sum(probability(row["a"], row["b"], row["similarity"]) >= LEAST for row in same) / len(same)


def test_next_to_nothing_true_is_lost():
    assert kept(labelled()) >= 0.97
    assert kept(banking()) >= 0.98


def test_what_the_guards_object_to_is_found_unlikely_without_them():
    """So that a guard can be switched off: of pairs that are not the same it lets few pass, even by itself."""
    rows = [row for row in labelled() if not row["same"]]
    by_itself = sum(probability(row["a"], row["b"], row["similarity"]) >= LEAST for row in rows) / len(rows)
    assert by_itself < 0.35


def test_every_weight_is_of_something_that_is_measured():
    """A measure that was renamed without learning anew would silently lose its weight."""
    texts = [(row["a"], row["b"]) for row in (*labelled(), *banking())]
    found = set().union(*(contrast.measures(read(a), read(b), 0.95) for a, b in texts))
    guards = {f"guard {guard.value}" for guard in likeness.Guard}
    small = {f"{how} {name}" for how in ("small", "other") for name in contrast.CLASSES}
    kinds = [*contrast.CLASSES, "strong", "weak", "light", "nothing", "whether", "wish"]
    couples = {f"{how} {a}/{b}" for how in ("place", "opening", "person") for a in kinds for b in kinds if a <= b}
    assert opinion_weights.WEIGHTS.keys() <= found | guards | small | couples


def test_the_probabilities_rise_with_the_sums():
    totals, shares = zip(*SHIPPED.curve, strict=True)
    assert list(totals) == sorted(set(totals))
    assert list(shares) == sorted(shares)
    assert 0 <= shares[0] < 0.1
    assert 0.95 < shares[-1] <= 1


@pytest.mark.parametrize(
    ("total", "p"), [(-9, 0.1), (0, 0.1), (1, 0.3), (2, 0.5), (3, 0.5), (3.5, 0.7), (4, 0.9), (1e9, 0.9)]
)
def test_between_two_points_is_a_straight_line(total, p):
    assert Opinion({}, 0.0, ((0, 0.1), (2, 0.5), (3, 0.5), (4, 0.9))).calibrated(total) == pytest.approx(p)


def test_a_measure_without_a_weight_counts_for_nothing():
    line = ((-100.0, 0.0), (100.0, 1.0))
    one, other = read("How do I enable 2FA?"), read("Why is the sky blue?")
    assert Opinion({}, 7.0, line).total(one, other, 0.5) == 7.0
    assert Opinion({"same substance": 2.0}, 7.0, line).total(one, one, 0.5) == 9.0


def test_long_texts_take_no_longer_than_their_length():
    """Words beyond what is read count for nothing; two that differ only there are compared all the same."""
    long = "how do i move my money from a to b " * 2_000
    assert 0 <= probability(long, long + "now") <= 1
