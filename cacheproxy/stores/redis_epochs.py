"""The removals that all replicas on one Redis share: counted there, and learnt here from a log.

Each shard has a *head*, ``<generation> <count>``, which is read in one step with any entry of that shard and compared
in one step with any entry that is put. So no replica takes an entry for current, or stores one, without knowing of
every removal that was counted before; a head that differs from the one known leads to the log. What the log no longer
has counts as a removal of everything. Redis emptied, or set back to an older state, is a new generation: values carry
theirs, and those of another are not read.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable

from cacheproxy.core import notice
from cacheproxy.core.notice import Notice
from cacheproxy.core.removal import REMEMBERED, Removals, Selector
from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_keys import GENERATION_BYTES, Keys
from cacheproxy.stores.redis_scripts import ANNOUNCE, CATCH_UP, RAISE

log = logging.getLogger("cacheproxy.store")

LEASE = 0.1
"""Seconds for which what was looked up may be served without being looked up again; a removal is acknowledged that
much after it was carried out."""
LASTING_MS = 40 * 86_400_000
"""How long the heads, the log and the secret live without any replica: longer than any answer."""
EVERYTHING = Selector(everything=True)
REPLICATED, REPLICATION_TURN_MS = 2.0, 20
"""Seconds in which the replicas of Redis must have a removal, and how long one call waits for them."""


class RedisEpochs:
    """`Epochs` in Redis. `secret`: proposed to the others, empty if none is to be agreed on; `agreed` is told the one
    that all use, each time it changes."""

    lease = LEASE

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, calls: Calls, keys: Keys, removals: Removals, clock: Clock, *, secret: bytes,
        agreed: Callable[[bytes], None],
    ) -> None:  # fmt: skip
        self._calls = calls
        self._keys = keys
        self._removals = removals
        self._clock = clock
        self._secret = secret
        self._agreed = agreed
        self.generation = b""
        """8 bytes; none before the first contact."""
        self._count = 0
        self._seen: dict[int, tuple[bytes, int]] = {}
        self._learning: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<RedisEpochs {self.generation.hex()} {self._count}>"

    @property
    def head(self) -> bytes:
        """The head that is known."""
        return b"%s %d" % (self.generation.hex().encode(), self._count)

    async def meet(self, shard: int, head: bytes | None) -> None:
        """`head` was read in `shard`: know what it counts when this returns. Raises `Trouble`."""
        if head != self.head or not self.generation:
            await self.current()
            if head != self.head:
                await self._raise(shard, head)
        self._seen[shard] = (self.generation, self._count)

    async def _raise(self, shard: int, head: bytes | None) -> None:
        """The head of another shard is behind: it has not been told yet, or was set back."""
        if shard == 0:
            return
        generation, count = self._seen.get(shard, (b"", 0))
        if generation == self.generation and (head is None or _count(head) < count):
            log.warning("a part of Redis was emptied or set back to an older state; all answers stored are given up")
            await self._calls.run("DEL", self._keys.head(0))
            await self.current()
        await self._tell(shard)

    async def _tell(self, *shards: int) -> None:
        generation, count = self.generation.hex(), self._count
        for shard in shards:
            await self._calls.script(RAISE, [self._keys.head(shard)], generation, count, LASTING_MS)

    async def current(self) -> None:
        """Know every removal counted so far. One call to Redis for all who ask at once."""
        # Who comes while a call is under way needs a later one: the count may have been read already.
        if self._learning is not None and not self._learning.done():
            await asyncio.wait([self._learning])
        if self._learning is None or self._learning.done():
            self._learning = asyncio.get_running_loop().create_task(self._learn())
        learning = self._learning
        await asyncio.wait([learning])
        if learning.cancelled():
            raise Trouble("closed", "closed")
        if (error := learning.exception()) is not None:
            raise Trouble(str(error), error.kind) if isinstance(error, Trouble) else error

    async def _learn(self) -> None:
        keys = [self._keys.head(0), self._keys.log, self._keys.secret]
        known, count = self.generation.hex(), self._count
        fresh = secrets.token_hex(GENERATION_BYTES)
        reply = await self._calls.script(CATCH_UP, keys, known, count, fresh, self._secret, LASTING_MS)
        try:
            generation, total, secret = bytes.fromhex(reply[0].decode()), int(reply[1]), reply[2]
            lines = _lines(reply[3], int(reply[4]))
        except (TypeError, ValueError, IndexError, AttributeError):
            raise await self._calls.distrust("not the reply of a script of ours") from None
        self._take(generation, total, lines)
        if isinstance(secret, bytes) and secret != self._secret and len(secret) == len(self._secret):
            self._secret = secret
            self._agreed(secret)

    def _take(self, generation: bytes, total: int, lines: dict[int, tuple[float, bytes]]) -> None:
        now, received = self._clock.now(), self._clock.monotonic()
        if generation != self.generation:
            if self.generation:
                log.warning("Redis was emptied or set back to an older state; answers stored before are given up")
            self._removals.add(EVERYTHING, now)
            self.generation, self._count = generation, total
            return
        for number in range(max(self._count + 1, total - REMEMBERED), total + 1):
            age, line = lines.get(number, (0.0, b""))
            found = notice.decode(line)
            if found is None:
                self._removals.add(EVERYTHING, now)
            else:
                self._removals.add(found.selector, found.now, received - age)
        self._count = max(self._count, total)

    async def begin(self, selector: Selector, now: float) -> int:
        """Count a removal in every shard, and know it. Raises `Trouble`: then it may or may not be counted."""
        line = notice.encode(Notice(selector, now))
        keys = [self._keys.head(0), self._keys.log]
        told = (secrets.token_hex(GENERATION_BYTES), line, REMEMBERED, LASTING_MS, self._keys.channel)
        _, number = await self._calls.script(ANNOUNCE, keys, *told)
        await self.current()
        await self._tell(*range(1, self._keys.shards))
        return int(number)

    async def finish(self, number: int, *, carried_out: bool) -> None:  # noqa: ARG002 - the same for each number
        """Wait until no replica of Redis can bring back what was removed, and no proxy still serves what it had looked
        up before. Raises `Trouble`."""
        if not carried_out:
            return
        carried = self._clock.monotonic()
        await self._replicated()
        await asyncio.sleep(max(0.0, carried + LEASE - self._clock.monotonic()))

    async def _replicated(self) -> None:
        if self._keys.shards > 1:
            return  # each shard has replicas of its own; one that comes back with an older state is a new generation
        replicas = int((await self._calls.run("INFO", "replication")).get("connected_slaves", 0))
        until = self._clock.monotonic() + REPLICATED
        while replicas:
            # A write first: what is waited for is the last one of this connection.
            mark = ("PEXPIRE", self._keys.head(0), LASTING_MS)
            _, reached = await self._calls.together([mark, ("WAIT", replicas, REPLICATION_TURN_MS)])
            if int(reached) >= replicas:
                return
            if self._clock.monotonic() > until:
                raise Trouble(f"{replicas - int(reached)} replicas of Redis do not follow", "replication")

    async def keep_alive(self) -> None:
        """Let nothing that all need expire. Raises `Trouble`."""
        await self.current()
        await self._tell(*range(1, self._keys.shards))

    async def close(self) -> None:
        """End what is under way."""
        if self._learning is not None and not self._learning.done():
            self._learning.cancel()
            await asyncio.wait([self._learning])


def _lines(log: list[bytes], server_ms: int) -> dict[int, tuple[float, bytes]]:
    """Number -> how many seconds ago it was ordered, by the server's clock alone, and the notice."""
    found = {}
    for line in log:
        number, ordered, told = line.split(b" ", 2)
        found[int(number)] = (max(0.0, (server_ms - int(ordered)) / 1000), told)
    return found


def _count(head: bytes) -> int:
    count = head.rpartition(b" ")[2]
    return int(count) if count.isdigit() else 0
