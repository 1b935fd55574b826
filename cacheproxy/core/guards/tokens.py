"""A text as words: lower case, contractions and compounds taken apart, numbers apart from letters. Pure, linear.

A token is a `str`: a word, or a number in its written form, or a sign that is a unit. Codes ("AB-12", "v3.1", "gpt-4o")
are told as a whole besides, since their parts are not words.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from cacheproxy.core.lexicon import Lexicon

MOST = 2_048
"""Tokens of a text; what comes after is not read."""

_CHUNK = re.compile(
    r"[^\W_]+(?:['’.,:/@+\-–_&*^][^\W_]+)*(?:\+\+|#(?!\w)|[%°])?|[$€£¥₹%°]|(?<![\w.])[.,]\d+|[&<>=]|[.?!;\n]"
)
_UNSPACED = re.compile("[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff々〇ー]+")
_NUMBER = re.compile(r"\d+(?:[.,'’]\d+)*")
_DATED = re.compile(r"\d{1,4}([-/])\d{1,2}\1\d{1,4}|\d{1,2}:\d\d(?::\d\d)?")
_PIECES = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+|[%°]")
_CLITICS = {
    "s": (), "m": ("am",), "re": ("are",), "ve": ("have",), "ll": ("will",), "d": ("would",), "t": ("not",),
    "em": ("them",), "all": ("all",), "clock": (),
}  # fmt: skip
_WHOLE = frozenset({
    "c++", "c#", "f#", "km/h", "m/s", "e-mail", "m²", "us$", "a/c", "and/or", "24/7", "n/a", "o'clock",
})  # fmt: skip
_CONTRACTED = {
    "can't": ("can", "not"), "won't": ("will", "not"), "shan't": ("shall", "not"), "cannot": ("can", "not"),
    "ain't": ("is", "not"), "dont": ("do", "not"), "doesnt": ("does", "not"), "didnt": ("did", "not"),
    "isnt": ("is", "not"), "cant": ("can", "not"), "wont": ("will", "not"), "arent": ("are", "not"),
    "wasnt": ("was", "not"), "couldnt": ("could", "not"), "shouldnt": ("should", "not"), "hasnt": ("has", "not"),
    "havent": ("have", "not"), "wouldnt": ("would", "not"), "whats": ("what", "is"), "hows": ("how", "is"),
    "wheres": ("where", "is"), "whos": ("who", "is"), "im": ("i", "am"), "ive": ("i", "have"), "id": ("id",),
    "let's": ("let", "us"), "gonna": ("going", "to"), "wanna": ("want", "to"), "gotta": ("got", "to"),
    "and/or": ("and", "or"), "u": ("you",), "ur": ("your",), "r": ("r",), "y'all": ("you",), "o'clock": ("oclock",),
    "c'est": ("c", "est"), "pls": ("please",), "plz": ("please",), "thx": ("thanks",), "w/o": ("without",),
}  # fmt: skip
_ABBREVIATED = {"US": "usa", "IT": "information_technology", "WHO": "world_health_organization"}
"""What is a name only in capitals."""
_ELIDED = frozenset({"l", "d", "j", "m", "n", "s", "t", "c", "qu", "lorsqu", "puisqu", "jusqu"})
_DENIED = frozenset({"non", "un", "anti", "dis"})


@dataclass(frozen=True, slots=True)
class Tokens:
    """`words`: in order, with ``.`` where a sentence ends; `codes`: without hyphens, in lower case; `names`: places of
    words that are written as names, by the word."""

    words: tuple[str, ...]
    codes: frozenset[str]
    names: frozenset[str]


def tokens(text: str, lexicon: Lexicon) -> Tokens:
    """The words of `text`, which is in NFKC."""
    words: list[str] = []
    codes: set[str] = set()
    names: set[str] = set()
    shouting = text.isupper()
    starts = True
    for chunk in _CHUNK.findall(text):
        if chunk.isalpha() and chunk.isascii():
            word = _ABBREVIATED.get(chunk) if not shouting else None
            word = word or chunk.lower()
            if not starts and not shouting and word != chunk and word != "i":
                names.add(word)
            words += _CONTRACTED.get(word, (word,))
        elif chunk in _ENDS:
            words.append(".")
        elif lexicon.cut and _UNSPACED.search(chunk):
            for part in re.split(f"({_UNSPACED.pattern})", chunk):
                if part:
                    words += _cut(part, lexicon) if _UNSPACED.fullmatch(part) else _taken_apart(part.lower(), codes)
        else:
            word = chunk.lower()
            if not starts and not shouting and word != chunk and chunk[0].isalpha():
                names.add(word)
            words += _taken_apart(word, codes)
        starts = chunk in _ENDS
        if len(words) >= MOST:
            break
    return Tokens(tuple(_joined(words[:MOST], lexicon)), frozenset(codes), frozenset(names))


_ENDS = frozenset(".?!;\n")


def _taken_apart(word: str, codes: set[str]) -> tuple[str, ...]:
    """The words of a chunk that is not letters alone; notes it among the `codes` if it is one."""
    if word in _CONTRACTED:
        return _CONTRACTED[word]
    if word in _WHOLE or word.isalpha():
        return (word,)
    word = word.replace("’", "'").replace("–", "-")
    if "'" in word and not word[0].isdigit():
        return _apostrophe(word, codes)
    if not any(map(str.isdigit, word)):
        return _compound(word, codes)
    if _NUMBER.fullmatch(word) or _DATED.fullmatch(word):
        return (word,)
    pieces = tuple(_PIECES.findall(word))
    if _is_code(word):
        codes.add(re.sub(r"[-_ ]", "", word))
    return tuple(piece for found in pieces for piece in ([found] if found[0].isdigit() else _compound(found, codes)))


def _is_code(word: str) -> bool:
    """Whether a chunk with letters and digits is a name, and not a quantity or a clock."""
    return bool(re.search(r"[^\W\d_]-?\d", word))


def _apostrophe(word: str, codes: set[str]) -> tuple[str, ...]:
    head, _, tail = word.rpartition("'")
    if word in _CONTRACTED:
        return _CONTRACTED[word]
    if tail == "t" and head.endswith("n"):
        return (_CONTRACTED.get(word, (head[:-1], "not"))[0], "not")
    if head in _ELIDED and tail not in _CLITICS:
        return (*((head,) if head == "n" else ()), *_taken_apart(tail, codes))
    parts = _taken_apart(head, codes) if head else ()
    return (*parts, *_CLITICS.get(tail, (tail,)))


def _compound(word: str, codes: set[str]) -> tuple[str, ...]:
    """The words of a chunk without digits that hyphens, slashes, dots or the like join."""
    if "." in word:
        letters = word.replace(".", "")
        if all(len(part) == 1 for part in word.split(".")):
            return (letters,)
        if re.fullmatch(r"[\w-]+(\.[a-z]{2,})+", word):
            codes.add(word)
    parts = [part for part in re.split(r"[-./,:@+_&*^]", word) if part]
    if len(parts) > 1 and parts[0] in _DENIED:
        return ("not", *parts[1:]) if parts[0] == "non" else ("".join(parts[:2]), *parts[2:])
    return tuple(parts)


def _cut(run: str, lexicon: Lexicon) -> list[str]:
    """A run of text without spaces as the words that the lexicon knows, longest first, and single characters."""
    return _cutter(lexicon).findall(run)


@lru_cache(8)
def _cutter(lexicon: Lexicon) -> re.Pattern[str]:
    known = "|".join(map(re.escape, lexicon.cut))
    return re.compile(f"{known}|[\u30a0-\u30ffー]+|.") if known else re.compile(".")


def _joined(words: list[str], lexicon: Lexicon) -> list[str]:
    """`words` with the phrases that the lexicon knows as one."""
    phrases = lexicon.phrases
    found: list[str] = []
    at, end = 0, len(words)
    while at < end:
        word = words[at]
        for rest, joined in phrases.get(word, ()) if word in phrases else ():
            if tuple(words[at + 1 : at + 1 + len(rest)]) == rest:
                word, at = joined, at + len(rest)
                break
        found.append(word)
        at += 1
    return found
