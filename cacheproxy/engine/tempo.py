"""How a stream reaches its caller: the time to its first bytes, the pauses between the next ones, and the stalls.

Measured where the bytes are handed on, so live, shared and replayed streams are told apart by nothing but `source`.
"""

from time import perf_counter

from cacheproxy.ports import Journal


class Tempo:
    """The clock of one stream. `began`: when its request came, by `perf_counter`; `stall`: the pause from which on it
    counts as stalled, in seconds."""

    __slots__ = ("_began", "_journal", "_last", "_source", "_stall")

    def __init__(self, journal: Journal, source: str, stall: float, began: float) -> None:
        self._journal = journal
        self._source = source
        self._stall = stall
        self._began = began
        self._last = 0.0

    def note(self) -> None:
        """Bytes are handed on now."""
        now = perf_counter()
        if not self._last:
            self._journal.observe("first_event", now - self._began, self._source)
        else:
            pause = now - self._last
            self._journal.observe("event_pause", pause, self._source)
            if pause > self._stall:
                self._journal.count("stalled", self._source)
        self._last = now
