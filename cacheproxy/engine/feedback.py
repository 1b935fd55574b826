"""What operators say of answers that were served, and what follows for answers by meaning.

*Wrong*: the answer is removed as by a purge, and the two questions never meet again: the one that was asked and the one
whose answer it was. When it is not said what was asked, the question of the answer is alone from then on: it is like no
other. First barred, then removed: what is asked for in between is served nothing of it. *Right* lifts what was barred.

A question is asked of the quarantine only when a candidate has passed every other check, all candidates at once. As
long as the quarantine cannot tell, nothing is served by meaning.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import cast

from cachetools import LRUCache

from cacheproxy.core import quarantine as names
from cacheproxy.core.key import KEY_BYTES
from cacheproxy.core.quarantine import Side
from cacheproxy.core.removal import Order, Removal, Selector
from cacheproxy.engine.breaker import Breaker
from cacheproxy.engine.purge import Purge
from cacheproxy.errors import Trouble
from cacheproxy.ports import Journal, Quarantine

log = logging.getLogger("cacheproxy.feedback")

REMEMBERED = 16_384
"""Answers whose question is known here since they were candidates."""
Heard = Callable[["Judgement"], None]


class Verdict(StrEnum):
    """What is said of an answer."""

    WRONG = "wrong"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was said. `entry_id`: what `X-Cache-Entry-Id` said; `asked`: the question that the answer was served for,
    None where it is not known what was asked, empty where that has no question and so never has answers by meaning."""

    verdict: Verdict
    entry_id: str
    asked: str | None = None


@dataclass(frozen=True, slots=True)
class Heeded:
    """What came of it: answers removed, and pairs, or questions that are alone, barred and lifted."""

    removed: int
    barred: int
    lifted: int


class Feedback:
    """Heeds judgements, and tells which candidates are barred.

    `deadline`: seconds that a question to the quarantine may take; `heard` is told each judgement that was heeded.
    """

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, *, quarantine: Quarantine, purge: Purge, journal: Journal, secret: bytes, deadline: float,
        heard: Heard | None = None,
    ) -> None:  # fmt: skip
        self._quarantine = quarantine
        self._purge = purge
        self._journal = journal
        self._secret = secret
        self._heard = heard
        self._met: LRUCache[str, bytes] = LRUCache(REMEMBERED)
        self._turn = asyncio.Lock()
        self.breaker = Breaker("quarantine", deadline, journal)

    def __repr__(self) -> str:
        return f"<Feedback {self._quarantine!r} {self.breaker!r}>"

    def rekey(self, secret: bytes) -> None:
        """From now on every name is made with `secret`: what is kept under another is not found."""
        self._secret = secret
        self._met.clear()

    async def barred(self, partition: bytes, asked: Side, stored: Sequence[Side]) -> frozenset[str] | Trouble:
        """The ids of those of `stored` whose answer `asked` must not get. Never raises."""
        if not stored:
            return frozenset()
        named = [names.between(self._secret, partition, asked, side) for side in stored]
        wanted = list(dict.fromkeys(chain.from_iterable(named)))
        for side in stored:
            self._met[side.entry_id] = partition + names.words_of(self._secret, side.text)
        found = await self.breaker.call(lambda: self._quarantine.among(wanted))
        if isinstance(found, Trouble):
            return found
        kept = cast("dict[bytes, bytes]", found)
        return frozenset(
            side.entry_id for side, its in zip(stored, named, strict=True) if not kept.keys().isdisjoint(its)
        )

    async def is_barred(self, partition: bytes, asked: Side, stored: Side) -> bool | Trouble:
        """Whether `asked` must not get the answer of `stored`. Never raises."""
        found = await self.barred(partition, asked, [stored])
        return found if isinstance(found, Trouble) else bool(found)

    async def heed(self, judgement: Judgement) -> Heeded | None:
        """Do what follows; None if no such answer is known. Raises `Trouble` if it could not be done to its end: then
        it has to be said again."""
        async with self._turn:  # of two that say the same one would find the answer gone, and take it for unknown
            wrong = judgement.verdict is Verdict.WRONG
            heeded = await (self._bar(judgement) if wrong else self._lift(judgement))
        if heeded is not None:
            self._journal.count("feedback", judgement.verdict.value)
            log.info("an answer was called %s: %d removed, %d barred, %d lifted", judgement.verdict.value,
                     heeded.removed, heeded.barred, heeded.lifted)  # fmt: skip
            if self._heard is not None:
                self._heard(judgement)
        return heeded

    async def close(self) -> None:
        """Let go."""
        await self.breaker.close()
        await self._quarantine.close()

    async def _bar(self, judgement: Judgement) -> Heeded | None:
        entry_id = judgement.entry_id
        mark = names.called_wrong(self._secret, entry_id)
        before = await self._quarantine.among([mark])
        note = self._met.get(entry_id) or before.get(mark, b"")
        barred = self._named(judgement, note)
        await self._quarantine.put({**dict.fromkeys(barred, b""), mark: note})
        purged = await self._purge.carry_out(_order(entry_id, Removal.HARD))
        if not purged.matched and mark not in before:
            # What was barred stays so: the answer may have been there, and its question may be asked again.
            await self._quarantine.lift([mark])
            return None
        return Heeded(purged.purged or 0, int(bool(barred)), 0)

    async def _lift(self, judgement: Judgement) -> Heeded | None:
        mark = names.called_wrong(self._secret, judgement.entry_id)
        before = await self._quarantine.among([mark])
        note = before.get(mark, b"") or self._met.get(judgement.entry_id, b"")
        barred = await self._quarantine.among(self._named(judgement, note))
        await self._quarantine.lift(barred)
        if mark not in before:
            counted = await self._purge.carry_out(_order(judgement.entry_id, Removal.NONE))
            if not counted.matched:
                return None
        return Heeded(0, 0, int(bool(barred)))

    def _named(self, judgement: Judgement, note: bytes) -> list[bytes]:
        """The names of what is judged. `note`: the partition of the answer's question and the name of its words, empty
        where that is not known."""
        secret, entry_id = self._secret, judgement.entry_id
        partition, theirs = note[:KEY_BYTES], note[KEY_BYTES:]
        if judgement.asked is None:
            by_words = [names.alone_by_words(secret, partition, theirs)] if note else []
            return [names.alone(secret, entry_id), *by_words]
        if not judgement.asked:
            return []
        words = names.words_of(secret, judgement.asked)
        by_words = [names.pair(secret, partition, words, theirs)] if note else []
        return [names.beside(secret, entry_id, words), *by_words]


def _order(entry_id: str, removal: Removal) -> Order:
    return Order(Selector(entry_ids=frozenset({entry_id})), removal)
