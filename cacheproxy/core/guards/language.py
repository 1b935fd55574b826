"""Which language a text is in, by its script and its commonest words. Pure, linear."""

import re
from functools import cache

from cacheproxy.core.lexicon import lexicon

_KANA = re.compile("[\u3041-\u30ff]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_LATIN = re.compile(r"[^\W\d_]+")
_MARKS = (
    dict.fromkeys("äöüß", "de") | dict.fromkeys("ñ¿¡", "es") | dict.fromkeys("ãõ", "pt") | dict.fromkeys("èùœ", "fr")
)
"""Letters and signs of one language."""
_VOTING = ("en", "de", "es", "pt", "fr")
_READ = 400
"""Characters of a text that are looked at."""


def language(text: str) -> tuple[str, bool]:
    """The language of `text` among those of the lexicons, English if in doubt, and whether there is no doubt."""
    text = text[:_READ]
    if not text.isascii():
        if _KANA.search(text):
            return "ja", True
        if _HAN.search(text):
            return "zh", True
    votes: dict[str, int] = dict.fromkeys(_VOTING, 0)
    by_word = _votes()
    for word in _LATIN.findall(text.lower()):
        for name in by_word.get(word, ()):
            votes[name] += 1
    if not text.isascii():
        for letter in _MARKS.keys() & set(text.lower()):
            votes[_MARKS[letter]] += 1
    best = max(votes, key=lambda name: (votes[name], name == "en"))
    rest = max(votes[name] for name in votes if name != best)
    return best, votes[best] >= 2 and votes[best] > rest + 1


@cache
def _votes() -> dict[str, tuple[str, ...]]:
    """The languages that a word is common in."""
    found: dict[str, tuple[str, ...]] = {}
    for name in _VOTING:
        for word in lexicon(name).common:
            found[word] = (*found.get(word, ()), name)
    return found
