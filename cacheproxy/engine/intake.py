"""Takes what an export gave. Nothing comes back by it that is not to be served: what a removal has meant since it was
asked for, what expired, what is of another version of a knowledge base, what is older than what is here.

What was removed is known as far back as the record reaches. Of what was asked for before, it cannot be said; it is left
out, unless the operator vouches for it. A removal during the import is heeded as by any answer that is being stored.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple, Protocol

from cacheproxy.core import controls, knowledge, parcel
from cacheproxy.core.knowledge import Known
from cacheproxy.core.model import Entry
from cacheproxy.core.outcome import Reason
from cacheproxy.core.parcel import Asked, End, Head, Item, Seal, Unreadable
from cacheproxy.core.past import Ordered, Past
from cacheproxy.core.removal import Removals, Selector
from cacheproxy.engine.knowledge import Knowledge
from cacheproxy.engine.lessons import Learnt, Lesson, Lessons
from cacheproxy.engine.semantic import Meaning
from cacheproxy.engine.shelf import Shelf
from cacheproxy.errors import CacheproxyError, Trouble
from cacheproxy.ports import Clock, Stock

SLACK = 60.0
"""Seconds by which the clocks of two machines may differ."""
BATCH, BATCH_BYTES = 100, 2**20
"""Lines, and bytes of lines, that are read at once."""
AT_ONCE = 8
"""Answers that are put at once: a shared store has callers to serve."""
MOST_REMOVALS = 500
"""After so many new removals the record is read again."""
SHOWN = 20
"""Lines of which it is said what is wrong with them."""


class History(Protocol):
    """Remembers removals, also over a restart where anything is kept. Raises `Trouble`."""

    async def past(self) -> Past:
        """What is remembered: all removals that were acknowledged before this was called, as far back as it reaches."""


class Fate(StrEnum):
    """What came of an answer."""

    IMPORTED = "imported"
    PRESENT = "present"  # it is here already
    OLDER = "older"  # a younger answer is here
    EXPIRED = "expired"
    PURGED = "purged"  # a removal since has meant it
    UNPROVEN = "unproven"  # it is older than the record of removals
    OTHER_VERSION = "other_version"  # of a knowledge base
    TOO_LARGE = "too_large"  # for the store
    FAILED = "failed"  # the store did not take it, or could not tell
    BAD = "bad"  # no answer can be read from the line


class BadParcel(CacheproxyError):
    """Nothing of it can be taken; the message says why. `elsewhere`: it is from another place."""

    def __init__(self, why: str, *, elsewhere: bool = False) -> None:
        super().__init__(why)
        self.elsewhere = elsewhere


@dataclass(slots=True)
class Report:
    """What came of an import. `known_since`: from when on all removals are known; `bad`: of the first lines that could
    not be read, the number and why; `end`: what the last line says; `entries`, `questions`: how many came."""

    known_since: float
    lines: int = 1
    fates: dict[Fate, int] = field(default_factory=lambda: dict.fromkeys(Fate, 0))
    learnt: Learnt = field(default_factory=Learnt)
    bad: list[tuple[int, str]] = field(default_factory=list)
    end: End | None = None
    entries: int = 0
    questions: int = 0

    @property
    def complete(self) -> bool:
        """Whether the last line was there, and all that it says is in the file."""
        return self.end == End(self.entries, self.questions)

    def note(self, one: "Judged | End | Unreadable") -> None:
        """A line was read."""
        self.lines += 1
        if isinstance(one, End):
            self.end = one
        elif isinstance(one, Unreadable):
            self.fates[Fate.BAD] += 1
            if len(self.bad) < SHOWN:
                self.bad.append((self.lines, one.why))
        else:
            self.entries += 1
            self.questions += one.asked is not None
            if one.fate is not None:
                self.fates[one.fate] += 1


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long an answer may be fresh, and usable after that, at most. Seconds."""

    max_ttl: float
    keep_stale: float


class Judged(NamedTuple):
    """An answer that was read; `fate`: why it is not to be put; `proven`: what was removed since is known."""

    entry: Entry
    asked: Asked | None
    fate: Fate | None
    proven: bool


class Record(NamedTuple):
    """What is known of what was removed. `epoch`, `arrived`: how many removals had been counted, and the time of the
    monotonic clock, before it was read; `vouched`: what was asked for before it begins has not been removed since."""

    epoch: int
    arrived: float
    past: Past
    versions: Mapping[str, Known]
    vouched: bool


