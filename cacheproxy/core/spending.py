"""What has been spent within the last hour, in calls and tokens, and whether more may be. Pure; the time is given."""

from collections import deque

HOUR = 3600.0


class Spending:
    """At most `calls` calls an hour, and none once `tokens` tokens have been spent in it."""

    def __init__(self, calls: int, tokens: int) -> None:
        self._calls = calls
        self._tokens = tokens
        self._spent: deque[tuple[float, int]] = deque()

    def __repr__(self) -> str:
        return f"<Spending {len(self._spent)}/{self._calls} calls, {self._sum}/{self._tokens} tokens>"

    def begin(self, now: float) -> bool:
        """Count a call; False, and it is not, if it must not be made."""
        while self._spent and self._spent[0][0] <= now - HOUR:
            self._spent.popleft()
        if len(self._spent) >= self._calls or self._sum >= self._tokens:
            return False
        self._spent.append((now, 0))
        return True

    def settle(self, tokens: int) -> None:
        """The call that began last has cost so many."""
        if self._spent:
            began, _ = self._spent.pop()
            self._spent.append((began, tokens))

    @property
    def _sum(self) -> int:
        return sum(tokens for _, tokens in self._spent)
