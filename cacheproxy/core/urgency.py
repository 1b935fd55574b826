"""How urgent a request is: what it says of itself, what the rules say of it, and which of them counts. Pure.

What a request says is its header, else the `service_tier` of its body; a rule is the bound of that, and holds where a
request says nothing.
"""

from typing import Any

USUAL, LEAST = 1, 2
"""The priority of a request of which nothing is said, and that of work that nobody waits for."""
_BY_TIER = {"priority": 0, "flex": LEAST}
"""Values of `service_tier` that speak of urgency. Others, `auto` and `default` among them, do not."""


def priority(said: int | None, bound: int | None, body: dict[str, Any] | None) -> int:
    """0 to 2; 0 is the most urgent. `said`: by the header; `bound`: by the rules: the best it may have."""
    if said is None and body is not None:
        tier = body.get("service_tier")
        said = _BY_TIER.get(tier) if isinstance(tier, str) else None
    if said is None:
        return USUAL if bound is None else bound
    return said if bound is None else max(said, bound)
