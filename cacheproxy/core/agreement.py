"""Whether two answers to one question say the same. Pure; the cosine of their vectors is given from outside.

Answers of a model differ in their words every time, so likeness decides. Between what is surely the same and what is
surely not lies what is not known, and that counts for nothing.
"""

import re
import unicodedata
from enum import StrEnum

from cacheproxy.core import likeness, replay
from cacheproxy.core.likeness import Guard
from cacheproxy.core.model import Answer, Endpoint
from cacheproxy.core.words import words

LEAST = 0.8
"""Cosine from which on two texts say the same, for the default embedder. Of sentences that people called the same 88 %
are above, of those they called different 7 %."""
DOUBT = 0.15
"""So far below that it is not known. Of sentences that people called the same 2 % are below that too."""
SHORT = 60
"""Words up to which an answer is compared by the guards: each number in it is then part of what was asked."""
OVERLAP = 0.8
"""Share of common words from which on two texts that have no vector say the same."""
BEGINNINGS = (700, 250)
"""Characters of a text that is longer than the embedder reads; the second where even that is too long for it."""

_SHARP = frozenset({
    Guard.NUMBERS, Guard.UNITS, Guard.DATES, Guard.CODES, Guard.NEGATION, Guard.POLARITY, Guard.DIRECTION,
    Guard.SIBLINGS, Guard.LINKS, Guard.ADDRESSES,
})  # fmt: skip
_APART = re.compile(r"[\s<>()\[\]\"'\u3000-\u303f]+")
_PLACE = re.compile(r"://|@|\w\.[^\W\d_]{2}")
_NUMBER = re.compile(r"\+?\d(?:[ ()/.-]{0,2}\d){4,}")
_ENDS = ".!?\u3002\uff01\uff1f\n"


class Agreement(StrEnum):
    """What came of a comparison."""

    AGREE = "agree"
    DIFFER = "differ"
    UNKNOWN = "unknown"


def said(answer: Answer, endpoint: Endpoint) -> str:
    """The words of an answer that is words alone; empty if it says nothing."""
    document = replay.document_of(answer, endpoint)
    if endpoint is Endpoint.RESPONSES:
        turns = [item for item in document.get("output") or () if item.get("type") == "message"]
        return "".join(part.get("text") or "" for turn in turns for part in turn.get("content") or ())
    choices = document.get("choices") or [{}]
    content = (choices[0].get("message") or {}).get("content")
    return content if isinstance(content, str) else ""


def equal(one: str, other: str) -> bool:
    """Whether two texts are the same but for case and spaces."""
    return " ".join(one.casefold().split()) == " ".join(other.casefold().split())


def lures(text: str) -> frozenset[str]:
    """Where `text` sends its reader: links, names of hosts, e-mail addresses, and numbers that can be called or paid
    to. As they are compared."""
    text = unicodedata.normalize("NFKC", text).casefold()
    places = {part.strip(".,;:!?*_`") for part in _APART.split(text) if _PLACE.search(part)}
    numbers = {"".join(filter(str.isdigit, found)) for found in _NUMBER.findall(text)}
    return frozenset(places | numbers)


def beginning(text: str, most: int) -> str:
    """The first whole sentences of `text` within `most` characters; of a longer first one, its first words."""
    if len(text) <= most:
        return text
    head = text[:most]
    end = max(head.rfind(mark) for mark in _ENDS)
    end = end + 1 if end >= 0 else head.rfind(" ")
    return head[:end] if end > 0 else head


def judge(one: str, other: str, cosine: float | None, least: float = LEAST) -> Agreement:
    """What two texts are to each other. `cosine`: of their vectors, None if they have none."""
    if equal(one, other):
        return Agreement.AGREE if one.strip() else Agreement.UNKNOWN
    ours, theirs = words(one), words(other)
    if cosine is None:
        return Agreement.AGREE if _overlap(ours, theirs) >= OVERLAP and not _objects(one, other) else Agreement.UNKNOWN
    if cosine < least - DOUBT:
        return Agreement.DIFFER
    if max(len(ours), len(theirs)) <= SHORT and _objects(one, other):
        return Agreement.DIFFER
    return Agreement.AGREE if cosine >= least else Agreement.UNKNOWN


def _objects(one: str, other: str) -> bool:
    return likeness.judge(one, other, _SHARP) is not None


def _overlap(one: list[str], other: list[str]) -> float:
    ours, theirs = set(one), set(other)
    return len(ours & theirs) / len(ours | theirs) if ours or theirs else 0.0
