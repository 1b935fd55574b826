"""The stream on which versions of knowledge bases are told in Redis, read by all replicas as one group.

What one replica has taken and not done is another's after a while. The stream is its writers': nothing is taken out of
it, and it is not made here.
"""

import time
from collections.abc import Sequence
from typing import Any

from redis.exceptions import ResponseError

from cacheproxy.errors import Trouble
from cacheproxy.ports import Notice
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_scripts import Script
from cacheproxy.stores.redis_trouble import trouble

STREAM = "cacheproxy:events"
AT_ONCE = 100
ABANDONED = 10.0
"""Seconds after which an event is taken over whose reader has not done it."""
LOOKING = 2.0
"""Seconds between two looks for such."""

# Scripts, since a cluster's client knows where their keys are.
READ = Script(
    """
-- KEYS: the stream. ARGV: group, reader, count, after which id.
local told = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', ARGV[3], 'STREAMS', KEYS[1], ARGV[4])
return told and told[1] and told[1][2] or {}
"""
)
TAKE_OVER = Script(
    """
-- KEYS: the stream. ARGV: group, reader, count, ms.
return redis.call('XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[4], '0', 'COUNT', ARGV[3])[2]
"""
)
HOLD = Script(
    """
-- KEYS: the stream. ARGV: group, reader, id.
return redis.call('XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3], 'COUNT', 1, 'JUSTID')[1]
"""
)


class RedisEvents:
    """`Notices` in the Redis behind `calls`, which is not closed here. `group`: who reads together; `reader`: the name
    of this one."""

    def __init__(self, calls: Calls, group: str, reader: str, *, abandoned: float = ABANDONED) -> None:
        self._calls = calls
        self._group = group
        self._reader = reader
        self._abandoned = abandoned
        self._is_member = False
        self._is_unsure = False  # whether we may have been given what did not arrive
        self._looked_at = -LOOKING

    def __repr__(self) -> str:
        return f"<RedisEvents {self._calls.link!r}>"

    async def take(self) -> Sequence[Notice]:
        try:
            return await self._take()
        except Trouble:
            self._is_member = False
            raise

    async def _take(self) -> Sequence[Notice]:
        if not await self._join():
            return ()
        found = await self._read("0") if self._is_unsure else []
        if not found:
            self._is_unsure = False
            found = await self._read(">")
        if time.monotonic() - self._looked_at >= min(LOOKING, self._abandoned):
            self._looked_at = time.monotonic()
            found += await self._take_over()
        return found

    async def _join(self) -> bool:
        """Whether there is a stream; then we are of the group, which begins with its oldest event."""
        if self._is_member:
            return True
        if not await self._calls.run("EXISTS", STREAM):
            return False
        try:
            await self._calls.link.redis.execute_command("XGROUP CREATE", STREAM, self._group, "0")
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise trouble(error) from None
        except Exception as error:  # noqa: BLE001 - whatever it is, it is trouble with Redis
            raise trouble(error) from None
        self._is_member = self._is_unsure = True
        return True

    async def _read(self, after: str) -> list[Notice]:
        reply = await self._calls.script(READ, [STREAM], self._group, self._reader, AT_ONCE, after)
        return await self._calls.understood(lambda: _notices(reply))

    async def _take_over(self) -> list[Notice]:
        idle = int(self._abandoned * 1000)
        reply = await self._calls.script(TAKE_OVER, [STREAM], self._group, self._reader, AT_ONCE, idle)
        # Redis 6.2 does not say which those are that were cut off the stream; they are ours now, and read as such.
        found = await self._calls.understood(lambda: _notices([row for row in reply if row is not None]))
        self._is_unsure = self._is_unsure or len(found) < len(reply)
        return found

    async def oldest(self) -> bytes | None:
        if not self._is_member:
            return None
        reply = await self._calls.run("XPENDING", STREAM, self._group)
        found = await self._calls.understood(lambda: reply["min"])
        return found if isinstance(found, bytes) else None

    async def hold(self, identity: bytes) -> None:
        await self._calls.script(HOLD, [STREAM], self._group, self._reader, identity)

    async def done(self, identity: bytes) -> None:
        await self._calls.run("XACK", STREAM, self._group, identity)


def _notices(rows: Any) -> list[Notice]:
    """Of an event that was cut off the stream there are no fields."""
    return [
        Notice(bytes(identity), dict(zip(fields[::2], fields[1::2], strict=True)) if fields else {})
        for identity, fields in rows
    ]
