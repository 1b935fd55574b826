"""Numbers and quantities: 1,000 is 1k is one thousand, 2 hours are 120 minutes, 10 mg are not 100 mg. Pure, linear."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cacheproxy.core.lexicon import Word

Bag = tuple[tuple[str, int], ...]
"""What is counted, with how often, sorted."""

_FACTORS = {
    "ms": ("time", 0.001), "s": ("time", 1), "min": ("time", 60), "h": ("time", 3600), "day": ("time", 86_400),
    "week": ("time", 604_800), "month": ("months", 1), "year": ("months", 12), "decade": ("months", 120),
    "century": ("months", 1200), "nm": ("length", 1e-9), "mm": ("length", 0.001), "cm": ("length", 0.01),
    "m": ("length", 1), "km": ("length", 1000), "in": ("length", 0.0254), "ft": ("length", 0.3048),
    "yd": ("length", 0.9144), "mi": ("length", 1609.344), "ng": ("mass", 1e-9), "mcg": ("mass", 1e-6),
    "mg": ("mass", 0.001), "g": ("mass", 1), "kg": ("mass", 1000), "ton": ("mass", 1e6), "oz": ("mass", 28.349523125),
    "lb": ("mass", 453.59237), "ml": ("volume", 0.001), "cl": ("volume", 0.01), "l": ("volume", 1),
    "gal": ("volume", 3.785411784), "pint": ("volume", 0.473176473), "byte": ("data", 1), "kb": ("data", 1e3),
    "mb": ("data", 1e6), "gb": ("data", 1e9), "tb": ("data", 1e12), "pb": ("data", 1e15), "kib": ("data", 2**10),
    "mib": ("data", 2**20), "gib": ("data", 2**30), "tib": ("data", 2**40), "kbit": ("rate", 1e3),
    "mbit": ("rate", 1e6), "gbit": ("rate", 1e9), "hz": ("hz", 1), "khz": ("hz", 1e3), "mhz": ("hz", 1e6),
    "ghz": ("hz", 1e9), "w": ("power", 1), "kw": ("power", 1000), "j": ("energy", 1), "kj": ("energy", 1000),
    "cal": ("kcal", 0.001), "kcal": ("kcal", 1), "kmh": ("speed", 1 / 3.6), "mph": ("speed", 0.44704),
    "mps": ("speed", 1), "cent": ("usd", 0.01), "lakh": ("", 1e5), "crore": ("", 1e7),
}  # fmt: skip
_ONLY_AFTER_NUMBERS = frozenset({
    "a", "m", "in", "l", "g", "s", "h", "v", "w", "j", "min", "second", "pound", "pounds", "foot", "feet", "yard",
    "cup", "cups", "bar", "bars", "bit", "bits", "amp", "cad", "page", "pages", "line", "lines", "word", "words",
    "sentence", "sentences", "paragraph", "paragraphs", "token", "tokens", "degree", "degrees", "cent", "cents", "gr",
    "yards", "kilo", "kilos", "mins", "rs", "buck", "bucks", "hr", "ms", "t", "oz", "eth", "gig", "gigs", "quid", "day",
    "days", "year", "years", "ton", "tons", "knots", "inch", "acre", "percent", "percentage", "daily", "$", "seconds",
    "yearly", "annual", "annually", "hour", "hours", "minute", "minutes", "bitcoin", "bitcoins", "btc", "dollar",
    "dollars", "euro", "euros", "mb", "px", "pixel", "pixels", "tage", "tag", "jahr", "jahre", "día", "días",
    "ethereum",
})  # fmt: skip
_BEFORE = frozenset({"a$", "c$", "hk$", "$", "€", "£", "¥", "₹", "us$", "rs", "usd", "eur", "gbp", "inr"})
_SCALES = {"k": 1e3, "mn": 1e6, "mio": 1e6, "bn": 1e9, "mrd": 1e9}
_RATES = ("per_", "each_", "every_")
_DEGREES = frozenset({"degree", "degrees", "°"})
_SCALES_OF_HEAT = {"c": "celsius", "f": "fahrenheit", "k": "kelvin"}
_ORDINAL = frozenset({"st", "nd", "rd", "th"})
_COMMAS = re.compile(r"\d{1,3}(?:[,'\u2019]\d{3})+(?:\.\d+)?")
_POINTS = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?")
_YEARS = 1000
_TOP = "top"
_LONGEST = 18
"""Digits of a number; a longer one is a name."""


@dataclass(frozen=True, slots=True)
class Quantities:
    """`numbers`: the quantities in a normal form; `units`: those that stand without a number; `used`: places of the
    words that all this was read from; `single`: those of the numbers that are one of something, which "a" says too."""

    numbers: Bag
    units: Bag
    used: frozenset[int]
    single: frozenset[str]


def quantities(words: Sequence[Word], language: str, taken: frozenset[int]) -> Quantities:
    """What `words` count and measure. `taken`: places of words that are times."""
    numbers: Counter[str] = Counter()
    units: Counter[str] = Counter()
    used: set[int] = set()
    single: set[str] = set()
    done = 0
    for at in [at for at, word in enumerate(words) if word.counts or word.unit]:
        if at < done or at in taken:
            continue
        end, value, written = _number(words, at, language)
        if at == 0 and end < len(words) and words[end].text == "." and len(words) > end + 1:
            used.update(range(at, end))
            continue
        if end == at:
            if words[at].unit and words[at].text not in _ONLY_AFTER_NUMBERS:
                units[words[at].unit] += 1
            continue
        used.update(range(at, end))
        unit, after = _unit_of(words, at, end)
        if after > end or unit:
            used.update(range(end, after))
        if written.startswith("#") and _is_day(words, at, end, taken):
            written = written[1:]
        form = _form(value, written, unit)
        if value == 1 and not written.startswith("#"):
            single.add(form)
        numbers[f"{form} {_TOP}" if at and words[at - 1].text == _TOP else form] += 1
        done = max(end, after)
    return Quantities(_bag(numbers), _bag(units), frozenset(used), frozenset(single))


def _is_day(words: Sequence[Word], at: int, end: int, taken: frozenset[int]) -> bool:
    """Whether the number from `at` to `end` stands beside a month: the 5th of June."""
    return at - 1 in taken or end in taken or (end + 1 in taken and words[end].text == "of")


def _bag(counted: Counter[str]) -> Bag:
    return tuple(sorted(counted.items()))


@lru_cache(4096)
def _form(value: float | None, written: str, unit: str) -> str:
    """The normal form of a quantity. Without a unit 3.10 may be a version and is not 3.1."""
    if value is None:
        return written
    dimension, factor = _FACTORS.get(unit, (unit, 1))
    if not unit and "." in written and not written.startswith("#"):
        return written
    if written.startswith("#"):
        return written if not unit else f"{written} {unit}"
    return f"{value * factor:.9g} {dimension}".strip()


def _unit_of(words: Sequence[Word], start: int, end: int) -> tuple[str, int]:
    """The unit of the number from `start` to `end`, and where it ends."""
    if end + 1 < len(words) and words[end].text in _DEGREES:
        after = words[end + 1]
        if unit := _SCALES_OF_HEAT.get(after.text, after.unit):
            return unit, end + 2
    if end < len(words) and (unit := words[end].unit) and not words[end].text.startswith(_RATES):
        return unit, end + 1
    if start and words[start - 1].text in _BEFORE:
        return words[start - 1].unit, end
    return "", end


def _number(words: Sequence[Word], at: int, language: str) -> tuple[int, float | None, str]:
    """The number that starts at `at`: its end (`at` if there is none), its value if it has one, how it is written."""
    text = words[at].text
    if text[0].isdigit() or (text[0] == "." and text[1:].isdigit()):
        value, written = _digits(text, language)
        end = at + 1
        if value is not None and end < len(words):
            after = words[end]
            if after.text in _SCALES or after.number.startswith("x"):
                scale = _SCALES.get(after.text) or float(after.number[1:])
                return end + 1, value * scale, str(value * scale).removesuffix(".0")
            if after.text == "s" and value % 10 == 0 and (value >= _YEARS or (at and words[at - 1].text == "the")):
                return end + 1, None, f"{value % 100:.0f}s"
            if after.text in _ORDINAL:
                return end + 1, value, f"#{written}"
        return end, value, written
    if not words[at].number:
        return at, None, ""
    return _spelt(words, at)


@lru_cache(4096)
def _digits(text: str, language: str) -> tuple[float | None, str]:
    """The value of a number in digits, and its written form without what only groups."""
    text = text.replace("\u2019", "'")
    if len(text) > _LONGEST or not text.isascii():
        return None, text
    points = language in {"de", "es", "pt", "fr"}
    if points and _POINTS.fullmatch(text):
        text = text.replace(".", "")
    elif _COMMAS.fullmatch(text):
        text = text.replace(",", "").replace("'", "")
    text = text.replace(",", ".")
    if text.startswith("."):
        text = f"0{text}"
    if text.count(".") > 1 or not text.replace(".", "").isdigit():
        return None, text
    return float(text), text.lstrip("0") if text.isdigit() and text.strip("0") else text


def _spelt(words: Sequence[Word], at: int) -> tuple[int, float | None, str]:
    """A number in words: "two hundred and five"."""
    total = current = 0.0
    last = 0.0
    ordinal = ""
    end = at
    for word in _numerals(words, at):
        if word is None:
            end += 1
            continue
        if word.number.startswith("#"):
            if end > at and not (last >= 20 and last % 10 == 0):
                break
            ordinal = "#"
            current += float(word.number[1:])
            end += 1
            break
        if word.number.startswith("x"):
            scale = float(word.number[1:])
            if scale >= 1000:
                total += (current or 1) * scale
                current = 0
            else:
                current = (current or 1) * scale
            last = scale
        else:
            value = float(word.number)
            if end > at and not (last >= 20 and (last >= 100 or (value < 10 and last % 10 == 0))):
                break
            current += value
            last = value
        end += 1
    while end > at + 1 and not words[end - 1].number:
        end -= 1
    value = total + current
    return end, value, f"{ordinal}{value:.9g}"


def _numerals(words: Sequence[Word], at: int) -> Iterator[Word | None]:
    """The words of a number from `at` on; None for an "and" within."""
    for place in range(at, min(len(words), at + 12)):
        word = words[place]
        if word.number:
            yield word
        elif place > at and word.text in {"and", "y", "e", "et"} and place + 1 < len(words) and words[place + 1].number:
            yield None
        else:
            return


def numbers_differ(asked: Quantities, stored: Quantities) -> str:
    """What only one of two texts counts; empty if nothing.

    A number without a unit is the same with one. A lone "one" is no number, since it may be a pronoun.
    """
    ours, theirs = {form for form, _ in asked.numbers}, {form for form, _ in stored.numbers}
    left, right = ours - theirs, theirs - ours
    if left and right:
        bare = ({form for form in left if " " not in form}, {form for form in right if " " not in form})
        left, right = _unless(left, right, bare[1]), _unless(right, left, bare[0])
    if (not left or not right) and all(form.endswith(_TOP) for form in left | right):
        return ""
    if (left <= _ONES | asked.single and not right) or (right <= _ONES | stored.single and not left):
        return ""
    return f"{', '.join(sorted(left)) or '-'} / {', '.join(sorted(right)) or '-'}"


_ONES = frozenset({"1", "#1"})


def _unless(forms: set[str], others: set[str], bare: set[str]) -> set[str]:
    """`forms` without those that `others` has in another way: with a unit that is missing here or the other way."""
    known = {form.partition(" ")[0] for form in others}
    return {form for form in forms if form.partition(" ")[0] not in bare and not (" " not in form and form in known)}


def units_differ(asked: Quantities, stored: Quantities) -> str:
    """Units without numbers that each of two texts has for itself; empty if one of them has none."""
    ours, theirs = {unit for unit, _ in asked.units}, {unit for unit, _ in stored.units}
    left, right = ours - theirs, theirs - ours
    return f"{', '.join(sorted(left))} / {', '.join(sorted(right))}" if left and right else ""
