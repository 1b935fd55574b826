"""What the writer of a cache file is asked for, other than to write: questions, answered between two batches, and
removals, which are carried out step by step. Held under the writer's lock, but for what is under way."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from cacheproxy.core.removal import Felled
from cacheproxy.errors import Trouble
from cacheproxy.stores.sqlite_sweep import Sweep

T = TypeVar("T")
Call = tuple[Callable[[], Any], "Future[Any]"]


class Backlog:
    """Whatever is put here is answered once, at the latest when all ends."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._fresh: list[Sweep] = []
        self._sweeps: deque[Sweep] = deque()

    def __bool__(self) -> bool:
        return bool(self.calls or self._fresh or self._sweeps)

    def ask(self, work: Callable[[], T]) -> "Future[T]":
        """What `work` gives, in the writer's thread."""
        done: Future[T] = Future()
        self.calls.append((work, done))
        return done

    def order(self, felled: Felled) -> "Future[set[bytes]]":
        """The keys of what a removal has taken out."""
        done: Future[set[bytes]] = Future()
        self._fresh.append(Sweep(felled, done))
        return done

    def take(self) -> list[Call]:
        """The questions so far. From now on the removals ordered so far are under way: what was put before them has
        been taken for writing too, and is written first."""
        calls, self.calls = self.calls, []
        self._sweeps.extend(self._fresh)
        self._fresh = []
        return calls

    def next(self) -> Sweep | None:
        """The removal whose turn it is; to be given back by `again`."""
        while self._sweeps:
            sweep = self._sweeps.popleft()
            if sweep.is_wanted():
                return sweep
        return None

    def again(self, sweep: Sweep) -> None:
        """It is not over; the next step comes when its turn comes again."""
        self._sweeps.append(sweep)

    def end(self) -> None:
        """What is under way is not carried out to its end."""
        while (sweep := self.next()) is not None:
            sweep.done.set_exception(Trouble("the cache file is closed"))
