"""Whether a stored question carries more than the asked one, as does one that smuggles something in beside it. Pure.

It is for questions of different credentials. What one says in other words is about as long; what has been wrapped
around a question to be found in its place, instructions or noise that moves a vector, makes it longer.
"""

import unicodedata

from cacheproxy.core.words import words

LONGER = 1.5
"""How many times as many words, or characters, a stored question may have."""
SPARE = 3
"""Words that it may have beyond that; characters eight times as many."""
COVERED = 0.8
"""Share of the asked question's words that are in the stored one, from which on it is taken to stand inside it."""
AROUND = 2
"""Words more, at the beginning or the end of what it stands in, from which on something is wrapped around it."""
LETTERS = 8


def is_padded(asked: str, stored: str) -> bool:
    """Whether `stored` has something around, or hidden in it, that `asked` lacks."""
    if _lines(stored) > _lines(asked) or _hidden(stored) > _hidden(asked):
        return True
    if len(stored) > LONGER * len(asked) + SPARE * LETTERS:
        return True
    ours, theirs = words(asked), words(stored)
    if len(theirs) > LONGER * len(ours) + SPARE:
        return True
    known = set(ours)
    if len(theirs) <= len(ours) or len(known & set(theirs)) < COVERED * len(known):
        return False
    return max(_strange(theirs, known), _strange(theirs[::-1], known)) >= AROUND


def _strange(theirs: list[str], known: set[str]) -> int:
    """How many words there are before the first that is known."""
    return next((number for number, word in enumerate(theirs) if word in known), len(theirs))


def _lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())


def _hidden(text: str) -> int:
    """Characters that nobody sees: formats, controls, private and unassigned ones, spaces excepted."""
    return sum(unicodedata.category(c)[0] == "C" and not c.isspace() for c in text) if not text.isprintable() else 0
