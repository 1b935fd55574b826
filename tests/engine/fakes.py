"""What the engine's suites put in place of time and of the outside."""

from dataclasses import dataclass, field

from cacheproxy.core.outcome import Outcome
from cacheproxy.core.removal import Removals
from cacheproxy.engine.shelf import Alone, Shelf
from cacheproxy.ports import Clock, Store


@dataclass
class Hands:
    """A clock that stands until it is moved."""

    wall: float = 1_000_000.0
    steady: float = 50.0

    def now(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def move(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@dataclass
class Notes:
    """A journal that keeps what it was told."""

    noted: list[tuple[Outcome, str, float]] = field(default_factory=list)
    counted: list[tuple[str, str]] = field(default_factory=list)

    def note(self, outcome: Outcome, endpoint: str, seconds: float) -> None:
        self.noted.append((outcome, endpoint, seconds))

    def count(self, event: str, label: str = "") -> None:
        self.counted.append((event, label))

    def add(self, event: str, amount: float, *labels: str) -> None:
        self.counted.append((event, *labels))

    def observe(self, event: str, value: float, *labels: str) -> None:
        self.counted.append((event, *labels))


def alone(store: Store, clock: Clock) -> Shelf:
    """A shelf over a store that no other process shares."""
    removals = Removals()
    return Shelf(store, removals, Alone(removals), clock)
