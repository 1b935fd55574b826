"""New versions of knowledge bases: what is told of one, and what follows from it.

A version is a text without an order of its own. Of one knowledge base that is numbered (`sequence`) a smaller number is
an older version, whenever it is told; the others are taken in the order in which they come. What was told once under
one id is not done twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from cacheproxy.core import controls
from cacheproxy.core.removal import Selector

TYPE = "kb.version.published"
"""The type of event that is heeded."""
MOST_DOCUMENTS = 10_000
LONGEST_ID = 1024
"""Characters of the source and of the id of an event: the last `EVENTS` are remembered."""
GREATEST = 2**53 - 1
"""Numbers above are not exact in JSON."""


@dataclass(frozen=True, slots=True)
class Publication:
    """A knowledge base has a version from now on.

    `documents`: those that changed, None if that is not known; `sequence` numbers its versions; `event`: the source and
    the id by which it was told, None if it has none.
    """

    name: str
    version: str
    documents: frozenset[str] | None = None
    sequence: int | None = None
    event: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a knowledge base: its version, the number of that, when it was told (seconds since the epoch),
    and the events that were heeded, youngest last. `settled`: what the version made wrong is gone; `whole`: the number
    of the last version for which all answers fell, so that nothing is left that an earlier one made wrong."""

    version: str
    sequence: int | None
    published_at: float
    events: tuple[tuple[str, str], ...] = ()
    settled: bool = True
    whole: int | None = None


class Course(StrEnum):
    """What follows."""

    PUBLISHED = "published"
    UNCHANGED = "unchanged"  # it is the current version already
    REPEATED = "repeated"  # this event was heeded before
    OUTDATED = "outdated"  # a later version is known


@dataclass(frozen=True, slots=True)
class BadPublication:
    """What is wrong with what was told: the field, and what it must be."""

    name: str
    expected: str


def course(known: Known | None, told: Publication) -> Course:
    """What follows from `told` where `known` is what is known so far."""
    if known is None or (not known.settled and known.version == told.version):
        return Course.PUBLISHED
    if told.event is not None and told.event in known.events:
        return Course.REPEATED
    if told.sequence is not None and known.sequence is not None and told.sequence < known.sequence:
        return Course.OUTDATED
    return Course.UNCHANGED if told.version == known.version and not told.documents else Course.PUBLISHED


EVENTS = 256
"""How many events of one knowledge base are remembered."""


def after(known: Known | None, told: Publication, now: float) -> Known:
    """What is known from `told` on; not settled before it has been carried out."""
    before = known.events if known is not None else ()
    events = (*before, told.event)[-EVENTS:] if told.event is not None else before
    numbered = told.sequence if told.sequence is not None else known.sequence if known is not None else None
    falls_whole = selector(told, known).changed_documents is None
    whole = numbered if falls_whole else known.whole if known is not None else None
    return Known(told.version, numbered, now, events, settled=False, whole=whole)


def is_missing(known: Known, told: Publication) -> bool:
    """Whether `told`, which is outdated, may have made answers wrong that are still there: a version after it came
    first, and of that only the documents that it changed itself fell, or not even these."""
    return not known.settled or known.whole is None or told.sequence is None or told.sequence > known.whole


def made_up(known: Known, told: Publication) -> Known:
    """What is known once that has been made up for: the version stays what it was."""
    falls_whole = selector(told, known).changed_documents is None
    events = (*known.events, told.event)[-EVENTS:] if told.event is not None else known.events
    return replace(known, events=events, settled=True, whole=known.sequence if falls_whole else known.whole)


def selector(told: Publication, known: Known | None = None) -> Selector:
    """The answers that `told` makes wrong: all that depend on the knowledge base, whatever its version. Where the
    changed documents are known, only those that depend on one of them, or name none; not so if the version before may
    have been left off half way, whose documents are not known any more."""
    whole = known is not None and not known.settled
    return Selector(kb=frozenset({told.name}), changed_documents=None if whole else told.documents)


def stated(names: Iterable[str]) -> dict[str, str]:
    """The versions that are stated in the names of a canonical list, by knowledge base."""
    spoken = [controls.spoken(part) for part in names if "@" in part]
    return {name: whole[len(name) + 1 :] for name, whole in spoken}


def read_put(name: str, document: object) -> Publication | BadPublication:
    """What ``PUT /admin/kb/{name}`` says: ``{version, changed_documents?, sequence?}``."""
    if not isinstance(document, dict):
        return BadPublication("body", "a JSON object")
    unknown = document.keys() - {"version", "changed_documents", "sequence"}
    if unknown:
        return BadPublication(min(unknown)[:64], "left out: known are version, changed_documents, sequence")
    return _publication(name, document, None)


def read_event(event: Mapping[str, object]) -> Publication | BadPublication | None:
    """What a CloudEvent (1.0) says, its data under ``data``; None if it is of a type that means nothing here."""
    for name in ("specversion", "type", "source", "id"):
        value = event.get(name)
        if not isinstance(value, str) or not value or len(value) > LONGEST_ID:
            return BadPublication(name, "a text, as CloudEvents 1.0 says")
    if not str(event["specversion"]).startswith("1."):
        return BadPublication("specversion", "1.0")
    if event["type"] != TYPE:
        return None
    subject, data = event.get("subject"), event.get("data")
    if not isinstance(subject, str):
        return BadPublication("subject", "the name of a knowledge base")
    if not isinstance(data, dict):
        return BadPublication("data", "an object with the version")
    return _publication(subject, data, (str(event["source"]), str(event["id"])))


def _publication(name: str, told: Mapping[str, object], event: tuple[str, str] | None) -> Publication | BadPublication:
    version, documents, sequence = told.get("version"), told.get("changed_documents"), told.get("sequence")
    if not _is_name(name):
        return BadPublication("name", f"a name of at most {controls.MAX_NAME_BYTES} bytes")
    if type(version) in (int, float):
        version = str(version)
    if not isinstance(version, str) or not _is_name(version):
        return BadPublication("version", f"a text of at most {controls.MAX_NAME_BYTES} bytes")
    if isinstance(sequence, float) and sequence.is_integer():
        sequence = int(sequence)
    if sequence is not None and (type(sequence) is not int or not 0 <= sequence <= GREATEST):
        return BadPublication("sequence", "a whole number, 0 or more")
    changed = None
    if documents is not None:
        if not isinstance(documents, list) or not all(isinstance(d, str) and _is_name(d) for d in documents):
            return BadPublication("changed_documents", "a list of names")
        if len(documents) > MOST_DOCUMENTS:
            return BadPublication("changed_documents", f"at most {MOST_DOCUMENTS}; leave it out if more changed")
        changed = frozenset(documents)
    return Publication(name, version, changed, sequence if isinstance(sequence, int) else None, event)


def _is_name(text: str) -> bool:
    """Whether it can be a name: of UTF-8, not empty, not too long."""
    try:
        return 0 < len(text.encode()) <= controls.MAX_NAME_BYTES
    except UnicodeEncodeError:
        return False