class Intake:
    """Puts answers on `shelf`, which judges by removals alone. `seal`: of the keys, now."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, *, shelf: Shelf, stock: Stock, removals: Removals, history: History, knowledge: Knowledge,
        meaning: Meaning | None, clock: Clock, seal: Callable[[], Seal], lifetimes: Lifetimes,
    ) -> None:  # fmt: skip
        self._shelf = shelf
        self._stock = stock
        self._removals = removals
        self._history = history
        self._knowledge = knowledge
        self._meaning = meaning
        self._clock = clock
        self._seal = seal
        self._lifetimes = lifetimes

    def __repr__(self) -> str:
        return f"<Intake {self._shelf!r}>"

    async def take(self, lines: AsyncIterator[bytes | None], *, vouched: bool = False) -> Report:
        """Take the answers of these `lines` (None: one that is too long). Raises `BadParcel` before anything is taken,
        and `Trouble` if what was removed cannot be told."""
        head = self._head(await anext(lines, b""))
        lessons = Lessons(self._meaning, head.embedder)
        record = await self._record(vouched=vouched)
        report = Report(record.past.since, learnt=lessons.learnt)
        async for batch in _batches(lines):
            if self._shelf.epoch - record.epoch > MOST_REMOVALS:
                record = await self._record(vouched=vouched)
            read = await asyncio.to_thread(self._read, batch, record)
            for one in read:
                report.note(one)
            await self._put(
                [one for one in read if isinstance(one, Judged) and one.fate is None], record, report, lessons
            )
        await lessons.finish()
        return report

    def _head(self, line: bytes | None) -> Head:
        head = parcel.read_head(line or b"")
        if isinstance(head, Unreadable):
            raise BadParcel(f"Nothing can be imported: {head.why}.")
        own = self._seal()
        if head.seal.secret != own.secret:
            raise BadParcel(
                "Nothing can be imported: the keys of this file were made with another secret, so that none of its "
                "answers would ever be found here. Give both proxies the same `store.secret_file`.", elsewhere=True
            )  # fmt: skip
        if head.seal.realm != own.realm:
            raise BadParcel(
                "Nothing can be imported: the answers of this file are those of other backends, so that none would "
                "ever be found here. Give both proxies the same `store.realm`.", elsewhere=True
            )  # fmt: skip
        return head

    async def _record(self, *, vouched: bool) -> Record:
        """Counted first: a removal that comes while the record is read is heeded when an answer is put. One that is
        under way may not have come into the record yet."""
        epoch, arrived = self._shelf.epoch, self._clock.monotonic()
        under_way = [Ordered(one.now, one.selector, one.removal) for one in self._removals.open.values()]
        past = await self._history.past()
        past = Past(past.since, (*past.removals, *under_way))
        return Record(epoch, arrived, past, await self._knowledge.versions(), vouched)

    def _read(self, batch: Sequence[bytes | None], record: Record) -> list[Judged | End | Unreadable]:
        now = self._clock.now()
        read = [Unreadable("is too long") if line is None else parcel.read(line) for line in batch]
        return [self._judged(one, record, now) if isinstance(one, Item) else one for one in read]

    def _judged(self, item: Item, record: Record, now: float) -> Judged | Unreadable:
        entry, longest = item.entry, self._lifetimes
        asked_at = min(entry.asked_at, entry.stored_at)
        if entry.stored_at > now + SLACK:
            return Unreadable("was stored at a time that has not come yet")
        fresh_until = min(entry.fresh_until, entry.stored_at + longest.max_ttl)
        entry = replace(
            entry, fresh_until=fresh_until, expires_at=min(entry.expires_at, fresh_until + longest.keep_stale)
        )
        fate, proven = None, record.vouched or record.past.reaches(asked_at - SLACK)
        if entry.expires_at <= now:
            fate = Fate.EXPIRED
        elif record.past.fells(entry, asked_at, SLACK):
            fate = Fate.PURGED
        elif _is_of_another_version(entry.knowledge, asked_at, record):
            fate = Fate.OTHER_VERSION
        return Judged(entry, item.asked, fate, proven)

    async def _put(self, ready: Sequence[Judged], record: Record, report: Report, lessons: Lessons) -> None:
        learning: list[Lesson] = []
        for at in range(0, len(ready), AT_ONCE):
            some = ready[at : at + AT_ONCE]
            fates = await asyncio.gather(*(self._put_one(one, record) for one in some))
            for one, fate in zip(some, fates, strict=True):
                report.fates[fate] += 1
                if one.asked is not None and fate in (Fate.IMPORTED, Fate.PRESENT):
                    learning.append((one.entry, one.asked))
        await lessons.take(learning)
        if ready:
            await self._written()

    async def _written(self) -> None:
        """Wait until the store has written what it was given: it drops what is too much. Whatever it is asked, it does
        that first."""
        with suppress(Trouble):
            await self._stock.count(_NOTHING, self._clock.now())

    async def _put_one(self, one: Judged, record: Record) -> Fate:
        entry = one.entry
        found = await self._shelf.get(entry.key)
        if isinstance(found, Trouble):
            return Fate.FAILED
        if found is not None and parcel.fingerprint(found) == parcel.fingerprint(entry):
            return Fate.PRESENT
        if found is not None and found.stored_at >= entry.stored_at:
            return Fate.OLDER
        if not one.proven:
            return Fate.UNPROVEN
        refused = await self._shelf.put(entry, record.epoch, record.arrived)
        return _REFUSED.get(refused, Fate.FAILED)


_NOTHING = Selector(entry_ids=frozenset({"none"}))
_REFUSED = {None: Fate.IMPORTED, Reason.PURGED: Fate.PURGED, Reason.TOO_LARGE: Fate.TOO_LARGE}


def _is_of_another_version(names: Sequence[str], asked_at: float, record: Record) -> bool:
    """Whether one of these knowledge bases, as in the canonical list, has another version now. One without a version is
    of the one that was current then; where the record reaches back, it tells what that meant."""
    stated = knowledge.stated(names)
    for name, _ in map(controls.spoken, names):
        known = record.versions.get(name)
        if known is None:
            continue
        if name in stated:
            if known.version != stated[name]:
                return True
        elif not record.past.reaches(asked_at - SLACK) and known.published_at >= asked_at - SLACK:
            return True
    return False


async def _batches(lines: AsyncIterator[bytes | None]) -> AsyncIterator[list[bytes | None]]:
    batch, size = list[bytes | None](), 0
    async for line in lines:
        batch.append(line)
        size += len(line or b"")
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
