"""A text as words: lower case, contractions and compounds taken apart, numbers apart from letters. Pure, linear.

A token is a `str`: a word, or a number in its written form, or a sign that is a unit. Codes ("AB-12", "v3.1", "gpt-4o")
are told as a whole besides, since their parts are not words.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

from cacheproxy.core.lexicon import Lexicon

LONGEST = 64
"""Characters of a token; of a longer one a name is made."""
_HEAD = 40
_REMEMBERED = 8_192
_SIGNS = r"[$€£¥₹%°]|(?<![\w.])[.,]\d+|[&<>=]|[.?!;\n]"
_CHUNK = re.compile(rf"[^\W_]+(?:['\u2019.,:/@+\-\u2013_&*^][^\W_]+)*(?:\+\+|#(?!\w)|[%°])?|{_SIGNS}")
_ASCII = re.compile(rf"[A-Za-z0-9]+(?:['.,:/@+\-_&*^][A-Za-z0-9]+)*(?:\+\+|#(?!\w)|%)?|{_SIGNS}")
_LETTERED = re.compile(r"[^\W\d_][-+]?\d")
_HYPHENS = re.compile("[-_]")
_HOST = re.compile(r"[\w-]+(\.[a-z]{2,})+")
_JOINTS = re.compile(r"[-./,:@+_&*^]")
_UNSPACED = re.compile("[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff々\u3007ー]+")
_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{2,}")
_RUNS = re.compile(f"({_UNSPACED.pattern})")
_NUMBER = re.compile(r"\d+(?:[.,'\u2019]\d+)*")
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
_ABBREVIATED = {"Max": "maximilian", "US": "usa", "IT": "information_technology", "WHO": "world_health_organization"}
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
    shouting, starts = text.isupper(), True
    for found in (_ASCII if text.isascii() else _CHUNK).findall(text):
        if lexicon.cut and _UNSPACED.search(found):
            cut = _unspaced(found, lexicon, codes)
            names.update(filter(_KATAKANA.fullmatch, cut))
            words += cut
            continue
        chunk = found if len(found) <= LONGEST else _shortened(found)
        parts, code, cased = _taken_apart(chunk, shouting)
        if chunk == "A" and not starts and not shouting:
            parts = _LETTER
        words += parts
        if code:
            codes.add(code)
        if cased and not starts and not shouting:
            names.update(parts)
        starts = chunk in _ENDS and not (chunk == "." and words[-2:-1] and words[-2] in _TITLES)
    return Tokens(tuple(_joined([word for word in words if word], lexicon)), frozenset(codes), frozenset(names))


def _shortened(chunk: str) -> str:
    """A name for a chunk that is too long to be remembered as it is."""
    return f"{chunk[:_HEAD]}{crc32(chunk.encode('utf-8', 'replace'))}"


_ROMAN = re.compile("X{0,3}(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10}


def _roman(chunk: str) -> str:
    """A Roman numeral in digits; empty if `chunk` is none, or a letter alone."""
    if len(chunk) < 2 or chunk[0] not in _ROMAN_VALUES or not _ROMAN.fullmatch(chunk):
        return ""
    values = [_ROMAN_VALUES[letter] for letter in chunk]
    return str(sum(-one if one < after else one for one, after in zip(values, [*values[1:], 0], strict=True)))


_ENDS = frozenset(".?!;\n")
_TITLES = frozenset({"dr", "mr", "mrs", "ms", "prof", "st", "sr", "jr"})
"""What stands before a dot that ends no sentence."""
_LETTER = ("letter_a",)
"""An "A" within a sentence is no article: "folder A"."""
_Parts = tuple[tuple[str, ...], str, bool]
"""The words of a chunk, the code that it is if it is one, and whether it is written as a name."""


@lru_cache(_REMEMBERED)
def _taken_apart(chunk: str, shouting: bool) -> _Parts:
    if chunk in _ENDS:
        return (".",), "", False
    if not shouting and (name := chunk.removesuffix("'s")) in _ABBREVIATED:
        return (_ABBREVIATED[name],), "", True
    if not shouting and (number := _roman(chunk)):
        return (number,), "", False
    word = chunk.lower().replace("\u2019", "'").replace("\u2013", "-")
    cased = word != chunk and chunk[0].isalpha() and word not in {"i", "i'm", "i've", "i'd", "i'll"}
    parts = _words_of(word)
    return parts, _code(word), cased


def _unspaced(chunk: str, lexicon: Lexicon, codes: set[str]) -> list[str]:
    """The words of a chunk in which there is a script without spaces; notes codes in the rest of it."""
    found: list[str] = []
    for part in _RUNS.split(chunk):
        if _UNSPACED.fullmatch(part):
            found += _cutter(lexicon).findall(part)
        elif part:
            parts, code, _ = _taken_apart(part if len(part) <= LONGEST else _shortened(part), shouting=False)
            found += parts
            codes.update([code] if code else [])
    return found


def _words_of(word: str) -> tuple[str, ...]:
    """The words of a chunk in lower case."""
    if word in _CONTRACTED:
        return _CONTRACTED[word]
    if word[0] in ".,":
        return (f"0.{word[1:]}",)
    if word in _WHOLE or word.isalpha() or _NUMBER.fullmatch(word) or _DATED.fullmatch(word):
        return (word,)
    if "'" in word and not word[0].isdigit():
        return _apostrophe(word)
    if not any(map(str.isdigit, word)):
        return _compound(word)
    return tuple(
        part for piece in _PIECES.findall(word) for part in ((piece,) if piece[0].isdigit() else _compound(piece))
    )


def _code(word: str) -> str:
    """A name of letters and digits ("ab-12") or of a host, without its hyphens; empty if `word` is none."""
    if _LETTERED.search(word):
        return _HYPHENS.sub("", word)
    return word if "." in word and _HOST.fullmatch(word) else ""


def _apostrophe(word: str) -> tuple[str, ...]:
    head, _, tail = word.rpartition("'")
    if tail == "t" and head.endswith("n"):
        said = _CONTRACTED.get(word, (head[:-1], "not"))[0]
        return (said, "not") if said else ("not",)
    if head in _ELIDED and tail not in _CLITICS:
        return (*((head,) if head == "n" else ()), *_words_of(tail))
    parts = _words_of(head) if head else ()
    return (*parts, *_CLITICS.get(tail, (tail,)))


def _compound(word: str) -> tuple[str, ...]:
    """The words of a chunk without digits that hyphens, slashes, dots or the like join."""
    if "." in word:
        letters = word.replace(".", "")
        if all(len(part) == 1 for part in word.split(".")):
            return (letters,)
    parts = [part for part in _JOINTS.split(word) if part]
    if len(parts) > 1 and parts[0] in _DENIED:
        return ("not", *parts[1:]) if parts[0] == "non" else ("".join(parts[:2]), *parts[2:])
    return tuple(parts)


@lru_cache(8)
def _cutter(lexicon: Lexicon) -> re.Pattern[str]:
    known = "|".join(map(re.escape, lexicon.cut))
    return re.compile(f"{known}|[\u30a0-\u30ffー]+|.") if known else re.compile(".")


def _joined(words: list[str], lexicon: Lexicon) -> list[str]:
    """`words` with the phrases that the lexicon knows as one."""
    phrases = lexicon.phrases
    firsts = [at for at, word in enumerate(words) if word in phrases]
    found: list[str] = []
    done = 0
    for at in firsts:
        if at < done:
            continue
        for rest, joined in phrases[words[at]]:
            end = at + 1 + len(rest)
            if end <= len(words) and words[at + 1] == rest[0] and tuple(words[at + 1 : end]) == rest:
                found += words[done:at]
                found.append(joined)
                done = end
                break
    return found + words[done:]
