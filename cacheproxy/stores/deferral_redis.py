"""Requests that wait for their turn, in the Redis that replicas share: a hash for each, which expires with it.

All lie in one slot. Time is the server's alone, so that no two replicas disagree about a lease. *due* orders those that
have not ended by the moment from which they may be claimed; *all* orders every one by the moment at which it is gone;
*sums* counts what all hold, and the open ones of each owner; *open* says of what is counted whose it is and how large,
so that what expired is taken off the sums without being there any more.
"""

from typing import Any

from cacheproxy.core.deferral import Bounds, Row, State
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_keys import Keys
from cacheproxy.stores.redis_scripts import Script

MOST_SWEPT = 200
CANDIDATES = 16
SPARE = 60_000
"""Milliseconds by which what counts outlives what is counted."""

_COMMON = """
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function add(sums, field, amount)
  local value = (tonumber(redis.call('HGET', sums, field) or '0') or 0) + amount
  if value > 0 then
    redis.call('HSET', sums, field, string.format('%.0f', value))
  else
    redis.call('HDEL', sums, field)
  end
end
local function note(told)
  return string.match(told or '', '^(%d+) (%x*)$')
end
-- What one counts is taken off: its bytes, and its owner's share if it has not ended.
local function take_off(sums, book, name)
  local size, owner = note(redis.call('HGET', book, name))
  if not size then return end
  add(sums, 'bytes', -tonumber(size))
  if owner ~= '' then add(sums, owner, -1); add(sums, 'open', -1) end
  redis.call('HDEL', book, name)
end
local function sweep(sums, book, all, due, ms, most)
  local late = redis.call('ZRANGEBYSCORE', all, '-inf', string.format('%.0f', ms), 'LIMIT', 0, most)
  for _, name in ipairs(late) do
    take_off(sums, book, name)
    redis.call('ZREM', all, name)
    redis.call('ZREM', due, name)
  end
end
-- Those whose time to wait is over wait no longer.
local function close(sums, book, due, name)
  local size, owner = note(redis.call('HGET', book, name))
  redis.call('ZREM', due, name)
  if size and owner ~= '' then
    add(sums, owner, -1); add(sums, 'open', -1)
    redis.call('HSET', book, name, size .. ' ')
  end
end
local function outlive(ms, ...)
  for _, key in ipairs({...}) do
    if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, ms) end
  end
end
"""

PUT = Script(
    _COMMON
    + """
-- KEYS: the hash, due, all, sums, book. ARGV: name, owner, content, most bytes, most of one owner, ms to wait at most,
-- ms to be known after its end, ms by which what counts outlives it, how many to sweep.
local ms = now()
sweep(KEYS[4], KEYS[5], KEYS[3], KEYS[2], ms, ARGV[9])
local size = string.len(ARGV[3])
local held = tonumber(redis.call('HGET', KEYS[4], 'bytes') or '0') or 0
local own = tonumber(redis.call('HGET', KEYS[4], ARGV[2]) or '0') or 0
if held + size > tonumber(ARGV[4]) or own >= tonumber(ARGV[5]) then return 0 end
local expires = ms + tonumber(ARGV[6])
local gone = expires + tonumber(ARGV[7])
redis.call('HSET', KEYS[1], 'owner', ARGV[2], 'stage', '0', 'attempts', '0', 'token', '', 'created',
  string.format('%.0f', ms), 'started', '0', 'ended', '0', 'due', string.format('%.0f', ms), 'expires',
  string.format('%.0f', expires), 'sealed', ARGV[3])
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', gone - ms))
redis.call('ZADD', KEYS[2], string.format('%.0f', ms), ARGV[1])
redis.call('ZADD', KEYS[3], string.format('%.0f', gone), ARGV[1])
redis.call('HSET', KEYS[5], ARGV[1], string.format('%d %s', size, ARGV[2]))
add(KEYS[4], 'bytes', size)
add(KEYS[4], ARGV[2], 1)
add(KEYS[4], 'open', 1)
outlive(gone - ms + tonumber(ARGV[8]), KEYS[2], KEYS[3], KEYS[4], KEYS[5])
return 1
"""
)

