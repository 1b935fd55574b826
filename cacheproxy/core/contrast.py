"""What tells two questions apart, in numbers: what `core.opinion` weighs. Pure.

Symmetric in the two, total over any text, linear in its length.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cacheproxy.core import likeness
from cacheproxy.core.guards.pair import Pair
from cacheproxy.core.guards.table import GUARDS
from cacheproxy.core.lexicon import Word
from cacheproxy.core.likeness import Features
from cacheproxy.core.words import words

FEW = 3
"""Words in one place, up to which only one place is taken to differ."""

CLASSES = {
    "article": "a an the this that these those some any",
    "we": "i me my mine myself we us our ours",
    "you": "you your yours yourself u ur",
    "they": "he him his himself she her hers herself they them their theirs one someone",
    "what": "what which whats",
    "who": "who whom whose",
    "where": "where",
    "when": "when",
    "why": "why",
    "how": "how",
    "be": "is are am was were be been being s re m",
    "do": "do does did done has have had having",
    "may": "can could may might able possible allowed",
    "must": "must shall should ought need have_to supposed required",
    "will": "will would going gonna ll d",
    "filler": "please kindly thanks thank hi hello hey just also really actually so very quickly there well like too "
    "tell know want wish help explain describe show give find get go best good way ways steps process",
    "from": "from out off",
    "to": "to into onto towards",
    "of": "of for about on regarding concerning with by as",
    "in": "in at within inside near during while",
    "over": "before after until since under over above below between without against outside through behind",
    "and": "and or but if then than as",
    "all": "all every each most more less few many much only first last other another same again still yet already",
}
"""Small words, by what they do."""
_CLASS = {word: name for name, members in CLASSES.items() for word in members.split()}
_ASKING = ("what", "who", "where", "when", "why", "how")
_OPENING = {"be": "whether", "do": "whether", "may": "whether", "must": "whether", "will": "whether"}
_PERSONS = ("we", "you", "they")
_ANYONE = "anyone"
_GENERAL = frozenset({"i", "you", "we", "one", "u"})
_ABLE = frozenset({"do", "does", "can", "could", "should", "would", "may", "must", "to"})
_MEANS = frozenset({"how", "where", "when", "why"})
"""Whoever asks how one does something may say "I", "you" or "one"."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as it is compared: by the guards, by its words in order, and by their neighbours. `opening`: what its
    first question asks for."""

    features: Features
    line: tuple[str, ...]
    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    opening: str


def read(text: str) -> Reading:
    """Read `text` once, so that it can be compared often."""
    line = _general(words(text))
    pairs = frozenset(pairwise(("", *line, "")))
    return Reading(likeness.prepare(text), line, frozenset(line), pairs, _opening(line))


def _general(line: list[str]) -> tuple[str, ...]:
    """The words, with one for all that "I", "you" and "one" can be in "how do I"."""
    for at in range(2, len(line)):
        if line[at] in _GENERAL and line[at - 1] in _ABLE and line[at - 2] in _MEANS:
            line[at] = _ANYONE
    return tuple(line)


def _opening(line: Sequence[str]) -> str:
    for word in line[:12]:
        name = _CLASS.get(word, "")
        if name in _ASKING:
            return name
    return _OPENING.get(_CLASS.get(line[0], ""), "wish") if line else "wish"


def measures(asked: Reading, stored: Reading, similarity: float) -> dict[str, float]:
    """What is measured of two texts, by name; what is left out is 0."""
    pair = Pair(asked.features, stored.features)
    found = {
        "distance": math.log(max(1.0 - similarity, 0.0) + 0.003),
        "length": math.log1p(min(len(asked.line), len(stored.line))),
        "longer": abs(math.log((len(asked.line) + 1) / (len(stored.line) + 1))),
        "neighbours": _apart(asked.pairs, stored.pairs),
        "vocabulary": _apart(asked.words, stored.words),
    }
    if asked.opening != stored.opening:
        found["opening " + "/".join(sorted((asked.opening, stored.opening)))] = 1.0
    found |= _substance(pair)
    found |= _small(asked, stored)
    found |= _place(asked, stored)
    if not (pair.asked.order.symmetric and pair.stored.order.symmetric):
        found |= _order(pair, asked, stored, found["neighbours"])
    if "place strong/strong" in found and "unlike words" in found:
        found["unlike in place"] = found["unlike words"]
    for guard, differ in GUARDS.items():
        if differ(pair):
            found[f"guard {guard.value}"] = 1.0
    return found


def _apart(ours: frozenset[object], theirs: frozenset[object]) -> float:
    """The share of two sets that they do not share, 0…1."""
    both = len(ours) + len(theirs)
    return 1.0 - 2.0 * len(ours & theirs) / both if both else 0.0


def _substance(pair: Pair) -> dict[str, float]:
    """What of the words of substance only one of the two has: in the place of another, or in addition."""
    ours, theirs = pair.rest.asked, pair.rest.stored
    strong = sorted((sum(not word.weak for word in ours), sum(not word.weak for word in theirs)))
    everything = pair.shared + max(len(ours), len(theirs))
    found = {
        "exchanged": float(min(strong[0], 3)),
        "added": float(min(strong[1] - strong[0], 3)),
        "weak": float(min(len(ours) + len(theirs) - sum(strong), 3)),
        "changed": 1.0 - pair.shared / everything if everything else 0.0,
        "few shared": 1.0 / (1.0 + max(pair.shared, 0)),
    }
    if ours and theirs:
        found["unlike words"] = 1.0 - max(_alike(one, other) for one in ours for other in theirs)
    elif ours or theirs:
        order = pair.asked.order if ours else pair.stored.order
        narrowing = {root for root, role in order.places if role not in {"", "to"}} | order.joined | order.attributes
        found["narrowed"] = float(any(word.root in narrowing for word in (ours or theirs)))
    else:
        found["same substance"] = 1.0
    names = pair.asked.names | pair.stored.names
    found["names"] = float(any(word.text in names for word in (*ours, *theirs)))
    return found


def _alike(one: Word, other: Word) -> float:
    """How much of their letters two words share, 0…1."""
    ours, theirs = ({*map("".join, pairwise(f" {word.text} "))} for word in (one, other))
    return 2.0 * len(ours & theirs) / (len(ours) + len(theirs))


def _small(asked: Reading, stored: Reading) -> dict[str, float]:
    """Which kinds of small words only one of the two has, and which stand in the place of which."""
    ours = {_CLASS[word] for word in asked.words - stored.words if word in _CLASS}
    theirs = {_CLASS[word] for word in stored.words - asked.words if word in _CLASS}
    found = {f"small {name}": 1.0 for name in ours ^ theirs}
    found |= {f"other {name}": 1.0 for name in ours & theirs}
    for at, one in enumerate(_PERSONS):
        for other in _PERSONS[at + 1 :]:
            if (one in ours and other in theirs) or (other in ours and one in theirs):
                found[f"person {one}/{other}"] = 1.0
    if ("from" in ours and "to" in theirs) or ("to" in ours and "from" in theirs):
        found["from/to"] = 1.0
    return found


def _order(pair: Pair, asked: Reading, stored: Reading, apart: float) -> dict[str, float]:
    """How many of the shared words changed places, or their role. `apart`: the share of neighbours not shared."""
    found = {}
    if asked.line != stored.line and sorted(asked.line) == sorted(stored.line):
        found = {"turned words": 1.0, "torn words": apart}
    theirs = {root: (place, role) for place, (root, role) in enumerate(pair.stored.order.places)}
    shared = [(role, *theirs[root]) for root, role in pair.asked.order.places if root in theirs]
    if len(shared) < 2:
        return found
    line = [place for _, place, _ in shared]
    turned = max(_falls(line), _falls(sorted(range(len(line)), key=line.__getitem__)))  # and the other way round
    roles = sum(role != other for role, _, other in shared)
    return found | {"turned": min(turned, 3) / 3.0, "roles": min(roles, 3) / 3.0}


def _falls(line: Sequence[int]) -> int:
    """How often the next is less."""
    return sum(before > after for before, after in pairwise(line))


def _place(asked: Reading, stored: Reading) -> dict[str, float]:
    """What differs where only one place does, and the rest is the same word for word."""
    ours, theirs = asked.line, stored.line
    head = _shared(ours, theirs)
    tail = _shared(ours[: head - 1 if head else None : -1], theirs[: head - 1 if head else None : -1])
    ours, theirs = ours[head : len(ours) - tail], theirs[head : len(theirs) - tail]
    if max(len(ours), len(theirs)) > FEW:
        return {}
    if not ours and not theirs:
        return {"same words": 1.0}
    substance = asked.features.side.substance | stored.features.side.substance
    texts = {word.text: word.weak for word in substance.values()}
    kinds = sorted((_weight(ours, texts), _weight(theirs, texts)))
    found = {f"place {kinds[0]}/{kinds[1]}": 1.0}
    if not tail:
        found["place at end"] = 1.0
    return found


def _shared(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """How many words are the same from the start."""
    for at, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            return at
    return min(len(ours), len(theirs))


def _weight(line: Iterable[str], texts: dict[str, bool]) -> str:
    """The heaviest of some words: of substance, weak, or small."""
    heaviest = ""
    for word in line:
        weak = texts.get(word)
        if weak is False:
            return "strong"
        heaviest = "weak" if weak else heaviest or _CLASS.get(word, "light")
    return heaviest or "nothing"
