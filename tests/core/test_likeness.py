"""Laws of the guards: total, symmetric, bounded, and a text is always like itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cacheproxy.core.likeness import ALL, DEFAULT, MOST, Guard, explain, judge, prepare

WORDS = [
    "how", "do", "I", "not", "enable", "disable", "the", "2FA", "from", "Berlin", "to", "London", "by", "Anna", "and",
    "Bob", "10", "mg", "1,000", "3.10", "v3.1", "two", "hundred", "first", "illegal", "cannot", "can't", "isn't",
    "why", "who", "how", "many", "French", "JSON", '"quoted', 'text"', "'single'", "https://x.example/a",
    "a@b.example", "gpt-4o", "AB-12", "C++", "C#", "U.S.", "5pm", "10:30", "2025-01-02", "June", "5th", "12%", "$5",
    "never", "only", "most", "\u5982\u4f55", "\u542f\u7528", "\u4e0d", "\u4ece", "\u5317\u4eac", "\u5230",
    "\u4e0a\u6d77", "\u3067\u3059", "\u306a\u3044", "\u304b\u3089", "\u307e\u3067", "il", "n'est", "pas", "was",
    "ist", "nicht", "el", "a\u00f1o", "\u00bfd\u00f3nde?", "o", "que", "\u00e9", "\u2014", "\u2026", "?", "!", ".",
    ",", ";", "\ud83d\ude42", "\u0130", "\u00df", "\ufb01", "\u00bd", "\u0663", "\u0301", "'", '"', "`", "```",
    "e.g.", "o'clock", "'s", "n't", "--", "__", "//", "::", "&",
]  # fmt: skip
sentences = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)
texts = st.one_of(st.text(max_size=200), sentences)


@given(texts, texts)
@settings(max_examples=300, deadline=None)
def test_any_two_texts_can_be_judged_and_the_sides_do_not_matter(one, other):
    there, back = judge(one, other, ALL), judge(other, one, ALL)
    assert (there and there.guard) == (back and back.guard)
    objections = [
        {verdict.guard for verdict in explain(*pair) if verdict.objects} for pair in ((one, other), (other, one))
    ]
    assert objections[0] == objections[1]


@given(texts)
@settings(max_examples=300, deadline=None)
def test_a_text_is_like_itself(text):
    assert judge(text, text, ALL) is None
    assert judge(prepare(text), text, ALL) is None


@given(st.lists(st.sampled_from([word for word in WORDS if "`" not in word]), min_size=1, max_size=25), st.data())
@settings(max_examples=200, deadline=None)
def test_white_space_does_not_matter(words, data):
    spaces = st.sampled_from([" ", "  ", "\n", "\t", " \r\n ", "\u00a0", "\u3000"])
    other = words[0] + "".join(data.draw(spaces) + word for word in words[1:]) + data.draw(spaces)
    assert judge(" ".join(words), other, ALL) is None


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "\x00", "\ud800", "9" * 9000, "a" * 9000, "`" * 9000, "```" * 3000, '"' * 9000, "'" * 9000, "a-" * 4500,
        "1," * 4500, "1." * 4500, "a@" * 4500, "a.b" * 3000, "www." * 2250, "不" * 9000, "not " * 2250, "from to " * 1125,
        "ten " * 2250, "one hundred and " * 600, "is by " * 1500, "１２３" * 3000, "\u0301" * 9000, "ﷺ" * 9000,
    ],
    ids=lambda text: f"{text[:6]!a} {len(text)}",
)  # fmt: skip
def test_no_text_is_too_much(text):
    """Also texts that make each of the patterns start as often as it can. The suite's own deadline bounds the time."""
    assert judge(text, text, ALL) is None
    judge(text, text[: len(text) // 2] + " x " + text[len(text) // 2 :], ALL)
    judge(text, "How do I reset my password?", ALL)


def test_what_is_too_far_behind_to_be_read_must_be_the_same():
    long = ("word " * (MOST // 5)).ljust(MOST)
    assert judge(long + "enable 2FA", long + "enable 2FA", ALL) is None
    verdict = judge(long + "enable 2FA", long + "disable 2FA")
    assert verdict
    assert verdict.guard is Guard.CODE


@pytest.mark.parametrize("filler", ["字", "a "])
def test_a_text_is_read_to_its_limit(filler):
    long = filler * (MOST // len(filler) - 10)
    verdict = judge(long + " 10 mg", long + " 100 mg")
    assert verdict
    assert verdict.guard is Guard.NUMBERS


def test_the_first_guard_that_objects_is_named():
    verdict = judge("How do I enable 2FA?", "How do I disable 2FA?")
    assert verdict
    assert (verdict.guard, verdict.objects, verdict.detail) == (Guard.POLARITY, True, "enable / disable")
    assert verdict.reason == "One says the opposite of a word of the other."


def test_every_guard_has_its_say_and_its_reason():
    """The reason is the same for all texts, so that it can be logged."""
    ours = explain("How do I enable 2FA?", "How do I disable 2FA in 10 minutes?")
    assert [verdict.guard for verdict in ours] == list(Guard)
    assert {verdict.guard for verdict in ours if verdict.objects} >= {Guard.POLARITY, Guard.NUMBERS}
    theirs = explain("a", "b")
    assert [verdict.reason for verdict in ours] == [verdict.reason for verdict in theirs]
    assert len({verdict.reason for verdict in ours}) == len(Guard)
    assert all(verdict.reason.endswith(".") for verdict in ours)


@pytest.mark.parametrize("guard", sorted(ALL))
def test_a_guard_that_is_off_says_nothing(guard):
    verdict = judge(
        "Move 5 files `a` from A to B?", "Why not move 6 files `b` from B to A by x@y.example?", ALL - {guard}
    )
    assert verdict
    assert verdict.guard is not guard
    assert judge("a 1", "a 2", frozenset()) is None


def test_strict_is_off_unless_asked_for():
    asked, stored = "What do you recommend for a slow old laptop?", "What do you recommend for a slow old computer bag?"
    assert Guard.STRICT not in DEFAULT
    verdict = judge(asked, stored, frozenset({Guard.STRICT}))
    assert verdict
    assert verdict.guard is Guard.STRICT
    assert judge("reset the password", "how do I reset my passwords?", frozenset({Guard.STRICT})) is None
