"""Hears of removals by other replicas as they are called out.

A message only says that there is something to learn; what is lost while the connection is down is learnt when it is
back.
"""

import asyncio
import logging

from redis.exceptions import RedisError

from cacheproxy.errors import Trouble, place_of
from cacheproxy.stores.redis_epochs import RedisEpochs
from cacheproxy.stores.redis_keys import Keys
from cacheproxy.stores.redis_link import Link

log = logging.getLogger("cacheproxy.store")

PAUSE = 1.0
"""Seconds until a connection that broke off is tried again."""
TURN = 30.0
"""Seconds that one wait for a message takes at most."""


class Listener:
    """Listens on a connection of its own."""

    def __init__(self, link: Link, keys: Keys, epochs: RedisEpochs) -> None:
        self._link = link
        self._keys = keys
        self._epochs = epochs
        self._task: asyncio.Task[None] | None = None
        self._faults: set[str] = set()
        self.listening = False

    def start(self) -> None:
        """Listen from now on, until `close`."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            try:
                await self._listen()
            except (Trouble, RedisError, OSError, TimeoutError) as error:
                log.debug("not listening for removals: %s", type(error).__name__)
            except Exception as error:  # noqa: BLE001 - a fault of ours must not end it for ever
                if (place := place_of(error)) not in self._faults:
                    self._faults.add(place)
                    log.error("a fault in listening for removals: %s", place)
            self.listening = False
            await asyncio.sleep(PAUSE)

    async def _listen(self) -> None:
        async with self._link.listener() as subscriber:
            await subscriber.subscribe(self._keys.channel)
            while True:
                message = await subscriber.get_message(timeout=TURN)
                if message is not None:
                    # Also at the subscription itself: what was called out before it is learnt now.
                    await self._epochs.current()
                    self.listening = True

    async def close(self) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
