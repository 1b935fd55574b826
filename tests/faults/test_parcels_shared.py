"""Exports and imports through a real Redis: hits on all replicas, and no purge by any of them is undone."""

import dataclasses

import pytest

from tests.fakes.embedder import Chosen
from tests.proxy.doors import Caller
from tests.proxy.test_parcels import ASKED, LIKE, asking, counts, exported, imported, learnt
from tests.rig import Client

pytestmark = pytest.mark.redis


def placed(name: str = "chosen") -> Chosen:
    embedder = Chosen()
    embedder.identity = dataclasses.replace(embedder.identity, name=name)
    embedder.near(ASKED, 1.0)
    embedder.near(LIKE, 0.97)
    return embedder


@pytest.fixture
def sharing(start, session, redis, tmp_path):
    """Starts proxies of one secret, on the shared Redis unless it is said otherwise."""
    (tmp_path / "secret").write_text("s" * 40)

    async def begin(**values):
        options = {
            "redis__url": redis.url, "redis__timeout": "2s", "semantic__search_timeout": "2s",
            "store__secret_file": str(tmp_path / "secret"), **values,
        }  # fmt: skip
        proxy = await start(**options)
        return proxy, Client(proxy.base, session), Caller(session, proxy.admin)

    return begin


@pytest.mark.parametrize("name", ["chosen", "another"])
async def test_what_was_exported_is_a_hit_on_every_replica(sharing, redis, backend, name):
    """With its vectors, or with new ones of another embedder."""
    proxy, client, admin = await sharing(embedder=placed())
    await asking(client, ASKED, X_Cache_Tags="faq")
    await learnt(proxy)
    lines = await exported(admin)
    assert len(lines) == 3 and b"question" in lines[1]
    await proxy.running.stop()
    redis.cli("FLUSHALL")
    _, one, one_admin = await sharing(embedder=placed(name))
    _, other, _ = await sharing(embedder=placed(name))
    told = await imported(one_admin, lines)
    assert told["known_since"] is None or told["known_since"] > 0
    way = "questions_kept" if name == "chosen" else "questions_embedded"
    assert counts(told) == {"imported": 1, way: 1}
    for replica in (one, other):
        hit = await asking(replica, ASKED, X_Cache_Tags="faq")
        assert (hit.cache, hit.get("x-cache-tier")) == ("HIT", "exact")
        like = await asking(replica, LIKE)
        assert (like.cache, like.get("x-cache-tier")) == ("HIT", "semantic")
    assert len(backend.seen) == 1


@pytest.mark.parametrize("mode", ["hard", "soft"])
async def test_what_another_replica_purged_does_not_come_back(sharing, mode):
    _, client, admin = await sharing()
    _, _, other_admin = await sharing()
    await client.chat(X_Cache_Tags="faq", seed=1)
    await client.chat(X_Cache_Tags="other", seed=2)
    lines = await exported(admin)
    status, _ = await other_admin.post("/admin/purge", {"selector": {"tags": "faq"}, "mode": mode, "wait": True})
    assert status == 200
    assert counts(await imported(admin, lines)) == {"purged": 1, "present": 1}
    assert (await client.chat(X_Cache_Tags="faq", seed=1, Cache_Control="only-if-cached")).status == 504


async def test_where_nothing_is_known_of_the_time_before_nothing_is_taken(sharing, redis):
    """A Redis that was emptied may have been purged before."""
    proxy, client, admin = await sharing()
    await client.chat()
    lines = await exported(admin)
    await proxy.running.stop()
    redis.cli("FLUSHALL")
    _, _, other = await sharing()
    assert counts(await imported(other, lines, force=False)) == {"unproven": 1}
    assert counts(await imported(other, lines)) == {"imported": 1}
