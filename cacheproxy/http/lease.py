"""A request's place with an upstream, and what is learned from it: how the upstream fares, how many it can be given."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from cacheproxy.core.health import FAILED
from cacheproxy.http.station import Station
from cacheproxy.http.upstream import Upstream

if TYPE_CHECKING:
    from cacheproxy.http.balance import Balance

BUSY = frozenset({429, 503})
"""Statuses that say that it was too much."""


class Lease:
    """End it in every case; that is idempotent (the `Slot` of engine/admission.py). `slot`: it takes one; `light`: what
    comes of it shows that the upstream can be reached, and not how it generates."""

    __slots__ = (
        "_balance", "_era", "_failed", "_inflight", "_light", "_open", "_sent_at", "_slot", "_station", "_streamed",
        "_trial", "on_began", "on_end",
    )  # fmt: skip

    def __init__(self, balance: "Balance", station: Station, *, slot: bool, light: bool, trial: bool) -> None:
        self.on_end: Callable[[], None] | None = None
        """Called once, when it ends, before others are told of the room."""
        self.on_began: Callable[[float], None] | None = None
        """Told how many seconds after its sending its stream began."""
        self._balance = balance
        self._station = station
        self._slot = slot
        self._light = light
        self._trial = trial
        self._era = station.health.era
        self._open = True
        self._failed = False
        self._sent_at: float | None = None
        self._inflight = 0
        self._streamed: bool | None = None
        """Whether the answer whose first byte is awaited is a stream; None if none is."""

    def __repr__(self) -> str:
        return f"<Lease {'open' if self._open else 'ended'} {self.upstream!r}>"

    @property
    def upstream(self) -> Upstream:
        return self._station.upstream

    def connected(self) -> None:
        """There is a new connection."""
        self._balance.connected(self.upstream)
        if self._station.health.cause is None:  # what comes of it now says how it is since then
            self._era = self._station.health.era

    def unreachable(self, error: BaseException) -> None:
        """There could be none."""
        self._balance.refused(self._station, error, self._era)

    def sent(self, now: float) -> None:
        """The request is on its way, at the time `now`, in seconds."""
        self._sent_at, self._inflight = now, self._station.used

    def answered(self, now: float, status: int, *, streamed: bool) -> None:  # noqa: ARG002 - as it is told of all
        """The head of the answer has come."""
        if self._slot and self._sent_at is not None:
            if status in BUSY:
                self._change(self._station.limit.failed)
            elif 200 <= status < 300:
                self._streamed = streamed
        self._failed = status in FAILED
        if not self._light:
            self._balance.answered(self._station, self._era, status)

    def began(self, now: float) -> None:
        """The first of its body has come: of a stream many backends send the head before they have begun."""
        if self._streamed is None or self._sent_at is None:
            return
        seconds, streamed, self._streamed = now - self._sent_at, self._streamed, None
        if streamed and self.on_began is not None:
            self.on_began(seconds)
        self._change(lambda: self._station.limit.sample(seconds, self._inflight, streamed))

    def silent(self, *, late: bool) -> None:
        """There was no answer. `late`: for too long."""
        if self._slot and late:
            self._change(self._station.limit.failed)
        self._failed = True
        self._balance.silent(self._station, self._era)

    def broke(self) -> None:
        """The answer broke off, or did not go on."""
        if not (self._light or self._failed):
            self._balance.broke(self._station, self._era)
        self._failed = True

    def whole(self) -> None:
        """All of the answer has come."""
        if not (self._light or self._failed):
            self._balance.whole(self._station, self._era)

    def rest(self, seconds: float) -> None:
        """The upstream asks to be left alone for so long."""
        self._balance.rest(self._station, seconds)

    def end(self) -> None:
        if not self._open:
            return
        self._open = False
        if self._trial:
            self._station.health.leave(self._era)
        if self.on_end is not None:
            self.on_end()
        self._balance.ended(self._station, slot=self._slot)

    def _change(self, learn: Callable[[], None]) -> None:
        """Let the limit learn; if it rises there is room."""
        before = self._station.limit.value
        learn()
        if self._station.limit.value > before:
            self._balance.tell()
