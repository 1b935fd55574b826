"""The stores of each kind that the suite is run on."""

from collections.abc import AsyncIterator, Callable

import pytest

from cacheproxy.engine.guard import GuardedStore
from cacheproxy.ports import Store
from cacheproxy.stores.memory import Memory
from cacheproxy.stores.sqlite import Sqlite
from cacheproxy.stores.tiered import Tiered
from tests.engine.fakes import Notes

PATIENT = 60.0
"""A deadline that a loaded machine does not miss: here a slow answer is no miss."""
ROOMY = 50_000_000

Make = Callable[..., Store]


def _memory(_path, capacity: int) -> Store:
    return Memory(capacity)


def _sqlite(path, capacity: int) -> Store:
    return Sqlite(path / "cache.sqlite3", capacity)


def _tiered(path, capacity: int) -> Store:
    """As in the field: the front holds a part of what the file holds."""
    return Tiered(Memory(capacity // 4), Sqlite(path / "cache.sqlite3", capacity))


def _guarded(path, capacity: int) -> Store:
    return GuardedStore(Sqlite(path / "cache.sqlite3", capacity), "cache file", PATIENT, Notes())


KINDS = {"memory": _memory, "sqlite": _sqlite, "tiered": _tiered, "guarded": _guarded}


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture
async def make(kind, tmp_path) -> AsyncIterator[Make]:
    """Makes stores of this kind: ``store = make(capacity)``."""
    made: list[Store] = []

    def build(capacity: int = ROOMY) -> Store:
        path = tmp_path / str(len(made))
        made.append(KINDS[kind](path, capacity))
        return made[-1]

    yield build
    for store in made:
        await store.close()


@pytest.fixture
def store(make) -> Store:
    return make()
