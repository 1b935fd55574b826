"""The words of a text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.words import LONGEST, MOST_ASKED, MOST_CHARACTERS, MOST_WORDS, asked, words
from tests.examples import tries


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("How do I RESET it?", "how do i reset it"), ("v3.1-beta_2", "v3 1 beta 2"), ("don't", "don t"), ("", ""), ("?! \n", ""),
        ("naïve Café", "naïve café"), ("cafe\u0301", "café"), ("STRASSE Straße", "strasse strasse"), ("ﬁle ①", "file 1"),
        ("пароль Ё", "пароль ё"), ("पासवर्ड कैसे", "पासवर्ड कैसे"), ("שָׁלוֹם", "שָׁלוֹם"), ("密码", "密码"), ("重置密码", "重置 置密 密码"), ("密", "密"),
        ("GPT4模型API", "gpt4 模型 api"), ("パスワード", "パス スワ ワー ード"), ("ﾊﾟｽ", "パス"), ("비밀 번호", "비밀 번호"), ("สวัสดี", "สว วั ัส สด ดี"),
        ("人々", "人々"), ("１２３", "123"), ("٣٤", "٣٤"), ("🙂 ok", "ok"), ("a\ud800b", "a b"), ("x\0y", "x y"), ("a\u200bb", "a b"),
    ],
)  # fmt: skip
def test_words_are_letters_digits_and_marks(text, wanted):
    assert words(text) == [unicodedata.normalize("NFKC", word) for word in wanted.split()]


def test_texts_are_bounded():
    assert words("a" * 100 + " b") == ["a" * LONGEST, "b"]
    assert len(words("a " * 10_000)) == MOST_WORDS
    assert len(words("密" * 10_000)) == MOST_WORDS
    assert len(words("é " * 10_000)) == MOST_WORDS
    assert words(" " * MOST_CHARACTERS + "late") == []


def test_what_is_asked_for_is_asked_once_and_bounded():
    assert asked("the cat and the hat") == ["the", "cat", "and", "hat"]
    assert asked(" ".join(f"w{n}" for n in range(1000))) == [f"w{n}" for n in range(MOST_ASKED)]


@tries(300)
@given(st.text())
def test_no_word_has_a_sign_in_it(text):
    for word in words(text):
        assert 0 < len(word) <= LONGEST
        assert all(unicodedata.category(sign)[0] in "LNM" for sign in word)
    assert words(text) == words(text)


@tries(300)
@given(st.text(st.characters(max_codepoint=127)))
def test_a_plain_text_has_the_words_that_any_text_has(text):
    """The short way for ASCII is the long way."""
    assert words(text) == words(text + " é")[:-1]
