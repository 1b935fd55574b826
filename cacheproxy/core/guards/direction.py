"""Who does what to whom, and from where to where: the order of the words that two texts share. Pure.

A phrase that moved as a whole changes nothing ("in 2020 did …"); two things that changed places do.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from cacheproxy.core.lexicon import Word

_BE = frozenset({"is", "are", "was", "were", "be", "been", "being", "get", "gets", "got", "am"})
_SYMMETRIC = frozenset({
    "relat", "acquaint", "similar", "marri", "between", "differ", "friend", "equal", "same", "near", "next", "relation",
    "distanc", "compar", "both", "together", "vs", "versus", "better", "parallel", "adjacent", "cousin", "sibl", "or",
    "synonym", "neighbor", "neighbour", "colleagu", "twin", "partner", "dat", "engag", "connect", "engaged", "clos", "close", "wed", "marriag", "marry", "synonymous", "differenc",
})  # fmt: skip
_PIVOTS = frozenset({
    "love", "loves", "loved", "like", "likes", "liked", "need", "needs", "needed", "want", "wants", "wanted", "help",
    "helps", "helped", "know", "knows", "known", "use", "used", "uses", "ask", "asked", "call", "called", "make", "made",
    "cause", "causes", "take", "become", "give", "gave", "teach", "include", "consider", "offer", "provide", "better", "using", "leave", "keep", "left", "kept", "work", "feel",
})  # fmt: skip
"""Verbs of little substance between the one that does and the one that it is done to."""
_GENDERED = {"he": "m", "him": "m", "his": "m", "himself": "m", "she": "f", "her": "f", "hers": "f", "herself": "f"}


_SHORT = 4
"""Shared words up to which a passive sentence is taken to be read rightly."""


@dataclass(frozen=True, slots=True)
class Order:
    """`places`: the words of substance that come once, in order, each with its role; `joined`: roots that stand in a
    list with the one before; `symmetric`: the text is about two things in whatever order; `genders`: of its pronouns."""

    places: tuple[tuple[str, str], ...]
    joined: frozenset[str]
    symmetric: bool
    genders: str
    passive: bool
    attributes: frozenset[str]

    def qualifies(self, root: str) -> bool:
        """Whether a word narrows what the text is about: "in Delhi", "and its risks", "disposable card"."""
        return root in self.joined or root in self.attributes or any(role for word, role in self.places if word == root and role not in {"", "to"})


def order(words: Sequence[Word], used: frozenset[int], *, after: bool) -> Order:
    """The order of what `words` tell of. `after`: words that give a role follow their noun (Japanese)."""
    places: list[tuple[str, str]] = []
    joined: set[str] = set()
    genders: list[str] = []
    attributes: set[str] = set()
    role, be, symmetric, passive = "", False, False, False
    for at, word in enumerate(words):
        text = word.text
        if text in _GENDERED:
            genders.append(_GENDERED[text])
        if word.root in _SYMMETRIC or text in _SYMMETRIC:
            symmetric = True
        found = word.role
        if found and after:
            if places and found != "and":
                places[-1] = (places[-1][0], found)
        elif found:
            role = found
        elif text == ".":
            role, be = "", False
        elif text in _BE:
            be = True
        elif at in used:
            role = ""
        elif not word.light or text in _PIVOTS:
            verb = _participle(words, at) if role == "by" and be and places else None
            if verb:
                places = _active(places, verb, word.root)
                be, passive = False, True
            else:
                if at and places and not role and not words[at - 1].light and words[at - 1].root == places[-1][0]:
                    attributes.add(places[-1][0])
                places.append((word.root, "" if role == "and" else role))
            if role == "and":
                joined.add(word.root)
            role = ""
    seen: dict[str, int] = {}
    for root, _ in places:
        seen[root] = seen.get(root, 0) + 1
    return Order(tuple(p for p in places if seen[p[0]] == 1), frozenset(joined), symmetric, "".join(genders), passive, frozenset(attributes))


def _participle(words: Sequence[Word], at: int) -> str | None:
    """The root of the verb in the passive whose "by" comes right before the word at `at` or the articles before it."""
    for place in range(at - 1, 0, -1):
        if words[place].text == "by":
            before = words[place - 1]
            return before.root if before.text.endswith(_ENDINGS) else None
    return None


_ENDINGS = ("ed", "en", "wn", "ht", "nt", "ld", "de", "ne", "ung", "um", "id", "lt", "st", "pt", "ft", "rt", "und", "read")
"""Those that participles have."""


def _active(places: list[tuple[str, str]], verb: str, agent: str) -> list[tuple[str, str]]:
    """The places of a passive sentence as those of the active one."""
    before = places[:-1] if places[-1][0] == verb else places
    return [(agent, ""), (verb, ""), *before]


_CLASHES = frozenset({frozenset({"from", "to"}), frozenset({"subject", "object"})})
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
    exchanged = _exchanged(shared)
    if exchanged:
        return exchanged
    line = [place for root, _, place, _ in shared if root not in together]
    least = 2 if asked.passive != stored.passive and len(shared) <= _SHORT else 3
    return "order" if _falls(line) >= least else ""


def _exchanged(shared: list[tuple[str, str, int, str]]) -> str:
    """Neighbours that changed places and roles: "Celsius to Fahrenheit"."""
    for (one, role, place, theirs), (other, role2, place2, theirs2) in zip(shared, shared[1:], strict=False):
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
