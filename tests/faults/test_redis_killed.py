"""A Redis that is killed over and over while requests go on: no error, no wrong answer, and hits are back each time."""

import pytest

from tests.faults.load import hits_back, purge
from tests.faults.traffic import Traffic
from tests.rig import until

pytestmark = pytest.mark.redis

TIMES = 10


async def test_killed_ten_times_under_load(sharing, own_redis, session, telling):
    """Half of the times it comes back empty, half with what it had saved. Between the kills all is purged, so that a
    state from before comes back that must not be served."""
    server = own_redis()
    proxies, clients = await sharing(server.url, redis__timeout="100ms")
    traffic = Traffic(clients)
    for time in range(TIMES):
        await hits_back(clients, "canary")
        if time % 2:
            server.cli("SAVE")
        if time % 4 > 1:
            telling.version += 1
            status, _ = await purge(session, proxies[time % 2])
            assert status == 200
            traffic.least = telling.version
        server.kill()
        await traffic.more()
        if time % 2 == 0:
            (server.directory / "dump.rdb").unlink(missing_ok=True)
        server.launch()
        await until(server._answers, 10, "the server")
        await hits_back(clients, "canary")
        await traffic.more()
    await traffic.stop()
    assert traffic.hits > 0
    assert [proxy.house.store.reads.state for proxy in proxies] == ["closed", "closed"]
