"""What a text is about: its words of substance, and those of them that another text does not have. Pure.

Words meet by their root, by a group of synonyms, as parts of a compound, or as a slip of the keyboard.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cacheproxy.core.lexicon import Word

MOST_COMPARED = 12
"""Words that only one text has, beyond which two texts are not compared further: they differ."""

_SLIP = 5
"""Characters that a word has at least before it may be another one with a slip in it."""

_PART = 3
"""Characters of a word that may be a part of another one."""

_LOOKALIKES = frozenset({
    frozenset({"nitrate", "nitrite"}), frozenset({"sulfate", "sulfite"}), frozenset({"sulphate", "sulphite"}),
    frozenset({"desert", "dessert"}), frozenset({"prescribe", "proscribe"}), frozenset({"angel", "angle"}),
    frozenset({"martial", "marital"}), frozenset({"casual", "causal"}), frozenset({"trial", "trail"}),
    frozenset({"adapt", "adopt"}), frozenset({"austen", "austin"}), frozenset({"stationary", "stationery"}),
    frozenset({"chloride", "chlorine"}), frozenset({"conform", "confirm"}), frozenset({"statue", "statute"}),
    frozenset({"council", "counsel"}), frozenset({"medial", "median"}), frozenset({"affect", "effect"}),
    frozenset({"diary", "dairy"}), frozenset({"county", "country"}), frozenset({"weather", "whether"}),
})  # fmt: skip
"""Words that are no slips of each other."""


@dataclass(frozen=True, slots=True)
class Rest:
    """The words of substance that only one of two texts has."""

    asked: tuple[Word, ...]
    stored: tuple[Word, ...]

    def without(self, doubts: frozenset[str]) -> "Rest":
        """Without the words that only say that something is not so, which both texts do."""
        return Rest(
            *(
                tuple(word for word in words if not (word.doubts or word.denies) and f"not {word.root}" not in doubts)
                for words in (self.asked, self.stored)
            )
        )


def side(words: Sequence[Word], used: frozenset[int]) -> "Side":
    """What `words` bring to a comparison. `used`: places of words that other guards have read."""
    substance = {
        word.root: word
        for at, word in enumerate(words)
        if not word.light
        and not (word.denies and word.root == word.text)
        and at not in used
        and word.text != "."
        and not word.number
        and word.text[0].isalnum()
        and not ("_" in word.text and any(guard == "format" for guard, _ in word.traits))
    }
    return Side(
        substance,
        frozenset(word.root for word in words),
        frozenset(group for word in words for group in word.kin),
        frozenset(word.text for word in words),
    )


@dataclass(frozen=True, slots=True)
class Side:
    """What one text brings: its `substance`, all its `roots`, the groups of synonyms they are in, all its words."""

    substance: dict[str, Word]
    roots: frozenset[str]
    kin: frozenset[int]
    words: frozenset[str]


def rest(asked: Side, stored: Side) -> Rest:
    """What of two texts has no counterpart."""
    left = [word for root, word in asked.substance.items() if root not in stored.roots]
    right = [word for root, word in stored.substance.items() if root not in asked.roots]
    if not left and not right:
        return Rest((), ())
    if len(left) <= MOST_COMPARED and len(right) <= MOST_COMPARED:
        ours, theirs = asked.words - stored.words, stored.words - asked.words
        left, right = _unmatched(left, ours, theirs, stored.kin), _unmatched(right, theirs, ours, asked.kin)
    return Rest(tuple(left), tuple(right))


def _unmatched(words: list[Word], own: frozenset[str], others: frozenset[str], kin: frozenset[int]) -> list[Word]:
    """Those of `words` that have no counterpart among `others`, nor a synonym in the groups `kin`."""
    left = [word for word in words if word.kin.isdisjoint(kin)]
    if not left or len(others) > 2 * MOST_COMPARED:
        return left
    return [
        word
        for word in left
        if not any(_is_near(word.text, other) and alike(word.text, other) for other in others)
        and not _is_compound(word.text, own, others)
    ]


def _is_near(word: str, other: str) -> bool:
    """Whether two words are of much the same length, without which they are not `alike`."""
    return -2 < len(word) - len(other) < 2


def _is_compound(word: str, own: frozenset[str], others: frozenset[str]) -> bool:
    """Whether `word` is two of the others written as one, or a part of one of them."""
    if len(word) >= _PART:
        longer = [other for other in others if len(other) > len(word)]
        rest = own | others if longer else others
        if any(_is_part(word, other, rest) for other in longer):
            return True
    return any(word.startswith(one) and word[len(one) :] in others for one in others)


def _is_part(word: str, other: str, rest: frozenset[str]) -> bool:
    """Whether `other`, which is longer, is `word` and one of the `rest` written as one."""
    if other.startswith(word) and other[len(word) :] in rest:
        return True
    return other.endswith(word) and other[: -len(word)] in rest


def alike(one: str, other: str) -> bool:
    """Whether one word is the other with one slip: a letter too many or too few, another, or two swapped."""
    if one == other:
        return True
    if "_" in one or "_" in other:
        return False
    if len(one) > len(other):
        one, other = other, one
    if len(one) == len(other) > 2 and _is_swapped(one, other):
        return frozenset({one, other}) not in _LOOKALIKES
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
    return tail == other[head + 1 :] and len(one) > _SLIP + 1


def _is_swapped(one: str, other: str) -> bool:
    """Whether two neighbouring letters are the other way round."""
    differ = [at for at in range(len(one)) if one[at] != other[at]]
    return (
        len(differ) == 2
        and differ[1] == differ[0] + 1
        and one[differ[0]] == other[differ[1]]
        and one[differ[1]] == other[differ[0]]
    )
