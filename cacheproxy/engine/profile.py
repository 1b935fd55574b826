"""How long each stage of one request took, and what was said of it in the end."""

from time import perf_counter

from cacheproxy.core.outcome import Outcome
from cacheproxy.core.standing import Standing


class Stages:
    """A stopwatch with laps. Milliseconds in the header, seconds everywhere else. `outcome`: once a head is written;
    `standing`: of the request to the backend that is waited for."""

    __slots__ = ("_last", "began", "laps", "outcome", "standing")

    def __init__(self) -> None:
        self.began = self._last = perf_counter()
        self.laps: list[tuple[str, float]] = []
        self.outcome: Outcome | None = None
        self.standing: Standing | None = None

    def lap(self, stage: str) -> None:
        """The time since the last lap was spent in `stage`."""
        now = perf_counter()
        self.laps.append((stage, now - self._last))
        self._last = now

    def waited(self, stage: str) -> None:
        """The time since the last lap was spent in `stage`, but for what the request to the backend waited for its
        turn."""
        queued = 0.0 if self.standing is None else self.standing.waited
        if queued:
            queued = min(queued, perf_counter() - self._last)  # who joined late has not waited all of it
            self.laps.append(("queue", queued))
            self._last += queued
        self.lap(stage)

    def place(self) -> int | None:
        """How many are before the request to the backend that is waited for, while it waits for its turn."""
        return None if self.standing is None else self.standing.place

    def skip(self) -> None:
        """The time since the last lap belongs to no stage: the caller was waited for."""
        self._last = perf_counter()

    @property
    def total(self) -> float:
        """Seconds since the request arrived."""
        return perf_counter() - self.began

    def server_timing(self) -> str:
        """The value of ``Server-Timing`` (W3C): one entry a stage and ``total``, `dur` in milliseconds."""
        laps = [f"{stage};dur={seconds * 1000:.3f}" for stage, seconds in self.laps]
        return ", ".join([*laps, f"total;dur={self.total * 1000:.3f}"])
