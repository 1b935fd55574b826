"""A count of faults over the latest cases: bounded in number and in age. Pure; the time is given."""

from collections import deque


class Tally:
    """Of the last `most` cases, none older than `seconds`."""

    def __init__(self, most: int, seconds: float) -> None:
        self._cases: deque[tuple[float, bool]] = deque(maxlen=most)
        self._seconds = seconds

    def __repr__(self) -> str:
        return f"<Tally {sum(wrong for _, wrong in self._cases)} of {len(self._cases)}>"

    def add(self, now: float, *, wrong: bool) -> None:
        """One more case."""
        self._cases.append((now, wrong))

    def counts(self, now: float) -> tuple[int, int]:
        """How many were wrong, of how many."""
        while self._cases and self._cases[0][0] <= now - self._seconds:
            self._cases.popleft()
        return sum(wrong for _, wrong in self._cases), len(self._cases)

    def clear(self) -> None:
        """Begin anew."""
        self._cases.clear()
