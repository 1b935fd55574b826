"""The vector indexes of each kind that the suite is run on, and rows for them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import numpy as np
import pytest

from cacheproxy.core.model import Identity, Row
from cacheproxy.meaning.local import Local
from cacheproxy.meaning.redisearch_schema import Algorithm, Plan
from cacheproxy.ports import VectorIndex
from tests.meaning.redis import client, index_of
from tests.stores.entries import key_of

__all__ = ["NOW", "P", "index", "index_kind", "index_make", "line", "row"]

NOW = time.time() + 86_400
"""A day ahead: so no server lets a row expire before the test is over."""
LATER = NOW + 1000
P = bytes(range(32))
"""A partition."""

KINDS = ["local", *(pytest.param(kind.value, marks=pytest.mark.redis) for kind in Algorithm)]


def line(*numbers: float, dim: int = 4) -> np.ndarray:
    """The vector that begins with these numbers; the rest is 0."""
    vector = np.zeros(dim, np.float32)
    vector[: len(numbers)] = numbers
    return vector


def row(number: int, vector=None, text: str = "", partition: bytes = P, expires_at: float = LATER, dim: int = 4) -> Row:
    """Row `number`; without `vector` at an angle to the first axis of so many hundredths."""
    if vector is None:
        vector = line(np.cos(number / 100), np.sin(number / 100), dim=dim)
    return Row(key_of(number), partition, vector, text or f"question number {number}", expires_at)


@pytest.fixture(params=KINDS)
def index_kind(request) -> str:
    return request.param


@pytest.fixture
async def index_make(index_kind, request) -> AsyncIterator[Callable[..., VectorIndex]]:
    """Makes indexes of this kind, in Redis all of them one, for the user of configs/redis.conf:
    ``index = index_make(dim=4, most=1000)``."""
    made: list[VectorIndex] = []
    clients = []
    server = None if index_kind == "local" else request.getfixturevalue("redis_acl")

    def build(dim: int = 4, most: int = 1000) -> VectorIndex:
        if server is None:
            made.append(Local(dim, most))
        else:
            clients.append(client(server))
            made.append(index_of(clients[-1], Plan(Identity("embedder", "1", dim), Algorithm(index_kind))))
        return made[-1]

    yield build
    for one in made:
        await one.close()
    for one in clients:
        await one.aclose()
    assert [task for task in asyncio.all_tasks() if "Life" in repr(task)] == []


@pytest.fixture
def index(index_make) -> VectorIndex:
    return index_make()
