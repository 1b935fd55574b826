"""Where credentials share answers, one alone cannot decide what others are told for a question in other words.

An answer is found by meaning by others than who fetched it only once so many credentials have asked what it answers and
the backend has told each of them the same. Whose own answer has not been seen confirms nothing: an exact hit is not a
witness, a miss that is answered and a sample are. What is stored anew, or was purged between, begins with nobody.
"""

import hashlib
import struct

from cachetools import LRUCache

from cacheproxy.core.model import Ask, Entry
from cacheproxy.core.padding import is_padded
from cacheproxy.engine.witnesses import GuardedWitnesses
from cacheproxy.ports import Journal

NAME_BYTES = 16
REMEMBERED = 65_536


class Promotion:
    """`after`: how many credentials must have been told the same; below 2 whoever fetched an answer is enough."""

    def __init__(self, witnesses: GuardedWitnesses, journal: Journal, after: int) -> None:
        self._witnesses = witnesses
        self._journal = journal
        self._after = after
        self._promoted: LRUCache[bytes, bool] = LRUCache(REMEMBERED)

    def __repr__(self) -> str:
        return f"<Promotion after {self._after} {self._witnesses!r}>"

    async def stands(self, ask: Ask, entry: Entry) -> bool:
        """Whether `entry`, which answers a question that is like that of `ask`, may be served to it."""
        if self._after < 2 or not is_foreign(ask, entry):
            return True
        name = name_of(entry)
        if name in self._promoted:
            return True
        if await self._witnesses.count(name) < self._after:
            return False
        self._promoted[name] = True
        return True

    def wants(self, ask: Ask, entry: Entry) -> bool:
        """Whether the backend's own answer to `ask`, which was given `entry` for the same words, could be of use."""
        return self._after > 1 and is_foreign(ask, entry) and name_of(entry) not in self._promoted

    async def confirm(self, entry: Entry, credential: bytes) -> None:
        """The backend has told this credential the same as `entry`."""
        if credential == entry.credential or self._after < 2:
            return
        name = name_of(entry)
        members = [_pseudonym(name, who) for who in (entry.credential, credential)]
        before = name in self._promoted
        if await self._witnesses.add(name, members, entry.fresh_until) >= self._after and not before:
            self._promoted[name] = True
            self._journal.count("semantic_promoted")


def is_foreign(ask: Ask, entry: Entry) -> bool:
    """Whether `entry` was fetched by another credential than that of `ask`."""
    return entry.credential != ask.credential


def is_smuggled(ask: Ask, entry: Entry, asked: str, stored: str) -> bool:
    """Whether the `stored` question of another credential carries more than the `asked` one: then its answer may be one
    to something else, whoever confirmed it."""
    return is_foreign(ask, entry) and is_padded(asked, stored)


def name_of(entry: Entry) -> bytes:
    """Stands for this very stored answer, not for another one under its key."""
    stored_at = struct.pack(">d", entry.stored_at)
    digest = hashlib.blake2b(entry.key + stored_at, digest_size=NAME_BYTES, person=b"witnessed")
    digest.update(entry.answer.body)
    return digest.digest()


def _pseudonym(name: bytes, credential: bytes) -> bytes:
    return hashlib.blake2b(name + credential, digest_size=NAME_BYTES, person=b"witness").digest()
