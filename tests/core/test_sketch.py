"""Which prompts are of one family, although anything in them may vary."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cacheproxy.core.blocks import Block
from cacheproxy.core.sketch import LIKE, WORDS, is_mostly, likeness, sketch
from tests.core.heads import ODD, head, prose, tool

NAMES = ["Anna Smith", "Bob", "Ngozi Adichie-Lee", "王秀英"]


def alike(one, other):
    found = likeness(sketch(one), sketch(other))
    assert found == likeness(sketch(other), sketch(one))
    assert 0 <= found <= 1
    return found >= LIKE


def planted(text, place, value):
    lines = text.split("\n")
    return "\n".join([*lines[:place], value, *lines[place:]])


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 50), st.integers(1, 60), st.integers(0, 60),
    st.sampled_from([
        ("Today is 2026-03-01 10:00:01 UTC.", "Today is Tuesday, 3 November 2026, 9:15 am."),
        ("Session: 0f3c9a1e-77aa-4c0d-9b5e-2f6f1a2b3c4d", "Session: 5b1d2c3a-18f0-4e9a-8c77-90ab12cd34ef"),
        ("You speak with Anna Smith.", "You speak with Bob."),
        (prose(900, 30), prose(901, 45)),
    ]),
)  # fmt: skip
def test_a_value_planted_anywhere_keeps_the_family(seed, sentences, place, values):
    """A clock, an id, a name, a whole document, in a prompt of any length, at any place."""
    text = prose(seed, max(sentences, 11))
    one, other = (head(planted(text, place % sentences, value)) for value in values)
    assert alike(one, other)


@pytest.mark.parametrize("form", [
    "Today is {}. You are a helpful assistant.", "You are a helpful assistant. It is {} now", "{} Answer briefly and kindly.",
])  # fmt: skip
def test_one_short_line_with_a_clock(form):
    """B08 in small."""
    times = ["2026-03-01 10:00:01 UTC", "2026-11-21 09:15:59 UTC", "2027-01-01 00:00:00 UTC"]
    heads = [head(form.format(time)) for time in times]
    assert all(alike(one, other) for one in heads for other in heads)


@pytest.mark.parametrize(
    "form", ["You are the mail assistant of {}, and you answer every question in one line of plain text"]
)
def test_one_line_with_a_name(form):
    heads = [head(form.format(name)) for name in NAMES]
    assert all(alike(one, other) for one in heads for other in heads)


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 60), st.integers(1, 60))
def test_different_prompts_are_not_alike(one, other, short, long):
    if one != other:
        assert not alike(head(prose(one, short)), head(prose(other, long)))


def test_prompts_that_share_a_sentence_or_a_closing_note_are_not_alike():
    """Every second prompt calls its model a helpful assistant; every agent's ends in where it runs."""
    environment = "\n".join(
        f"Here is {what}: /usr/local" for what in ("home", "temp", "shell", "user", "mount", "store", "root")
    )
    texts = [f"You are a helpful assistant.\n{prose(seed, 30)}\n{environment}" for seed in range(20)]
    assert not any(alike(head(a), head(b)) for a in texts for b in texts if a != b)


def test_shared_tools_do_not_make_prompts_alike_but_for_short_ones():
    tools = [tool(f"tool{n}", prose(n, 3)) for n in range(10)]
    assert not alike(head(prose(1), tools=tools), head(prose(2), tools=tools))
    assert alike(head(prose(1), tools=tools), head(prose(1), tools=tools[:3]))
    assert alike(head("Hi there", tools=tools), head("Hi there", tools=tools[::-1]))
    assert alike(head(tools=tools), head(tools=tools[::-1]))
    assert not alike(head(tools=tools[:5]), head(tools=tools[5:]))


def test_a_document_between_few_instructions():
    """Instructions of three sentences, then a document that was looked up, which is most of the prompt."""
    told = "You are the support assistant of a shop. Answer only from the context below. Say when you do not know.\nContext:\n"
    texts = [told + prose(seed, 80) for seed in range(5)]
    assert all(alike(head(a), head(b)) for a in texts for b in texts)
    texts = [f"Context:\n{prose(seed, 80)}\n{prose(99, 9)}" for seed in range(5)]
    assert all(alike(head(a), head(b)) for a in texts for b in texts)


def test_what_is_the_same_in_the_midst_is_enough():
    texts = ["\n".join([prose(n, 20), prose(99, 100), prose(n + 9, 20)]) for n in range(5)]
    assert all(alike(head(a), head(b)) for a in texts for b in texts)


def test_what_is_far_behind_the_beginning_is_looked_at_by_its_end_alone():
    """The work is bounded; a beginning of tens of thousands of characters still tells the family."""
    text = prose(1, 3000)
    assert len(text) > 150_000
    half = len(text) // 2
    other = text[:half] + "Something else entirely stands here.\n" * 10 + text[half:]
    assert sketch(head(text)) == sketch(head(other))
    assert sketch(head(text)) != sketch(head(text[: len(text) - 100]))


def test_a_long_line_is_known_by_its_first_and_its_last_words():
    words = [
        f"w{'ghijklmnop'[n % 10]}{'qrstuvwxyz'[n // 10 % 10]}{'ghijklmnop'[n // 100 % 10]}{n // 1000 * 'z'}"
        for n in range(5000)
    ]
    drawn = sketch(head(" ".join(words)))
    assert len(drawn.words) <= WORDS
    assert drawn.words == sketch(head(" ".join([*words[:2000], "other", *words[3000:]]))).words
    assert drawn.words != sketch(head(" ".join(["other", *words[1:]]))).words
    assert drawn.words != sketch(head(" ".join([*words[:-1], "other"]))).words


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_have_a_sketch_too(text):
    drawn = sketch([Block(("messages", 0, "content"), text)])
    assert likeness(drawn, drawn) == 1
    assert 0 < len(drawn.members) <= 600
    assert sketch([Block(("tools",), text)]).members


@given(st.lists(st.text(max_size=20), max_size=3), st.lists(st.text(max_size=20), max_size=3))
def test_any_texts_have_a_likeness(one, other):
    alike(head(*one), head(*other))
    assert alike(head(*one), head(*one))
    is_mostly(head(*one), head(*other))


def test_first_sight_is_by_what_is_said():
    """Most of two texts is equal; tools count only where nothing is said."""
    text = prose(1)
    tools = [tool(f"tool{n}", prose(n, 9)) for n in range(30)]
    assert is_mostly(head(f"10:00:01\n{text}", tools=tools), head(f"10:00:02\n{text}", tools=tools[:1]))
    assert not is_mostly(head(prose(2, 3), tools=tools), head(prose(3, 3), tools=tools))
    assert is_mostly(head(tools=tools), head(tools=[*tools[:-1], tool("other")]))
    assert not is_mostly(head(text), head(text, text))
    assert not is_mostly(head(text), head(text[: len(text) // 2]))
    assert is_mostly(head(text), head(text[: len(text) * 3 // 4]))
    assert not is_mostly([], head(text))


def test_a_sketch_is_the_same_in_every_process():
    """Ids of families are made of it: `hash` would give others at each start."""
    drawn = sketch(head("Be brief.\nAlways answer in verse."))
    assert drawn.opening == drawn.closing == drawn.sample == {869782083}
