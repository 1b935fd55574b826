"""The versions of knowledge bases that all replicas share: one hash, a field for each.

A field is named by a hash of the knowledge base's name; a smaller number never takes the place of a greater one,
whichever replica is slower.
"""

import hashlib

from cacheproxy.core import registry
from cacheproxy.core.knowledge import Known
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_keys import Keys
from cacheproxy.stores.redis_scripts import Script

YEAR = 366 * 86_400_000
"""Milliseconds that versions are remembered after the last one was told."""

KEEP = Script(
    """
-- KEYS: the hash. ARGV: field, line, ms to live.
local function number(line)
  local read, told = pcall(cjson.decode, line)
  return read and type(told) == 'table' and type(told.sequence) == 'number' and told.sequence or nil
end
local before = redis.call('HGET', KEYS[1], ARGV[1])
local last, this = before and number(before), number(ARGV[2])
if not (last and this and this < last) then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""
)


class RedisRegistry:
    """A `Registry` in the Redis behind `calls`, which is not closed here."""

    def __init__(self, calls: Calls, keys: Keys) -> None:
        self._calls = calls
        self._key = f"{keys.prefix}:{{0}}:kb"

    def __repr__(self) -> str:
        return f"<RedisRegistry {self._calls.link!r}>"

    async def versions(self) -> dict[str, Known]:
        lines = await self._calls.run("HVALS", self._key)
        found = await self._calls.understood(lambda: [registry.decode(line) for line in lines])
        return dict(pair for pair in found if pair is not None)

    async def keep(self, name: str, known: Known) -> None:
        field = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
        await self._calls.script(KEEP, [self._key], field, registry.encode(name, known), YEAR)

    async def close(self) -> None:
        """Nothing is held."""
