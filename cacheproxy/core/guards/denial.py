"""Whether a text denies: "not", "without", "illegal". Words that may deny or not ("wrong") go with either. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from cacheproxy.core.guards.polarity import Poles, poles_differ
from cacheproxy.core.lexicon import Word

_NEAR = 3
"""Two denials no farther apart than this many words cancel out: "not illegal"."""

_MENTAL = frozenset({
    "know", "sure", "sur", "find", "locat", "rememb", "remember", "recal", "recall", "understand", "car", "see", "wait",
    "mind", "figur",
})  # fmt: skip
"""Who cannot find something asks where it is."""


_GRASPED = frozenset({"it", "this", "that", "why", "how", "what", "."})
"""What follows where to get something is to understand it."""
_ENDLESS = frozenset({"stop", "ceas", "quit", "hesitat"})
"""What does not stop goes on."""
_BARE = frozenset({"not", "cannot", "never"})


@dataclass(frozen=True, slots=True)
class Denial:
    """`said`: what is denied, by the root of the word that follows; `doubts`: words that may deny or not; `flipped`:
    opposites of which one side is denied; `fails`: words that say that something does not work."""

    said: frozenset[str]
    doubts: frozenset[str]
    flipped: frozenset[int]
    fails: frozenset[str]


def denial(words: Sequence[Word]) -> Denial:
    """What `words` deny."""
    said: list[tuple[int, str]] = []
    doubts = {word.root for word in words if word.doubts}
    flipped: set[int] = set()
    for at, word in enumerate(words):
        if not word.denies or (word.root == word.text and _is_idle(words, at)):
            continue
        if word.root == word.text:
            flipped.update(pair for pair, _ in next((w.poles for w in words[at + 1 : at + 4] if w.poles), ()))
        denied = word.root if word.root != word.text else _next(words, at)
        if denied in _ENDLESS or (word.text in _BARE and _is_mental(words, at, denied)):
            doubts.add(f"not {denied}")
        elif said and _cancels(words, said[-1][0], at):
            said.pop()
        else:
            said.append((at, denied))
    return Denial(
        frozenset(root for _, root in said),
        frozenset(doubts),
        frozenset(flipped),
        frozenset(w.root for w in words if w.fails),
    )


_BREAKS = frozenset({".", "and", "or"})
_CONDITIONS = frozenset({"or", "if", "why"})


def _is_idle(words: Sequence[Word], at: int) -> bool:
    """Whether the "not" at `at` denies nothing: "or not?", "whether or not", "why not?", "not only"."""
    before = words[at - 1].text if at else ""
    after = words[at + 1].text if at + 1 < len(words) else "."
    return (
        (before in _CONDITIONS and after == ".")
        or (before == "or" and at > 1 and words[at - 2].text == "whether")
        or (after == "only")
    )


def _is_mental(words: Sequence[Word], at: int, denied: str) -> bool:
    """Whether what the "not" at `at` denies is of the mind: "I do not get it"."""
    after = [word.text for word in words[at + 1 : at + 3]]
    return denied in _MENTAL or (after[:1] == ["get"] and (len(after) == 1 or after[1] in _GRASPED))


def _cancels(words: Sequence[Word], before: int, at: int) -> bool:
    """Whether the denials at `before` and `at` are "not" and a word like "illegal"; "ne … pas" is one denial."""
    between = words[before:at]
    return at - before <= _NEAR and words[at].root != words[at].text and not any(w.text in _BREAKS for w in between)


def _next(words: Sequence[Word], at: int) -> str:
    return next((word.root for word in words[at + 1 : at + 5] if not word.light or word.root in _MENTAL), "")


def denials_differ(asked: tuple[Denial, Poles], stored: tuple[Denial, Poles]) -> str:
    """What only one of two texts denies; empty if nothing."""
    if bool(asked[0].said) == bool(stored[0].said):
        for one, other in ((asked[0], stored[0]), (stored[0], asked[0])):
            if one.fails and not (other.said or other.doubts):
                return f"{min(one.fails)} / -"
        return ""
    (denying, ours), (other, theirs) = (asked, stored) if asked[0].said else (stored, asked)
    turned = {pair: ours[pair] for pair in denying.flipped if pair in ours}
    if other.doubts - denying.doubts or poles_differ(turned, theirs, frozenset()):
        return ""
    return f"not {', '.join(sorted(denying.said))}"
