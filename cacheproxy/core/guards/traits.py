"""Small closed classes of words: quantifiers, aspects, question words, wished languages and forms. Pure."""

from collections.abc import Mapping, Sequence

from cacheproxy.core.lexicon import Word

Traits = Mapping[str, frozenset[str]]
"""The groups that a text has, by class."""

_CLASHES = {
    "who": {"where", "when", "why", "how", "how_much", "how_many", "how_long", "how_often"},
    "where": {"who", "when", "why", "how_much", "how_many", "how_long", "how_often"},
    "when": {"who", "where", "why", "how", "how_much", "how_many", "how_often"},
    "why": {"who", "where", "when", "how_much", "how_many", "how_long", "how_often", "how", "what", "which", "yesno"},
    "yesno": {"who", "where", "when", "how_much", "how_many", "how_often"},
    "how": {"who", "when", "why", "how_much", "how_many", "how_long", "how_often"},
}
_MEASURES = ("how_much", "how_many", "how_long", "how_often", "how_far", "how_old", "how_big", "how_fast", "how_tall")
_INTO = frozenset({
    "in", "into", "to", "auf", "ins", "en", "em", "à", "au", "al", "para", "用", "以", "成", "speak", "formal",
    "informal", "from", "ao",
})  # fmt: skip
"""What stands before a language that is asked for."""

_CAUSES = frozenset({"caus", "reason", "purpos"})

_AUXILIARY = frozenset({
    "is", "are", "was", "were", "do", "does", "did", "can", "could", "will", "would", "should", "has", "have", "had",
    "may", "must", "am",
})  # fmt: skip
"""A question that begins with one asks whether."""

_LOUD = frozenset({"only", "average", "starting", "half"})
"""Quantifiers that matter where the other text has none."""


def traits(words: Sequence[Word], language: str) -> Traits:
    """The groups of closed classes in `words`."""
    found: dict[str, set[str]] = {}
    before = ""
    for word in words:
        for guard, group in word.traits:
            if guard != "language" or before in _INTO:
                found.setdefault(guard, set()).add(group)
        if word.root in _CAUSES and "what" in found.get("ask", ()):
            found["ask"].add("why")
        before = word.text
    if language == "en" and words and words[0].text in _AUXILIARY:
        found.setdefault("ask", set()).add("yesno")
    return {guard: frozenset(groups) for guard, groups in found.items()}


def amounts_differ(asked: frozenset[str], stored: frozenset[str]) -> str:
    """Quantifiers that are not the same; one that only one text has matters only if it is loud."""
    left, right = asked - stored, stored - asked
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


def questions_differ(asked: frozenset[str], stored: frozenset[str]) -> str:
    """Question words that cannot stand for each other; empty if they can."""
    if (asked & stored) - {"yesno"} or asked == stored:
        return ""
    for ours in asked or {""}:
        for theirs in stored or {""}:
            if not _clash(ours, theirs):
                return ""
    return _told(asked, stored)


def _clash(one: str, other: str) -> bool:
    if one in _MEASURES and other in _MEASURES:
        return True
    return other in _CLASHES.get(one, ()) or one in _CLASHES.get(other, ())


def _told(left: frozenset[str], right: frozenset[str]) -> str:
    return f"{', '.join(sorted(left)) or '-'} / {', '.join(sorted(right)) or '-'}" if left or right else ""
