"""Opposites: one text has "enable" where the other has "disable". Pure, linear."""

from collections.abc import Sequence

from cacheproxy.core.lexicon import Word

Poles = dict[int, tuple[frozenset[str], frozenset[str]]]
"""For each pair of opposites in a text, the words of either side."""


def poles(words: Sequence[Word]) -> Poles:
    """The sides that `words` take."""
    found: dict[int, tuple[set[str], set[str]]] = {}
    for word in words:
        for pair, side in word.poles:
            found.setdefault(pair, (set(), set()))[side].add(word.text)
    return {pair: (frozenset(left), frozenset(right)) for pair, (left, right) in found.items()}


def poles_differ(asked: Poles, stored: Poles, flipped: frozenset[int]) -> str:
    """The first opposites of which two texts take one side each; empty if there are none. `flipped`: the pairs of which
    only one of the texts denies its side, so that it means the other."""
    if len(asked) > len(stored):
        asked, stored = stored, asked
    for pair, ours in asked.items():
        theirs = stored.get(pair)
        if not theirs or pair in flipped:
            continue
        for side in (0, 1):
            if ours[side] and theirs[not side] and not ours[not side] and not theirs[side]:
                return f"{min(ours[side])} / {min(theirs[not side])}"
    return ""
