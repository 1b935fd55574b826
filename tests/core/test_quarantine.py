"""Names of what is barred: the same for what is the same question, different for all else."""

import pytest

from cacheproxy.core import quarantine
from cacheproxy.core.quarantine import Side

SECRET, PARTITION = b"s" * 32, b"p" * 32
ASKED, STORED = Side("a" * 32, "How do I enable it?"), Side("b" * 32, "How do I disable it?")


def words(text: str) -> bytes:
    return quarantine.words_of(SECRET, text)


@pytest.mark.parametrize(
    "same", ["HOW do i ENABLE it?", "  How do I\tenable\n it? ", "Ｈow do I enable it?", "How do I enable\u00a0it?"]
)
def test_case_spaces_and_forms_of_characters_do_not_tell_questions_apart(same):
    assert words(same) == words(ASKED.text)


@pytest.mark.parametrize("other", ["", "How do I enable it", "How do I enable this?", "How do Ienable it?"])
def test_other_words_have_another_name(other):
    assert words(other) != words(ASKED.text)


def test_a_text_with_half_a_character_has_a_name():
    assert len(words("\ud800")) == quarantine.NAME_BYTES


def test_a_pair_is_one_in_either_order():
    one, other = words("x"), words("y")
    assert quarantine.pair(SECRET, PARTITION, one, other) == quarantine.pair(SECRET, PARTITION, other, one)
    assert quarantine.pair(SECRET, PARTITION, one, other) != quarantine.pair(SECRET, b"q" * 32, one, other)
    assert quarantine.pair(SECRET, PARTITION, one, other) != quarantine.pair(b"t" * 32, PARTITION, one, other)


def test_names_of_a_look_are_those_that_a_judgement_has():
    """Each of them, whichever question is asked now."""
    theirs = [
        quarantine.pair(SECRET, PARTITION, words(ASKED.text), words(STORED.text)),
        quarantine.beside(SECRET, STORED.entry_id, words(ASKED.text)),
        quarantine.alone(SECRET, STORED.entry_id),
        quarantine.alone_by_words(SECRET, PARTITION, words(STORED.text)),
    ]
    for order in (ASKED, STORED), (STORED, ASKED):
        assert set(theirs) <= set(quarantine.between(SECRET, PARTITION, *order))


def test_nothing_in_common_with_a_third_question_but_what_bars_one_alone():
    third = Side("c" * 32, "Where is it?")
    mine, its = (set(quarantine.between(SECRET, PARTITION, ASKED, side)) for side in (STORED, third))
    assert mine & its == {
        quarantine.alone(SECRET, ASKED.entry_id),
        quarantine.alone_by_words(SECRET, PARTITION, words(ASKED.text)),
    }


def test_every_name_has_one_size_and_all_kinds_differ():
    one = words("x")
    found = [
        one,
        quarantine.alone(SECRET, "x"),
        quarantine.called_wrong(SECRET, "x"),
        quarantine.beside(SECRET, "x", one),
        quarantine.alone_by_words(SECRET, PARTITION, one),
        quarantine.pair(SECRET, PARTITION, one, one),
    ]
    assert len(set(found)) == len(found)
    assert {len(name) for name in found} == {quarantine.NAME_BYTES}


def test_no_part_spells_out_another():
    assert quarantine.beside(SECRET, "ab", b"c") != quarantine.beside(SECRET, "a", b"bc")
