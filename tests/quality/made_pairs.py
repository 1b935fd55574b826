"""Pairs made from questions by known changes: some that leave the question what it is, some that make it another one.

What they are made from are the texts of the intent sets. Each change is named, so that a whole kind can be held out.
"""

import random
import re
from collections.abc import Callable, Iterator

Change = Callable[[list[str], random.Random], list[str] | None]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_FRAMES = (
    "please {}", "{} please", "hi, {}", "hello, {}", "can you tell me {}", "i would like to know {}", "{}, thanks",
    "quick question: {}", "could you please tell me {}", "i was wondering {}", "hey there, {}", "excuse me, {}",
)  # fmt: skip
_STARTS = (
    (("how", "do", "i"), ("how", "can", "i")),
    (("how", "do", "i"), ("how", "to")),
    (("how", "do", "i"), ("what", "is", "the", "best", "way", "to")),
    (("how", "do", "i"), ("what", "is", "the", "way", "to")),
    (("how", "do", "i"), ("what", "do", "i", "need", "to", "do", "to")),
    (("how", "can", "i"), ("how", "could", "i")),
    (("how", "can", "i"), ("how", "should", "i")),
    (("how", "can", "i"), ("tell", "me", "how", "to")),
    (("what", "is"), ("what's",)),
    (("what", "is"), ("tell", "me", "what", "is")),
    (("what", "are"), ("can", "you", "tell", "me", "what", "are")),
    (("what", "are"), ("tell", "me")),
    (("where", "is"), ("where", "can", "i", "find")),
    (("where", "can", "i"), ("where", "do", "i")),
    (("can", "i"), ("is", "it", "possible", "to")),
    (("can", "i"), ("could", "i")),
    (("can", "i"), ("am", "i", "able", "to")),
    (("why", "is"), ("what", "is", "the", "reason", "why")),
    (("why", "did"), ("how", "come")),
    (("i", "want", "to"), ("i", "would", "like", "to")),
    (("i", "need", "to"), ("i", "have", "to")),
    (("do", "you"), ("do", "you", "guys")),
    (("how", "do", "i"), ("how", "do", "you")),
    (("how", "can", "i"), ("how", "can", "you")),
    (("how", "do", "i"), ("how", "do", "we")),
    (("how", "do", "i"), ("how", "does", "one")),
    (("where", "can", "i"), ("where", "can", "you")),
)
_ASKED_ANEW = (
    (("how", "do", "i"), ("why", "do", "i")), (("how", "do", "i"), ("when", "do", "i")),
    (("how", "do", "i"), ("where", "do", "i")),
    (("how", "can", "i"), ("why", "can", "i")), (("how", "can", "i"), ("when", "can", "i")),
    (("how", "do", "you"), ("who", "do", "you")),
    (("what", "is"), ("who", "is")), (("what", "is"), ("where", "is")), (("what", "is"), ("why", "is")),
    (("what", "are"), ("where", "are")), (("where", "can", "i"), ("when", "can", "i")),
    (("where", "is"), ("what", "is")), (("why", "is"), ("how", "is")), (("why", "did"), ("when", "did")),
    (("can", "i"), ("must", "i")), (("can", "i"), ("did", "i")), (("can", "i"), ("when", "can", "i")),
    (("can", "i"), ("why", "can", "i")), (("when", "is"), ("where", "is")), (("when", "will"), ("why", "will")),
    (("how", "long"), ("how", "often")), (("how", "much"), ("how", "many")), (("do", "i"), ("did", "i")),
    (("do", "you"), ("did", "you")), (("do", "i", "need"), ("may", "i")),
)  # fmt: skip
_PERSONS = (("i", "you"), ("my", "your"), ("me", "him"), ("my", "his"), ("my", "her"), ("i", "they"), ("your", "their"))
_PLACES = (
    ("to", "from"), ("in", "outside"), ("before", "after"), ("with", "without"), ("on", "off"), ("into", "out of"),
    ("for", "against"), ("during", "before"), ("above", "below"), ("until", "since"),
)  # fmt: skip
_GENERAL = _set("do does can could should would will")
_BETWEEN = _set("to from in on with for by than into of before after")
_NARROWER = (
    "international", "free", "business", "joint", "virtual", "second", "prepaid", "cheapest", "student", "disposable",
    "corporate", "expired", "temporary", "foreign", "shared", "manual", "automatic", "recurring", "private", "public",
    "stolen", "vegan", "electric", "organic", "annual", "weekly", "monthly", "regional", "physical", "remote",
)  # fmt: skip
_TAILS = (
    "in germany", "for students", "on android", "at night", "for my wife", "in the us", "on weekends", "by phone",
    "without a passport", "for children", "in cash", "abroad", "in winter", "for a dog", "at the airport", "by mail",
    "on a mac", "for beginners", "in two weeks", "with a credit card", "and what it costs", "under 50 dollars",
    "for seniors", "from another bank", "over the weekend", "in an emergency",
)  # fmt: skip
_SMALL = _set(
    "a an the this that i me my you your we us our it its is are was were be been am do does did have has had will "
    "would can could should may might must to of in on at by for from with about and or if so as not no what which "
    "who when where why how there here any some please need want get got know tell like just still much many long "
    "up out off over into than then them they he she his her their one way"
)


def _words(text: str) -> list[str]:
    return text.lower().strip(" ?.!").split()


def _begun(starts: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]) -> Change:
    def change(words: list[str], dice: random.Random) -> list[str] | None:
        known = [(old, new) for old, new in starts if tuple(words[: len(old)]) == old]
        if not known:
            return None
        old, new = dice.choice(known)
        return [*new, *words[len(old) :]]

    return change


