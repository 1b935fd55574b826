"""What keys have used lately, by all replicas: a hash for each key, which expires by itself. One round trip each.

The time is the server's, so that replicas need not agree on it.
"""

from collections.abc import Sequence
from typing import Any

from cacheproxy.core import rates
from cacheproxy.core.rates import Limits, Slot, Usage
from cacheproxy.errors import Trouble
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_keys import Keys
from cacheproxy.stores.redis_scripts import Script

_MS = int(rates.WINDOW * 1000)

_SLOTS = f"""
-- KEYS: the hash. A field is a second, its value ``<second> <ms> <requests> <tokens>``: what was used in it, the latest
-- of it at that time.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function read(line)
  if line then return string.match(line, '^(%d+) (%d+) (%d+) (%d+)$') end
end
local function write(second, at, requests, tokens)
  local line = string.format('%d %d %d %d', second, at, requests, tokens)
  redis.call('HSET', KEYS[1], second, line)
  return line
end
local function add(requests, tokens)
  local second = string.format('%d', math.floor(now / 1000))
  local _, _, had, cost = read(redis.call('HGET', KEYS[1], second))
  local line = write(second, now, (had or 0) + requests, (cost or 0) + tokens)
  redis.call('PEXPIRE', KEYS[1], {_MS})
  return second, line
end
"""

ADMIT = Script(
    _SLOTS
    + f"""
-- ARGV: most requests, most tokens; 0 for any number. Gives whether the request is let through, the time, the second in
-- which it is counted, and all that counts now.
local live, over, requests, tokens = {{}}, {{}}, 0, 0
for _, line in ipairs(redis.call('HVALS', KEYS[1])) do
  local second, at, asked, cost = read(line)
  if second and at + {_MS} > now then
    live[second], requests, tokens = line, requests + asked, tokens + cost
  elseif second then
    over[#over + 1] = second
  end
end
for _, second in ipairs(over) do redis.call('HDEL', KEYS[1], second) end
local most, dearest = tonumber(ARGV[1]), tonumber(ARGV[2])
local admitted = (most == 0 or requests < most) and (dearest == 0 or tokens < dearest)
local second = '0'
if admitted then
  local line
  second, line = add(1, 0)
  live[second] = line
end
local reply = {{admitted and 1 or 0, now, tonumber(second)}}
for _, line in pairs(live) do reply[#reply + 1] = line end
return reply
"""
)

ADD = Script(
    _SLOTS
    + """
-- ARGV: requests, tokens.
add(ARGV[1], ARGV[2])
return 1
"""
)

TAKE_BACK = Script(
    _SLOTS
    + """
-- ARGV: the second in which they were counted, requests.
local second, at, asked, cost = read(redis.call('HGET', KEYS[1], ARGV[1]))
if second then write(second, at, math.max(0, asked - ARGV[2]), cost) end
return 1
"""
)


class RedisCounters:
    """Counters in the Redis behind `calls`, which is not closed here. Raise `Trouble`."""

    def __init__(self, calls: Calls, keys: Keys) -> None:
        self._calls = calls
        self._keys = keys

    def __repr__(self) -> str:
        return f"<RedisCounters {self._calls.link!r}>"

    async def admit(self, name: bytes, limits: Limits) -> Usage:
        """Count a request of `name` (16 bytes), if these limits let it through."""
        reply = await self._calls.script(ADMIT, [self._key(name)], limits.requests, limits.tokens)
        return await self._calls.understood(lambda: _usage(reply, limits))

    async def book(self, uses: Sequence[tuple[bytes, int, int]], returns: Sequence[tuple[bytes, int, int]]) -> None:
        """Count `uses`: names, requests and tokens; and take back `returns`: names, seconds in which requests were
        counted, and how many. All in one round trip; some may be done where others fail."""
        asked: list[tuple[Script, list[str], tuple[int, int]]] = [
            *((ADD, [self._key(name)], (requests, tokens)) for name, requests, tokens in uses),
            *((TAKE_BACK, [self._key(name)], (second, requests)) for name, second, requests in returns),
        ]
        for reply in await self._calls.scripts(asked) if asked else ():
            if isinstance(reply, Trouble):
                raise reply

    def _key(self, name: bytes) -> str:
        shard = self._keys.shard_of_id(name.hex())
        return f"{self._keys.prefix}:{{{shard:x}}}:rate:{name.hex()}"


def _usage(reply: Any, limits: Limits) -> Usage:
    """Raises `ValueError`, `TypeError` or `LookupError` for another reply than that of `ADMIT`."""
    admitted, ms, second = int(reply[0]), int(reply[1]), int(reply[2])
    slots = []
    for line in reply[3:]:
        number, at, requests, tokens = map(int, line.split(b" "))
        slots.append(Slot(number, at / 1000, requests, tokens))
    return Usage(bool(admitted), rates.levels(limits, sorted(slots), ms / 1000), second)
