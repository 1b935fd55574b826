"""Which language a text is in, by its script and its commonest words. Pure, linear."""

import re

from cacheproxy.core.lexicon import LEXICONS

_KANA = re.compile("[\u3041-\u30ff]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_LATIN = re.compile(r"[^\W\d_]+")
_MARKS = (
    dict.fromkeys("äöüß", "de") | dict.fromkeys("ñ¿¡", "es") | dict.fromkeys("ãõ", "pt") | dict.fromkeys("èùœ", "fr")
)
"""Letters and signs of one language."""
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
    votes: dict[str, int] = dict.fromkeys(_COMMON, 0)
    for word in _LATIN.findall(text.lower()):
        for name in _VOTES.get(word, ()):
            votes[name] += 1
    if not text.isascii():
        for letter in _MARKS.keys() & set(text.lower()):
            votes[_MARKS[letter]] += 1
    best = max(votes, key=lambda name: (votes[name], name == "en"))
    rest = max(votes[name] for name in votes if name != best)
    return best, votes[best] >= 2 and votes[best] > rest + 1


_COMMON = {name: LEXICONS[name].common for name in ("en", "de", "es", "pt", "fr")}
_VOTES: dict[str, tuple[str, ...]] = {}
for _name, _words in _COMMON.items():
    for _word in _words:
        _VOTES[_word] = (*_VOTES.get(_word, ()), _name)