def _swapped_for(couples: tuple[tuple[str, str], ...]) -> Change:
    def change(words: list[str], dice: random.Random) -> list[str] | None:
        # "how do I" and "how do you" are one question.
        known = [
            (at, b if w == a else a)
            for at, w in enumerate(words)
            for a, b in couples
            if w in (a, b) and not (at and words[at - 1] in _GENERAL)
        ]
        if not known:
            return None
        at, new = dice.choice(known)
        return [*words[:at], new, *words[at + 1 :]]

    return change


def _framed(words: list[str], dice: random.Random) -> list[str] | None:
    return dice.choice(_FRAMES).format(" ".join(words)).split()


def _typo(words: list[str], dice: random.Random) -> list[str] | None:
    at = dice.choice([at for at, w in enumerate(words) if len(w) > 5 and w.isalpha()] or [-1])
    if at < 0:
        return None
    word, place = words[at], dice.randrange(1, len(words[at]) - 2)
    word = dice.choice(
        [word[:place] + word[place + 1] + word[place] + word[place + 2 :], word[:place] + word[place + 1 :]]
    )
    return [*words[:at], word, *words[at + 1 :]]


def _without_article(words: list[str], dice: random.Random) -> list[str] | None:
    left = [w for w in words if w not in {"a", "an", "the"}]
    return left if len(left) < len(words) else None


def _plural(words: list[str], dice: random.Random) -> list[str] | None:
    at = _place(words, dice)
    if at is None or words[at].endswith(("s", "y", "ed", "ing")):
        return None
    return [*words[:at], words[at] + "s", *words[at + 1 :]]


def _tense(words: list[str], dice: random.Random) -> list[str] | None:
    """Told as a wish: "i want to change my pin" for "how do i change my pin"."""
    if words[:3] not in (["how", "do", "i"], ["how", "can", "i"]):
        return None
    return [
        *dice.choice((["i", "want", "to", "know", "how", "to"], ["help", "me"], ["ways", "to"], ["steps", "to"])),
        *words[3:],
    ]


def _place(words: list[str], dice: random.Random) -> int | None:
    places = [at for at, w in enumerate(words) if w not in _SMALL and len(w) > 3 and w.isalpha()]
    return dice.choice(places) if places else None


def _narrowed(words: list[str], dice: random.Random) -> list[str] | None:
    places = [at + 1 for at, w in enumerate(words[:-1]) if w in {"a", "an", "the", "my", "your", "any"}]
    if not places:
        return None
    at = dice.choice(places)
    return [*words[:at], dice.choice(_NARROWER), *words[at:]]


def _tailed(words: list[str], dice: random.Random) -> list[str] | None:
    return [*words, *dice.choice(_TAILS).split()]


def _shortened(words: list[str], dice: random.Random) -> list[str] | None:
    at = _place(words, dice)
    return None if at is None or len(words) < 5 else [*words[:at], *words[at + 1 :]]


def _turned(words: list[str], dice: random.Random) -> list[str] | None:
    places = [at for at, w in enumerate(words) if w not in _SMALL and len(w) > 3 and w.isalpha()]
    if len(places) < 2:
        return None
    one, other = sorted(dice.sample(places, 2))
    if not any(w in _BETWEEN for w in words[one:other]):
        return None
    changed = list(words)
    changed[one], changed[other] = changed[other], changed[one]
    return changed if changed != words else None


def _moved(words: list[str], dice: random.Random) -> list[str] | None:
    """The last phrase comes first."""
    at = max(
        (at for at, w in enumerate(words) if w in {"in", "on", "at", "for", "with", "from", "when", "if", "after"}),
        default=0,
    )
    return [*words[at:-1], words[-1] + ",", *words[:at]] if 3 <= at <= len(words) - 2 else None


SAME: dict[str, Change] = {
    "framed": _framed, "begun otherwise": _begun(_STARTS), "typo": _typo, "without article": _without_article,
    "plural": _plural, "told": _tense, "moved": _moved,
}  # fmt: skip
OTHER: dict[str, Change] = {
    "asked anew": _begun(_ASKED_ANEW), "person": _swapped_for(_PERSONS), "place": _swapped_for(_PLACES),
    "narrowed": _narrowed, "tailed": _tailed, "shortened": _shortened, "turned": _turned,
}  # fmt: skip


def made(texts: list[str], each: int, seed: int) -> Iterator[tuple[str, str, bool, str]]:
    """Pairs ``(a, b, same, kind)``: of every kind `each`, as far as the texts have room for it."""
    dice = random.Random(seed)
    pool = [w for w in {w for text in texts for w in _words(text)} if w.isalpha() and len(w) > 3 and w not in _SMALL]
    pool.sort()

    def exchanged(words: list[str], dice: random.Random) -> list[str] | None:
        at = _place(words, dice)
        return None if at is None else [*words[:at], dice.choice(pool), *words[at + 1 :]]

    for same, changes in ((True, SAME), (False, {**OTHER, "exchanged": exchanged})):
        for kind, change in changes.items():
            shuffled = dice.sample(texts, len(texts))
            count = 0
            for text in shuffled:
                words = _words(text)
                changed = change(words, dice) if 3 <= len(words) <= 25 else None
                if changed and changed != words:
                    mark = "?" if re.search(r"\?", text) else ""
                    yield " ".join(words) + mark, " ".join(changed) + mark, same, kind
                    count += 1
                if count >= each:
                    break
