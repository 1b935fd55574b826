"""Fixtures: a scripted backend, a proxy before it, a client before that."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests import rig
from tests.fakes.backend import Backend


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    """The scripted backend; a failing script fails the test."""
    fake = await Backend().start()
    yield fake
    await fake.stop()
    assert fake.errors == []


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, auto_decompress=False, timeout=aiohttp.ClientTimeout(total=60), max_field_size=2**17
    ) as opened:
        yield opened


@pytest.fixture
async def start(backend: Backend) -> AsyncIterator:
    """Starts proxies in this process: ``proxy = await start(exact__ttl="1s")``."""
    running: list[rig.InProcess] = []

    async def begin(*, upstream=None, **values) -> rig.InProcess:
        proxy = await rig.start(upstream or backend.url, **values)
        running.append(proxy)
        return proxy

    yield begin
    for proxy in running:
        await proxy.running.stop()


@pytest.fixture
async def proxy(start) -> rig.InProcess:
    """A proxy with the defaults, in memory."""
    return await start()


@pytest.fixture
async def client(proxy: rig.InProcess, session: aiohttp.ClientSession) -> rig.Client:
    return rig.Client(proxy.base, session)


@pytest.fixture
async def spawn(backend: Backend, tmp_path) -> AsyncIterator:
    """Starts proxies in processes of their own: ``process = await spawn("--data-dir", "x")``."""
    started: list[rig.Process] = []

    async def begin(*arguments: str, **environment: str) -> rig.Process:
        process = await rig.spawn(backend.url, tmp_path / f"proxy{len(started)}.log", *arguments, **environment)
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.process.poll() is None:
            process.kill()
