"""How much each key may use of the backend: requests as they are let through, tokens as soon as it is known what they
were.

What is shared with other replicas is asked, once for a request; as long as it cannot tell, this process's own count
decides: nobody is refused for trouble of ours, and nobody is unlimited. Everything that this process lets through is
counted here in any case, so that its own count knows the last minute when it is needed.

Under cancellation: who leaves while the shared count is asked may have been counted; that is one request of the
caller's own, for a minute. What is spent is counted where nothing awaits, so that no leaving loses it.
"""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeVar

from cachetools import TTLCache

from cacheproxy.core import rates
from cacheproxy.core.affinity import Route
from cacheproxy.core.model import Fields
from cacheproxy.core.rates import Booking, Level, Limits, Usage
from cacheproxy.engine.breaker import Breaker
from cacheproxy.errors import RateLimited
from cacheproxy.ports import Clock, Journal

T = TypeVar("T")
REPEATED = 1.0
"""Seconds for which a refusal by the shared count is repeated without asking it, so that hammering costs nothing."""
KEYS = 4096
"""Keys that are refused so."""
AT_ONCE = 256
"""Uses that are told to the shared count in one round trip."""
_SHORT = {"requests": "requests per min (RPM)", "tokens": "tokens per min (TPM)"}


class Own(Protocol):
    """The count of this process. By name (16 bytes)."""

    def admit(self, name: bytes, limits: Limits) -> Usage:
        """Count a request, if these limits let it through."""

    def add(self, name: bytes, requests: int, tokens: int) -> int:
        """Count what was used, whatever the limits are; the second in which it is counted."""

    def take_back(self, name: bytes, second: int, requests: int) -> None:
        """Requests that were counted in that second were none."""


class Common(Protocol):
    """The count of all replicas. Raises `Trouble`."""

    async def admit(self, name: bytes, limits: Limits) -> Usage:
        """Count a request, if these limits let it through. One round trip."""

    async def book(self, uses: Sequence[tuple[bytes, int, int]], returns: Sequence[tuple[bytes, int, int]]) -> None:
        """Count `uses`: names, requests and tokens; and take back `returns`: names, seconds in which requests were
        counted, and how many. One round trip."""


class Asking(Protocol):
    """A request that asks to be let through: whose it is (`tenant`: the fingerprint of a credential) and what holds for
    it; and, once it has been let through, that it was counted."""

    tenant: bytes
    limits: Limits
    booking: Booking | None


class Entering(Asking, Protocol):
    """One that comes to a gate; `since`: when it came first, by the monotonic clock."""

    since: float | None


class Inner(Protocol):
    """The gate behind a `Toll`."""

    async def enter(self, standing: Any, route: Route | None, avoid: Collection[Any] = ()) -> Any:
        """Let it in. Raises `AnswerError`."""


