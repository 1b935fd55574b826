"""The order in which a text tells of things, each with the role that it has there. Pure.

A passive sentence that says by whom is read as the active one.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from cacheproxy.core.lexicon import Word

_BE = frozenset({"is", "are", "was", "were", "be", "been", "being", "get", "gets", "got", "am"})
_SYMMETRIC = frozenset({
    "married", "marries", "marry", "overlap", "coincid",
    "relat", "acquaint", "similar", "marri", "between", "differ", "friend", "equal", "same", "near", "next", "relation",
    "distanc", "compar", "both", "together", "vs", "versus", "better", "parallel", "adjacent", "cousin", "sibl", "or",
    "synonym", "neighbor", "neighbour", "colleagu", "twin", "partner", "dat", "engag", "connect", "engaged", "clos",
    "close", "wed", "marriag", "synonymous", "differenc",
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
_PERSONS = {"i": "i", "me": "m", "you": "u"}
"""Who a pronoun speaks of."""
_OWNERS = {"my": "M", "your": "U"}
_HAVING = frozenset({"have", "has", "had", "having", "contain", "contains", "containing", "mean", "means", "meant"})
"""Verbs of what somebody has, or a word."""
_CLAUSES = frozenset({"but", "when", "because", "while", "if", "although", "since"})
"""What joins clauses, which may change places."""
_DIRECTIONS = frozenset({"from", "to", "into", "onto", "before", "after", "than", "over", "under", "against"})
_ARTICLES = frozenset({"a", "an", "the", "my", "our", "your", "this", "that"})
_NEAR_START = 4
"""Words of the start of a question that say what it asks for."""
_REACH = 5
_FEW = 8
"""Places of a text up to which it is short."""
"""Words after a form of "be" within which its participle stands."""


@dataclass(frozen=True, slots=True)
class Order:
    """`places`: the words of substance that come once, in order, each with its role; `joined`: roots that stand in a
    list with the one before; `attributes`: those that stand right before another one; `symmetric`: the text is about
    two things in whatever order; `genders`: of its pronouns; `passive`: a passive sentence was read as active;
    `persons`: of its pronouns, and whose the thing is that is asked for; `numbers`: as they follow each other;
    `claims`: it asks whether something is so; `clauses`: it has several;
    `suffers`: it tells what is done, and not by whom; `plain`:
    neither this nor what somebody has; `bag`: the roots of all its words; `ends`: what says from where, to where or
    before what, with the word that it says it of."""

    places: tuple[tuple[str, str], ...]
    joined: frozenset[str]
    attributes: frozenset[str]
    symmetric: bool
    genders: str
    passive: bool
    persons: str
    numbers: tuple[str, ...]
    claims: bool
    clauses: bool
    suffers: bool
    plain: bool
    bag: frozenset[str]
    ends: frozenset[tuple[str, str]]

    def qualifies(self, root: str, *, few: bool) -> bool:
        """Whether a word narrows what the text is about: "in Delhi", "and its risks", "disposable card"."""
        if root in self.joined or (root in self.attributes and (few or self.claims)):
            return True
        return any(role not in {"", "to"} for word, role in self.places if word == root)


def order(words: Sequence[Word], used: frozenset[int], *, after: bool) -> Order:
    """The order of what `words` tell of. `used`: places of words that are numbers or times; `after`: words that give a
    role follow their noun (Japanese)."""
    reading = _Reading(words, used, after)
    for at, word in enumerate(words):
        if not reading.takes_sign(word):
            reading.take(at, word)
    texts, bag = {word.text for word in words}, frozenset(word.root for word in words)
    suffers = "by" not in texts and _suffers(words)
    return Order(
        _numbered(reading.places), frozenset(reading.joined), frozenset(reading.attributes),
        not (_SYMMETRIC.isdisjoint(bag) and _SYMMETRIC.isdisjoint(texts)),
        "" if _GENDERED.keys().isdisjoint(texts) else "".join(_GENDERED.get(word.text, "") for word in words),
        reading.passive, _persons(words), tuple(word.number or word.text for word in words if word.counts),
        len(words) > 1 and words[0].text in _BE and words[1].text != "there", not _CLAUSES.isdisjoint(texts), suffers,
        not (reading.passive or suffers) and _HAVING.isdisjoint(texts), bag,
        _ends(words) if not _DIRECTIONS.isdisjoint(texts) else frozenset(),
    )  # fmt: skip


def _numbered(places: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """`places` of which each has its own name: a word that comes again is another one in a short text, and counts for
    nothing in a long one."""
    count: Counter[str] = Counter(root for root, _ in places)
    if len(count) == len(places):
        return tuple(places)
    if len(places) > _FEW:
        return tuple(place for place in places if count[place[0]] == 1)
    seen: Counter[str] = Counter()
    found = []
    for root, role in places:
        seen[root] += 1
        found.append((root if count[root] == 1 else f"{root} {seen[root]} of {count[root]}", role))
    return tuple(found)


def _ends(words: Sequence[Word]) -> frozenset[tuple[str, str]]:
    ahead = [word for word in words if word.text not in _ARTICLES]
    return frozenset((one.text, other.text) for one, other in pairwise(ahead) if one.text in _DIRECTIONS)


def _persons(words: Sequence[Word]) -> str:
    """Of whom a text speaks, in order: i or m for the one who asks, u for the one who is asked, M or U if all that is
    asked for is what is theirs ("what is my name?")."""
    found = "".join(_PERSONS.get(word.text, "") for word in words)
    owned = next((b.text for a, b in pairwise(words[:_NEAR_START]) if a.text in _BE and b.text in _OWNERS), "")
    return _OWNERS.get(owned, found)


def _suffers(words: Sequence[Word]) -> bool:
    """Whether a text is passive: "a permit is needed"."""
    be = next((at for at, word in enumerate(words) if word.text in _BE and not _exists(words, at)), None)
    return be is not None and any(word.text.endswith("ed") for word in words[be + 1 : be + _REACH])


def _exists(words: Sequence[Word], at: int) -> bool:
    """Whether the form of "be" at `at` says that there is something."""
    return any(word.text == "there" for word in words[max(0, at - 1) : at + 2])


class _Reading:
    """What has been read of a text: its places, and the role that the next word gets."""

    def __init__(self, words: Sequence[Word], used: frozenset[int], after: bool) -> None:
        self.words, self.used, self.after = words, used, after
        self.places: list[tuple[str, str]] = []
        self.joined: set[str] = set()
        self.attributes: set[str] = set()
        self.role = ""
        self.be = self.passive = False
        self.agent = 0

    def takes_sign(self, word: Word) -> bool:
        """Whether `word` only tells how others stand to each other; that is noted."""
        if self.role == "to" and word.text == "another" and self.places and self.places[-1][1] == "from":
            self.places[-1] = (self.places[-1][0], "")
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
            bare = word.denies and word.root == word.text
            return bare or (word.light and (word.text not in _PIVOTS or not self.places))
        return True

    def take(self, at: int, word: Word) -> None:
        """Note `word`, which is at `at`, with its role."""
        role, self.role = self.role, ""
        if at in self.used:
            return
        if role == "by" and self.be and self.places and (verb := _participle(self.words, at)):
            self.places = _active(self.places, verb, word.root)
            self.be, self.passive, self.agent = False, True, 1
            return
        before = self.words[at - 1] if at else None
        if self.agent and before and not role and before.root == self.places[self.agent - 1][0]:
            self.places.insert(self.agent, (word.root, ""))
            self.agent += 1
            return
        self.agent = 0
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
    "ed", "en", "wn", "ht", "nt", "ld", "de", "ne", "ung", "um", "id", "lt", "st", "pt", "ft", "rt", "und", "read",
)  # fmt: skip
"""Those that participles have."""


def _active(places: list[tuple[str, str]], verb: str, agent: str) -> list[tuple[str, str]]:
    """The places of a passive sentence as those of the active one."""
    before = places[:-1] if places[-1][0] == verb else places
    return [(agent, ""), (verb, ""), *before]
