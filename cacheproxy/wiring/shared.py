"""The store that replicas share, put together: a Redis, whatever its topology."""

import asyncio
import logging
import secrets
from collections.abc import Callable
from functools import partial

from cacheproxy.core import redis_url
from cacheproxy.core.removal import Removals
from cacheproxy.engine.breaker import Breaker
from cacheproxy.engine.guard import GuardedEpochs, GuardedStore
from cacheproxy.engine.recordings import GuardedRecordings
from cacheproxy.engine.witnesses import Witnesses
from cacheproxy.errors import ConfigurationError, Trouble, place_of
from cacheproxy.ports import Clock, Quarantine, Registry, Stocked
from cacheproxy.schema import Settings
from cacheproxy.stores.near import Near
from cacheproxy.stores.quarantine_redis import RedisQuarantine
from cacheproxy.stores.redis import RedisStore
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_epochs import RedisEpochs
from cacheproxy.stores.redis_events import RedisEvents
from cacheproxy.stores.redis_keys import Keys
from cacheproxy.stores.redis_link import Link, LinkTerms
from cacheproxy.stores.redis_listener import Listener
from cacheproxy.stores.redis_rates import RedisCounters
from cacheproxy.stores.redis_recordings import RedisRecordings
from cacheproxy.stores.redis_registry import RedisRegistry
from cacheproxy.stores.redis_survey import Survey, remarks
from cacheproxy.stores.redis_witnesses import RedisWitnesses
from cacheproxy.telemetry import Telemetry

log = logging.getLogger("cacheproxy")

PART = "redis"
LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO}
MEETING = 2.0
"""Seconds that a start waits for Redis; after that it goes on without, and Redis is met when it comes."""


class Shared:
    """`agreed` is told the secret that all replicas use, if it is not the `proposed` one (empty: none is agreed on)."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, settings: Settings, removals: Removals, clock: Clock, telemetry: Telemetry, proposed: bytes,
        agreed: Callable[[bytes], None],
    ) -> None:  # fmt: skip
        told = settings.redis
        self.target = target(settings)
        self.link = Link(self.target, terms(settings))
        calls, keys = Calls(self.link), Keys(told.prefix, self.link.shards)
        epochs = RedisEpochs(calls, keys, removals, clock, secret=proposed, agreed=agreed)
        self._epochs = epochs
        self.registry: Registry = RedisRegistry(calls, keys)
        self.notices = RedisEvents(calls, told.prefix, secrets.token_hex(8))
        self.quarantine: Quarantine = RedisQuarantine(calls, keys)
        self.witnesses: Witnesses = RedisWitnesses(calls, keys)
        self.counters = RedisCounters(calls, keys)
        width = max(1, told.max_connections // 2)
        store = RedisStore(calls, keys, epochs, removals, clock, width=width)
        guarded = GuardedStore(store, PART, told.timeout, telemetry)
        self.epochs = GuardedEpochs(epochs, PART, told.timeout, telemetry)
        flight = settings.flight
        recordings = RedisRecordings(calls, keys, epochs, clock, lease=flight.lease, most=flight.bytes)
        self.recordings = GuardedRecordings(recordings, PART, told.timeout, telemetry)
        for breaker in (guarded.reads, guarded.writes, self.epochs.breaker, self.recordings.breaker):
            telemetry.left_alone(breaker.name, partial(_is_left_alone, breaker))
        self.store: Stocked = guarded
        self._listener: Listener | None = None
        if told.near.max_age > 0:
            self.store = Near(guarded, removals, clock, capacity=told.near.bytes, max_age=told.near.max_age)
            self._listener = Listener(self.link, keys, epochs)
        telemetry.gauge("redis_connections", "Connections to Redis.", lambda: self.link.connections)

    async def meet(self) -> Survey | None:
        """Make the first contact, and log what the server says of itself; None if it does not answer. Never fails: a
        proxy starts without Redis."""
        if self._listener is not None:
            self._listener.start()
        try:
            async with asyncio.timeout(MEETING):
                await self._epochs.current()
                survey = await self.link.survey()
        except Exception as error:  # noqa: BLE001 - whatever it is, a proxy starts without Redis
            told = isinstance(error, Trouble | TimeoutError)
            why = (str(error) or "no answer") if told else place_of(error)
            log.warning("%s: %s; answers come from the backend until it works", self.target.shown, why)
            return None
        log.info("answers are shared through %s (%s %s)", self.target.shown, survey.server, survey.version)
        for remark in remarks(survey, self.target):
            log.log(LEVELS[remark.level], "%s", remark.text)
        return survey

    async def close(self) -> None:
        """Let go of Redis, once the store is closed."""
        if self._listener is not None:
            await self._listener.close()
        await self.recordings.close()
        await self.epochs.close()
        await self.link.close()


def _is_left_alone(breaker: Breaker) -> bool:
    return not breaker.closed


def target(settings: Settings) -> redis_url.Target:
    """Where Redis is. Raises `ConfigurationError`."""
    url = settings.redis.url
    found = redis_url.read(url.get_secret_value()) if url else "is not set"
    if isinstance(found, str):
        raise ConfigurationError(f"`redis.url` {found}")
    return found


def terms(settings: Settings) -> LinkTerms:
    """How it is reached."""
    told = settings.redis
    return LinkTerms(
        timeout=told.timeout, max_connections=told.max_connections, password_file=told.password_file,
        username=told.username, sentinel_password_file=told.sentinel_password_file, ca_file=told.ca_file,
        cert_file=told.cert_file, key_file=told.key_file,
    )  # fmt: skip
