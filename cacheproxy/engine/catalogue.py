"""What is stored, for a person to look through. Reads beside the way of requests: nothing counts as a use, nothing is
forgiven, and no page takes long, however much there is."""

import asyncio
from collections.abc import Sequence

from cacheproxy.core import replay
from cacheproxy.core.agreement import said
from cacheproxy.core.key import FINGERPRINT_BYTES
from cacheproxy.core.model import Endpoint, Entry
from cacheproxy.core.removal import Selector
from cacheproxy.ports import Clock, Inventory, Listed, Page

BUDGET = 0.5
"""Seconds after which a page is given, full or not."""
WHOLE = 20
"""Entries whose contents are read at once."""


class Catalogue:
    """Lists the entries of a store."""

    def __init__(self, stock: Inventory, clock: Clock) -> None:
        self._stock = stock
        self._clock = clock

    def __repr__(self) -> str:
        return f"<Catalogue {self._stock!r}>"

    async def page(self, selector: Selector, words: Sequence[str], cursor: str, most: int) -> Page:
        """Those after `cursor` that are meant, live, and say every one of `words`: about `most`, or fewer if they are
        not found soon. Raises `BadCursor`, `Trouble`."""
        until = self._clock.monotonic() + BUDGET
        rows: dict[bytes, Listed] = {}
        while True:
            wanted = most - len(rows)
            page = await self._pieces(selector, words, cursor, wanted)
            rows |= {row.entry.key: row for row in page.rows}
            cursor = page.cursor
            if not cursor or len(rows) >= most or self._clock.monotonic() >= until:
                return Page(list(rows.values()), cursor)

    async def _pieces(self, selector: Selector, words: Sequence[str], cursor: str, most: int) -> Page:
        now = self._clock.now()
        if not words:
            page = await self._stock.browse(selector, now, cursor, most)
        else:
            page = await self._stock.browse(selector, now, cursor, min(most, WHOLE), whole=True)
            page = await asyncio.to_thread(_saying, page, [word.casefold() for word in words])
        return Page([row for row in page.rows if row.entry.expires_at > now], page.cursor)

    async def find(self, entry_id: str, *, whole: bool) -> Listed | None:
        """The entry of this id, if it is there and live. Raises `Trouble`."""
        if len(entry_id) != 2 * FINGERPRINT_BYTES or not all(digit in "0123456789abcdef" for digit in entry_id):
            return None
        cursor, selector = "", Selector(entry_ids=frozenset({entry_id}))
        while True:
            now = self._clock.now()
            page = await self._stock.browse(selector, now, cursor, 1, whole=whole)
            live = [row for row in page.rows if row.entry.expires_at > now]
            if live or not page.cursor:
                return live[0] if live else None
            cursor = page.cursor


def _saying(page: Page, words: Sequence[str]) -> Page:
    def says(row: Listed) -> bool:
        text = text_of(row.entry).casefold()
        return all(word in text for word in words)

    return Page([row for row in page.rows if says(row)], page.cursor)


def text_of(entry: Entry) -> str:
    """What an answer says: its words where it is one of words, else its body. Empty if that cannot be read."""
    answer, endpoint = entry.answer, entry.endpoint
    try:
        if endpoint is Endpoint.COMPLETIONS:
            choices = replay.document_of(answer, endpoint).get("choices") or ()
            return "\n".join(choice.get("text") or "" for choice in choices)
        words = said(answer, endpoint) if endpoint in (Endpoint.CHAT, Endpoint.RESPONSES) else ""
    except (ValueError, LookupError, TypeError, AttributeError):
        words = ""
    return words or answer.body.decode("utf-8", "replace")
