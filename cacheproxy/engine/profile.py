"""How long each stage of one request took, and what was said of it in the end."""

from time import perf_counter

from cacheproxy.core.outcome import Outcome


class Stages:
    """A stopwatch with laps. Milliseconds in the header, seconds everywhere else. `outcome`: once a head is written."""

    __slots__ = ("_last", "began", "laps", "outcome")

    def __init__(self) -> None:
        self.began = self._last = perf_counter()
        self.laps: list[tuple[str, float]] = []
        self.outcome: Outcome | None = None

    def lap(self, stage: str) -> None:
        """The time since the last lap was spent in `stage`."""
        now = perf_counter()
        self.laps.append((stage, now - self._last))
        self._last = now

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