FIND = Script(
    _COMMON
    + """
-- KEYS: the hash.
local told = redis.call('HMGET', KEYS[1], 'owner', 'stage', 'attempts', 'token', 'created', 'started', 'ended', 'due',
  'expires', 'sealed')
if not told[1] then return nil end
told[#told + 1] = string.format('%.0f', now())
return told
"""
)

DUE = Script(
    _COMMON
    + """
-- KEYS: due. ARGV: how many.
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now()), 'LIMIT', 0, ARGV[1])
"""
)

CLAIM = Script(
    _COMMON
    + """
-- KEYS: the hash, due, sums, book. ARGV: name, token, ms. 1: claimed; 0: it is not there to be claimed.
local ms = now()
local told = redis.call('HMGET', KEYS[1], 'stage', 'due', 'expires', 'attempts')
if not told[1] or told[1] ~= '0' or ms >= tonumber(told[3]) then
  close(KEYS[3], KEYS[4], KEYS[2], ARGV[1])
  return 0
end
if ms < tonumber(told[2]) then return 0 end
local due = string.format('%.0f', ms + tonumber(ARGV[3]))
redis.call('HSET', KEYS[1], 'token', ARGV[2], 'due', due, 'started', string.format('%.0f', ms), 'attempts',
  tonumber(told[4]) + 1)
redis.call('ZADD', KEYS[2], due, ARGV[1])
outlive(redis.call('PTTL', KEYS[1]), KEYS[2])
return 1
"""
)

HOLD = Script(
    _COMMON
    + """
-- KEYS: the hash, due. ARGV: name, token, ms from now on, the token to be, how often claimed (or nothing: as it is).
local told = redis.call('HMGET', KEYS[1], 'stage', 'token')
if told[1] ~= '0' or told[2] ~= ARGV[2] then return 0 end
local due = string.format('%.0f', now() + tonumber(ARGV[3]))
redis.call('HSET', KEYS[1], 'due', due, 'token', ARGV[4])
if ARGV[5] ~= '' then redis.call('HSET', KEYS[1], 'attempts', ARGV[5]) end
redis.call('ZADD', KEYS[2], due, ARGV[1])
outlive(redis.call('PTTL', KEYS[1]), KEYS[2])
return 1
"""
)

FINISH = Script(
    _COMMON
    + """
-- KEYS: the hash, due, all, sums, book. ARGV: name, token, stage, content, ms to be known, ms by which what counts
-- outlives it.
local told = redis.call('HMGET', KEYS[1], 'stage', 'token')
if told[1] ~= '0' or told[2] ~= ARGV[2] then return 0 end
local ms, size = now(), string.len(ARGV[4])
redis.call('HSET', KEYS[1], 'stage', ARGV[3], 'token', '', 'ended', string.format('%.0f', ms), 'sealed', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('ZREM', KEYS[2], ARGV[1])
take_off(KEYS[4], KEYS[5], ARGV[1])
redis.call('HSET', KEYS[5], ARGV[1], string.format('%d ', size))
add(KEYS[4], 'bytes', size)
redis.call('ZADD', KEYS[3], string.format('%.0f', ms + tonumber(ARGV[5])), ARGV[1])
outlive(tonumber(ARGV[5]) + tonumber(ARGV[6]), KEYS[3], KEYS[4], KEYS[5])
return 1
"""
)

FORGET = Script(
    _COMMON
    + """
-- KEYS: the hash, due, all, sums, book. ARGV: name.
take_off(KEYS[4], KEYS[5], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return redis.call('UNLINK', KEYS[1])
"""
)

