"""Fixtures: a real Redis, relays, and links to them."""

from collections.abc import AsyncIterator, Callable

import pytest

from cacheproxy.core.redis_url import read
from cacheproxy.stores.redis_link import Link, LinkTerms
from tests.redis_fixtures import redis, redis_acl, redis_acl_server, redis_server, redis_start, relay, relay_to

__all__ = ["link_to", "redis", "redis_acl", "redis_acl_server", "redis_server", "redis_start", "relay", "relay_to"]

PATIENT = 30.0
"""A deadline that a loaded machine does not miss."""


@pytest.fixture
async def link_to() -> AsyncIterator[Callable[..., Link]]:
    """Makes links: ``link = link_to(url, max_connections=2)``; see `LinkTerms`."""
    made: list[Link] = []

    def make(url: str, timeout: float = PATIENT, **terms) -> Link:
        made.append(Link(read(url), LinkTerms(timeout, **terms)))
        return made[-1]

    yield make
    for link in made:
        await link.close()
