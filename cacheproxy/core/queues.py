"""Who is next at the gate to the backend: three classes of waiting requests. Pure: time comes as an argument.

| law       | says                                                                                                     |
|-----------|----------------------------------------------------------------------------------------------------------|
| turns     | within a class the callers take turns; of one caller's requests the first that came goes first           |
| plenty    | while fewer wait than there are slots, the classes share by their weights                                |
| scarcity  | else the most urgent class goes first                                                                    |
| ageing    | of every `share` slots one goes to who has waited for its class's `bound`, or `age` while P0 is short    |
| room      | a full class refuses the newcomer, or, if another caller has more in it than he, the newest of that one  |
| bursts    | a queue that was empty may be `BURST` times its depth, while it goes quickly; then it is cut to its depth|

Turns are fair queueing (Parekh and Gallager, 1993): each caller, and each class, has a virtual time that moves with
what it is given; who comes anew begins at the present: nobody gains by having been away, or by having many names.
"""

import math
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, IntEnum

CLASSES = 3
BURST = 10
"""A burst is so many times as long as the depth at most."""
SHORT = 0.25
"""The part of its depth up to which P0's queue counts as short."""


class Level(IntEnum):
    """How much is let in. Each level takes less than the one before."""

    NORMAL = 0
    NO_NEW_P2 = 1
    PAUSE_P1 = 2


class Refusal(Enum):
    """Why a request may not wait."""

    FULL = "queue_full"
    SHED = "shed"


@dataclass(frozen=True, slots=True)
class ClassTerms:
    """`depth`: most requests that wait, and `size`: bytes that they hold, None for no bound; `weight`: share of the
    slots in plenty; `age`, `bound`: seconds, as in the laws."""

    depth: int | None
    size: int | None
    weight: float
    age: float = math.inf
    bound: float = math.inf


@dataclass(frozen=True, slots=True)
class Terms:
    """`share`: of so many slots one goes to the aged."""

    classes: tuple[ClassTerms, ClassTerms, ClassTerms]
    share: int = 20


class Waiter:
    """A request that waits. `group`: which backends may take it; `since`: when it came first, in seconds; `favoured`:
    it has been let in before, or was told when to come back."""

    __slots__ = ("favoured", "group", "priority", "since", "size", "tenant")

    def __init__(  # noqa: PLR0913 - one request, every fact about it
        self, priority: int, tenant: bytes, group: int, size: int, since: float, *, favoured: bool = False
    ) -> None:
        self.priority = priority
        self.tenant = tenant
        self.group = group
        self.size = size
        self.since = since
        self.favoured = favoured

    def __repr__(self) -> str:
        return f"<Waiter P{self.priority} since {self.since:.3f}>"


class _Class:
    """One class: a lane for each caller and group of backends."""

    def __init__(self, terms: ClassTerms) -> None:
        self.terms = terms
        self.count = 0
        self.size = 0
        self.lanes: dict[tuple[int, bytes], OrderedDict[Waiter, None]] = {}
        self.callers: dict[bytes, int] = {}
        """How many each caller has waiting."""
        self._times: dict[bytes, float] = {}
        self._now = 0.0

    def add(self, waiter: Waiter) -> None:
        name = (waiter.group, waiter.tenant)
        lane = self.lanes.setdefault(name, OrderedDict())
        last = next(reversed(lane), None)
        lane[waiter] = None
        if waiter.favoured and last is not None and waiter.since < last.since:
            self.lanes[name] = OrderedDict.fromkeys(sorted(lane, key=lambda one: one.since))
        self.count += 1
        self.size += waiter.size
        self.callers[waiter.tenant] = self.callers.get(waiter.tenant, 0) + 1
        self._times.setdefault(waiter.tenant, self._now)

    def remove(self, waiter: Waiter) -> bool:
        name = (waiter.group, waiter.tenant)
        lane = self.lanes.get(name)
        if lane is None or waiter not in lane:
            return False
        del lane[waiter]
        if not lane:
            del self.lanes[name]
        self.count -= 1
        self.size -= waiter.size
        self.callers[waiter.tenant] -= 1
        if not self.callers[waiter.tenant]:
            del self.callers[waiter.tenant], self._times[waiter.tenant]
        return True

    def grant(self, waiter: Waiter) -> None:
        """It is given a slot: its caller's turn is over."""
        self._times[waiter.tenant] += 1
        self._now += 1 / len(self.callers)
        self.remove(waiter)

    def first(self, shut: Collection[int], came: float = math.inf) -> Waiter | None:
        """Whose turn it is among those with room that came no later than `came`."""
        best: Waiter | None = None
        rank = (math.inf, math.inf)
        for (group, tenant), lane in self.lanes.items():
            if group in shut:
                continue
            head = next(iter(lane))
            mine = (self._times[tenant], head.since)
            if mine < rank and head.since <= came:
                best, rank = head, mine
        return best

    def has_room(self, size: int, times: int = 1) -> bool:
        depth, most = self.terms.depth, self.terms.size
        if depth is not None and self.count >= times * depth:
            return False
        return most is None or not self.count or self.size + size <= most

    def newest_of_the_greedy(self, tenant: bytes | None) -> Waiter | None:
        """The newest request of the caller who has most in this class; of those, if `tenant` is one, who have more than
        he would have. Who is favoured stays."""
        mine = -1 if tenant is None else self.callers.get(tenant, 0)
        best: Waiter | None = None
        rank = (0, -math.inf)
        for (_, owner), lane in self.lanes.items():
            count = self.callers[owner]
            if count <= mine + 1 or count < rank[0]:
                continue
            newest = next((waiter for waiter in reversed(lane) if not waiter.favoured), None)
            if newest is not None and (count, newest.since) > rank:
                best, rank = newest, (count, newest.since)
        return best


