"""What a question asks for: who, when, whether, how much; and whether it is about what may be, must be or was. Pure."""

from collections.abc import Sequence
from itertools import pairwise

from cacheproxy.core.lexicon import Word

_CLASHES = {
    "who": {"where", "when", "why", "how", "how_much", "how_many", "how_long", "how_often"},
    "where": {"who", "when", "why", "how", "how_much", "how_many", "how_long", "how_often"},
    "when": {"who", "where", "why", "how", "how_much", "how_many", "how_often"},
    "why": {"who", "where", "when", "how_much", "how_many", "how_long", "how_often", "how", "what", "which", "yesno"},
    "yesno": {"who", "where", "when", "how", "how_much", "how_many", "how_often"},
    "how": {"who", "when", "why", "how_much", "how_many", "how_long", "how_often"},
}
_WHETHER = frozenset({"yesno"})
_MEASURES = ("how_much", "how_many", "how_long", "how_often", "how_far", "how_old", "how_big", "how_fast", "how_tall")
_CAUSES = frozenset({"caus", "reason"})

_AUXILIARY = frozenset({
    "is", "are", "was", "were", "do", "does", "did", "can", "could", "will", "would", "should", "has", "have", "had",
    "may", "must", "am",
})  # fmt: skip
"""A question that begins with one asks whether."""

_MODES = {
    "can": "may", "could": "may", "may": "may", "might": "may", "must": "must", "did": "did",
    "was": "did", "were": "did", "will": "will", "should": "should", "shall": "should",
}  # fmt: skip
_MODES_APART = {
    frozenset(pair)
    for pair in (
        ("may", "must"), ("may", "did"), ("must", "did"), ("must", "will"), ("did", "will"), ("did", "should"),
        ("cannot", "will not"),
    )
}  # fmt: skip
_JOINING = frozenset({"when", "where"})
_TELLING = frozenset({
    "tell", "know", "me", "and", "or", "of", "remember", "say", "ask", "see", "idea", "out", "exactly", "check",
    "explain", "about", "from", ".", "us", "sure", "show",
})  # fmt: skip
_FEW = 4
_REQUESTING = frozenset({"can", "could", "will", "would"})
_WAYS = frozenset({"trick", "way", "ways", "possible", "help", "steps", "method", "any_way"})
_DO = frozenset({"do", "does"})
_ASKING = frozenset({"who", "when", "where", "which"})
_FREE = frozenset({"how", "what", "why"})
_REFUSING = {"can": "cannot", "will": "will not"}
_OBLIGED = frozenset({"have", "need"})
_FINDING = frozenset({"find", "locate"})
_HOW_OR_WHERE = frozenset({"how", "where"})
_FRAME = 5
"""Words of the start of a text that say what is wanted."""


def question(words: Sequence[Word], language: str) -> tuple[set[str], set[str]]:
    """The question words of a text by their groups, ``yesno`` if all it asks is whether; and its mode if it has one."""
    english = language == "en"
    asks: set[str] = set()
    for at, word in enumerate(words):
        groups = [group for guard, group in word.traits if guard == "ask"]
        if groups and not (english and _is_idle(words, at)):
            asks.update(groups)
        if word.root in _CAUSES and "what" in asks:
            asks.add("why")
    if not english or not words:
        return asks, set()
    if _seeks(words):
        asks |= {"how", "where"} if asks & {"how", "where"} else set()
    alone = all(word.text != "." for word in words[:-1])
    if alone and words[0].text in _AUXILIARY and not _is_request(words):
        if not any(word.text in _WAYS for word in words[1:_FRAME]):
            asks.add("yesno")
    if "how" in asks and any(word.fails or word.denies for word in words):
        asks |= {"why"} if any(word.text == "did" for word in words) else set()
    mode = _mode(words, asks)
    return asks, {mode} if mode else set()


def _seeks(words: Sequence[Word]) -> bool:
    """Whether it is asked how or where one finds something, which is the same."""
    return any(
        word.text in _FINDING and any(before.text in _HOW_OR_WHERE for before in words[max(0, at - _FRAME) : at])
        for at, word in enumerate(words)
    )


def _is_idle(words: Sequence[Word], at: int) -> bool:
    """Whether a question word does not ask: "when topping up"; or asks for a degree: "how safe"."""
    text = words[at].text
    return (text == "how" and _is_degree(words, at)) or (text in _JOINING and not _asks(words, at))


def _asks(words: Sequence[Word], at: int) -> bool:
    """Whether the "when" or "where" at `at` asks, and does not only join: "when topping up"."""
    after = words[at + 1].text if at + 1 < len(words) else "."
    return after in _AUXILIARY or after in {".", "to", "and", "or"} or (at == 0 and len(words) <= _FEW) or (
        at > 0 and words[at - 1].text in _TELLING
    )  # fmt: skip


def _is_degree(words: Sequence[Word], at: int) -> bool:
    """Whether the "how" at `at` asks for the degree of something: "how safe is it?" is much like "is it safe?"."""
    after = words[at + 1] if at + 1 < len(words) else words[at]
    return after.text not in _AUXILIARY and at + 2 < len(words) and words[at + 2].text in _AUXILIARY


def _is_request(words: Sequence[Word]) -> bool:
    """Whether a question is a polite wish: "could you"."""
    return len(words) > 1 and words[0].text in _REQUESTING and words[1].text == "you"


def _mode(words: Sequence[Word], asks: set[str]) -> str:
    """Whether a question is about what may be, must be, was or will be; empty if it is about how, or says nothing."""
    refused = next((one.text for one, no in pairwise(words) if no.text == "not" and one.text in _REFUSING), None)
    if refused:
        return _REFUSING[refused]
    if asks & _FREE or _is_request(words):
        return ""
    at = 0 if "yesno" in asks else 1
    if at >= len(words) or words[at].text not in _AUXILIARY or (at and words[0].text not in _ASKING):
        return ""
    if words[at].text in _DO:
        obliged = (pair for pair in pairwise(words[at + 1 : at + 6]) if pair[0].text in _OBLIGED)
        if any(after.text == "to" for _, after in obliged):
            return "must"
    return _MODES.get(words[at].text, "")


def modes_differ(asked: frozenset[str], stored: frozenset[str]) -> str:
    """Whether one asks what may be and the other what must be, or was, or will be; empty if they can be one."""
    for ours in asked:
        for theirs in stored:
            if frozenset({ours, theirs}) in _MODES_APART:
                return f"{ours} / {theirs}"
    return ""


def questions_differ(asked: frozenset[str], stored: frozenset[str]) -> str:
    """Question words that cannot stand for each other; empty if they can."""
    if (asked & stored) - {"yesno"} or asked == stored:
        return ""
    asked, stored = (asked - stored or asked & _WHETHER, stored - asked or stored & _WHETHER)
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