class Rates:
    """Lets requests through, and counts them. `common`: None where no replica shares; `deadline`: seconds that it may
    take; `hidden`: no answer tells how things stand, since those that cost nothing do not."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, *, own: Own, common: Common | None, deadline: float, clock: Clock, journal: Journal, hidden: bool = False
    ) -> None:
        self._own = own
        self._common = common
        self._clock = clock
        self._hidden = hidden
        # What is said late would be counted twice where the answer alone was lost.
        self.breaker = Breaker("rate limits", deadline, journal, proof=lambda _: True)
        self._uses: dict[bytes, int] = {}
        self._returns: dict[tuple[bytes, int], int] = {}
        self._telling: asyncio.Task[None] | None = None
        self._refused: TTLCache[bytes, tuple[tuple[Level, ...], float]] = TTLCache(KEYS, REPEATED, clock.monotonic)

    def __repr__(self) -> str:
        return f"<Rates {self._own!r} {self._common!r} {self.breaker!r}>"

    async def admit(self, standing: Asking) -> None:
        """Count this request. Raises `RateLimited` if it has to wait; then it was not counted."""
        limits = standing.limits
        if not limits:
            return
        name = rates.name(standing.tenant, limits)
        self._repeat(name)
        told = None if self._common is None else await self.breaker.call(partial(self._common.admit, name, limits))
        if isinstance(told, Usage):
            usage, common = told, told.second
            here = self._own.add(name, 1, 0) if told.admitted else 0
            if not told.admitted:
                self._refused[name] = (told.levels, self._clock.monotonic())
        else:
            usage, common = self._own.admit(name, limits), None
            here = usage.second
        if not usage.admitted:
            raise _refusal(usage.levels)
        standing.booking = Booking(name, usage.levels, self._clock.monotonic(), here, common)

    def _repeat(self, name: bytes) -> None:
        """Refuse what has just been refused, as long as nothing can have changed. Raises `RateLimited`."""
        levels, at = self._refused.get(name, ((), 0.0))
        since = self._clock.monotonic() - at
        if levels and rates.tightest(levels).wait > since:
            raise _refusal(levels, since)

    def give_back(self, standing: Asking) -> None:
        """A request that was let through has not gone to the backend."""
        booking, standing.booking = standing.booking, None
        if booking is None:
            return
        self._own.take_back(booking.name, booking.here, 1)
        self._refused.pop(booking.name, None)
        if booking.common is not None:
            place = booking.name, booking.common
            self._returns[place] = self._returns.get(place, 0) + 1
            self._tell()

    def spend(self, standing: Asking, tokens: int) -> None:
        """What a request that was let through has cost, as soon as that is known, or some of it."""
        booking = standing.booking
        if booking is None or tokens <= 0 or not standing.limits.tokens:
            return
        self._own.add(booking.name, 0, tokens)
        self._refused.pop(booking.name, None)
        if self._common is not None:
            self._uses[booking.name] = self._uses.get(booking.name, 0) + tokens
            self._tell()

    def fields(self, standing: Asking) -> Fields:
        """The header lines that tell the caller how it stands; none if it was not counted."""
        booking = standing.booking
        if booking is None or self._hidden:
            return ()
        return rates.lines(booking.levels, self._clock.monotonic() - booking.at)

    async def close(self) -> None:
        """Tell the others what they have not been told, and let go."""
        if self._telling is not None:
            await asyncio.wait([self._telling])
        await self.breaker.close()

    def _tell(self) -> None:
        if self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell_all())

    async def _tell_all(self) -> None:
        """Tell all replicas' count what there is to be told, together what comes meanwhile. What it cannot be told now
        it is not told: this process's own count has it, and takes over."""
        common = self._common
        try:
            while common is not None and (self._uses or self._returns):
                await self.breaker.call(partial(_book, common, _taken(self._uses), _taken(self._returns)))
        finally:
            self._telling = None


class Toll:
    """A gate where nobody waits: who is let through goes on to the `inner` one at once."""

    def __init__(self, rates: Rates, inner: Inner, clock: Clock) -> None:
        self._rates = rates
        self._inner = inner
        self._clock = clock

    async def enter(self, standing: Entering, route: Route | None, avoid: Collection[Any] = ()) -> Any:
        """What the inner gate gives. Raises `AnswerError`."""
        if standing.since is None:  # else it is tried on another backend, and was counted before
            await self._rates.admit(standing)
            standing.since = self._clock.monotonic()
        try:
            return await self._inner.enter(standing, route, avoid)
        except BaseException:
            self._rates.give_back(standing)
            raise


def _taken(waiting: dict[T, int]) -> list[tuple[T, int]]:
    """Those that have waited longest, taken out."""
    return [(key, waiting.pop(key)) for key in list(islice(waiting, AT_ONCE))]


async def _book(common: Common, uses: list[tuple[bytes, int]], returns: list[tuple[tuple[bytes, int], int]]) -> None:
    await common.book(
        [(name, 0, tokens) for name, tokens in uses],
        [(name, second, requests) for (name, second), requests in returns],
    )


def _refusal(levels: Sequence[Level], since: float = 0.0) -> RateLimited:
    """For how things stood so many seconds ago."""
    tightest = rates.tightest(levels)
    seconds = rates.seconds(tightest.wait - since)
    return RateLimited(
        f"Rate limit reached for this key on {_SHORT[tightest.kind]}: Limit {tightest.limit}, Used {tightest.used}. "
        f"Please try again in {seconds}s.",
        seconds, tightest.kind, rates.lines(levels, since),
    )  # fmt: skip
