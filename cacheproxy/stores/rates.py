"""What keys have used lately, in this process."""

from collections import OrderedDict

from cacheproxy.core import rates
from cacheproxy.core.rates import Limits, Usage, Window
from cacheproxy.ports import Clock

MOST = 65_536
"""Keys that are known. More than so many in one minute, each with a request for the backend, are no callers; the one
that has been away longest is forgotten then."""


class LocalCounters:
    """Windows by name (16 bytes). A name that nothing counts for any more is forgotten."""

    def __init__(self, clock: Clock, most: int = MOST) -> None:
        self._clock = clock
        self._most = most
        self._windows: OrderedDict[bytes, Window] = OrderedDict()
        """The one that was used last comes last."""

    def __repr__(self) -> str:
        return f"<LocalCounters of {len(self._windows)} keys>"

    def admit(self, name: bytes, limits: Limits) -> Usage:
        """Count a request, if these limits let it through."""
        now = self._clock.monotonic()
        window = self._windows.get(name) or Window()
        if not rates.admits(limits, window.slots(now)):
            return Usage(False, rates.levels(limits, window.slots(now), now))
        second = self.add(name, 1, 0)
        return Usage(True, rates.levels(limits, self._windows[name].slots(now), now), second)

    def add(self, name: bytes, requests: int, tokens: int) -> int:
        """Count what was used, whatever the limits are; the second in which it is counted."""
        now = self._clock.monotonic()
        window = self._windows.setdefault(name, Window())
        self._windows.move_to_end(name)
        second = window.add(now, requests, tokens)
        self._forget(now)
        return second

    def take_back(self, name: bytes, second: int, requests: int) -> None:
        """Requests that were counted in that second were none."""
        if (window := self._windows.get(name)) is not None:
            window.take_back(second, requests)

    def _forget(self, now: float) -> None:
        """Drop what nothing counts for any more, and what is too much. The one used last stays."""
        while True:
            oldest = next(iter(self._windows))
            if len(self._windows) <= self._most and self._windows[oldest].slots(now):
                return
            del self._windows[oldest]
