"""Is the neighbour the same question? What a vector cannot see, guards look for: each objects to one kind of difference.

Total over any text, linear in its length, symmetric in the two. A text is always like itself. Pure.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from cacheproxy.core.guards import dates as _dates
from cacheproxy.core.guards import denial as _denial
from cacheproxy.core.guards import direction as _direction
from cacheproxy.core.guards import language as _language
from cacheproxy.core.guards import polarity as _polarity
from cacheproxy.core.guards import quantities as _quantities
from cacheproxy.core.guards import spans as _spans
from cacheproxy.core.guards import substance as _substance
from cacheproxy.core.guards import tokens as _tokens
from cacheproxy.core.guards import traits as _traits
from cacheproxy.core.lexicon import LEXICONS, Word

MOST = 8_192
"""Characters of a text that are read."""


class Guard(StrEnum):
    """The guards, in the order in which they are asked."""

    CODE = "code"
    QUOTES = "quotes"
    LINKS = "links"
    ADDRESSES = "addresses"
    NUMBERS = "numbers"
    UNITS = "units"
    DATES = "dates"
    IDENTIFIERS = "identifiers"
    NEGATION = "negation"
    POLARITY = "polarity"
    AMOUNT = "amount"
    DEGREE = "degree"
    ASPECT = "aspect"
    QUESTION = "question"
    WISH = "wish"
    TONGUE = "tongue"
    DIRECTION = "direction"
    NAMES = "names"
    SIBLINGS = "siblings"
    SUBSTITUTION = "substitution"
    ADDITION = "addition"


ALL = frozenset(Guard)


@dataclass(frozen=True, slots=True)
class Features:
    """A text, read by every guard once."""

    language: str
    sure: bool
    spans: _spans.Spans
    quantities: _quantities.Quantities
    dates: _dates.Dates
    codes: frozenset[str]
    names: frozenset[str]
    denial: _denial.Denial
    poles: _polarity.Poles
    traits: _traits.Traits
    order: _direction.Order
    substance: dict[str, Word]
    roots: frozenset[str]
    kin: frozenset[int]
    plain: frozenset[str]


def prepare(text: str) -> Features:
    """Read `text`, so that it can be compared often."""
    text = text[:MOST]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    spans = _spans.spans(text)
    language, sure = _language.language(spans.rest)
    lexicon = LEXICONS[language]
    tokens = _tokens.tokens(spans.rest, lexicon)
    words = [lexicon.word(token) for token in tokens.words]
    quantities = _quantities.quantities(words, language)
    dates = _dates.dates(words, tokens.names)
    used = quantities.used | dates.used
    return Features(
        language, sure, spans, quantities, dates, tokens.codes, tokens.names, _denial.denial(words),
        _polarity.poles(words), _traits.traits(words), _direction.order(words, used, after=language == "ja"),
        _substance.substance(words, used), frozenset(word.root for word in words),
        frozenset(group for word in words for group in word.kin), frozenset(tokens.words),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a guard says of two texts. `reason`: the rule, without a word of the texts; `detail`: what differs, in
    their words, empty if the guard does not object."""

    guard: Guard
    detail: str

    @property
    def objects(self) -> bool:
        """Whether the two are not the same question for this guard."""
        return bool(self.detail)

    @property
    def reason(self) -> str:
        """The guard's rule as a sentence."""
        return REASONS[self.guard]


def judge(asked: str | Features, stored: str | Features, switches: frozenset[Guard] = ALL) -> Verdict | None:
    """The first verdict of the guards in `switches` that objects to `stored` answering `asked`; None if none does."""
    pair = _Pair(_read(asked), _read(stored))
    for guard, difference in _GUARDS.items():
        if guard in switches and (detail := difference(pair)):
            return Verdict(guard, detail)
    return None


def explain(asked: str | Features, stored: str | Features) -> list[Verdict]:
    """What every guard says, in their order."""
    pair = _Pair(_read(asked), _read(stored))
    return [Verdict(guard, difference(pair)) for guard, difference in _GUARDS.items()]


def _read(text: str | Features) -> Features:
    return prepare(text) if isinstance(text, str) else text


class _Pair:
    """Two texts, and the words of substance that only one of them has."""

    def __init__(self, asked: Features, stored: Features) -> None:
        self.asked, self.stored = asked, stored
        self._rest: _substance.Rest | None = None

    @property
    def rest(self) -> _substance.Rest:
        """What of either has no counterpart; found when first asked for."""
        if self._rest is None:
            a, b = self.asked, self.stored
            found = _substance.rest(
                _substance.Side(a.substance, a.roots, a.kin, a.plain), _substance.Side(b.substance, b.roots, b.kin, b.plain)
            )
            if (a.denial.said or a.denial.doubts) and (b.denial.said or b.denial.doubts):
                found = found.without(a.denial.doubts | b.denial.doubts)
            self._rest = found
        return self._rest


    @property
    def shared(self) -> int:
        """How many words of substance both have."""
        a, b = self.asked.substance, self.stored.substance
        return min(len(a) - len(self.rest.asked), len(b) - len(self.rest.stored))


