"""Who does what to whom, and from where to where: the order of the words that two texts share. Pure.

A phrase that moved as a whole changes nothing ("in 2020 did …"); two things that changed places do.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from cacheproxy.core.lexicon import Word

_BE = frozenset({"is", "are", "was", "were", "be", "been", "being", "get", "gets", "got", "am"})
_SYMMETRIC = frozenset({
    "relat", "acquaint", "similar", "marri", "between", "differ", "friend", "equal", "same", "near", "next", "relation",
    "distanc", "compar", "both", "together", "vs", "versus", "better", "parallel", "adjacent", "cousin", "sibl", "or",
    "synonym", "neighbor", "neighbour", "colleagu", "twin", "partner", "dat", "engag", "connect", "engaged", "clos",
    "close", "wed", "marriag", "marry", "synonymous", "differenc",
})  # fmt: skip
_PIVOTS = frozenset({
    "love", "loves", "loved", "like", "likes", "liked", "need", "needs", "needed", "want", "wants", "wanted", "help",
    "helps", "helped", "know", "knows", "known", "use", "used", "uses", "ask", "asked", "call", "called", "make",
    "made", "cause", "causes", "take", "become", "give", "gave", "teach", "include", "consider", "offer", "provide",
    "better", "using", "tell", "tells", "told", "show", "explain", "let", "see", "find", "leave", "keep", "left",
    "kept", "work", "feel",
})  # fmt: skip
"""Verbs of little substance between the one that does and the one that it is done to."""
_GENDERED = {"he": "m", "him": "m", "his": "m", "himself": "m", "she": "f", "her": "f", "hers": "f", "herself": "f"}


_SHORT = 4
"""Shared words up to which a passive sentence is taken to be read rightly."""


@dataclass(frozen=True, slots=True)
class Order:
    """`places`: the words of substance that come once, in order, each with its role; `joined`: roots that stand in a
    list with the one before; `attributes`: those that stand right before another one; `symmetric`: the text is about
    two things in whatever order; `genders`: of its pronouns; `passive`: a passive sentence was read as active."""

    places: tuple[tuple[str, str], ...]
    joined: frozenset[str]
    attributes: frozenset[str]
    symmetric: bool
    genders: str
    passive: bool

    def qualifies(self, root: str) -> bool:
        """Whether a word narrows what the text is about: "in Delhi", "and its risks", "disposable card"."""
        if root in self.joined or root in self.attributes:
            return True
        return any(role not in {"", "to"} for word, role in self.places if word == root)


def order(words: Sequence[Word], used: frozenset[int], *, after: bool) -> Order:
    """The order of what `words` tell of. `used`: places of words that are numbers or times; `after`: words that give a
    role follow their noun (Japanese)."""
    reading = _Reading(words, used, after)
    for at, word in enumerate(words):
        if not reading.takes_sign(word):
            reading.take(at, word)
    count = Counter(root for root, _ in reading.places)
    return Order(
        tuple(place for place in reading.places if count[place[0]] == 1), frozenset(reading.joined),
        frozenset(reading.attributes), any(word.root in _SYMMETRIC or word.text in _SYMMETRIC for word in words),
        "".join(_GENDERED.get(word.text, "") for word in words), reading.passive,
    )  # fmt: skip


class _Reading:
    """What has been read of a text: its places, and the role that the next word gets."""

    def __init__(self, words: Sequence[Word], used: frozenset[int], after: bool) -> None:
        self.words, self.used, self.after = words, used, after
        self.places: list[tuple[str, str]] = []
        self.joined: set[str] = set()
        self.attributes: set[str] = set()
        self.role = ""
        self.be = self.passive = False

    def takes_sign(self, word: Word) -> bool:
        """Whether `word` only tells how others stand to each other; that is noted."""
        if word.role:
            if not self.after:
                self.role = word.role
            elif self.places and word.role != "and":
                self.places[-1] = (self.places[-1][0], word.role)
        elif word.text == ".":
            self.role, self.be = "", False
        elif word.text in _BE:
            self.be = True
        else:
            return word.light and word.text not in _PIVOTS
        return True

    def take(self, at: int, word: Word) -> None:
        """Note `word`, which is at `at`, with its role."""
        role, self.role = self.role, ""
        if at in self.used:
            return
        if role == "by" and self.be and self.places and (verb := _participle(self.words, at)):
            self.places = _active(self.places, verb, word.root)
            self.be, self.passive = False, True
            return
        before = self.words[at - 1] if at else None
        if before and not role and self.places and not before.light and before.root == self.places[-1][0]:
            self.attributes.add(before.root)
            role = self.places[-1][1]
        if role == "and":
            self.joined.add(word.root)
        self.places.append((word.root, "" if role == "and" else role))


def _participle(words: Sequence[Word], at: int) -> str | None:
    """The root of the verb in the passive whose "by" comes right before the word at `at` or the articles before it."""
    for place in range(at - 1, 0, -1):
        if words[place].text == "by":
            before = words[place - 1]
            return before.root if before.text.endswith(_ENDINGS) else None
    return None


_ENDINGS = (
    "ed",
    "en",
    "wn",
    "ht",
    "nt",
    "ld",
    "de",
    "ne",
    "ung",
    "um",
    "id",
    "lt",
    "st",
    "pt",
    "ft",
    "rt",
    "und",
    "read",
)
"""Those that participles have."""


def _active(places: list[tuple[str, str]], verb: str, agent: str) -> list[tuple[str, str]]:
    """The places of a passive sentence as those of the active one."""
    before = places[:-1] if places[-1][0] == verb else places
    return [(agent, ""), (verb, ""), *before]


_CLASHES = frozenset({frozenset({"from", "to"}), frozenset({"subject", "object"}), frozenset({"than", ""})})
"""Roles of one and the same thing that mean another question."""


def orders_differ(asked: Order, stored: Order) -> str:
    """Two words that changed places; empty if none did."""
    if asked.genders != stored.genders and set(asked.genders) == set(stored.genders) == {"m", "f"}:
        return f"{asked.genders} / {stored.genders}"
    theirs = {root: (place, role) for place, (root, role) in enumerate(stored.places)}
    shared = [(root, role, *theirs[root]) for root, role in asked.places if root in theirs]
    if len(shared) < 2:
        return ""
    for root, role, _, other in shared:
        if frozenset({role, other}) in _CLASHES:
            return f"{role or '-'} {root} / {other or '-'} {root}"
    if asked.symmetric and stored.symmetric:
        return ""
    line = [place for _, _, place, _ in shared]
    if line == sorted(line):
        return ""
    together = asked.joined | stored.joined
    back = sorted(
        ((root, other, place, role) for place, (root, role, _, other) in enumerate(shared)),
        key=lambda one: theirs[one[0]][0],
    )
    exchanged = _exchanged(shared) or _exchanged(back)
    if exchanged:
        return exchanged
    line = [place for root, _, place, _ in shared if root not in together]
    least = 2 if asked.passive != stored.passive and len(shared) <= _SHORT else 3
    return "order" if _falls(line) >= least else ""


def _exchanged(shared: list[tuple[str, str, int, str]]) -> str:
    """Neighbours that changed places and roles: "Celsius to Fahrenheit"."""
    for (one, role, place, theirs), (other, role2, place2, theirs2) in pairwise(shared):
        if place > place2 and role == theirs2 and role2 == theirs and role != role2:
            return f"{one} / {other}"
    return ""


def _falls(line: list[int]) -> int:
    """The length of the longest falling subsequence."""
    tails: list[int] = []
    for place in line:
        at = bisect_left(tails, -place)
        tails[at : at + 1] = [-place]
    return len(tails)
