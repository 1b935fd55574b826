"""Fixtures: a real engine with a small real model, a proxy before it, and the way around the proxy."""

from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from tests import rig
from tests.engine_real.asking import KEY
from tests.parts import engine as part


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[part.Engine]:
    """The engine: one slot, one thread, no credential asked."""
    running = part.start(tmp_path_factory.mktemp("engine") / "log")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[part.Engine]:
    """An engine that wants a credential and serves embeddings."""
    running = part.start(tmp_path_factory.mktemp("guarded") / "log", context=512, api_key=KEY, embeddings=True)
    yield running
    running.stop()


@pytest.fixture
async def proxy(start, engine: part.Engine) -> rig.InProcess:
    """A proxy before the real engine, with nothing stored."""
    return await start(upstream=engine.url)


@pytest.fixture
def direct(engine: part.Engine, session: aiohttp.ClientSession) -> rig.Client:
    """The way around the proxy."""
    return rig.Client(engine.url, session)
