"""Fresh, stale but usable, or gone (RFC 9111 sections 4.2, 5.2.1; RFC 5861). Seconds; now is an argument."""

import math
from dataclasses import dataclass
from enum import Enum

from cacheproxy.core.controls import Controls
from cacheproxy.core.model import Entry


class Freshness(Enum):
    """What a stored answer is for one request."""

    FRESH = "fresh"
    STALE = "stale"  # past its lifetime, and the request takes it (max-stale)
    REVALIDATE = "revalidate"  # past its lifetime; may be served once more while a new one is fetched
    EXPIRED = "expired"  # past its lifetime, and nothing allows it
    TOO_OLD = "too_old"  # within its lifetime, but the request wants a younger or longer-lived one


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the configuration allows past a lifetime, in seconds (RFC 5861)."""

    while_revalidate: float = 0.0
    if_error: float = 0.0


NO_ALLOWANCE = Allowance()


def judge(entry: Entry, controls: Controls, now: float, allowance: Allowance = NO_ALLOWANCE) -> Freshness:
    """What `entry` is at `now` for a request with `controls`."""
    if now >= entry.expires_at:
        return Freshness.EXPIRED
    left = entry.fresh_until - now
    too_old = _is_too_old(entry, controls, now)
    if left <= 0:
        if controls.max_stale is not None and -left <= controls.max_stale:
            return Freshness.TOO_OLD if too_old else Freshness.STALE
        # A request that says how old is too old, or how fresh it must be, has not agreed to anything past that.
        if controls.max_stale is not None or too_old or -left >= allowance.while_revalidate:
            return Freshness.EXPIRED
        return Freshness.REVALIDATE
    return Freshness.TOO_OLD if too_old else Freshness.FRESH


def _is_too_old(entry: Entry, controls: Controls, now: float) -> bool:
    age = max(0.0, now - entry.stored_at)
    if controls.max_age is not None and (age > controls.max_age or controls.max_age == 0):
        return True
    return controls.min_fresh is not None and entry.fresh_until - now < controls.min_fresh


def may_rescue(entry: Entry, controls: Controls, now: float, allowance: Allowance) -> bool:
    """Whether `entry` may be served because the backend failed (RFC 5861 section 4)."""
    if now >= entry.expires_at or entry.answer.status != 200 or controls.no_cache or _is_too_old(entry, controls, now):
        return False
    return now - entry.fresh_until < max(allowance.if_error, controls.stale_if_error or 0.0)


def is_due(entry: Entry, now: float, draw: float, share: float) -> bool:
    """Whether a use of a fresh entry at `now` is the one that has it refreshed before it dies.

    Only within the last `share` of its lifetime (or twice the time the backend needed, if that is longer), with a
    probability that rises towards the end; `draw` is uniform in (0, 1]. After Vattani, Chierichetti and Lowenstein,
    "Optimal Probabilistic Cache Stampede Prevention" (2015).
    """
    life, left = entry.fresh_until - entry.stored_at, entry.fresh_until - now
    if share <= 0 or left <= 0 or entry.answer.status != 200:
        return False
    window = min(life / 2, max(share * life, 2 * entry.took))
    return left <= window and left < max(entry.took, window / 4) * -math.log(max(draw, 1e-12))


def lifetime(ttl: float, spread: float) -> float:
    """A lifetime for `ttl` seconds, moved by up to 10 % by `spread` (-1 to 1), so that what was stored together does
    not end together."""
    return ttl * (1.0 + 0.1 * max(-1.0, min(1.0, spread)))
