"""Backends in virtual time, and proxies that give them as much as their limits say."""

import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cacheproxy.core.adaptive import Limit


@dataclass
class Slots:
    """Works on `slots` requests at once, each for `seconds`; the others wait in the order in which they came. Of those
    that are `streamed` (a part of them) the first byte comes after `first` seconds of work, of the others at the end.
    `tail`: sigma of the lognormal that both are multiplied with; `refuses`: from so many on, 503 at once."""

    slots: int
    seconds: float = 1.0
    first: float = 0.05
    streamed: float = 0.0
    tail: float = 0.0
    jitter: float = 0.3
    refuses: float = math.inf


@dataclass
class Run:
    """`load`: arrivals a second; None: there is always more to do. `limits`: of several proxies before one backend."""

    backend: Slots
    limits: list[Limit]
    load: float | None = None
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    now: float = 0.0
    refused: int = 0
    done: int = 0

    def __post_init__(self) -> None:
        self._events: list = []
        self._order = 0
        self._busy = 0
        self._queue: deque = deque()
        self._inflight = [0] * len(self.limits)
        self._waiting = 0
        if self.load:
            self._at(0.0, self._arrive)

    def steps(self, count: int) -> Iterator[int]:
        """Until so many more are done; the limits' sum after each."""
        end = self.done + count
        while self.done < end:
            self._admit()
            before = self.done
            self.now, _, what = heapq.heappop(self._events)
            what()
            if self.done > before:
                yield sum(limit.value for limit in self.limits)

    def _at(self, when: float, what: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._events, (when, self._order, what))

    def _arrive(self) -> None:
        self._waiting += 1
        self._at(self.now + self.rng.expovariate(self.load), self._arrive)

    def _admit(self) -> None:
        for i, limit in enumerate(self.limits):
            while self._inflight[i] < limit.value and (self.load is None or self._waiting):
                self._waiting -= 1
                if self._busy + len(self._queue) >= self.backend.refuses:
                    self.refused += 1
                    limit.failed()
                    self._waiting += 1
                    break
                self._inflight[i] += 1
                asked = (i, self.now, self._inflight[i])
                self._queue.append(asked)
                self._work()

    def _work(self) -> None:
        backend = self.backend
        while self._queue and self._busy < backend.slots:
            i, sent, inflight = self._queue.popleft()
            self._busy += 1
            size = math.exp(self.rng.gauss(0, backend.tail) - backend.tail**2 / 2)
            size *= 1 + self.rng.uniform(-backend.jitter, backend.jitter)
            streamed = self.rng.random() < backend.streamed

            def say(i: int = i, sent: float = sent, inflight: int = inflight, streamed: bool = streamed) -> None:
                self.limits[i].sample(self.now - sent, inflight, streamed)

            def end(i: int = i, say: Callable[[], None] | None = None if streamed else say) -> None:
                self._busy -= 1
                self._inflight[i] -= 1
                self.done += 1
                if say is not None:
                    say()
                self._work()

            if streamed:
                self._at(self.now + backend.first * size, say)
            self._at(self.now + (backend.first + backend.seconds) * size, end)


def batch(limit: Limit, half: float, count: int, *, tail: float, streamed: float, slow: Callable[[int], float]) -> list:
    """An engine whose every step takes the longer the more it works on: twice as long with `half`. The limit after each
    request."""
    rng, now, running, inflight, values = random.Random(1), 0.0, [], 0, []
    while len(values) < count:
        while inflight < limit.value:
            inflight += 1
            lengths = [max(round(n * math.exp(rng.gauss(0, tail) - tail**2 / 2)), 1) for n in (3, 40)]
            running.append([now, inflight, rng.random() < streamed, *lengths])
        now += slow(len(values)) * 0.02 * (1 + len(running) / half) * rng.uniform(0.9, 1.1)
        for one in running:
            one[3 if one[3] else 4] -= 1
            if one[2] and one[3] == 0 and one[4] > 0:
                limit.sample(now - one[0], one[1], True)
                one[2] = None
            elif one[4] == 0:
                inflight -= 1
                values.append(limit.value)
                if one[2] is not None:
                    limit.sample(now - one[0], one[1], False)
        running = [one for one in running if one[4] > 0]
    return values


def middle(values: list[int]) -> list[int]:
    """Without the breaths: the highest value of each hundred."""
    return [max(values[i : i + 100]) for i in range(0, len(values), 100)]


def near(values: list[int], slots: int) -> bool:
    """Of these values nine of ten lie within half of `slots` around it."""
    inside = sum(slots / 2 <= value <= slots * 1.5 for value in values)
    return inside >= 0.9 * len(values)
