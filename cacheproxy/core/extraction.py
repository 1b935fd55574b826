"""What a request's body names of what its answer rests on, where the configuration says to look for it. Pure.

Either all is named or it is said that it is not: an answer with names missing would be spared by a removal that means
it. Names are taken literally, as they stand there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from cacheproxy.core.controls import MAX_LIST_BYTES, MAX_NAME_BYTES, MOST_LABELS
from cacheproxy.core.removal import DOCUMENT
from cacheproxy.core.texts import Regex

EVERY = "*"
"""In a path, every element of a list."""


class Into(StrEnum):
    """What the names are of."""

    DOCUMENTS = "documents"
    TAGS = "tags"
    KB = "kb"


@dataclass(frozen=True, slots=True)
class Place:
    """Where names stand. `path`: a JSON pointer, unescaped, with ``*`` for every element of a list; empty for the whole
    body. `regex`: names are what it finds in the texts at `path` and below, of each match the first group that took
    part, or all of it where it has none. Without it the value is the name: a text, a whole number or a list of
    these."""

    into: Into
    path: tuple[str, ...] = ()
    regex: Regex | None = None


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was found: labels of documents, other labels, knowledge bases (``name`` or ``name@version``), each in the
    order of places. `whole`: nothing was left out that could not be read or was beyond the bounds."""

    documents: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    kb: tuple[str, ...] = ()
    whole: bool = True

    @property
    def labels(self) -> tuple[str, ...]:
        """All that the answer is labelled with."""
        return (*self.documents, *self.tags)

    def keyed(self, knowledge: str) -> str:
        """What of all this belongs to a request's key: `knowledge`, its canonical list of knowledge bases, and its
        documents. What rests on other documents is another answer."""
        if not self.documents:
            return knowledge
        return "\0".join((knowledge, ",".join(sorted(quote(name, safe="") for name in self.documents))))


NOTHING = Extracted()
MOST_SIGHTINGS = 1000
"""How often names may stand in one body, the same ones too: looking at each takes time while other callers wait."""


class _Unnamed(ValueError):
    """Something is named that cannot be taken in."""


class _Names:
    """The names found so far, within the bounds of what is kept with an answer."""

    def __init__(self) -> None:
        self.found: dict[Into, dict[str, None]] = {into: {} for into in Into}
        self._left = MOST_LABELS
        self._bytes_left = MAX_LIST_BYTES
        self._sightings_left = MOST_SIGHTINGS

    def add(self, into: Into, name: str) -> None:
        """Take in `name`. Raises `_Unnamed`."""
        known = self.found[into]
        label = DOCUMENT + name if into is Into.DOCUMENTS else name
        self._sightings_left -= 1
        if self._sightings_left < 0:
            raise _Unnamed
        if label in known:
            return
        size = len(label.encode())
        if into is Into.KB and (name.count("@") > 1 or name.startswith("@")):
            raise _Unnamed  # where does the version begin?
        self._left -= 1
        self._bytes_left -= size
        if self._left < 0 or self._bytes_left < 0 or size > MAX_NAME_BYTES:
            raise _Unnamed
        known[label] = None

    def told(self, *, whole: bool) -> Extracted:
        """What has been found."""
        documents, tags, kb = (tuple(self.found[into]) for into in (Into.DOCUMENTS, Into.TAGS, Into.KB))
        return Extracted(documents, tags, kb, whole)


def extract(places: Sequence[Place], body: dict[str, Any], most: int) -> Extracted:
    """What `body`, parsed JSON, names at `places`. At most `most` bytes of text are searched."""
    names, left = _Names(), most
    try:
        for place in places:
            for value in _at(body, place.path):
                if place.regex is None:
                    for name in _plain(value):
                        names.add(place.into, name)
                    continue
                for text in _texts(value):
                    data = text.encode()
                    left -= len(data)
                    if left < 0:
                        raise _Unnamed
                    for name in _matched(place.regex, data):
                        names.add(place.into, name)
    except _Unnamed:
        return names.told(whole=False)
    return names.told(whole=True)


def _at(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """What stands at `path`, null left out."""
    if not path:
        if value is not None:
            yield value
        return
    name, *deeper = path
    rest = tuple(deeper)
    if isinstance(value, dict):
        if name in value:
            yield from _at(value[name], rest)
    elif isinstance(value, list):
        if name == EVERY:
            for one in value:
                yield from _at(one, rest)
        elif name.isascii() and name.isdigit() and len(name) < 10 and int(name) < len(value):
            yield from _at(value[int(name)], rest)


def _plain(value: Any) -> Iterator[str]:
    """The names that a value is. One with commas may be a list of names, or a name with commas: it counts as both."""
    for one in value if isinstance(value, list) else [value]:
        if type(one) is int:
            yield str(one)
        elif not isinstance(one, str):
            if one is not None:
                raise _Unnamed
        elif one.strip():
            yield one
            if "," in one:
                yield from (part.strip() for part in one.split(",") if part.strip())


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, whatever its depth."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting.extend(reversed(one.values()))
        elif isinstance(one, list):
            waiting.extend(reversed(one))


def _matched(regex: Regex, data: bytes) -> Iterator[str]:
    """The names in a text, UTF-8. Raises `_Unnamed` for a match that names nothing."""
    for match in regex.finditer(data):
        groups = match.groups()
        name = next((group for group in groups if group is not None), None) if groups else match.group()
        if not name:
            raise _Unnamed
        try:
            yield name.decode()
        except UnicodeDecodeError:  # `\C` takes a character apart
            raise _Unnamed from None
