"""All that is stored, as lines that an import takes: answers, and the questions that are found by meaning.

It is read a page at a time, beside the way of requests; how much is held does not grow with what is stored.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass

from cacheproxy.core import parcel
from cacheproxy.core.model import Census, Entry, Identity, Row
from cacheproxy.core.parcel import Asked, End, Head, Item, Seal
from cacheproxy.core.removal import Selector
from cacheproxy.engine.semantic import Meaning
from cacheproxy.engine.shelf import Shelf
from cacheproxy.ports import Clock

PAGE = 250
"""Answers that are read at once."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of an export, and how many answers are in them."""

    data: bytes
    entries: int


class Export:
    """Exports what stands on `shelf`. `census`: how much there is; `seal`: of the keys, now."""

    def __init__(
        self, *, shelf: Shelf, census: Callable[[], Census], meaning: Meaning | None, clock: Clock,
        seal: Callable[[], Seal],
    ) -> None:  # fmt: skip
        self._shelf = shelf
        self._census = census
        self._meaning = meaning
        self._clock = clock
        self._seal = seal

    def __repr__(self) -> str:
        return f"<Export {self._shelf!r}>"

    async def lines(self, selector: Selector) -> AsyncGenerator[Lines, None]:
        """The lines of all live answers that are meant. Raises `Trouble`: then the last line is not among them."""
        meaning, stamp = self._meaning, identity(self._meaning)
        head = Head(self._seal(), self._clock.now(), stamp, self._shelf.epoch, self._census().entries)
        yield Lines(parcel.head_line(head), 0)
        entries = questions = 0
        cursor = ""
        while True:
            now = self._clock.now()
            page = await self._shelf.browse(selector, now, cursor, PAGE, whole=True)
            live = [row.entry for row in page.rows if row.entry.expires_at > now]
            found: Mapping[bytes, Row] = {}
            if meaning is not None and stamp is not None and live:
                found = await meaning.index.rows([entry.key for entry in live])
            if live:
                data, asked = await asyncio.to_thread(_written, live, found)
                entries, questions = entries + len(live), questions + asked
                yield Lines(data, len(live))
            cursor = page.cursor
            if not cursor:
                break
        yield Lines(parcel.end_line(End(entries, questions)), 0)


def identity(meaning: Meaning | None) -> Identity | None:
    """What embeds here; None if nothing does, or not yet."""
    return meaning.embedder.bare.identity if meaning is not None and meaning.ready else None


def _written(entries: Iterable[Entry], rows: Mapping[bytes, Row]) -> tuple[bytes, int]:
    """The lines, and how many of them have a question. One that JSON cannot say is left out."""
    items = [Item(entry, _asked(rows.get(entry.key))) for entry in entries]
    return b"".join(map(parcel.item_line, items)), sum(item.asked is not None for item in items)


def _asked(row: Row | None) -> Asked | None:
    if row is None or not parcel.is_unicode(row.text):
        return None
    return Asked(row.partition, row.text, row.vector.astype("<f4").tobytes())
