"""Whether a text denies: "not", "without", "illegal". Words that may deny or not ("trouble", "fail") go with either. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from cacheproxy.core.lexicon import Word

_NEAR = 3
"""Two denials no farther apart than this many words cancel out: "not illegal"."""

_MENTAL = frozenset({"know", "sure", "find", "locat", "rememb", "remember", "recal", "recall", "understand", "car", "see", "wait", "mind", "figur", "get"})
"""Who cannot find something asks where it is."""


@dataclass(frozen=True, slots=True)
class Denial:
    """`said`: what is denied, by the root of the word that follows; `doubtful`: there is a word that may deny."""

    said: frozenset[str]
    doubtful: bool


def denial(words: Sequence[Word]) -> Denial:
    """What `words` deny."""
    said: list[tuple[int, str]] = []
    doubtful = False
    for at, word in enumerate(words):
        doubtful |= word.doubts
        if word.denies and _next(words, at) in _MENTAL:
            doubtful = True
            continue
        if not word.denies or (word.text == "not" and _idle(words, at)):
            continue
        if said and at - said[-1][0] <= _NEAR and not any(w.text in {".", "and", "or"} for w in words[said[-1][0] : at]):
            said.pop()
            continue
        said.append((at, word.root if word.root != word.text else _next(words, at)))
    return Denial(frozenset(root for _, root in said), doubtful)


def _idle(words: Sequence[Word], at: int) -> bool:
    """Whether the "not" at `at` denies nothing: "or not?", "not only"."""
    before = words[at - 1].text if at else ""
    after = words[at + 1].text if at + 1 < len(words) else "."
    return before in {"or", "if", "why"} and after in {".", "i", "you", "it", "to"} and before != "why" or (before == "why" and after == ".") or (before == "or" and after == ".") or after == "only"


def _next(words: Sequence[Word], at: int) -> str:
    return next((word.root for word in words[at + 1 : at + 5] if not word.light or word.root in _MENTAL), "")


def denials_differ(asked: Denial, stored: Denial) -> str:
    """What only one of two texts denies; empty if nothing."""
    if bool(asked.said) == bool(stored.said):
        return ""
    if (stored if asked.said else asked).doubtful:
        return ""
    return f"{', '.join(sorted(asked.said)) or '-'} / {', '.join(sorted(stored.said)) or '-'}"
