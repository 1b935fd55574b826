"""Limits on what keys may use, from settings. Where nothing is limited there is no part for it."""

from collections.abc import Iterable

from cacheproxy.core.rates import Limits
from cacheproxy.engine.rates import Common, Rates
from cacheproxy.ports import Clock
from cacheproxy.schema.rates import RatesRowSettings, RatesSettings
from cacheproxy.stores.rates import LocalCounters
from cacheproxy.telemetry import Telemetry


def limits(told: RatesSettings) -> Limits:
    """What holds where no rule says otherwise."""
    return Limits(told.requests_per_minute, told.tokens_per_minute)


def rates(  # noqa: PLR0913 - its parts, by name
    told: RatesSettings, rows: Iterable[RatesRowSettings], *, common: Common | None, deadline: float, clock: Clock,
    telemetry: Telemetry, hidden: bool,
) -> Rates | None:  # fmt: skip
    """What lets requests through; None if neither the settings nor any of the rules' `rows` limit anything. `common`:
    the count that replicas share; `hidden`: nothing may tell a hit from a miss."""
    if not limits(told) and not any(row.requests_per_minute or row.tokens_per_minute for row in rows):
        return None
    own = LocalCounters(clock)
    found = Rates(own=own, common=common, deadline=deadline, clock=clock, journal=telemetry, hidden=hidden)
    if common is not None:
        telemetry.left_alone(found.breaker.name, lambda: not found.breaker.closed)
    return found
