"""Every answer that is kept has an absolute end, not later than the configuration allows, whatever a request, a rule, a
backend or many uses ask for; past it, a sweep leaves nothing."""

import math
import sqlite3

import pytest

from cacheproxy.core import codec
from cacheproxy.core.model import Census, Entry
from tests import rig
from tests.examples import OPERATIONS, SEED
from tests.fakes.backend import Exchange
from tests.proxy.dice import Traffic
from tests.proxy.test_counts import is_quiet

pytestmark = pytest.mark.timeout(120 + OPERATIONS // 20)

MAX_TTL, KEEP_STALE = 900.0, 300.0
"""Seconds. What may be served past its lifetime is kept as long as that may be."""
BOUNDS = {"exact__max_ttl": MAX_TTL, "exact__keep_stale": KEEP_STALE, "exact__negative_ttl": 60}
HOUSES = {
    "as long as may be": {"exact__ttl": MAX_TTL, "exact__models_ttl": MAX_TTL},
    "the backend's word": {"exact__honour_max_age": True, "exact__ttl": 60},
    "stale for long": {"exact__stale_while_revalidate": 200, "exact__stale_if_error": KEEP_STALE, "exact__ttl": 5},
    "variants and rules": {
        "exact__variants": 4, "exact__ttl": 9, "rules": [{"match": {"path": "/v1/chat/*"}, "set": {"ttl": MAX_TTL}}],
    },
}  # fmt: skip


def in_memory(proxy: rig.InProcess) -> list[Entry]:
    return list(proxy.house.store._front._entries.values())


def in_file(proxy: rig.InProcess) -> list[Entry]:
    """The entries in the file; each row states the end that its entry has."""
    connection = sqlite3.connect(proxy.house.store._back._store._path)
    rows = connection.execute("SELECT key, expires_at, blob FROM entry").fetchall()
    connection.close()
    found = [codec.decode(blob, key) for key, _, blob in rows]
    assert [e.expires_at for e in found] == [row[1] for row in rows]
    return found


async def written(proxy: rig.InProcess) -> None:
    file = proxy.house.store._back._store
    await rig.until(lambda: not (file._pending or file._writing), what="the writer")
    await rig.until(lambda: file.census().entries == len(in_file(proxy)), what="a count of the rows")


def assert_bounded(entries: list[Entry], now: float) -> None:
    for e in entries:
        assert all(map(math.isfinite, (e.stored_at, e.fresh_until, e.expires_at)))
        assert e.stored_at <= now
        assert e.stored_at < e.fresh_until <= e.stored_at + MAX_TTL
        assert e.fresh_until <= e.expires_at <= e.stored_at + MAX_TTL + KEEP_STALE
        if e.answer.status != 200:
            assert e.expires_at <= e.stored_at + 60


@pytest.mark.parametrize("name", HOUSES)
async def test_every_stored_answer_has_an_end_and_is_gone_after_it(clock, start, backend, tmp_path, name):
    """B78: hits, refreshes, errors and batches alike."""
    proxy = await start(**BOUNDS, **HOUSES[name], store__data_dir=str(tmp_path))
    traffic = Traffic(proxy, backend, clock, f"{SEED} {name}")
    costly = backend.script

    async def with_a_life_of_its_own(exchange: Exchange) -> None:
        usual, seconds = exchange.json, traffic.dice.choice([0, 7, 10**12])
        exchange.json = lambda *given: usual(*given, extra=b"Cache-Control: max-age=%d\r\n" % seconds)
        await costly(exchange)

    backend.script = with_a_life_of_its_own
    kept = 0
    for number in range(OPERATIONS // 6):
        await traffic.step()
        if number % 50 == 0:
            await is_quiet(proxy)
            await written(proxy)
            assert_bounded([*in_memory(proxy), *in_file(proxy)], clock.now())
            kept = max(kept, len(in_file(proxy)))
    assert kept > 10
    await is_quiet(proxy)
    clock.time += MAX_TTL + KEEP_STALE
    await proxy.house.store.sweep(clock.now())
    await rig.until(lambda: proxy.house.store.census() == Census(0, 0), what="an empty store")
    assert (in_memory(proxy), in_file(proxy)) == ([], [])
    gauges = proxy.house.telemetry.summary()
    assert (gauges["store_entries"], gauges["store_bytes"]) == (0, 0)


async def test_uses_do_not_prolong_a_life(clock, start, session, backend, tmp_path):
    """Not hits, not stale ones, not those that are composed or read from the file."""
    proxy = await start(exact__refresh=0, access__grant_ttl=10**8, store__data_dir=str(tmp_path))
    client = rig.Client(proxy.base, session)
    await client.chat(X_Cache_TTL="100")
    await written(proxy)
    ends = [e.expires_at for e in in_file(proxy)]
    began = clock.time
    await backend.stop()
    for passed in range(0, 700, 7):
        clock.time = began + passed
        await proxy.house.store._front.close()  # as after a restart: the next use reads the file
        wish = "max-stale" if passed >= 100 else "only-if-cached"
        answer = await client.chat(Cache_Control=f"{wish}, only-if-cached")
        assert answer.cache == ("STALE" if passed >= 100 else "HIT")
        assert [e.expires_at for e in in_memory(proxy)] == [e.expires_at for e in in_file(proxy)] == ends
    clock.time = ends[0]
    assert (await client.chat(Cache_Control="max-stale, only-if-cached")).status == 504
    await proxy.house.store.sweep(clock.now())
    await rig.until(lambda: proxy.house.store.census() == Census(0, 0), what="an empty store")
