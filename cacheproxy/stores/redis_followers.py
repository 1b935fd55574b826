"""The recordings that this process follows, however many: one connection hears what is new of them all, and one task
reads.

A producer tells each process that follows by a message, which holds the records. The stream is the truth: it is read
when somebody begins to follow, when a message is missing, and three times a lease, which also says that we follow. So
nothing hangs on messages but how soon something comes.
"""

import asyncio
import logging
import secrets
from collections.abc import Coroutine, Iterator
from typing import Any

from redis.exceptions import RedisError

from cacheproxy.errors import Trouble, place_of
from cacheproxy.ports import Clock
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_epochs import RedisEpochs
from cacheproxy.stores.redis_followed import Followed
from cacheproxy.stores.redis_keys import Keys
from cacheproxy.stores.redis_lead import Place
from cacheproxy.stores.redis_recording_scripts import CUT, END, READ, TICK

log = logging.getLogger("cacheproxy.store")

MOST = 32
"""Recordings that one round trip reads."""
MOST_READ, LEAST_READ = 512 * 2**10, 16 * 2**10
"""Bytes that one round trip reads, and that it reads of each recording."""
PAUSE = 0.2
"""Seconds until a connection that broke off is tried again, and between two reads while nothing is heard."""
IDLE = 60.0
"""Seconds for which the connection is kept though nothing is followed."""
ATTEMPTS = 2
"""How often in a row a read goes wrong before it is trouble: a loop that was held up for a moment is none."""
SHORT_PAUSE = 0.02
"""Seconds until a read that failed is tried again."""


