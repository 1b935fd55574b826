"""Requests that wait for their turn, in memory: they end with the process."""

from dataclasses import dataclass, replace

from cacheproxy.core.deferral import Bounds, Row, State
from cacheproxy.ports import Clock


@dataclass(slots=True)
class _Kept:
    row: Row
    due: float
    expires: float
    gone: float
    token: str = ""


class MemoryDeferrals:
    """The `Deferrals` of one process."""

    durable = False

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, _Kept] = {}

    def __repr__(self) -> str:
        return f"<MemoryDeferrals {len(self._kept)}>"

    async def put(self, name: str, owner: bytes, sealed: bytes, bounds: Bounds) -> bool:
        now = self._sweep()
        held = sum(len(one.row.sealed) for one in self._kept.values()) + len(sealed)
        own = sum(one.row.owner == owner and self._is_open(one, now) for one in self._kept.values())
        if held > bounds.most_bytes or own >= bounds.most:
            return False
        row = Row(name, owner, State.QUEUED, sealed, created_at=now)
        expires = now + bounds.max_age
        self._kept[name] = _Kept(row, now, expires, expires + bounds.ttl)
        return True

    async def find(self, name: str) -> Row | None:
        now = self._sweep()
        one = self._kept.get(name)
        if one is None or one.row.ended_at:
            return one.row if one is not None else None
        if now < one.due and one.token:
            return replace(one.row, state=State.RUNNING)
        if now >= one.expires:
            return replace(one.row, state=State.FAILED, sealed=b"", ended_at=one.expires)
        return one.row

    async def claim(self, token: str, lease: float) -> Row | None:
        now = self._sweep()
        due = [one for one in self._kept.values() if self._is_open(one, now) and one.due <= now]
        if not due:
            return None
        one = min(due, key=lambda one: one.due)
        one.row = replace(one.row, attempts=one.row.attempts + 1, started_at=now)
        one.token, one.due = token, now + lease
        return replace(one.row, state=State.RUNNING)

    async def hold(self, name: str, token: str, lease: float) -> bool:
        if (one := self._own(name, token)) is None:
            return False
        one.due = self._clock.now() + lease
        return True

    async def release(self, name: str, token: str, pause: float, attempts: int) -> bool:
        if (one := self._own(name, token)) is None:
            return False
        one.row = replace(one.row, attempts=attempts)
        one.token, one.due = "", self._clock.now() + pause
        return True

    async def finish(self, name: str, token: str, sealed: bytes, ttl: float, *, failed: bool) -> bool:
        if (one := self._own(name, token)) is None:
            return False
        now = self._clock.now()
        state = State.FAILED if failed else State.DONE
        one.row = replace(one.row, state=state, sealed=sealed, ended_at=now)
        one.token, one.gone = "", now + ttl
        return True

    async def forget(self, name: str) -> None:
        self._kept.pop(name, None)

    async def census(self) -> tuple[int, int]:
        now = self._sweep()
        still = sum(self._is_open(one, now) for one in self._kept.values())
        return still, sum(len(one.row.sealed) for one in self._kept.values())

    async def close(self) -> None:
        self._kept.clear()

    def _own(self, name: str, token: str) -> _Kept | None:
        one = self._kept.get(name)
        return one if one is not None and one.token == token and not one.row.ended_at else None

    def _is_open(self, one: _Kept, now: float) -> bool:
        return not one.row.ended_at and now < one.expires

    def _sweep(self) -> float:
        now = self._clock.now()
        for name in [name for name, one in self._kept.items() if now >= one.gone]:
            del self._kept[name]
        return now
