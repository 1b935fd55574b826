"""Fixtures of the suites on meaning: a real Redis, and clients that end with the test."""

from collections.abc import AsyncIterator, Callable

import pytest

from cacheproxy.core.model import Identity
from cacheproxy.meaning.redisearch import Redisearch
from cacheproxy.meaning.redisearch_schema import Algorithm, Plan
from tests.meaning.redis import client, index_of
from tests.redis_fixtures import redis, redis_server, redis_start, relay, relay_to

__all__ = ["make", "redis", "redis_server", "redis_start", "relay", "relay_to"]


@pytest.fixture
async def make(redis) -> AsyncIterator[Callable[..., Redisearch]]:
    """Makes replicas, each with a client of its own: ``index = make(revision="2", algorithm="flat", dim=4)``; an embedder
    by the fields of `Identity`, `server`, `client_options`, the prefix `under` which it stands, and what `index_of` takes.
    """
    made, clients = [], []

    def build(server=None, client_options=None, under="cacheproxy", **fields) -> Redisearch:
        embedder = {"name": "embedder", "revision": "1", "dim": 4}
        embedder |= {name: fields.pop(name) for name in list(fields) if name in Identity.__dataclass_fields__}
        schema = {name: fields.pop(name) for name in list(fields) if name in Plan.__dataclass_fields__}
        if "algorithm" in schema:
            schema["algorithm"] = Algorithm(schema["algorithm"])
        clients.append(client(server or redis, **(client_options or {})))
        made.append(index_of(clients[-1], Plan(Identity(**embedder), **schema), under, **fields))
        return made[-1]

    yield build
    for index in made:
        await index.close()
    for one in clients:
        await one.aclose()
