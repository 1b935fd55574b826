"""Which of several replicas a request should go to, so that it meets a KV cache that knows the beginning of its prompt.
Pure: what the replicas do now is told by the caller; what they have been given is remembered here, bounded in size.

Three rules, in this order. A conversation stays where its history was read. What is known of no history begins at the
home of its family, by rendezvous hashing, so that all proxies agree on it without a word and a replica that comes or
goes moves only its own families. No replica is given more than its share of the load allows: the next best takes it.
"""

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

MOST = 65_536
"""Elements of prompts that are remembered: some thousands of prompts of 32 KB."""


class Policy(StrEnum):
    """How the replica of a request is chosen."""

    AFFINITY = "affinity"
    ROUND_ROBIN = "round-robin"
    LEAST_INFLIGHT = "least-inflight"


@dataclass(frozen=True, slots=True)
class Route:
    """What of a prompt matters here. `home`: 16 bytes, the same for all of a family. `chain`: a hash for each part of
    the prompt, in the order in which a backend reads it, each of all that stands up to there; two prompts share their
    beginning as far as they share hashes. `head`: how many of these are of what a family has in common."""

    home: bytes
    chain: tuple[int, ...]
    head: int = 0


def rendezvous(home: bytes, names: Sequence[str], weights: Sequence[float]) -> list[int]:
    """The replicas in the order in which a family prefers them: weighted rendezvous hashing.

    One replica more or less leaves the order of the others as it is.
    """
    return sorted(range(len(names)), key=lambda i: _distance(home, names[i], weights[i]))


def _distance(home: bytes, name: str, weight: float) -> float:
    drawn = int.from_bytes(blake2b(home + name.encode("utf-8", "replace"), digest_size=8).digest())
    return -math.log((drawn + 1) / (2**64 + 1)) / weight


class Turns:
    """Smooth weighted round-robin."""

    def __init__(self, weights: Sequence[float]) -> None:
        self._weights = weights
        self._credit = [0.0] * len(weights)

    def next(self, able: Sequence[int]) -> int:
        """The one of `able` whose turn it is."""
        if len(able) == 1:
            return able[0]
        for i in able:
            self._credit[i] += self._weights[i]
        best = max(able, key=lambda i: self._credit[i])
        self._credit[best] -= sum(self._weights[i] for i in able)
        return best


def least(loads: Sequence[float], weights: Sequence[float], able: Sequence[int]) -> list[int]:
    """Those of `able` that carry least for their weight."""
    lowest = min(loads[i] / weights[i] for i in able)
    return [i for i in able if loads[i] / weights[i] == lowest]


class Affinity:
    """Chooses among replicas and remembers which prompts each was given. `bound`: how many times its share of the load
    a replica may carry before the next one takes what is new; 1 or more."""

    def __init__(
        self, names: Sequence[str], weights: Sequence[float], *, bound: float = 1.25, most: int = MOST
    ) -> None:
        self._names, self._weights = names, weights
        self._bound, self._most = bound, most
        self._known: OrderedDict[int, int] = OrderedDict()
        self._given = 0

    def __repr__(self) -> str:
        return f"<Affinity {len(self._names)} replicas, {len(self._known)} of {self._most} elements>"

    def __len__(self) -> int:
        return len(self._known)

    def choose(self, route: Route, loads: Sequence[float], able: Sequence[int]) -> int:
        """The one of `able` (not empty) that should take this. `loads`: requests that each replica carries now."""
        if len(able) == 1:
            return able[0]
        order = [i for i in rendezvous(route.home, self._names, self._weights) if i in able]
        room = _Room(loads, self._weights, order, self._bound)
        knowing = list(self._knowing(route.chain, order))
        for depth, those in knowing:
            if depth <= route.head:
                break
            if free := room.of(those, (depth - route.head) / len(route.chain)):
                return room.lightest(free)
        return self._begin(order, room, [pair for pair in knowing if pair[0] <= route.head])

    def _begin(self, order: list[int], room: "_Room", knowing: list[tuple[int, list[int]]]) -> int:
        """Where a prompt goes of whose history nothing is known: home, or to whoever carries less and knows as much.
        A home that knows less than others do takes it all the same: it was away, and so its families come back."""
        free = room.of(order)
        if order[0] in free:
            equals = [order[0]]
            for _, those in knowing:
                equals += [i for i in those if i != order[0]]  # one without room carries more than home
                if order[0] in those:
                    return room.lightest(equals)
            return order[0]
        return next((room.lightest(some) for _, those in knowing if (some := room.of(those))), free[0])

    def _knowing(self, chain: Sequence[int], order: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        """How far the chain is known, longest first, and to which replicas just as far, in their order."""
        seen = 0
        for depth in range(len(chain), 0, -1):
            fresh = self._known.get(chain[depth - 1], 0) & ~seen
            if fresh:
                seen |= fresh
                if those := [i for i in order if fresh >> i & 1]:
                    yield depth, those

    def remember(self, route: Route, at: int) -> None:
        """The replica `at` is given this."""
        bit, known = 1 << at, self._known
        self._given |= bit
        for element in reversed(route.chain):  # its beginning is what others share: the last to be forgotten
            known[element] = known.get(element, 0) | bit
            known.move_to_end(element)
        while len(known) > self._most:
            known.popitem(last=False)

    def forget(self, at: int) -> None:
        """The replica `at` could not be reached: whatever it knew may be gone with its process."""
        bit = 1 << at
        if not self._given & bit:
            return
        self._given &= ~bit
        for element, mask in self._known.items():
            if mask & bit:
                self._known[element] = mask & ~bit


class _Room:
    """How much each replica may carry at this moment."""

    def __init__(self, loads: Sequence[float], weights: Sequence[float], order: list[int], bound: float) -> None:
        self._loads, self._weights, self._order = loads, weights, order
        self._total = sum(loads[i] for i in order) + 1
        weight = sum(weights[i] for i in order)
        self._part = {i: bound * weights[i] / weight for i in order}

    def of(self, those: list[int], history: float = 0.0) -> list[int]:
        """Those of them that may take one more. `history`: the part of the prompt, 0 to 1, that is known to them and
        to nobody else: the more of it, the more load is better than to have it read again elsewhere."""
        return [i for i in those if self._loads[i] < self._most(i, history)]

    def _most(self, at: int, history: float) -> int:
        part = self._part[at]
        return math.ceil(self._total * part * (1 + history * max(0.0, 1 - part)))

    def lightest(self, those: list[int]) -> int:
        """The one that carries least for its weight; of equals the one preferred."""
        return min(those, key=lambda i: (self._loads[i] / self._weights[i], self._order.index(i)))
