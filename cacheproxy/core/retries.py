"""How often a request may be tried again on another backend: a share of all, so that trouble does not multiply itself.
Pure: time comes as an argument.
"""

from collections import deque

WINDOW = 10
"""Seconds."""
FLOOR = 10
"""So many in a window are always allowed."""


class RetryBudget:
    """`share`: of the requests of the last `WINDOW` seconds, 0 to 1."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._seconds: deque[list[int]] = deque()  # [second, requests, retries], oldest first
        self._requests = self._retries = 0

    def __repr__(self) -> str:
        return f"<RetryBudget {self._retries} of {self._requests}>"

    def note(self, now: float) -> None:
        """A request has come."""
        self._at(now)[1] += 1
        self._requests += 1

    def allow(self, now: float) -> bool:
        """Whether one may be tried again now. It counts if so."""
        second = self._at(now)
        if self._retries >= FLOOR + self._share * self._requests:
            return False
        second[2] += 1
        self._retries += 1
        return True

    def _at(self, now: float) -> list[int]:
        second = int(now)
        while self._seconds and self._seconds[0][0] <= second - WINDOW:
            _, requests, retries = self._seconds.popleft()
            self._requests -= requests
            self._retries -= retries
        if not self._seconds or self._seconds[-1][0] < second:
            self._seconds.append([second, 0, 0])
        return self._seconds[-1]
