"""Fresh, stale but usable, or gone (RFC 9111 sections 4.2 and 5.2.1). Times are seconds; now is an argument."""

from enum import Enum

from cacheproxy.core.controls import Controls
from cacheproxy.core.model import Entry


class Freshness(Enum):
    """What a stored answer is for one request."""

    FRESH = "fresh"
    STALE = "stale"  # past its lifetime, and the request takes it (max-stale)
    EXPIRED = "expired"  # past its lifetime, and nothing allows it
    TOO_OLD = "too_old"  # within its lifetime, but the request wants a younger or longer-lived one


def judge(entry: Entry, controls: Controls, now: float) -> Freshness:
    """What `entry` is at `now` for a request with `controls`."""
    if now >= entry.expires_at:
        return Freshness.EXPIRED
    age = max(0.0, now - entry.stored_at)
    too_old = controls.max_age is not None and (age > controls.max_age or controls.max_age == 0)
    left = entry.fresh_until - now
    if left <= 0:
        if controls.max_stale is None or -left > controls.max_stale:
            return Freshness.EXPIRED
        return Freshness.TOO_OLD if too_old or controls.min_fresh is not None else Freshness.STALE
    if too_old or (controls.min_fresh is not None and left < controls.min_fresh):
        return Freshness.TOO_OLD
    return Freshness.FRESH


def lifetime(ttl: float, spread: float) -> float:
    """A lifetime for `ttl` seconds, moved by up to 10 % by `spread` (-1 to 1), so that what was stored together does
    not end together."""
    return ttl * (1.0 + 0.1 * max(-1.0, min(1.0, spread)))
