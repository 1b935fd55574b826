"""Witnesses in Redis, whom all replicas share: a set for each name, which expires by itself. One round trip each."""

from collections.abc import Sequence

from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_keys import Keys
from cacheproxy.stores.redis_scripts import Script

MOST = 64
"""Members of a set; more are not needed by anybody."""

ADD = Script(
    """
-- KEYS: the set. ARGV: most members, when it expires (ms since the epoch), members.
for at = 3, #ARGV do
  if redis.call('SCARD', KEYS[1]) < tonumber(ARGV[1]) then redis.call('SADD', KEYS[1], ARGV[at]) end
end
redis.call('PEXPIREAT', KEYS[1], ARGV[2])
return redis.call('SCARD', KEYS[1])
"""
)


class RedisWitnesses:
    """Witnesses in the Redis behind `calls`, which is not closed here."""

    def __init__(self, calls: Calls, keys: Keys) -> None:
        self._calls = calls
        self._keys = keys

    def __repr__(self) -> str:
        return f"<RedisWitnesses {self._calls.link!r}>"

    async def add(self, name: bytes, members: Sequence[bytes], until: float) -> int:
        reply = await self._calls.script(ADD, [self._key(name)], MOST, max(1, int(until * 1000)), *members)
        return await self._number(reply)

    async def count(self, name: bytes) -> int:
        return await self._number(await self._calls.run("SCARD", self._key(name)))

    async def _number(self, reply: object) -> int:
        """Raises `Trouble` if it is none."""
        if type(reply) is not int:
            raise await self._calls.distrust("not a count of witnesses")
        return reply

    def _key(self, name: bytes) -> str:
        shard = self._keys.shard_of_id(name.hex())
        return f"{self._keys.prefix}:{{{shard:x}}}:w:{name.hex()}"