class Followers:
    """All that is followed here. `channel`: what the name of a reader's channel begins with."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, calls: Calls, keys: Keys, epochs: RedisEpochs, clock: Clock, *, lease: float, channel: str
    ) -> None:
        self._calls = calls
        self._keys = keys
        self._epochs = epochs
        self._clock = clock
        self._lease = lease
        self._reader = secrets.token_hex(8)
        self._channel = f"{channel}{self._reader}"
        self._followed: dict[str, list[Followed]] = {}
        self._left: list[str] = []
        self._wanted = asyncio.Event()
        self._followed_again = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._faults: set[str] = set()
        self._is_closed = False
        self.listening = False

    def __repr__(self) -> str:
        return f"<Followers of {len(self._followed)}, {'' if self.listening else 'not '}listening>"

    def join(self, place: Place, after: int) -> Followed:
        """Follow from now on. Use `leave` in every case."""
        if self._is_closed:
            raise Trouble("closed", "closed")
        one = Followed(place, after, self._clock.monotonic())
        self._followed.setdefault(place.name, []).append(one)
        self._wanted.set()
        self._followed_again.set()
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [loop.create_task(self._listen_on()), loop.create_task(self._read_on())]
        return one

    def leave(self, one: Followed) -> None:
        """Never waits; idempotent."""
        here = self._followed.get(one.place.name, [])
        if one not in here:
            return
        here.remove(one)
        if not here:
            del self._followed[one.place.name]
            self._left.append(one.place.readers)
            self._wanted.set()

    def _all(self) -> Iterator[Followed]:
        return (one for here in self._followed.values() for one in here)

    # Hearing

    async def _listen_on(self) -> None:
        while True:
            self._followed_again.clear()
            if not self._followed:
                await self._followed_again.wait()
            try:
                await self._listen()
            except (Trouble, RedisError, OSError, TimeoutError) as error:
                log.debug("not listening for recordings: %s", type(error).__name__)
            except Exception as error:  # noqa: BLE001 - a fault of ours must not end it for ever
                self._tell(error)
            self.listening = False
            await asyncio.sleep(PAUSE)

    async def _listen(self) -> None:
        """Until the connection breaks off, or nothing was followed for long."""
        async with self._calls.link.listener() as subscriber:
            await subscriber.subscribe(self._channel)
            is_asked, followed = False, self._clock.monotonic()
            while self._clock.monotonic() - followed < IDLE:
                message = await subscriber.get_message(timeout=self._lease)
                if self._followed:
                    followed = self._clock.monotonic()
                if message is None:
                    if is_asked:
                        raise TimeoutError  # a connection that leads nowhere
                    await subscriber.ping()
                elif message["type"] == "message":
                    self._hear(message["data"])
                elif message["type"] == "subscribe":
                    self._begin_to_hear()
                is_asked = message is None

    def _begin_to_hear(self) -> None:
        """What was called out before has not come."""
        self.listening = True
        for one in self._all():
            one.is_behind = True
        self._wanted.set()

    def _hear(self, message: bytes) -> None:
        head, _, body = message.partition(b"\n")
        name, first, what, *lengths = head.split(b" ")
        records, at = [], 0
        for length in map(int, filter(None, lengths)):
            records.append(body[at : at + length])
            at += length
        for one in self._followed.get(name.decode(), ()):
            if one.is_opening:
                one.is_behind = True  # it may not be in what is being read
            if one.is_opening or one.is_over:
                continue
            one.heard = self._clock.monotonic()
            if what == TICK:
                one.is_behind = True
            elif one.come(int(first), records) and what in (END, CUT):
                one.finish(None if what == END else Trouble("its producer gave it up", "lost"))
            if one.is_behind:
                self._wanted.set()

    # Reading

    async def _read_on(self) -> None:
        while True:
            self._wanted.clear()
            parties = self._due()
            went_well = [await self._tried(self._read(*party), party[1]) for party in parties]
            went_well.append(await self._tried(self._say_left(), []))
            if all(went_well):
                await self._rest()
            else:
                await asyncio.sleep(SHORT_PAUSE)

    async def _tried(self, trip: Coroutine[Any, Any, None], party: list[Followed]) -> bool:
        """Whether it went well; what became of it is told to `party`. Nothing ends the reading for ever."""
        try:
            async with asyncio.timeout(self._lease / 4):
                await trip
        except Trouble as trouble:
            self._fail(party, trouble)
        except TimeoutError:
            self._fail(party, Trouble("no answer in time", "timeout"))
        except Exception as error:  # noqa: BLE001 - a fault of ours is trouble
            self._tell(error)
            self._fail(party, Trouble(type(error).__name__, "fault"))
        else:
            return True
        return False

    async def _rest(self) -> None:
        due = min((one.due for one in self._all() if not one.is_over), default=None)
        try:
            async with asyncio.timeout(None if due is None else max(0.0, due - self._clock.monotonic())):
                await self._wanted.wait()
        except TimeoutError:
            return

    def _due(self) -> list[tuple[int, list[Followed]]]:
        """What is to be read now, each once: shards, and recordings in them that one round trip reads."""
        now = self._clock.monotonic()
        due = [one for one in self._all() if not one.is_over and (one.due <= now or (one.is_behind and one.room))]
        shards: dict[int, list[Followed]] = {}
        for one in due:
            shards.setdefault(one.place.shard, []).append(one)
        return [
            (shard, here[start : start + MOST]) for shard, here in shards.items() for start in range(0, len(here), MOST)
        ]

    async def _read(self, shard: int, party: list[Followed]) -> None:
        asked, known = self._clock.monotonic(), [one.number for one in party]
        for one in party:
            one.is_behind = False
        try:
            keys = [name for one in party for name in (one.place.stream, one.place.live, one.place.readers)]
            share = max(LEAST_READ, MOST_READ // len(party))
            limits = [limit for one in party for limit in (one.number, min(one.room, share))]
            lease = int(self._lease * 1000)
            reply = await self._calls.script(READ, [self._keys.head(shard), *keys], self._reader, lease, *limits)
            head, told = await self._calls.understood(lambda: _read_reply(reply, len(party)))
            if any(one.is_opening for one in party):
                await self._epochs.meet(shard, head)
        except BaseException:
            for one in party:
                one.is_behind = True
            raise
        for one, number, (how, begun, records) in zip(party, known, told, strict=True):
            one.failures = 0
            if how not in (b"gone", CUT):
                one.heard = asked
            one.due = asked + (self._lease / 3 if self.listening else min(PAUSE, self._lease / 3))
            if how == b"gone" or (one.is_opening and begun != self._epochs.head(shard)):
                one.finish(Trouble("there is no such recording", "gone" if one.is_opening else "lost"))
                continue
            self._take(one, how, number, records)

    def _take(self, one: Followed, how: bytes, number: int, records: list[bytes]) -> None:
        """What a read of `one` gave, which asked for what is after `number`."""
        one.is_opening = False
        whole = one.come(number + 1, records)
        if how == b"more":
            one.is_behind = True
        elif whole and how in (END, CUT):
            one.finish(None if how == END else Trouble("its producer is gone", "lost"))
        if one.is_behind and one.room:
            self._wanted.set()
        one.changed.set()

    async def _say_left(self) -> None:
        """Producers may stop when nobody follows: tell them soon."""
        while self._left:
            name = self._left.pop()
            if name not in {one.place.readers for one in self._all()}:
                await self._calls.run("ZREM", name, self._reader)

    def _fail(self, party: list[Followed], why: Trouble) -> None:
        """They could not be read: who begins is told at the second time, others when the lease has passed."""
        now = self._clock.monotonic()
        for one in party:
            one.failures += 1
            if one.failures >= ATTEMPTS and (one.is_opening or now - one.heard > self._lease):
                one.finish(why)

    def taken(self, one: Followed) -> None:
        """There is room again."""
        if one.is_behind:
            self._wanted.set()

    def _tell(self, error: Exception) -> None:
        if (place := place_of(error)) not in self._faults:
            self._faults.add(place)
            log.error("a fault in following recordings: %s", place)

    async def close(self) -> None:
        """Who follows gets `Trouble`."""
        self._is_closed = True
        for one in list(self._all()):
            one.finish(Trouble("closed", "closed"))
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


def _read_reply(reply: Any, count: int) -> tuple[bytes | None, list[tuple[bytes, bytes, list[bytes]]]]:
    """What the script `READ` told. Raises what another shape ends in."""
    told = [(bytes(how), bytes(begun), [bytes(record) for record in records]) for how, begun, records in reply[1]]
    if len(told) != count:
        raise ValueError("not one for each")
    return reply[0], told
