"""The names under which things lie in Redis. All have one prefix and a fixed size, and none has a word of a request.

What is read together lies in one slot of a cluster: the names of a shard have the same hash tag, ``{0}`` to ``{3f}``.
"""

from dataclasses import dataclass

from cacheproxy.core import key

GENERATION_BYTES = 8
"""What a value begins with, before the stored form of its entry."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Names under `prefix` in `shards` shards."""

    prefix: str
    shards: int = 1

    def shard(self, entry_key: bytes) -> int:
        """The shard of an entry."""
        return self.shard_of_id(key.entry_id(entry_key))

    def shard_of_id(self, entry_id: str) -> int:
        return int(entry_id[:4], 16) % self.shards if self.shards > 1 else 0

    def entry(self, entry_key: bytes) -> str:
        """Where an entry lies."""
        return self.entry_of_id(key.entry_id(entry_key))

    def entry_of_id(self, entry_id: str) -> str:
        return f"{self.prefix}:{{{self.shard_of_id(entry_id):x}}}:e:{entry_id}"

    @property
    def entries(self) -> str:
        """A pattern of where entries lie."""
        return f"{self.prefix}:{{*}}:e:*"

    def claim(self, entry_key: bytes) -> str:
        """Who produces the answer of a key now; what belongs to that begins with this name."""
        entry_id = key.entry_id(entry_key)
        return f"{self.prefix}:{{{self.shard_of_id(entry_id):x}}}:f:{entry_id}"

    def head(self, shard: int) -> str:
        """The count of removals, as this shard knows it."""
        return f"{self.prefix}:{{{shard:x}}}:head"

    @property
    def log(self) -> str:
        """The latest removals."""
        return f"{self.prefix}:{{0}}:log"

    @property
    def open(self) -> str:
        """The removals whose entries may still be there."""
        return f"{self.prefix}:{{0}}:open"

    @property
    def secret(self) -> str:
        """The secret that all who share the answers make their keys with."""
        return f"{self.prefix}:{{0}}:secret"

    @property
    def channel(self) -> str:
        """Where removals are called out."""
        return f"{self.prefix}:removals"
