"""What a text is about: its words of substance, and those of them that another text does not have. Pure.

Words meet by their root, by a group of synonyms, as parts of a compound, or as a slip of the keyboard.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cacheproxy.core.lexicon import Word

MOST_COMPARED = 12
"""Words that only one text has, beyond which two texts are not compared further: they differ."""

_SLIP = 5
"""Characters that a word has at least before it may be another one with a slip in it."""

_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "de", "re", "pre", "post", "anti", "hyper", "hypo", "inter",
             "intra", "sub", "super", "a")  # fmt: skip
_LOOKALIKES = frozenset({
    frozenset(pair.split("/")) for pair in (
        "nitrate/nitrite sulfate/sulfite sulphate/sulphite desert/dessert affect/effect prescribe/proscribe angel/angle "
        "martial/marital casual/causal trial/trail adapt/adopt austen/austin stationary/stationery mitosis/meiosis "
        "chloride/chlorine conform/confirm statue/statute principle/principal council/counsel median/medial ".split()
    )
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rest:
    """The words of substance that only one of two texts has."""

    asked: tuple[Word, ...]
    stored: tuple[Word, ...]

    def without_doubts(self) -> "Rest":
        """Without the words that only say that something is not so."""
        return Rest(*(tuple(word for word in words if not word.doubts) for words in (self.asked, self.stored)))


def substance(words: Sequence[Word], used: frozenset[int]) -> dict[str, Word]:
    """The words of substance by their root. `used`: places that other guards have read."""
    return {
        word.root: word
        for at, word in enumerate(words)
        if not word.light and not (word.denies and word.root == word.text) and at not in used and word.text != "." and not word.number and word.text[0].isalnum()
    }


def rest(asked: dict[str, Word], stored: dict[str, Word], everything: tuple[frozenset[str], frozenset[str]]) -> Rest:
    """What of two texts has no counterpart. `everything`: all roots of either text."""
    left = [word for root, word in asked.items() if root not in everything[1]]
    right = [word for root, word in stored.items() if root not in everything[0]]
    if len(left) > MOST_COMPARED or len(right) > MOST_COMPARED:
        return Rest(tuple(left), tuple(right))
    if left and right and alike("".join(word.text for word in left), "".join(word.text for word in right)):
        return Rest((), ())
    left, right = _unmatched(left, right, stored.values()), _unmatched(right, left, asked.values())
    return Rest(tuple(left), tuple(right))


def _unmatched(words: list[Word], left_over: list[Word], others: Iterable[Word]) -> list[Word]:
    kin = frozenset().union(*(word.kin for word in others))
    glued = {word.text for word in left_over}
    parts = "".join(sorted(word.text for word in left_over))
    return [
        word
        for word in words
        if not (word.kin & kin)
        and not any(alike(word.text, other) for other in glued)
        and not _compound(word.text, glued, parts)
    ]


def _compound(word: str, others: set[str], parts: str) -> bool:
    """Whether `word` is two of the others written as one, or a part of one of them."""
    if len(word) < 4:
        return False
    if len(parts) >= len(word) and any(word.startswith(one) and word[len(one) :] in others for one in others):
        return True
    return any(other.startswith(word) and len(other) > len(word) + 2 and other[len(word) :] in _TAILS for other in others)


_TAILS = frozenset({"s", "es"})


def alike(one: str, other: str) -> bool:
    """Whether one word is the other with one slip: a letter too many or too few, another, or two swapped."""
    if one == other:
        return True
    if len(one) > len(other):
        one, other = other, one
    if len(one) < _SLIP or len(other) - len(one) > 1 or frozenset({one, other}) in _LOOKALIKES:
        return False
    head = 0
    if one[0] != other[0] and one[0] != other[1:2]:
        return False
    while head < len(one) and one[head] == other[head]:
        head += 1
    if len(one) < len(other):
        return one[head:] == other[head + 1 :]
    tail = one[head + 1 :]
    if tail == other[head + 1 :]:
        return len(one) > _SLIP + 1
    return one[head : head + 2] == other[head : head + 2][::-1] and one[head + 2 :] == other[head + 2 :]
