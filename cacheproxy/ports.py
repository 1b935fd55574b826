"""What the engine needs of the outside world, as protocols. Declared here, where they are consumed."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from cacheproxy.core.affinity import Route
from cacheproxy.core.knowledge import Known
from cacheproxy.core.model import Census, Entry, Fields, Identity, Near, Row, Unfit
from cacheproxy.core.outcome import Outcome
from cacheproxy.core.past import Past
from cacheproxy.core.removal import Felled, Order, Selector
from cacheproxy.core.snapshot import Snapshot
from cacheproxy.core.standing import Standing
from cacheproxy.core.stock import BadCursor as BadCursor  # noqa: PLC0414 - here others look for it
from cacheproxy.core.stock import Kept as Kept  # noqa: PLC0414
from cacheproxy.core.stock import Listed as Listed  # noqa: PLC0414
from cacheproxy.core.stock import Page as Page  # noqa: PLC0414
from cacheproxy.errors import Trouble

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Clock(Protocol):
    """Time. Seconds."""

    def now(self) -> float:
        """Wall clock, seconds since the epoch."""

    def monotonic(self) -> float:
        """A clock that never goes back."""


class Store(Protocol):
    """Keeps entries until they expire, are dropped for room, or are removed. Raises `Trouble`, unless it is guarded."""

    async def get(self, key: bytes) -> Entry | Trouble | None:
        """The entry of `key` as last put, expired or not as long as it is kept. A guarded store says by `Trouble` that
        it cannot tell."""

    async def put(self, entry: Entry, epoch: int | None = None) -> Kept:
        """Keep `entry` in place of any other of its key, if none of the removals after number `epoch` can mean it
        (None: of those known now). When it returns, `get` sees it, with the number that it carries."""

    async def sweep(self, now: float) -> int:
        """Free what expired before `now`; how many entries went."""

    def census(self) -> Census:
        """What is kept now."""

    async def close(self) -> None:
        """Write out what is pending and let go."""


class Inventory(Protocol):
    """A list of what is kept. Raises `Trouble`."""

    async def browse(self, selector: Selector, now: float, cursor: str, most: int, *, whole: bool = False) -> Page:
        """Those of the entries after `cursor` (empty: of all) that are meant: some of them, about `most`, found in
        bounded time, so that a page may be empty and have others after it. What is there all the time is on one page
        at least. Only where `whole` is set their contents are there for certain. Raises `BadCursor`."""


class Stock(Inventory, Protocol):
    """What a store keeps, as a whole. What a removal means, and carries a lower number, counts as removed from `fell`
    on; it leaves the store by `remove`, which may be tried again. Raises `Trouble`."""

    async def count(self, selector: Selector, now: float, also: Collection[bytes] = ()) -> int | None:
        """How many are meant that no removal has felled, and those of the keys `also` that are not there; None where
        that cannot be told without a look at every entry."""

    async def fell(self, felled: Felled, also: Collection[bytes] = ()) -> int | None:
        """Remember this removal until it is settled, also over a power failure where anything is. How many it means, as
        `count` tells it. From now on no entry is put with a lower number."""

    async def remove(self, felled: Felled) -> set[bytes]:
        """Take out what it means, or make it stale, some at a time, others going on; the keys of those, but for what
        has been put anew."""

    async def settle(self, felled: Felled) -> None:
        """Nothing of it is left, on the disk neither; it need not be remembered as one that is under way."""


class Stocked(Store, Stock, Protocol):
    """A store whose stock can be removed from."""


class Epochs(Protocol):
    """Where the removals are counted that all who share a store must know. Tells `Removals` of each. Raises
    `Trouble`."""

    lease: float
    """Seconds for which what was looked up may be served without `current` being asked: nothing that was looked up
    longer ago is acknowledged as removed before. 0: each look and each removal are of this process."""

    async def begin(self, order: Order, now: float) -> Felled:
        """Count a removal. From then on nothing is stored that it means and that was asked for before, and what is
        stored is judged by it, by all who share the store. Returns when it may be acknowledged, as far as they go."""

    async def claim(self, felled: Felled) -> bool:
        """Whether this process is to take out what it means: nobody else does so now."""

    async def finish(self, felled: Felled) -> None:
        """The store has nothing left that it means."""

    async def current(self) -> None:
        """Know every removal that has been acknowledged so far."""

    async def past(self) -> Past:
        """As a `History` tells it."""


class Embedder(Protocol):
    """Texts -> vectors. Raises `Trouble`, also for a vector that cannot be one."""

    identity: Identity

    async def embed(self, text: str, scope: bytes) -> "NDArray[np.float32] | Unfit":
        """The vector of `text`, of shape ``(dim,)`` and length 1; or why it can have none. What is remembered of it is
        remembered for `scope` alone."""

    async def warm(self) -> None:
        """Load what is needed and compute once."""

    async def close(self) -> None:
        """Let go."""


class VectorIndex(Protocol):
    """Finds near questions within one partition. Raises `Trouble`, also for a vector that cannot be compared: of
    another dimension, not of floats, zero, or with a NaN or an infinity in it."""

    async def add(self, row: Row) -> None:
        """Keep `row` in place of any other of its key. When it returns, `search` finds it."""

    async def search(
        self, partition: bytes, vector: "NDArray[np.floating[Any]]", text: str, limit: int, now: float
    ) -> list[Near]:
        """At most `limit` rows of `partition` that have not expired at `now`, best first: those nearest to `vector`
        and those that share words with `text`, fused by their ranks. The payload of one may be gone: the caller skips
        it and calls `remove`."""

    async def remove(self, keys: Iterable[bytes]) -> int:
        """Forget these rows; how many there were. None of them there is no error."""

    async def sweep(self, now: float) -> int:
        """Free what expired before `now`; how many rows went."""

    async def close(self) -> None:
        """Let go."""


class Questions(VectorIndex, Protocol):
    """A vector index that tells what it keeps."""

    async def known(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        """Those of the rows of these keys that are there. Raises `Trouble`."""


class Verifier(Protocol):
    """A second opinion on two questions. Raises `Trouble`."""

    @property
    def name(self) -> str:
        """What it is, for people."""

    async def agreement(self, asked: str, stored: str, similarity: float) -> float:
        """The probability, 0…1, that the answer to `stored` is one to `asked`. `similarity`: the cosine of their
        vectors."""

    async def warm(self) -> None:
        """Load what is needed and compute once."""

    async def close(self) -> None:
        """Let go."""


class Quarantine(Protocol):
    """Keeps names (32 bytes) of what must not be answered by meaning, each with a note of some bytes, for a year after
    the last use at least. Raises `Trouble`."""

    async def put(self, notes: Mapping[bytes, bytes]) -> None:
        """Keep these names. When it returns all who share them find them, also after a restart where anything is."""

    async def lift(self, names: Iterable[bytes]) -> None:
        """Forget these names; none of them there is no error."""

    async def among(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """Those of `names` that are kept, with their notes. One round trip at most."""

    async def close(self) -> None:
        """Let go."""


class Registry(Protocol):
    """Remembers the versions of knowledge bases. Raises `Trouble`."""

    async def versions(self) -> dict[str, Known]:
        """What is known, by name."""

    async def keep(self, name: str, known: Known) -> None:
        """Remember this, unless a greater number is remembered. When it returns all who share it know it, also after a
        restart where anything is kept."""

    async def close(self) -> None:
        """Let go."""


class Folder(Protocol):
    """A folder that is a knowledge base. Every method blocks."""

    def scan(self, before: Snapshot) -> Snapshot:
        """What is there now; what is as in `before` need not be read. Raises `Trouble`."""

    def remembered(self) -> Snapshot | None:
        """What was kept last, also by an earlier process; None if that is not known."""

    def remember(self, snapshot: Snapshot) -> None:
        """Keep it. Raises `Trouble`."""


@dataclass(frozen=True, slots=True)
class Notice:
    """An event of a stream: its id there, and its fields."""

    identity: bytes
    fields: Mapping[bytes, bytes]


class Notices(Protocol):
    """A stream of events that several read together: each event is given to one of them, and is another's when that
    one has not dealt with it for long. Raises `Trouble`."""

    async def take(self) -> Sequence[Notice]:
        """Events that are this reader's now, oldest first; those taken before that it has not done are among them if
        there was trouble since."""

    async def oldest(self) -> bytes | None:
        """The id of the oldest event that was given to any reader and is not done; None if all are."""

    async def hold(self, identity: bytes) -> None:
        """The event is still being dealt with: it is not another's for as long again."""

    async def done(self, identity: bytes) -> None:
        """The event has been dealt with."""


@dataclass(frozen=True, slots=True)
class Outbound:
    """A request for the backend. `body`: its bytes, None for none, or a stream that can be sent only once; `route`: by
    what a replica is chosen that has its prefix; `standing`: how it waits for a slot, None for what takes none."""

    method: str
    target: bytes
    fields: Fields
    body: bytes | AsyncIterator[bytes] | None
    route: Route | None = None
    standing: Standing | None = None


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
