"""Several different answers to one request, in turn: which of them is next, and how many there are."""

from dataclasses import dataclass

from cachetools import LRUCache

from cacheproxy.ports import Clock

REMEMBERED = 65_536


@dataclass(slots=True)
class _Turns:
    taken: int = 0
    most: int = 2**31
    most_until: float = 0.0


class Variants:
    """Counts whose turn it is, per key. Forgotten at a restart, which only begins the round anew."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turns: LRUCache[bytes, _Turns] = LRUCache(REMEMBERED)

    def __repr__(self) -> str:
        return f"<Variants of {len(self._turns)} requests>"

    def turn(self, key: bytes, wanted: int) -> int:
        """The number (from 0) of the answer that is next for `key`, of at most `wanted`."""
        turns = self._turns.get(key)
        if turns is None:
            turns = self._turns[key] = _Turns()
        if self._clock.now() >= turns.most_until:
            turns.most = wanted
        number = turns.taken % max(1, min(wanted, turns.most))
        turns.taken += 1
        return number

    def settle(self, key: bytes, most: int, seconds: float) -> None:
        """The backend has begun to repeat itself: there are only `most` different answers, for some time."""
        turns = self._turns.get(key)
        if turns is not None:
            turns.most, turns.most_until = most, self._clock.now() + seconds
