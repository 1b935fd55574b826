"""The quarantine that all replicas share: a key for each name, which lives a year after its last use.

Nothing of it is remembered here: what another replica puts or lifts holds for the next look. All names have one hash
tag, so that they are looked up in one round trip.
"""

from collections.abc import Iterable, Mapping, Sequence

from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_keys import Keys

YEAR = 366 * 86_400_000
"""Milliseconds."""


class RedisQuarantine:
    """A `Quarantine` in the Redis behind `calls`, which is not closed here."""

    def __init__(self, calls: Calls, keys: Keys) -> None:
        self._calls = calls
        self._prefix = f"{keys.prefix}:{{0}}:q:"

    def __repr__(self) -> str:
        return f"<RedisQuarantine {self._calls.link!r}>"

    async def put(self, notes: Mapping[bytes, bytes]) -> None:
        if notes:
            await self._calls.together([("SET", self._key(name), note, "PX", YEAR) for name, note in notes.items()])

    async def lift(self, names: Iterable[bytes]) -> None:
        if keys := [self._key(name) for name in names]:
            await self._calls.run("UNLINK", *keys)

    async def among(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        if not names:
            return {}
        keys = [self._key(name) for name in names]
        notes, *renewed = await self._calls.together([("MGET", *keys), *(("PEXPIRE", key, YEAR) for key in keys)])
        if not isinstance(notes, list) or len(notes) != len(keys) or len(renewed) != len(keys):
            raise await self._calls.distrust("not as many values as were asked for")
        if not all(note is None or isinstance(note, bytes) for note in notes):
            raise await self._calls.distrust("something that is no value")
        return {name: note for name, note in zip(names, notes, strict=True) if note is not None}

    async def close(self) -> None:
        """Nothing is held."""

    def _key(self, name: bytes) -> str:
        return f"{self._prefix}{name.hex()}"
