"""Is the neighbour the same question? What a vector cannot see, guards look for: each objects to one difference.

Total over any text, linear in its length up to `MOST`, symmetric in the two. A text is always like itself. Pure.
"""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from cacheproxy.core.guards import (
    dates,
    denial,
    language,
    order,
    polarity,
    quantities,
    spans,
    substance,
    tokens,
    traits,
)
from cacheproxy.core.guards.pair import Features, Pair
from cacheproxy.core.guards.table import GUARDS, REASONS, Guard
from cacheproxy.core.lexicon import LANGUAGES, lexicon

__all__ = ["ALL", "DEFAULT", "MOST", "Features", "Guard", "Verdict", "explain", "judge", "prepare"]

MOST = 8_192
"""Characters of a text that are read; what comes after must be the same, character for character."""

REMEMBERED = 256
"""Texts that have been read and are remembered: several look at each."""

ALL = frozenset(Guard)
DEFAULT = ALL - {Guard.STRICT}
"""The guards that are on if nothing else is said. `Guard.STRICT` lets only other forms of the same words pass."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a guard says of two texts. `detail`: what differs, in the words of the texts, so it is for the operator's
    eyes alone; empty if the guard does not object."""

    guard: Guard
    detail: str

    @property
    def objects(self) -> bool:
        """Whether the two are not the same question for this guard."""
        return bool(self.detail)

    @property
    def reason(self) -> str:
        """What the guard objects to, as a sentence without a word of the texts."""
        return REASONS[self.guard]


def load() -> None:
    """Make ready what every text is read with; else that is done at the first one, and takes it a tenth of a second."""
    for tongue in LANGUAGES:
        lexicon(tongue)
    language.language("")


def prepare(text: str) -> Features:
    """Read `text` once, so that it can be compared often. The latest are remembered."""
    return _prepare(text, "")


@lru_cache(REMEMBERED)
def _prepare(whole: str, told: str) -> Features:
    """Read a text, which is in the language `told` if that is not empty."""
    text, tail = whole[:MOST], whole[MOST:]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    literal = spans.spans(text, tail)
    tongue, sure = (told, True) if told else language.language(literal.rest)
    known = lexicon(tongue)
    read = tokens.tokens(literal.rest, known)
    words = [known.word(token) for token in read.words]
    when = dates.dates(words, read.names)
    amounts = quantities.quantities(words, tongue, when.used)
    used = when.used | amounts.used
    return Features(
        whole, tongue, sure, literal, amounts, when, read.codes, read.names, denial.denial(words),
        polarity.poles(words), traits.traits(words, tongue), order.order(words, used, after=tongue == "ja"),
        substance.side(words, used),
    )  # fmt: skip


def judge(asked: str | Features, stored: str | Features, switches: frozenset[Guard] = DEFAULT) -> Verdict | None:
    """The first verdict, of the guards in `switches`, that the answer to `stored` is not one to `asked`; None if it
    is."""
    pair = _pair(asked, stored)
    for guard, difference in GUARDS.items():
        if guard in switches and (detail := difference(pair)):
            return Verdict(guard, detail)
    return None


def explain(asked: str | Features, stored: str | Features) -> list[Verdict]:
    """What every guard says, switched on or not, in the order in which they are asked."""
    pair = _pair(asked, stored)
    return [Verdict(guard, difference(pair)) for guard, difference in GUARDS.items()]


def _pair(asked: str | Features, stored: str | Features) -> Pair:
    """The two to be compared. Where it is in doubt in which language one is, it is that of the other."""
    ours, theirs = (prepare(text) if isinstance(text, str) else text for text in (asked, stored))
    if ours.language != theirs.language and not (ours.sure and theirs.sure):
        told = _language(ours, theirs)
        ours, theirs = (one if one.language == told else _prepare(one.text, told) for one in (ours, theirs))
    return Pair(ours, theirs)


def _language(ours: Features, theirs: Features) -> str:
    """The language of both, of which at most one is sure; English is but a guess."""
    if ours.sure or theirs.sure:
        return ours.language if ours.sure else theirs.language
    return min(one.language for one in (ours, theirs) if one.language != "en")
