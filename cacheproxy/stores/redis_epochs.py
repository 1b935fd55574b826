"""The removals that all replicas on one Redis share: counted there, and learnt here from a log.

Each shard has a *head*, which is read in one step with any entry of that shard and compared in one step with any entry
that is put. So no replica takes an entry for current, or stores one, without knowing of every removal that was counted
before; a head that differs from the one known leads to the log. What the log no longer has counts as a removal of
everything. What is stored carries the count at which it was put, and is judged by the removals that are *open*: those
which nobody has yet taken to their end.

Redis emptied, or set back to an older state, is a new generation: values carry theirs, and those of another are not
read. Nobody need remember the newer state for that: a head is good on the server that wrote it, and is looked at anew
when a connection was made. So a restart, with or without what was saved, and a failover each begin a generation.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

from cacheproxy.core import notice
from cacheproxy.core.notice import Notice
from cacheproxy.core.past import Past
from cacheproxy.core.removal import REMEMBERED, Felled, Order, Removals
from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_keys import GENERATION_BYTES, Keys
from cacheproxy.stores.redis_scripts import ANNOUNCE, CATCH_UP, CLAIM, FINISH, RAISE
from cacheproxy.stores.redis_state import EVERYTHING, Head, State, read_head, read_past, read_state, readable

log = logging.getLogger("cacheproxy.store")

LEASE = 0.1
"""Seconds for which what was looked up may be served without being looked up again."""
SLACK = 2
"""How many leases after it was counted a removal is acknowledged: a large answer is packed after the last look."""
LASTING_MS = 40 * 86_400_000
"""How long the heads, the log and the secret live without any replica: longer than any answer."""
NEVER = 2**53 - 1
"""A count that none is not behind of."""
ATTEMPTS = 3
"""How often all begin anew for one shard."""
CLAIM_MS = 600_000
"""After how long a replica is taken to be gone that was to take out what a removal means."""
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
        self._given_up = b""
        self._told: dict[int, Head] = {}
        """Shard -> the head that it was seen to have."""
        self._checked: dict[int, int] = {}
        """Shard -> how many connections had been made when its server was asked whether it wrote that head."""
        self._owner = secrets.token_hex(8)
        self._learning: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<RedisEpochs {self.generation.hex()} {self._count}>"

    def head(self, shard: int) -> bytes:
        """The head that is known of a shard; empty before the first contact."""
        if not self.generation:
            return b""
        server = self._told[shard].server if shard in self._told else b"0"
        return b"%s %d %s" % (self.generation.hex().encode(), self._count, server)

    async def meet(self, shard: int, head: bytes | None) -> None:
        """`head` was read in `shard`: know what it counts when this returns. Raises `Trouble`."""
        made, told = self._calls.link.made, readable(head)
        checked = self._checked.get(shard) == made
        if told is None or not self._knows(told) or not (shard or checked or await self._is_by_its_server(told)):
            await self.current()
        if shard and not (checked and self._knows(told)):
            await self._tell(shard)
        self._checked[shard] = made
        if told is not None and self._knows(told):
            self._told[shard] = told

    def _knows(self, head: Head | None) -> bool:
        return head is not None and head[:2] == (self.generation, self._count)

    async def _is_by_its_server(self, head: Head) -> bool:
        """Whether the server that answers wrote `head`. In a cluster the script has to look."""
        if self._keys.shards > 1:
            return False
        told = await self._calls.run("INFO", "server")
        server = await self._calls.understood(lambda: str(told["run_id"]))
        return head.server == server[:8].encode()

    async def _tell(self, *shards: int) -> None:
        """Let the heads of these shards count as far as is known here. One that was told before and is behind that was
        emptied or set back: then all begin anew."""
        for shard in shards:
            for _ in range(ATTEMPTS):
                generation, count, told = self.generation, self._count, self._told.get(shard)
                least = told.number if told is not None and told.generation == generation else -1
                reply = await self._calls.script(
                    RAISE, [self._keys.head(shard)], generation.hex(), count, least, LASTING_MS
                )
                if reply is not None:
                    self._told[shard] = await self._calls.understood(partial(read_head, reply))
                    break
                log.warning("a part of Redis was emptied, replaced or set back; answers stored before are given up")
                self._given_up = generation
                await self.current()
            else:
                raise Trouble("a part of Redis is set back again and again")

    async def current(self) -> None:
        """Know every removal counted so far. One call to Redis for all who ask at once."""
        # Who comes while a call is under way needs a later one: the count may have been read already.
        if self._learning is not None and not self._learning.done():
            await asyncio.wait([self._learning])
        if self._learning is None or self._learning.done():
            self._learning = asyncio.get_running_loop().create_task(self._learn())
            self._learning.add_done_callback(_seen)
        learning = self._learning
        await asyncio.wait([learning])
        if learning.cancelled():
            raise Trouble("closed", "closed")
        if (error := learning.exception()) is not None:
            raise Trouble(str(error), error.kind) if isinstance(error, Trouble) else error

    async def _learn(self) -> None:
        await self._take(await self._calls.script(CATCH_UP, self._parts, *self._known(), self._secret))

    @property
    def _parts(self) -> list[str]:
        return [self._keys.head(0), self._keys.log, self._keys.open, self._keys.secret]

    def _known(self) -> tuple[str, int, str, int]:
        count = self._count if self.generation != self._given_up else NEVER
        return self.generation.hex(), count, secrets.token_hex(GENERATION_BYTES), LASTING_MS

    async def _take(self, reply: Any) -> State:
        """Know what a script told. Raises `Trouble`."""
        state = await self._calls.understood(lambda: read_state(reply))
        head, secret = state.head, state.secret
        self._count_up(head.generation, head.number, state.lines)
        for number in [*self._removals.open]:
            if number <= head.number and number not in state.open:
                self._removals.finish(number)
        for felled in state.open.values():
            if felled.number not in self._removals.open:
                self._removals.begin(felled)
        self._told[0] = head
        if isinstance(secret, bytes) and secret != self._secret and len(secret) == len(self._secret):
            self._secret = secret
            self._agreed(secret)
        return state

    def _count_up(self, generation: bytes, total: int, lines: dict[int, tuple[float, bytes]]) -> None:
        now, received = self._clock.now(), self._clock.monotonic()
        if generation != self.generation:
            if self.generation:
                log.warning("Redis was emptied, restarted or replaced; answers stored before are given up")
            self._removals.add(EVERYTHING, now)
            for number in [*self._removals.open]:
                self._removals.finish(number)  # of answers that are not read any more
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

    async def begin(self, order: Order, now: float) -> Felled:
        """Count a removal in every shard, and know it; wait until no replica of Redis can forget it, and no proxy still
        serves what it had looked up before. Raises `Trouble`: then it may or may not be counted."""
        line = notice.encode(Notice(order.selector, now, order.removal))
        told = (line, self._owner, REMEMBERED, self._keys.channel)
        state = await self._take(await self._calls.script(ANNOUNCE, self._parts, *self._known(), *told))
        await self._tell(*range(1, self._keys.shards))
        counted = self._clock.monotonic()
        await self._replicated(state.replicas)
        await asyncio.sleep(max(0.0, counted + SLACK * LEASE - self._clock.monotonic()))
        return Felled(state.head.number, order.selector, order.removal, now, state.head.generation)

    async def claim(self, felled: Felled) -> bool:
        told = (felled.era.hex(), felled.number, self._owner, CLAIM_MS)
        return bool(await self._calls.script(CLAIM, [self._keys.open], *told) == 1)

    async def finish(self, felled: Felled) -> None:
        await self._calls.script(FINISH, [self._keys.open], felled.era.hex(), felled.number)
        if felled.era == self.generation:
            self._removals.finish(felled.number)

    async def past(self) -> Past:
        """As far as the log goes back. Raises `Trouble`."""
        await self.current()
        lines = await self._calls.run("LRANGE", self._keys.log, 0, -1)
        return await self._calls.understood(lambda: read_past(lines))

    async def _replicated(self, replicas: int) -> None:
        if self._keys.shards > 1:
            return  # each shard has replicas of its own; one that comes back with an older state is a new generation
        until = self._clock.monotonic() + REPLICATED
        while replicas:
            # A write first: what is waited for is the last one of this connection.
            mark = ("PEXPIRE", self._keys.head(0), LASTING_MS)
            replies = await self._calls.together([mark, ("WAIT", replicas, REPLICATION_TURN_MS)])
            reached = await self._calls.understood(lambda: int(replies[1]))  # noqa: B023 - called at once
            if reached >= replicas:
                return
            if self._clock.monotonic() > until:
                raise Trouble(f"{replicas - reached} replicas of Redis do not follow", "replication")

    async def keep_alive(self) -> None:
        """Let nothing that all need expire. Raises `Trouble`."""
        await self.current()
        await self._tell(*range(1, self._keys.shards))

    async def close(self) -> None:
        """End what is under way."""
        if self._learning is not None and not self._learning.done():
            self._learning.cancel()
            await asyncio.wait([self._learning])


def _seen(task: "asyncio.Task[None]") -> None:
    """Also if all who asked have gone."""
    if not task.cancelled():
        task.exception()
