"""Families of prompts: where the head of a request leaves that of the one before, and what the backend had of it in its
cache. Learned from every request that goes to a backend.

Law: nothing is changed and nothing waits. What is held is bounded, in families and in bytes, and stays in memory.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from itertools import count, islice
from typing import Any

from cacheproxy.core.blocks import Block
from cacheproxy.core.divergence import Comparison, compare
from cacheproxy.core.noise import NONCES
from cacheproxy.core.sketch import LIKE, Sketch, is_mostly, likeness, sketch
from cacheproxy.core.stretches import size
from cacheproxy.engine.family import Counts, Family
from cacheproxy.ports import Journal

MOST = 512
"""Families that are known at a time."""
HELD = 16 * 2**20
"""Bytes that their last heads may take together."""
LONGEST = 2**18
"""Characters of a head that are looked at, and what its blocks are bounded by:"""
WIDEST = 64
LABELS = 20
"""Families that metrics call by their name; all others are one."""
OTHER = "other"
CANDIDATES = 16
SKETCHED = 16
"""After so many requests a family is known by another sketch, even if all were alike at first sight: prompts drift."""
_LONGEST_MODEL = 256


class Families:
    """The families of all scopes and models. `most`, `held`: bounds; `names`: of lines with nonces."""

    def __init__(self, journal: Journal, most: int = MOST, held: int = HELD, names: tuple[str, ...] = NONCES) -> None:
        self._journal = journal
        self._most = most
        self._limit = held
        self._names = names
        self._total = Counts()
        self._families: dict[str, Family] = {}
        """By id, the one that was asked longest ago first."""
        self._heads: dict[tuple[bytes, tuple[str, ...]], Family] = {}
        """By their last head."""
        self._index: dict[tuple[bytes, int], set[Family]] = {}
        """By the numbers of their sketches."""
        self._latest: dict[bytes, Family] = {}
        """The one asked last, by scope and model."""
        self._labels: set[str] = set()
        self._held = 0
        self._compared = 0
        self._shared = 0

    def __repr__(self) -> str:
        return f"<Families {len(self._families)}, {self._held} bytes>"

    def sent(self, scope: bytes, model: str, head: Sequence[Block], changed: tuple[str, ...]) -> Family:
        """A request with this head, as it is forwarded, goes to a backend. `changed`: names of the rules that changed
        it. The family that it belongs to."""
        kept = _kept(head)
        length = sum(size(block.text, 0, len(block.text)) for block in kept)
        group = blake2b(scope + b"\xff" + model.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        family = self._heads.get((group, _texts(kept)))
        if family is not None:
            self._note(family, Comparison(length, None), length)
        else:
            family = self._latest.get(group)
            if family is None or not is_mostly(family.head, kept):
                family = self._alike(scope, model, group, sketch(kept))
            elif family.requests % SKETCHED == 0:
                self._list(family, sketch(kept))
            if family.requests:
                self._note(family, compare(family.head, kept, self._names), length)
            self._hold(family, kept)
        family.sent(length, changed)
        self._families[family.id] = self._families.pop(family.id, family)
        self._latest[group] = family
        self._bound()
        return family

    def rows(self, limit: int | None = None) -> list[dict[str, Any]]:
        """What is known of each, as plain data; those first in which most could be saved."""
        ranked = sorted(self._families.values(), key=lambda family: (-family.could_save, -family.requests))
        return [family.row() for family in ranked[:limit]]

    def summary(self) -> dict[str, Any]:
        """All of it together. `shared_share`: how much of the heads was equal to the one before; None, as the other
        share, as long as there is nothing to tell."""
        shared = self._shared / self._compared if self._compared else None
        return {**self._total.told(), "families": len(self._families), "shared_share": shared}

    def _note(self, family: Family, comparison: Comparison, length: int) -> None:
        self._compared += length
        self._shared += min(length, comparison.shared)
        family.met(comparison)
        if comparison.divergence is not None:
            self._journal.count("divergence", comparison.divergence.rule or "text")

    def _alike(self, scope: bytes, model: str, group: bytes, drawn: Sketch) -> Family:
        """The family that is most like this sketch; a new one if none is like it."""
        met: Counter[Family] = Counter()
        for member in drawn.members:
            met.update(self._index.get((group, member), ()))
        near = [(likeness(family.sketch, drawn), family) for family, _ in met.most_common(CANDIDATES)]
        best, family = max(near, key=lambda pair: pair[0], default=(0.0, None))
        if family is None or best < LIKE:
            family = self._founded(scope, model, group, drawn)
        self._list(family, drawn)
        return family

    def _founded(self, scope: bytes, model: str, group: bytes, drawn: Sketch) -> Family:
        """A new family. Its id is the same wherever the same prompt comes first, and cannot be told from the prompt
        without knowing the scope."""
        members = repr(sorted(drawn.members)).encode()
        ids = (blake2b(b"%d %b%b" % (n, group, members), digest_size=6).hexdigest() for n in count())
        name = next(one for one in ids if one not in self._families)
        if len(self._labels) < LABELS:
            self._labels.add(name)
        return Family(
            id=name,
            label=name if name in self._labels else OTHER,
            group=group,
            scope=blake2b(scope, digest_size=4, person=b"scope").hexdigest(),
            model=model[:_LONGEST_MODEL].encode("utf-8", "replace").decode(),
            total=self._total,
            sketch=drawn,
        )

    def _hold(self, family: Family, head: tuple[Block, ...]) -> None:
        """Keep this as its last head."""
        self._let_go(family)
        family.head = head
        self._heads[family.group, _texts(head)] = family
        self._held += _weight(head)

    def _let_go(self, family: Family) -> None:
        """Keep no head of it."""
        if self._heads.pop((family.group, _texts(family.head)), None) is not None:
            self._held -= _weight(family.head)

    def _list(self, family: Family, drawn: Sketch) -> None:
        """Find it by this sketch from now on."""
        if family.sketch != drawn:
            self._unlist(family)
            family.sketch = drawn
        for member in drawn.members:
            self._index.setdefault((family.group, member), set()).add(family)

    def _unlist(self, family: Family) -> None:
        """Find it by its sketch no more."""
        for member in family.sketch.members:
            others = self._index[family.group, member]
            others.discard(family)
            if not others:
                del self._index[family.group, member]

    def _bound(self) -> None:
        """Forget families, first those that were asked longest ago."""
        while len(self._families) > 1 and (len(self._families) > self._most or self._held > self._limit):
            family = self._families.pop(next(iter(self._families)))
            self._let_go(family)
            self._unlist(family)
            if self._latest.get(family.group) is family:
                del self._latest[family.group]


def _kept(head: Sequence[Block]) -> tuple[Block, ...]:
    """What of a head is looked at."""
    kept = []
    left = LONGEST
    for block in islice(head, WIDEST):
        if len(block.text) > left:
            kept.append(Block(block.path, block.text[:left]))
            break
        kept.append(block)
        left -= len(block.text)
    return tuple(kept)


def _texts(head: tuple[Block, ...]) -> tuple[str, ...]:
    return tuple(block.text for block in head)


def _weight(head: tuple[Block, ...]) -> int:
    return sum(sys.getsizeof(block.text) for block in head)