class Queues:
    """The waiting requests of all classes."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._classes = [_Class(told) for told in terms.classes]
        self._times = [0.0] * CLASSES
        self._now = 0.0
        self._passed = 0

    def __repr__(self) -> str:
        return f"<Queues {' '.join(f'P{n}:{c.count}' for n, c in enumerate(self._classes))}>"

    def __len__(self) -> int:
        return sum(one.count for one in self._classes)

    def waiting(self, priority: int) -> int:
        """How many wait in this class."""
        return self._classes[priority].count

    def held(self, priority: int) -> int:
        """Bytes that they hold."""
        return self._classes[priority].size

    def oldest(self, priority: int) -> float:
        """When the first of those came who wait in this class; infinite if nobody does."""
        return min((next(iter(lane)).since for lane in self._classes[priority].lanes.values()), default=math.inf)

    def place(self, waiter: Waiter) -> int:
        """How many of its class and of more urgent ones came before it."""
        return sum(
            other.since < waiter.since
            for one in self._classes[: waiter.priority + 1] for lane in one.lanes.values() for other in lane
        )  # fmt: skip

    def offer(self, waiter: Waiter, level: Level, *, burst: bool = False) -> Refusal | Waiter | None:
        """Let it wait (None), refuse it, or let it wait in place of another, which is refused. `burst`: its queue may
        be longer than its depth."""
        if not waiter.favoured and waiter.priority > CLASSES - 1 - level:
            return Refusal.SHED
        one = self._classes[waiter.priority]
        loser = None
        if not (one.has_room(waiter.size, BURST if burst else 1) or waiter.favoured):
            loser = one.newest_of_the_greedy(waiter.tenant)
            if loser is None:
                return Refusal.FULL
            one.remove(loser)
            if not one.has_room(waiter.size):
                one.add(loser)  # its lane keeps its order: it was the last
                return Refusal.FULL
        if not one.count:
            self._times[waiter.priority] = max(self._times[waiter.priority], self._now)
        one.add(waiter)
        return loser

    def surplus(self, priority: int) -> Waiter | None:
        """Take out one that is too many in its class, now that the burst is over: the newest of who has most in it."""
        one = self._classes[priority]
        depth = one.terms.depth
        if depth is None or one.count <= depth or (loser := one.newest_of_the_greedy(None)) is None:
            return None
        one.remove(loser)
        return loser

    def leave(self, waiter: Waiter) -> bool:
        """It waits no longer; whether it did."""
        return self._classes[waiter.priority].remove(waiter)

    def urge(self, waiter: Waiter, priority: int) -> None:
        """It goes on waiting, in a more urgent class."""
        if not self.leave(waiter):
            return
        waiter.priority, waiter.favoured = priority, True
        if not self._classes[priority].count:
            self._times[priority] = max(self._times[priority], self._now)
        self._classes[priority].add(waiter)

    def next(self, now: float, slots: int, shut: Collection[int] = ()) -> Waiter | None:
        """Whose turn it is when one of `slots` is free; of those whose group is not in `shut`."""
        if self._passed >= self._terms.share - 1:
            for priority in (1, 2):
                if (aged := self._classes[priority].first(shut, now - self._patience(priority))) is not None:
                    return aged
        firsts = [one.first(shut) if one.count else None for one in self._classes]
        if len(self) < slots:
            able = [priority for priority, first in enumerate(firsts) if first is not None]
            return firsts[min(able, key=self._times.__getitem__)] if able else None
        return next((first for first in firsts if first is not None), None)

    def grant(self, waiter: Waiter, now: float) -> None:
        """It is given a slot."""
        priority = waiter.priority
        aged = any(self.oldest(p) <= now - self._patience(p) for p in (1, 2) if self._classes[p].count)
        served = priority > 0 and waiter.since <= now - self._patience(priority)
        self._passed = 0 if served or not aged else self._passed + 1
        self._now = max(self._now, self._times[priority])
        self._times[priority] = max(self._times[priority], self._now) + 1 / self._classes[priority].terms.weight
        self._classes[priority].grant(waiter)

    def _patience(self, priority: int) -> float:
        """Seconds after which a request of this class is aged."""
        terms, urgent = self._classes[priority].terms, self._classes[0]
        short = urgent.terms.depth is None or urgent.count <= SHORT * urgent.terms.depth
        return min(terms.age, terms.bound) if short else terms.bound
