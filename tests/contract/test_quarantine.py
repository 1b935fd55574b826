"""What every quarantine promises, whatever it is kept in."""
# ruff: noqa: F811 - fixtures are imported

import asyncio

import pytest

from tests.contract.quarantine_fixtures import join, quarantine, quarantine_kind  # noqa: F401
from tests.stores.entries import key_of

NOTE = bytes(range(64))


async def test_what_is_put_is_found_with_its_note_and_nothing_else(quarantine):
    await quarantine.put({key_of(1): NOTE, key_of(2): b""})
    found = await quarantine.among([key_of(n) for n in range(4)])
    assert found == {key_of(1): NOTE, key_of(2): b""}


async def test_nothing_is_asked_for_or_put(quarantine):
    await quarantine.put({})
    await quarantine.lift([])
    assert await quarantine.among([]) == {}


async def test_a_note_is_replaced(quarantine):
    await quarantine.put({key_of(1): b""})
    await quarantine.put({key_of(1): NOTE})
    assert await quarantine.among([key_of(1)]) == {key_of(1): NOTE}


async def test_what_is_lifted_is_gone_and_what_is_not_there_is_no_error(quarantine):
    await quarantine.put({key_of(1): b"", key_of(2): NOTE})
    await quarantine.lift([key_of(1), key_of(3)])
    assert await quarantine.among([key_of(1), key_of(2), key_of(3)]) == {key_of(2): NOTE}


async def test_many_at_once(quarantine):
    wanted = [key_of(n) for n in range(150)]
    await quarantine.put(dict.fromkeys(wanted[::2], b""))
    assert list(await quarantine.among(wanted)) == wanted[::2]


async def test_asked_by_many_at_the_same_time(quarantine):
    await quarantine.put({key_of(1): NOTE})
    found = await asyncio.gather(*(quarantine.among([key_of(n % 3)]) for n in range(60)))
    assert found == [{key_of(1): NOTE} if n % 3 == 1 else {} for n in range(60)]


@pytest.mark.parametrize("quarantine_kind", ["file"], indirect=True)
async def test_it_survives_a_restart(join):
    first = join()
    await first.put({key_of(1): NOTE, key_of(2): b""})
    await first.lift([key_of(2)])
    await first.close()
    assert await join().among([key_of(1), key_of(2)]) == {key_of(1): NOTE}


@pytest.mark.redis
@pytest.mark.parametrize("quarantine_kind", ["redis_acl", "redis_cluster"], indirect=True)
async def test_all_replicas_see_it_when_it_returns(join):
    one, other = join(), join()
    await one.put({key_of(1): NOTE})
    assert await other.among([key_of(1)]) == {key_of(1): NOTE}
    await other.lift([key_of(1)])
    assert await one.among([key_of(1)]) == {}
