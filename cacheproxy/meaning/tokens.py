"""Texts -> tokens, or why a text is not for this model. Nothing is ever cut.

A text can be strange to a model without one unknown token: a vocabulary that knows no word of a script has its letters,
and spells. Vectors of such texts are near each other whatever they say, so they are refused as unknown too.
"""

# mypy: disable-error-code="import-not-found,import-untyped"

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from cacheproxy.core.model import Unfit

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MOST_UNKNOWN = 0.02
"""The share of unknown tokens, or of letters of a script without words, from which on a text is refused."""
CHARACTERS_A_TOKEN = 32
"""A text with more for each token of the window is taken to be too long without a look at it."""
_WORDS = 200
"""A vocabulary with so many words of a script knows it; a word has two letters or more."""
_SIGNS = 2000
"""So many signs do too, of scripts that write a word with one."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


@dataclass(frozen=True, slots=True)
class Piece:
    """A text as the model reads it."""

    text: str
    tokens: tuple[int, ...]


class Tokens:
    """Reads texts for a model whose window is so many tokens."""

    def __init__(self, tokenizer: "Tokenizer", window: int, *, prefix: str = "", lower: bool = False) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._window = window
        self._prefix = prefix
        self._lower = lower
        self._ends = tokenizer.num_special_tokens_to_add(is_pair=False)
        vocabulary = tokenizer.get_vocab(with_added_tokens=False)
        self._unknown = frozenset(
            number for token, number in tokenizer.get_vocab().items()
            if token in {"[UNK]", "<unk>"} or _BYTE.fullmatch(token)
        )  # fmt: skip
        # Where tokens are made of bytes their names are no text, and no text is unknown.
        of_bytes = sum(token.startswith("Ġ") for token in vocabulary) > _SIGNS
        self._scripts = None if of_bytes else scripts_of(vocabulary)

    def read(self, text: str) -> Piece | Unfit:
        """`text` as tokens."""
        if not text or text.isspace():
            return Unfit.EMPTY
        if len(text) > self._window * CHARACTERS_A_TOKEN:
            return Unfit.TOO_LONG
        if self._scripts is not None and strangeness(text, self._scripts) >= MOST_UNKNOWN:
            return Unfit.UNKNOWN_TOKENS
        given = self._prefix + (text.lower() if self._lower else text)
        try:
            tokens = tuple(self._tokenizer.encode(given).ids)
        except (TypeError, UnicodeError):  # half of a surrogate pair is no character
            return Unfit.UNKNOWN_TOKENS
        inside = len(tokens) - self._ends
        if inside <= 0:
            return Unfit.EMPTY
        if len(tokens) > self._window:
            return Unfit.TOO_LONG
        unknown = sum(token in self._unknown for token in tokens)
        return Unfit.UNKNOWN_TOKENS if unknown >= MOST_UNKNOWN * inside else Piece(given, tokens)


def scripts_of(vocabulary: dict[str, int]) -> frozenset[str]:
    """The scripts of which a vocabulary has words."""
    words, signs = Counter[str](), Counter[str]()
    for token in vocabulary:
        letters = [letter for letter in token.removeprefix("##").removeprefix("▁") if letter.isalpha()]
        if letters:
            (words if len(letters) > 1 else signs)[script(letters[0])] += 1
    return frozenset(name for name in words | signs if words[name] >= _WORDS or words[name] + signs[name] >= _SIGNS)


def strangeness(text: str, scripts: frozenset[str]) -> float:
    """The share of letters that are of other scripts than these. A letter that stands alone is a sign, as pi
    is in a formula."""
    if text.isascii():
        return 0.0
    letters = strange = 0
    unmarked = "".join(sign for sign in text if not unicodedata.category(sign).startswith("M"))
    for word in _WORD.findall(unmarked):
        letters += len(word)
        if not word.isascii():
            others = sum(script(letter) not in scripts for letter in word)
            strange += others if others > 1 else 0
    return strange / letters if letters else 0.0


@lru_cache(4096)
def script(letter: str) -> str:
    """What its name begins with: LATIN, CYRILLIC, CJK …"""
    return unicodedata.name(letter, "?").split(" ", 1)[0]
