"""Indexes in a real Redis, and the clients that they are given."""

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from cacheproxy.meaning.redisearch import Redisearch
from cacheproxy.meaning.redisearch_schema import Plan
from cacheproxy.stores.redis_trouble import trouble
from tests.engine.fakes import Notes
from tests.parts import redis as part


def client(server: part.Redis, connections: int = 4, timeout: float = 10.0, **options) -> Redis:
    """As the proxy has it: bounded, waiting, without retries."""
    where = parse_url(server.url) | options
    pool = BlockingConnectionPool(
        max_connections=connections, timeout=timeout, socket_timeout=timeout, retry=Retry(NoBackoff(), 0), **where
    )
    return Redis.from_pool(pool)


def index_of(
    redis: Redis, plan: Plan, prefix: str = "cacheproxy", journal: Notes | None = None, **options
) -> Redisearch:
    return Redisearch(redis, plan, prefix, journal or Notes(), trouble, **options)
