"""A language's words in the form in which they are looked up: one `Word` for each, with everything known about it.

A data module writes its lists as text: words are separated by spaces, ``a_b`` is the phrase "a b"; groups are separated
by ``|``, the two sides of opposites by ``/``; ``name: words`` names a group, ``word:n`` gives a number. Pure.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import ModuleType

from cacheproxy.core.lexicon import (
    chinese,
    english,
    english_families,
    english_opposites,
    english_synonyms,
    french,
    german,
    japanese,
    portuguese,
    shared,
    spanish,
)
from cacheproxy.core.lexicon.stems import stem

_REMEMBERED = 8_192
_Data = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Word:
    """What is known of a word. Of what is a set, most words have nothing.

    `root`: the name of its family. `light`: it carries no subject of its own; `weak`: it adds little to one.
    `denies`: "not" and the like, or a word with "not" in it ("illegal"; then `root` is that of the rest); `doubts`: may
    say "not" or not ("wrong"), and `fails`: says that something does not work ("trouble"). `poles`: opposites that it
    is one side of, with the side. `kin`: groups of synonyms it is in; `kinds`: groups of things that are each something
    else (cats and dogs). `traits`: guards' own groups, as guard and group; `unit` and `role`: the group among these.
    `number`: its value, ``x`` in front of a multiplier, ``#`` in front of an ordinal; `counts`: it starts a number.
    """

    text: str
    root: str
    light: bool = False
    weak: bool = False
    denies: bool = False
    doubts: bool = False
    fails: bool = False
    poles: tuple[tuple[int, bool], ...] = ()
    kin: frozenset[int] = frozenset()
    kinds: frozenset[int] = frozenset()
    traits: tuple[tuple[str, str], ...] = ()
    number: str = ""
    unit: str = ""
    role: str = ""
    counts: bool = False


class Lexicon:
    """The words of one language."""

    def __init__(self, language: str, *modules: ModuleType) -> None:
        self.language = language
        data = {name: value for module in modules for name, value in vars(module).items() if name.isupper()}
        self.phrases: dict[str, list[tuple[tuple[str, ...], str]]] = defaultdict(list)
        self._light = self._set(data, "STOP")
        self._weak = self._set(data, "WEAK")
        self._denies = self._set(data, "NEGATORS")
        self._rest = {word: rest for line in _groups(data, "NEGATIVES") for word, rest in [_named(line)]}
        self._fails = self._set(data, "FAILURES")
        self._doubts = self._set(data, "SOFT") | self._fails
        self._forms = {
            self._add(word): stem(line.split()[0], language) for line in _groups(data, "FORMS") for word in line.split()
        }
        self._poles = self._opposites(data)
        self._kin: dict[str, set[int]] = defaultdict(set)
        for number, line in enumerate(_groups(data, "SYNONYMS")):
            for word in line.split():
                self._add(word)
                self._kin[self._root(word)].add(number)
        self._kinds: dict[str, set[int]] = defaultdict(set)
        for number, line in enumerate(_groups(data, "KINDS")):
            for word in line.split():
                self._kinds[self._root(self._add(word))].add(number)
        self._numbers = self._values(data)
        self._traits = self._all_traits(data)
        asking = {word for word, known in self._traits.items() if any(guard == "ask" for guard, _ in known)}
        self.common = frozenset(word for word in self._light | self._denies | asking if "_" not in word)
        for listed in self.phrases.values():
            listed.sort(key=lambda phrase: -len(phrase[0]))
        self.cut = self._cut() if language in {"zh", "ja"} else ()
        self.word = lru_cache(_REMEMBERED)(self._word)

    def _root(self, word: str) -> str:
        if "_" in word:
            return word
        root = self._forms.get(word) or stem(word, self.language)
        return self._forms.get(root, root)

    def _add(self, word: str) -> str:
        """Note a phrase; `word` itself."""
        first, *rest = word.split("_")
        known = (tuple(rest), word)
        if rest and known not in self.phrases[first]:
            self.phrases[first].append(known)
        return word

    def _set(self, data: _Data, name: str) -> frozenset[str]:
        return frozenset(self._add(word) for word in data.get(name, "").split())

    def _opposites(self, data: _Data) -> dict[str, list[tuple[int, bool]]]:
        found: dict[str, list[tuple[int, bool]]] = defaultdict(list)
        for number, line in enumerate(_groups(data, "OPPOSITES")):
            for side, words in enumerate(line.split("/")):
                for word in words.split():
                    for name in {self._add(word), self._root(word)}:
                        found[name].append((number, bool(side)))
        return found

    def _values(self, data: _Data) -> dict[str, str]:
        found = {}
        for word in data.get("NUMBERS", "").split():
            name, value = word.rsplit(":", 1)
            found[self._add(name)] = value
        for word in data.get("ORDINALS", "").split():
            name, value = word.rsplit(":", 1)
            found[self._add(name)] = "#" + value
        return found

    def _all_traits(self, data: _Data) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for guard, name in _TRAITS:
            for line in (*_groups(vars(shared), name), *_groups(data, name)):
                group, words = _named(line)
                for word in {group, *words.split()} if name in {"LANGUAGES", "FORMATS"} else words.split():
                    if (guard, group) not in found[word]:
                        found[self._add(word)].append((guard, group))
        for name, guard in (("MONTHS", "month"), ("WEEKDAYS", "weekday")):
            for number, line in enumerate(data.get(name, "").split("|"), 1):
                for word in line.split():
                    found[self._add(word)].append((guard, str(number)))
        return found

    def _cut(self) -> tuple[str, ...]:
        """Every listed word, longest first: what a text without spaces is cut into."""
        listed = {*self._light, *self._denies, *self._rest, *self._doubts, *self._poles, *self._kin, *self._numbers}
        return tuple(sorted((w for w in {*listed, *self._traits} if not w.isascii()), key=lambda w: (-len(w), w)))

    def _word(self, text: str) -> Word:
        """What is known of `text`, a word in lower case or a phrase joined by ``_``."""
        rest = self._rest.get(text)
        root = self._root(rest or text)
        poles = self._poles.get(text) or ([] if rest else self._poles.get(root, []))
        known = tuple(self._traits.get(text, ()))
        light = rest in self._light if rest else text in self._light or any(guard in _LIGHT for guard, _ in known)
        number = self._numbers.get(text, "")
        return Word(
            text, root, light,
            weak=text in self._weak or root in self._weak,
            denies=text in self._denies or bool(rest),
            doubts=text in self._doubts or root in self._doubts,
            fails=text in self._fails,
            poles=tuple(poles),
            kin=frozenset(self._kin.get(root, set()) | self._kin.get(self._root(text), set())),
            kinds=frozenset(self._kinds.get(root, ())),
            traits=known,
            number=number,
            unit=_first(known, "unit"),
            role=_first(known, "role"),
            counts=bool(number) or text[:1].isdigit() or (text[:1] == "." and text != "."),
        )  # fmt: skip


_LIGHT = frozenset({"ask", "amount", "aspect", "role"})
_TRAITS = (
    ("ask", "QUESTIONS"), ("amount", "QUANTIFIERS"), ("aspect", "ASPECTS"), ("degree", "DEGREES"), ("time", "TIMES"),
    ("unit", "UNITS"), ("language", "LANGUAGES"), ("format", "FORMATS"), ("role", "ROLES"),
)  # fmt: skip


def _first(traits: tuple[tuple[str, str], ...], guard: str) -> str:
    return next((group for name, group in traits if name == guard), "")


def _groups(data: _Data, name: str) -> Iterator[str]:
    """The groups of a list, each as its text."""
    for group in data.get(name, "").split("|"):
        if group.strip():
            yield " ".join(group.split())


def _named(group: str) -> tuple[str, str]:
    """A group's name and its words."""
    name, _, words = group.partition(":")
    return name.strip(), words.strip()


_MODULES = {
    "en": (english, english_families, english_opposites, english_synonyms),
    "zh": (chinese,), "ja": (japanese,), "pt": (portuguese,), "es": (spanish,), "de": (german,), "fr": (french,),
}  # fmt: skip
LANGUAGES = tuple(_MODULES)


@cache
def lexicon(language: str) -> Lexicon:
    """The words of one of `LANGUAGES`. Made when it is first asked for: that takes some 30 milliseconds."""
    return Lexicon(language, *_MODULES[language])