CENSUS = Script(
    _COMMON
    + """
-- KEYS: due, all, sums, book. ARGV: how many to sweep. How many are open, and the bytes that all hold.
sweep(KEYS[3], KEYS[4], KEYS[2], KEYS[1], now(), ARGV[1])
return {redis.call('HGET', KEYS[3], 'open') or '0', redis.call('HGET', KEYS[3], 'bytes') or '0'}
"""
)

_STATES = {b"0": State.QUEUED, b"1": State.DONE, b"2": State.FAILED}


class RedisDeferrals:
    """The `Deferrals` in the Redis behind `calls`, which is not closed here."""

    durable = True

    def __init__(self, calls: Calls, keys: Keys) -> None:
        self._calls = calls
        self._prefix = f"{keys.prefix}:{{0}}:d"
        self._due, self._all = f"{self._prefix}-due", f"{self._prefix}-all"
        self._sums, self._book = f"{self._prefix}-sums", f"{self._prefix}-book"

    def __repr__(self) -> str:
        return f"<RedisDeferrals {self._calls.link!r}>"

    async def put(self, name: str, owner: bytes, sealed: bytes, bounds: Bounds) -> bool:
        keys = [self._key(name), self._due, self._all, self._sums, self._book]
        found = await self._calls.script(
            PUT, keys, name, owner.hex(), sealed, bounds.most_bytes, bounds.most, _ms(bounds.max_age), _ms(bounds.ttl),
            SPARE, MOST_SWEPT,
        )  # fmt: skip
        return bool(found)

    async def find(self, name: str) -> Row | None:
        told = await self._calls.script(FIND, [self._key(name)])
        return None if told is None else await self._calls.understood(lambda: _row(name, told))

    async def claim(self, token: str, lease: float) -> Row | None:
        names = await self._calls.script(DUE, [self._due], CANDIDATES)
        for told in await self._calls.understood(lambda: [name.decode("ascii") for name in names]):
            keys = [self._key(told), self._due, self._sums, self._book]
            if await self._calls.script(CLAIM, keys, told, token, _ms(lease)):
                return await self.find(told)
        return None

    async def hold(self, name: str, token: str, lease: float) -> bool:
        return bool(
            await self._calls.script(HOLD, [self._key(name), self._due], name, token, _ms(lease), token, "")
        )  # fmt: skip

    async def release(self, name: str, token: str, pause: float, attempts: int) -> bool:
        keys = [self._key(name), self._due]
        return bool(await self._calls.script(HOLD, keys, name, token, _ms(pause), "", str(attempts)))

    async def finish(self, name: str, token: str, sealed: bytes, ttl: float, *, failed: bool) -> bool:
        keys = [self._key(name), self._due, self._all, self._sums, self._book]
        stage = "2" if failed else "1"
        return bool(await self._calls.script(FINISH, keys, name, token, stage, sealed, max(1, _ms(ttl)), SPARE))

    async def forget(self, name: str) -> None:
        await self._calls.script(FORGET, [self._key(name), self._due, self._all, self._sums, self._book], name)

    async def census(self) -> tuple[int, int]:
        told = await self._calls.script(CENSUS, [self._due, self._all, self._sums, self._book], MOST_SWEPT)
        return await self._calls.understood(lambda: (int(told[0]), int(told[1])))

    async def close(self) -> None:
        """Nothing is held."""

    def _key(self, name: str) -> str:
        return f"{self._prefix}:{name}"


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


def _row(name: str, told: list[Any]) -> Row:
    """Raises `ValueError`, `TypeError`, `LookupError`."""
    owner, stage, attempts, token, *times, sealed, now = told
    created, started, ended, due, expires = (int(time) / 1000 for time in times)
    state, at = _STATES[stage], int(now) / 1000
    if state is State.QUEUED:
        if token and at < due:
            state = State.RUNNING
        elif at >= expires:
            state, sealed, ended = State.FAILED, b"", expires
    return Row(name, bytes.fromhex(owner.decode("ascii")), state, sealed, int(attempts), created, started, ended)
