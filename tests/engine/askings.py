"""What the suites of limits ask with, and a count that replicas share."""

import asyncio
from dataclasses import dataclass, field

import pytest

from cacheproxy.core import rates as law
from cacheproxy.core.rates import Booking, Limits, Usage
from cacheproxy.engine.rates import Rates
from cacheproxy.errors import RateLimited
from cacheproxy.stores.rates import LocalCounters
from tests.engine.fakes import Hands, Notes

A, B = b"a" * 16, b"b" * 16


@dataclass
class Asking:
    """A request at the gate."""

    tenant: bytes = A
    limits: Limits = field(default_factory=Limits)
    booking: Booking | None = None
    since: float | None = None


class Common:
    """A count that other replicas share, in this process: another clock, and trouble on demand."""

    def __init__(self, hands: Hands) -> None:
        self.counters = LocalCounters(hands)
        self.trouble: Exception | None = None
        self.hangs = False
        self.calls: list[str] = []
        self.free = asyncio.Event()
        self.free.set()

    async def _met(self, call: str) -> None:
        self.calls.append(call)
        if self.hangs:
            await asyncio.Event().wait()
        await self.free.wait()
        if self.trouble is not None:
            raise self.trouble

    async def admit(self, name, limits):
        await self._met("admit")
        return self.counters.admit(name, limits)

    async def book(self, uses, returns):
        await self._met("book")
        for name, requests, tokens in uses:
            self.counters.add(name, requests, tokens)
        for name, second, requests in returns:
            self.counters.take_back(name, second, requests)

    def usage(self, limits: Limits, who: bytes = A) -> Usage:
        """How it stands."""
        window = self.counters._windows.get(law.name(who, limits))
        slots = window.slots(self.counters._clock.monotonic()) if window else []
        return Usage(False, law.levels(limits, slots, self.counters._clock.monotonic()))


@pytest.fixture
def hands():
    return Hands()


@pytest.fixture
def theirs():
    return Common(Hands(steady=7_000.5))


@pytest.fixture
async def alone(hands):
    rates = Rates(own=LocalCounters(hands), common=None, deadline=0.2, clock=hands, journal=Notes())
    yield rates
    await rates.close()


@pytest.fixture
async def shared(hands, theirs):
    rates = Rates(own=LocalCounters(hands), common=theirs, deadline=30, clock=hands, journal=Notes())
    yield rates
    await rates.close()


async def taken(rates: Rates, limits: Limits, who: bytes = A) -> Asking:
    asking = Asking(who, limits)
    await rates.admit(asking)
    return asking


async def refused(rates: Rates, limits: Limits, who: bytes = A) -> RateLimited:
    asking = Asking(who, limits)
    with pytest.raises(RateLimited) as caught:
        await rates.admit(asking)
    assert asking.booking is None
    assert rates.fields(asking) == ()
    return caught.value


def told(fields) -> dict[str, str]:
    return {name.decode().removeprefix("x-ratelimit-"): value.decode() for name, value in fields}


def used(usage: Usage) -> list[int]:
    return [level.used for level in usage.levels]
