"""Two texts, each read by every guard once, and what the guards share of their comparison. Pure."""

from dataclasses import dataclass
from functools import cached_property

from cacheproxy.core.guards.dates import Dates
from cacheproxy.core.guards.denial import Denial
from cacheproxy.core.guards.order import Order
from cacheproxy.core.guards.polarity import Poles
from cacheproxy.core.guards.quantities import Quantities
from cacheproxy.core.guards.spans import Spans
from cacheproxy.core.guards.substance import Rest, Side, rest
from cacheproxy.core.guards.traits import Traits


@dataclass(frozen=True, slots=True)
class Features:
    """A `text`, and how the guards read it. `sure`: there is no doubt about its `language`; `codes`: names of letters
    and digits; `names`: words that are written as names."""

    text: str
    language: str
    sure: bool
    spans: Spans
    quantities: Quantities
    dates: Dates
    codes: frozenset[str]
    names: frozenset[str]
    denial: Denial
    poles: Poles
    traits: Traits
    order: Order
    side: Side


class Pair:
    """Two texts that are compared."""

    def __init__(self, asked: Features, stored: Features) -> None:
        self.asked, self.stored = asked, stored

    @cached_property
    def rest(self) -> Rest:
        """The words of substance that only one of them has. Where both say that something is not so, the words that
        say it count for nothing."""
        ours, theirs = self.asked.denial, self.stored.denial
        found = rest(self.asked.side, self.stored.side)
        if (ours.said or ours.doubts) and (theirs.said or theirs.doubts):
            return found.without(ours.doubts | theirs.doubts)
        return found

    @cached_property
    def shared(self) -> int:
        """How many words of substance both have."""
        ours, theirs = self.asked.side.substance, self.stored.side.substance
        return min(len(ours) - len(self.rest.asked), len(theirs) - len(self.rest.stored))
