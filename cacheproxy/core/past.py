"""The removals of the past, as far as they are remembered: whether what was asked for at some time has been meant by
one since. For what comes back from outside, such as an import: it was out of reach when they were carried out."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from cacheproxy.core.model import Entry
from cacheproxy.core.removal import Removal, Selector


class Ordered(NamedTuple):
    """A removal that was ordered at `now`, in seconds since the epoch, by the clock of the proxy that was asked."""

    now: float
    selector: Selector
    removal: Removal = Removal.HARD


@dataclass(frozen=True, slots=True)
class Past:
    """All `removals` that were acknowledged since the time `since` (seconds since the epoch), oldest first; some that
    were only begun are among them. What was before is not known."""

    since: float
    removals: tuple[Ordered, ...] = ()

    def reaches(self, at: float) -> bool:
        """Whether everything since `at` is known."""
        return self.since <= at

    def fells(self, entry: Entry, at: float, slack: float = 0.0) -> bool:
        """Whether a removal since `at`, when the answer was asked for, means `entry`, hard or soft. Where clocks may
        differ by `slack` seconds, one that was so much earlier counts too."""
        return any(was.now >= at - slack and was.selector.means(entry, was.now) for was in self.removals)


def after(past: Past, removals: Iterable[Ordered], most: int) -> Past:
    """The same with `removals` added, but no more than the last `most`."""
    known = (*past.removals, *removals)
    gone = max(0, len(known) - most)
    return Past(max(past.since, known[gone - 1].now) if gone else past.since, known[gone:])
