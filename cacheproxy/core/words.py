"""The words of a text, for ranking by words. They are letters, digits and the marks on them, whatever the script, and
nothing else: so they are also harmless in a query.

Scripts that are written without spaces (Chinese, Japanese, Thai, …) and Korean, whose words grow endings, are cut into
pairs of neighbouring characters.
"""

import re
import unicodedata

MOST_CHARACTERS = 8_192
MOST_WORDS = 1_024
"""Of a text that is kept; what comes after is not looked at."""

MOST_ASKED = 64
"""Different words of a text that is looked for."""

LONGEST = 64
"""Characters of a word; the rest of it is left off."""

_PLAIN = re.compile(r"[a-z0-9]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def words(text: str) -> list[str]:
    """The words of `text` in order, in one case and one form of each character."""
    text = text[:MOST_CHARACTERS]
    if text.isascii():
        return [word[:LONGEST] for word in _PLAIN.findall(text.lower())][:MOST_WORDS]
    text = unicodedata.normalize("NFKC", text).casefold()
    found: list[str] = []
    for run in "".join(c if unicodedata.category(c)[0] in "LNM" else " " for c in text).split():
        found += _cut(run)
        if len(found) >= MOST_WORDS:
            break
    return found[:MOST_WORDS]


def asked(text: str) -> list[str]:
    """The different words of a text that is looked for, in order."""
    return list(dict.fromkeys(words(text)))[:MOST_ASKED]


def _cut(run: str) -> list[str]:
    """A run of letters, digits and marks as words."""
    found, at = [], 0
    for unspaced in _UNSPACED.finditer(run):
        if unspaced.start() > at:
            found.append(run[at : unspaced.start()][:LONGEST])
        part, at = unspaced.group(), unspaced.end()
        found += [part[i : i + 2] for i in range(max(1, len(part) - 1))]
    if at < len(run):
        found.append(run[at:][:LONGEST])
    return found