def _same(name: str) -> Callable[[_Pair], str]:
    """Spans of one kind are the same in both texts, in any order."""

    def difference(pair: _Pair) -> str:
        ours, theirs = getattr(pair.asked.spans, name), getattr(pair.stored.spans, name)
        return "" if ours == theirs else f"{', '.join(ours) or '-'} / {', '.join(theirs) or '-'}"

    return difference


def _trait(name: str, differ: Callable[[frozenset[str], frozenset[str]], str]) -> Callable[[_Pair], str]:
    none: frozenset[str] = frozenset()
    return lambda pair: differ(pair.asked.traits.get(name, none), pair.stored.traits.get(name, none))


def _told(left: object, right: object) -> str:
    return f"{', '.join(map(str, left)) or '-'} / {', '.join(map(str, right)) or '-'}"


def _quotes(pair: _Pair) -> str:
    a, b = pair.asked, pair.stored
    ours = [q for q in a.spans.quotes if q not in b.spans.quotes and not set(q.split()) <= b.plain]
    theirs = [q for q in b.spans.quotes if q not in a.spans.quotes and not set(q.split()) <= a.plain]
    return _told(ours, theirs) if ours or theirs else ""


def _codes(pair: _Pair) -> str:
    ours, theirs = pair.asked.codes - pair.stored.codes, pair.stored.codes - pair.asked.codes
    return _told(sorted(ours), sorted(theirs)) if ours and theirs else ""


def _wish(pair: _Pair) -> str:
    return _trait("language", _traits.groups_differ)(pair) or _trait("format", _traits.groups_differ)(pair)


def _tongue(pair: _Pair) -> str:
    a, b = pair.asked, pair.stored
    return f"{a.language} / {b.language}" if a.language != b.language and a.sure and b.sure else ""


def _polar(pair: _Pair) -> str:
    a, b = pair.asked, pair.stored
    return _polarity.poles_differ(a.poles, b.poles, a.denial.flipped ^ b.denial.flipped)


def _names(pair: _Pair) -> str:
    rest, names = pair.rest, pair.asked.names | pair.stored.names
    ours = [word.text for word in rest.asked if word.text in names]
    theirs = [word.text for word in rest.stored if word.text in names]
    return _told(ours, theirs) if ours or theirs else ""


def _siblings(pair: _Pair) -> str:
    for ours in pair.rest.asked:
        for theirs in pair.rest.stored:
            if ours.kinds & theirs.kinds:
                return f"{ours.text} / {theirs.text}"
    return ""


PATIENT = 2
"""Words of substance that two texts share for each one that stands in the place of another."""


def _substitution(pair: _Pair) -> str:
    rest = pair.rest
    if not rest.asked or not rest.stored:
        return ""
    changed = max(len(rest.asked), len(rest.stored))
    return _both(rest.asked, rest.stored) if changed > pair.shared // PATIENT else ""


TOLERANT = 4
"""Words of substance that two texts share for each one that only one of them has."""
_QUALIFYING = frozenset({"of", "by", "from", "with", "than", "over"})


def _addition(pair: _Pair) -> str:
    rest = pair.rest
    if bool(rest.asked) == bool(rest.stored):
        return ""
    words, order = (rest.asked, pair.asked.order) if rest.asked else (rest.stored, pair.stored.order)
    strong = [word for word in words if not word.weak]
    if not strong or len(strong) <= pair.shared // TOLERANT:
        return ""
    if len(strong) >= MANY or pair.shared < FEW or any(order.qualifies(word.root) for word in strong):
        return _both(rest.asked, rest.stored)
    return ""


MANY = 2
FEW = 2


def _both(ours: tuple[Word, ...], theirs: tuple[Word, ...]) -> str:
    return _told([word.text for word in ours], [word.text for word in theirs])


_GUARDS: dict[Guard, Callable[[_Pair], str]] = {
    Guard.CODE: _same("code"),
    Guard.QUOTES: _quotes,
    Guard.LINKS: _same("links"),
    Guard.ADDRESSES: _same("mails"),
    Guard.NUMBERS: lambda pair: _quantities.numbers_differ(
        pair.asked.quantities.numbers, pair.stored.quantities.numbers
    ),
    Guard.UNITS: lambda pair: _quantities.units_differ(pair.asked.quantities.units, pair.stored.quantities.units),
    Guard.DATES: lambda pair: _dates.dates_differ(pair.asked.dates, pair.stored.dates),
    Guard.IDENTIFIERS: _codes,
    Guard.NEGATION: lambda pair: _denial.denials_differ(
        (pair.asked.denial, pair.asked.poles), (pair.stored.denial, pair.stored.poles)
    ),
    Guard.POLARITY: _polar,
    Guard.AMOUNT: _trait("amount", _traits.amounts_differ),
    Guard.DEGREE: _trait("degree", _traits.degrees_differ),
    Guard.ASPECT: _trait("aspect", _traits.groups_differ),
    Guard.QUESTION: _trait("ask", _traits.questions_differ),
    Guard.WISH: _wish,
    Guard.TONGUE: _tongue,
    Guard.DIRECTION: lambda pair: _direction.orders_differ(pair.asked.order, pair.stored.order),
    Guard.NAMES: _names,
    Guard.SIBLINGS: _siblings,
    Guard.SUBSTITUTION: _substitution,
    Guard.ADDITION: _addition,
}
REASONS: dict[Guard, str] = {guard: guard.value for guard in Guard}
