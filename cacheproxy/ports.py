"""What the engine needs of the outside world, as protocols. Declared here, where they are consumed."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from cacheproxy.core.affinity import Route
from cacheproxy.core.model import Census, Entry, Fields
from cacheproxy.core.outcome import Outcome
from cacheproxy.core.removal import Removal, Selector


class Clock(Protocol):
    """Time. Seconds."""

    def now(self) -> float:
        """Wall clock, seconds since the epoch."""

    def monotonic(self) -> float:
        """A clock that never goes back."""


class Store(Protocol):
    """Keeps entries until they expire, are dropped for room, or are removed. Raises `Trouble`."""

    async def get(self, key: bytes) -> Entry | None:
        """The entry of `key` as last put, expired or not as long as it is kept."""

    async def put(self, entry: Entry) -> None:
        """Keep `entry` in place of any other of its key. When it returns, `get` sees it."""

    async def sweep(self, now: float) -> int:
        """Free what expired before `now`; how many entries went."""

    def census(self) -> Census:
        """What is kept now."""

    async def close(self) -> None:
        """Write out what is pending and let go."""


class Stock(Protocol):
    """What a store keeps, as a whole. Raises `Trouble`."""

    async def remove(self, selector: Selector, removal: Removal, now: float) -> set[bytes]:
        """Do this to every entry that is meant, on the disk too when it returns; the keys of those."""


class Stocked(Store, Stock, Protocol):
    """A store whose stock can be removed from."""


@dataclass(frozen=True, slots=True)
class Outbound:
    """A request for the backend. `body`: its bytes, None for none, or a stream that can be sent only once; `route`: by
    what a replica is chosen that has its prefix."""

    method: str
    target: bytes
    fields: Fields
    body: bytes | AsyncIterator[bytes] | None
    route: Route | None = None


class Reply(Protocol):
    """A backend's answer whose head has come. Use `close` in every case; it is idempotent and never waits."""

    status: int
    phrase: bytes
    fields: Fields
    interim: bytes
    """Heads of 1xx answers that came before, as on the wire."""

    @property
    def ended(self) -> bool:
        """The body's own framing has said that it is whole, and all of it has been read."""

    async def read(self) -> bytes:
        """The next bytes of the body, empty at its end. Raises `UpstreamCut`, `UpstreamTimeout`."""

    async def settle(self, seconds: float) -> bool:
        """Wait until more of the body is there to read or it has ended, `seconds` at most; False if neither."""

    def close(self) -> None:
        """Give the connection back if the body has ended, else cut it, so that the backend stops."""


class Backend(Protocol):
    """Sends requests to an upstream."""

    async def send(self, request: Outbound) -> Reply:
        """Send and wait for the head. Raises `UpstreamUnreachable`, `UpstreamTimeout`."""


class Journal(Protocol):
    """Is told what happened."""

    def note(self, outcome: Outcome, endpoint: str, seconds: float) -> None:
        """A request's head was written `seconds` after its arrival."""

    def count(self, event: str, label: str = "") -> None:
        """Something happened that is counted: a name of the list in telemetry.py, and one of its labels."""

    def add(self, event: str, amount: float, *labels: str) -> None:
        """The same, for what comes in amounts."""

    def observe(self, event: str, value: float, *labels: str) -> None:
        """Something was measured whose distribution is of interest."""


class Book(Protocol):
    """Gives back what the journal was told."""

    def exposition(self) -> bytes:
        """The metrics in the Prometheus text format."""

    def summary(self) -> dict[str, object]:
        """The counts as plain data."""
