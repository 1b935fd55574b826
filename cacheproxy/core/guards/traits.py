"""Small closed classes of words: quantifiers, aspects, wished languages and forms. Pure."""

from collections.abc import Mapping, Sequence

from cacheproxy.core.guards import questions
from cacheproxy.core.lexicon import Word

Traits = Mapping[str, frozenset[str]]
"""The groups that a text has, by class."""

_INTO = frozenset({
    "in", "into", "to", "auf", "ins", "en", "em", "à", "au", "al", "para", "用", "以", "成", "speak", "formal",
    "informal", "from", "ao", "で",
})  # fmt: skip
"""What stands before a language that is asked for, or behind it (Japanese)."""

_NONE: frozenset[str] = frozenset()
_SILENT = frozenset({"english"})
_MAKING = frozenset({
    "write", "explain", "describe", "give", "summarise", "summarize", "summary", "tell", "draft", "compose", "make",
    "answer", "generate", "create", "provide", "define", "reply", "respond", "rewrite", "rephrase", "show", "list",
    "produce", "outline",
})  # fmt: skip
"""Who says so near the start wants a text of some form."""
_FRAME = 5
"""Words of the start of a text that say what is wanted."""
_LOOSE = frozenset({"short", "long", "simple", "technical", "detailed", "formal", "informal"})
"""Forms that are qualities of other things too."""
_VAGUE = frozenset({"one", "few", "some"})
_CLEAR = frozenset({"both", "all", "none", "most"})
"""What those that are vague are set against."""
_LOUD = frozenset({"partly", "only", "average", "starting", "half"})
"""Quantifiers that matter where the other text has none."""


def traits(words: Sequence[Word], language: str) -> Traits:
    """The groups of closed classes in `words`."""
    found: dict[str, set[str]] = {"ask": set(), "mode": set()}
    before = ""
    asks_for_text = any(word.text in _MAKING for word in words[:_FRAME])
    for at, word in enumerate(words):
        for guard, group in word.traits:
            if guard == "language":
                found.setdefault("tongue", set()).add(group)
            beside = before if language != "ja" else words[min(at + 1, len(words) - 1)].text
            if not _is_idle(guard, group, beside, asks_for_text=asks_for_text) and not _counts_only(words, at, group):
                found.setdefault(guard, set()).add(group)
        before = word.text
    found["ask"], found["mode"] = questions.question(words, language)
    return {guard: frozenset(groups) for guard, groups in found.items()}


def _is_idle(guard: str, group: str, beside: str, *, asks_for_text: bool) -> bool:
    """Whether a word that could wish for a language or a form does not, beside the word `beside`."""
    if guard == "language":
        return beside not in _INTO
    return guard == "format" and group in _LOOSE and not asks_for_text


def _counts_only(words: Sequence[Word], at: int, group: str) -> bool:
    """Whether the "only" at `at` is of a number that says the same without it: "only 3"."""
    after = (
        next((word for word in words[at + 1 : at + 4] if not (word.light or word.unit)), None)
        if group == "only"
        else None
    )
    return after is not None and after.counts and after.number != "1"


def languages_differ(asked: Traits, stored: Traits) -> str:
    """Languages in which one text wants an answer, and which the other does not name at all; empty if there are none.
    English goes without saying."""
    ours, theirs = asked.get("language", _NONE), stored.get("language", _NONE)
    left, right = ours - stored.get("tongue", _NONE), theirs - asked.get("tongue", _NONE)
    if not (left and right):
        left, right = left - _SILENT, right - _SILENT
    return _told(left, right)


def amounts_differ(asked: frozenset[str], stored: frozenset[str]) -> str:
    """Quantifiers that are not the same; one that only one text has matters only if it is loud."""
    left, right = asked - stored, stored - asked
    if not (left | right) & _CLEAR:
        left, right = left - _VAGUE, right - _VAGUE
    if (left and right) or (left | right) & _LOUD:
        return _told(left, right)
    return ""


def degrees_differ(asked: frozenset[str], stored: frozenset[str]) -> str:
    """Comparatives and superlatives that each of two texts has for itself; empty if one of them has none."""
    left, right = asked - stored, stored - asked
    return _told(left, right) if left and right else ""


def groups_differ(asked: frozenset[str], stored: frozenset[str]) -> str:
    """Groups that only one of two texts has; empty if there are none."""
    return _told(asked - stored, stored - asked)


def _told(left: frozenset[str], right: frozenset[str]) -> str:
    return f"{', '.join(sorted(left)) or '-'} / {', '.join(sorted(right)) or '-'}" if left or right else ""
