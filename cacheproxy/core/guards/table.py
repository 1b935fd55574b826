"""The guards: each with its name, its reason, and how it tells two texts apart. Pure.

A guard returns what differs, in the words of the texts; an empty text if it does not object.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from cacheproxy.core.guards import dates, denial, direction, polarity, quantities, questions, traits
from cacheproxy.core.guards.order import Order
from cacheproxy.core.guards.pair import Pair
from cacheproxy.core.lexicon import Word

_UNDOING = frozenset({
    "delete", "remove", "erase", "cancel", "disable", "deactivate", "block", "freeze", "close", "revoke", "terminate",
    "destroy", "reject", "decline", "unsubscribe", "uninstall", "wipe", "drop", "detach", "disconnect", "abort",
})  # fmt: skip
PATIENCE = 2
"""Words of substance that two texts must share for each one that stands in the place of another."""
TOLERANCE = 4
"""Words of substance that two texts must share for each one that only one of them has."""
SOME = 3
"""Words of substance that two texts share at least where an attribute that only one of them has means little."""
FEW = 2
"""Where two texts share fewer words of substance than this, each one more makes another question."""

_ALL_CASED = frozenset({"de", "ja"})
"""Languages that write common nouns as others write names."""
_NONE: frozenset[str] = frozenset()


class Guard(StrEnum):
    """The guards, in the order in which they are asked: from the surest and cheapest to the widest."""

    CODE = "code"
    QUOTES = "quotes"
    LINKS = "links"
    ADDRESSES = "addresses"
    NUMBERS = "numbers"
    UNITS = "units"
    DATES = "dates"
    CODES = "codes"
    NEGATION = "negation"
    POLARITY = "polarity"
    AMOUNTS = "amounts"
    DEGREES = "degrees"
    ASPECT = "aspect"
    QUESTION = "question"
    WISHES = "wishes"
    LANGUAGE = "language"
    DIRECTION = "direction"
    NAMES = "names"
    SIBLINGS = "siblings"
    SUBSTITUTION = "substitution"
    ADDITION = "addition"
    STRICT = "strict"


REASONS = {
    Guard.CODE: "The code in the two, or what stands too far behind to be read, is not the same.",
    Guard.QUOTES: "What they quote is not the same.",
    Guard.LINKS: "The links in the two are not the same.",
    Guard.ADDRESSES: "The e-mail addresses in the two are not the same.",
    Guard.NUMBERS: "A number or quantity is in one of them alone.",
    Guard.UNITS: "They measure in different units.",
    Guard.DATES: "They speak of different dates or times.",
    Guard.CODES: "A name of letters and digits is not the same.",
    Guard.NEGATION: "One denies what the other does not.",
    Guard.POLARITY: "One says the opposite of a word of the other.",
    Guard.AMOUNTS: "One speaks of all, some, only or the average where the other does not.",
    Guard.DEGREES: "They compare by different qualities.",
    Guard.ASPECT: "One speaks of what was or becomes, the other of what is.",
    Guard.QUESTION: "They ask for different things: who, when, where, why, how much, what may be or must be.",
    Guard.WISHES: "They ask for an answer in another language, form or length.",
    Guard.LANGUAGE: "They are written in different languages.",
    Guard.DIRECTION: "Two things have changed places.",
    Guard.NAMES: "A name is in one of them alone.",
    Guard.SIBLINGS: "They speak of two things of the same kind.",
    Guard.SUBSTITUTION: "A word of substance is exchanged for another one.",
    Guard.ADDITION: "One narrows the question by something more.",
    Guard.STRICT: "Their words of substance are not the same.",
}


def _told(ours: Iterable[str], theirs: Iterable[str]) -> str:
    """What either text has for itself; empty if neither has anything."""
    left, right = ", ".join(ours), ", ".join(theirs)
    return f"{left or '-'} / {right or '-'}" if left or right else ""


def _quotes(pair: Pair) -> str:
    """Quotes that the other text has not got, quoted or not."""
    ours, theirs = pair.asked, pair.stored
    return _told(
        [quote for quote in ours.spans.quotes if not theirs.spans.says(quote)],
        [quote for quote in theirs.spans.quotes if not ours.spans.says(quote)],
    )


def _exact(ours: tuple[str, ...], theirs: tuple[str, ...]) -> str:
    return "" if ours == theirs else _told(ours, theirs)


def _code(pair: Pair) -> str:
    """Code that is not the same, or operators where both have some."""
    ours, theirs = pair.asked.spans, pair.stored.spans
    signs = _exact(ours.operators, theirs.operators) if ours.operators and theirs.operators else ""
    return _exact(ours.code, theirs.code) or signs


def _codes(pair: Pair) -> str:
    ours, theirs = pair.asked.codes - pair.stored.codes, pair.stored.codes - pair.asked.codes
    return _told(sorted(ours), sorted(theirs)) if ours and theirs else ""


def _trait(name: str, differ: Callable[[frozenset[str], frozenset[str]], str]) -> Callable[[Pair], str]:
    return lambda pair: differ(pair.asked.traits.get(name, _NONE), pair.stored.traits.get(name, _NONE))


_FORMAT_WISHED, _MODE, _ASKED = (
    _trait("format", traits.groups_differ),
    _trait("mode", questions.modes_differ),
    _trait("ask", questions.questions_differ),
)


def _negation(pair: Pair) -> str:
    ours, theirs = pair.asked, pair.stored
    return denial.denials_differ((ours.denial, ours.poles), (theirs.denial, theirs.poles))


def _polarity(pair: Pair) -> str:
    ours, theirs = pair.asked, pair.stored
    return polarity.poles_differ(ours.poles, theirs.poles, ours.denial.flipped ^ theirs.denial.flipped)


def _language(pair: Pair) -> str:
    ours, theirs = pair.asked, pair.stored
    foreign = ours.language != theirs.language and ours.sure and theirs.sure
    return _told([ours.language], [theirs.language]) if foreign else ""


def _names(pair: Pair) -> str:
    names = pair.asked.names | pair.stored.names
    ours = [word for word in pair.rest.asked if word.text in names]
    theirs = [word for word in pair.rest.stored if word.text in names]
    if not (ours and theirs):
        if {pair.asked.language, pair.stored.language} <= _ALL_CASED:
            return ""
        ours, theirs = ([word for word in words if not word.weak] for words in (ours, theirs))
    return _told([word.text for word in ours], [word.text for word in theirs])


def _siblings(pair: Pair) -> str:
    for ours in pair.rest.asked:
        for theirs in pair.rest.stored:
            if ours.kinds & theirs.kinds:
                return _told([ours.text], [theirs.text])
    return ""


def _substitution(pair: Pair) -> str:
    rest = pair.rest
    changed = max(sum(not word.weak for word in words) for words in (rest.asked, rest.stored))
    if not rest.asked or not rest.stored:
        return ""
    done = _is_deed(rest.asked, rest.stored) or _is_deed(rest.stored, rest.asked)
    if changed <= pair.shared // PATIENCE and not done:
        return ""
    return _strict(pair)


def _is_deed(words: Sequence[Word], others: Sequence[Word]) -> bool:
    """Whether one text undoes something, where the other has nothing of weight: "delete it", "a new one"."""
    return all(word.weak for word in others) and any(word.text in _UNDOING for word in words)


def _addition(pair: Pair) -> str:
    rest = pair.rest
    if bool(rest.asked) == bool(rest.stored):
        return ""
    words, order = (rest.asked, pair.asked.order) if rest.asked else (rest.stored, pair.stored.order)
    strong: list[Word] = [word for word in words if not word.weak or _is_claimed(pair, word, order)]
    if len(strong) <= pair.shared // TOLERANCE:
        return ""
    narrows = (
        len(strong) > 1
        or pair.shared < FEW
        or any(order.qualifies(word.root, few=pair.shared < SOME) for word in strong)
    )
    return _strict(pair) if narrows else ""


def _is_claimed(pair: Pair, word: Word, order: Order) -> bool:
    """Whether a word is part of a claim that is asked about: "is she a successful author?"."""
    return pair.asked.order.claims and pair.stored.order.claims and word.root in order.attributes


def _strict(pair: Pair) -> str:
    return _told([word.text for word in pair.rest.asked], [word.text for word in pair.rest.stored])


GUARDS: dict[Guard, Callable[[Pair], str]] = {
    Guard.CODE: _code,
    Guard.QUOTES: _quotes,
    Guard.LINKS: lambda pair: _exact(pair.asked.spans.links, pair.stored.spans.links),
    Guard.ADDRESSES: lambda pair: _exact(pair.asked.spans.mails, pair.stored.spans.mails),
    Guard.NUMBERS: lambda pair: quantities.numbers_differ(pair.asked.quantities, pair.stored.quantities),
    Guard.UNITS: lambda pair: quantities.units_differ(pair.asked.quantities, pair.stored.quantities),
    Guard.DATES: lambda pair: dates.dates_differ(pair.asked.dates, pair.stored.dates),
    Guard.CODES: _codes,
    Guard.NEGATION: _negation,
    Guard.POLARITY: _polarity,
    Guard.AMOUNTS: _trait("amount", traits.amounts_differ),
    Guard.DEGREES: _trait("degree", traits.degrees_differ),
    Guard.ASPECT: _trait("aspect", traits.groups_differ),
    Guard.QUESTION: lambda pair: _ASKED(pair) or _MODE(pair),
    Guard.WISHES: lambda pair: traits.languages_differ(pair.asked.traits, pair.stored.traits) or _FORMAT_WISHED(pair),
    Guard.LANGUAGE: _language,
    Guard.DIRECTION: lambda pair: direction.orders_differ(pair.asked.order, pair.stored.order),
    Guard.NAMES: _names,
    Guard.SIBLINGS: _siblings,
    Guard.SUBSTITUTION: _substitution,
    Guard.ADDITION: _addition,
    Guard.STRICT: _strict,
}
